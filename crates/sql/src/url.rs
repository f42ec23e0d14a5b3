//! The URL of a database: read once, checked, and never shown with its password.

use std::fmt;
use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError};
use tokio_postgres::config::{Host, SslMode};

const HELP: &str = "use a file path, sqlite:PATH, postgres://user:password@host:5432/database or \
                    mysql://user:password@host:3306/database";

/// What a PostgreSQL URL may set in addition to the parts before the question mark.
const POSTGRES_SETTINGS: [&str; 10] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "application_name",
    "connect_timeout",
    "options",
    "target_session_attrs",
];

/// Where a database is. `Debug` and `Display` leave the password and every setting out.
#[derive(Clone)]
pub struct DatabaseUrl {
    target: Target,
    shown: String,
}

#[derive(Clone)]
pub(crate) enum Target {
    Sqlite(PathBuf),
    Postgres(Box<PostgresTarget>),
    MySql(Box<MySqlTarget>),
}

#[derive(Clone)]
pub(crate) struct PostgresTarget {
    pub config: tokio_postgres::Config,
    pub tls: Tls,
}

#[derive(Clone)]
pub(crate) struct MySqlTarget {
    pub options: mysql_async::Opts,
    pub socket: Option<String>,
    pub tls: Tls,
}

/// Whether the connection is encrypted. When it is, the server's certificate and name are always checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    Plain,
    /// With the authorities of a PEM file instead of the public ones.
    Verified {
        authorities: Option<PathBuf>,
    },
}

impl DatabaseUrl {
    /// Reads `sqlite:PATH`, a path, `postgres://…`, `postgresql://…`, `mysql://…` or `mariadb://…`.
    ///
    /// PostgreSQL: `sslmode` is `disable` (the default), `require` or `verify-full`, and the last two are the same here;
    /// `sslrootcert=PATH` brings an authority; `host=/directory` names a Unix socket. MySQL: `ssl-mode` is `DISABLED`
    /// (the default), `REQUIRED` or `VERIFY_IDENTITY`; `ssl-ca=PATH`; `socket=/path`.
    ///
    /// # Errors
    /// `ECONFIG` with the accepted forms; never with a part of the text that could be a password.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let text = text.trim();
        if text.is_empty() || text.contains('\0') {
            return Err(refusal("the database URL is empty or not a text"));
        }
        match text.split_once(':') {
            Some(("sqlite", path)) => sqlite(path.strip_prefix("//").unwrap_or(path)),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => postgres(rest),
            Some(("mysql" | "mariadb", rest)) if rest.starts_with("//") => mysql(rest),
            Some((scheme, rest)) if rest.starts_with("//") || scheme == "file" => {
                Err(refusal(&format!("databases of the kind `{}` are not supported", clip(scheme))))
            }
            Some(("postgres" | "postgresql" | "mysql" | "mariadb", _)) => {
                Err(refusal("the database URL has no `//` behind its scheme"))
            }
            _ if text.contains("password=") => Err(refusal("the database URL is a list of settings")),
            _ => sqlite(text),
        }
    }

    /// A SQLite file.
    #[must_use]
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let shown = format!("sqlite:{}", path.display());
        Self { target: Target::Sqlite(path), shown }
    }

    /// The same, with a relative SQLite path taken from `base`.
    #[must_use]
    pub fn below(self, base: &Path) -> Self {
        match self.target {
            Target::Sqlite(path) => Self::sqlite(base.join(path)),
            _ => self,
        }
    }

    /// The file of a SQLite database.
    #[must_use]
    pub fn sqlite_file(&self) -> Option<&Path> {
        match &self.target {
            Target::Sqlite(path) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DatabaseUrl({})", self.shown)
    }
}

impl std::str::FromStr for DatabaseUrl {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        Self::parse(text)
    }
}

fn refusal(message: &str) -> ToolError {
    ToolError::new(Code::Config, message).detail("field", "db.url").help(HELP)
}

/// Names in messages come from the URL's harmless parts, and are short.
fn clip(name: &str) -> String {
    const LONGEST_NAME: usize = 32;
    name.chars().take(LONGEST_NAME).collect()
}

fn sqlite(path: &str) -> Result<DatabaseUrl, ToolError> {
    if path.is_empty() {
        return Err(refusal("the SQLite URL names no file"));
    }
    if path == ":memory:" || path.starts_with("file:") || path.contains('?') {
        return Err(refusal("a SQLite database is a plain file: no `:memory:`, no URI and no settings"));
    }
    Ok(DatabaseUrl::sqlite(path))
}

/// The settings after the question mark, undecoded.
fn settings(query: &str) -> Result<Vec<(&str, &str)>, ToolError> {
    let pieces = query.split('&').filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            piece.split_once('=').ok_or_else(|| refusal("a setting of the database URL has no value"))
        })
        .collect()
}

fn decoded(value: &str) -> String {
    // Form encoding reads `+` as a blank, which a path may contain.
    let value = value.replace('+', "%2B");
    url::form_urlencoded::parse(format!("v={value}").as_bytes())
        .map(|(_, value)| value.into_owned())
        .collect()
}

fn unknown_setting(name: &str) -> ToolError {
    refusal(&format!("the database URL has an unknown setting `{}`", clip(name)))
}

/// Refuses an address that two programs could take apart differently: what a person was shown and confirmed must be what
/// is connected to.
fn check_address(rest: &str) -> Result<(), ToolError> {
    let refused = |message: &str, help: &str| Err(refusal(message).help(help));
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let host = match rest.split_once('@') {
        None => rest,
        Some((user, host)) if user.contains(['/', '?', '#']) || host.contains('@') => {
            return refused(
                "the database URL has an `@` outside of its user part, or a special character in it",
                "write special characters of the password in the form %40 (`@`), %2F (`/`), %3F (`?`) or %23 (`#`), as in \
                 postgres://user:p%40ss@host:5432/database",
            );
        }
        Some((_, host)) => host,
    };
    if host.split(['/', '?']).next().unwrap_or_default().contains(',') {
        return refused("the database URL names more than one server", HELP);
    }
    Ok(())
}

fn postgres(rest: &str) -> Result<DatabaseUrl, ToolError> {
    check_address(rest)?;
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut tls, mut authorities, mut kept) = (false, None, Vec::new());
    for (name, value) in settings(query)? {
        match (name, value) {
            ("sslmode", "disable") => tls = false,
            ("sslmode", "require" | "verify-full") => tls = true,
            ("sslmode", _) => return Err(refusal("`sslmode` must be disable, require or verify-full")),
            ("sslrootcert", path) => authorities = Some(PathBuf::from(decoded(path))),
            (name, value) if POSTGRES_SETTINGS.contains(&name) => kept.push(format!("{name}={value}")),
            (name, _) => return Err(unknown_setting(name)),
        }
    }
    // The driver's own words may repeat a part of the URL, so they are left out.
    let mut config: tokio_postgres::Config = format!("postgresql:{base}?{}", kept.join("&"))
        .parse()
        .map_err(|_| refusal("the PostgreSQL URL cannot be read"))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        config.host("localhost");
    }
    if config.get_user().is_none() {
        return Err(refusal("the PostgreSQL URL names no user"));
    }
    config.ssl_mode(if tls { SslMode::Require } else { SslMode::Disable });
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    let shown = format!("postgresql://{host}/{}", config.get_dbname().unwrap_or_default());
    let tls = if tls { Tls::Verified { authorities } } else { Tls::Plain };
    Ok(DatabaseUrl { target: Target::Postgres(Box::new(PostgresTarget { config, tls })), shown })
}

fn mysql(rest: &str) -> Result<DatabaseUrl, ToolError> {
    check_address(rest)?;
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut tls, mut authorities, mut socket) = (false, None, None);
    for (name, value) in settings(query)? {
        match (name, value.to_ascii_uppercase().as_str()) {
            ("ssl-mode", "DISABLED") => tls = false,
            ("ssl-mode", "REQUIRED" | "VERIFY_CA" | "VERIFY_IDENTITY") => tls = true,
            ("ssl-mode", _) => {
                return Err(refusal("`ssl-mode` must be DISABLED, REQUIRED or VERIFY_IDENTITY"));
            }
            ("ssl-ca", _) => authorities = Some(PathBuf::from(decoded(value))),
            ("socket", _) => socket = Some(decoded(value)),
            (name, _) => return Err(unknown_setting(name)),
        }
    }
    let options = mysql_async::Opts::from_url(&format!("mysql:{base}"))
        .map_err(|_| refusal("the MySQL URL cannot be read"))?;
    let host = socket.clone().unwrap_or_else(|| options.ip_or_hostname().to_owned());
    let shown = format!("mysql://{host}/{}", options.db_name().unwrap_or_default());
    let tls = if tls { Tls::Verified { authorities } } else { Tls::Plain };
    Ok(DatabaseUrl { target: Target::MySql(Box::new(MySqlTarget { options, socket, tls })), shown })
}
