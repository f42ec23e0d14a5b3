//! Where a graph server is, and how much it may be asked for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tgp_contract::{Code, ToolError};
use url::{Host, Url};

const HELP: &str = "use bolt://user:password@localhost:7687/database, or bolt+s:// for a server elsewhere";
const PORT: u16 = 7687;
/// As the embedded store: see `cypher`.
const ROWS: usize = 10_000;
const BYTES: usize = 16 << 20;
const TIME: Duration = Duration::from_secs(10);
/// Writing a batch may wait for a disk and for other writers.
const WRITE_TIME: Duration = Duration::from_secs(120);

/// A graph server. `Debug` and `Display` show neither user nor password.
#[derive(Clone)]
pub struct BoltOptions {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) encrypted: bool,
    pub(super) user: String,
    pub(super) password: String,
    /// Without it the server takes its default one.
    pub(super) database: Option<String>,
    /// A PEM file of authorities, instead of the public ones.
    pub(super) authorities: Option<PathBuf>,
    /// Rows of an answer; what is beyond is said to be missing.
    pub max_rows: usize,
    /// Bytes of an answer as they come from the server, for the same reason.
    pub max_bytes: usize,
    /// How long one question may take, the way to the server included.
    pub time: Duration,
    /// How long one batch of an ingest may take.
    pub write_time: Duration,
    /// Whether labels, types and properties that the code graph has not are taken: a server may hold more than it.
    pub any_names: bool,
}

impl BoltOptions {
    /// Reads `bolt://[user:password@]host[:port][/database]`, or `bolt+s://` for an encrypted connection.
    ///
    /// # Errors
    /// `ECONFIG` with the accepted forms, never with a part of the text that could be a password; also for a password
    /// that would go over a network as it is.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let url =
            Url::parse(text.trim()).map_err(|_| refusal("the address of the graph server is not a URL"))?;
        let encrypted = match url.scheme() {
            "bolt" => false,
            "bolt+s" => true,
            "neo4j" | "neo4j+s" => return Err(refusal("routing over a cluster is not supported")),
            "bolt+ssc" | "neo4j+ssc" => {
                return Err(refusal("a self-signed certificate is not accepted; name its authority"));
            }
            _ => return Err(refusal("a graph server is reached by bolt:// or bolt+s://")),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refusal("the address of a graph server has no settings after `?` or `#`"));
        }
        let host =
            url.host().ok_or_else(|| refusal("the address of the graph server has no host"))?.to_owned();
        let words = |text: &str| {
            let decoded = percent_decoded(text);
            decoded.ok_or_else(|| refusal("the address of the graph server is not UTF-8"))
        };
        let password = words(url.password().unwrap_or_default())?;
        if !encrypted && !password.is_empty() && !tgp_net::is_loopback_host(&host) {
            return Err(refusal("a password may not go over a network without encryption"));
        }
        let path = url.path().trim_start_matches('/');
        if path.contains('/') {
            return Err(refusal("the name of a database has no `/`"));
        }
        let database = Some(words(path)?).filter(|name| !name.is_empty());
        Ok(Self {
            host: match host {
                Host::Domain(name) => percent_decoded(&name).unwrap_or(name),
                Host::Ipv4(address) => address.to_string(),
                Host::Ipv6(address) => address.to_string(),
            },
            port: url.port().unwrap_or(PORT),
            encrypted,
            user: words(url.username())?,
            password,
            database,
            authorities: None,
            max_rows: ROWS,
            max_bytes: BYTES,
            time: TIME,
            any_names: false,
            write_time: WRITE_TIME,
        })
    }

    /// With the authorities of a PEM file instead of the public ones.
    #[must_use]
    pub fn authorities(mut self, file: impl AsRef<Path>) -> Self {
        self.authorities = Some(file.as_ref().to_owned());
        self
    }
}

impl fmt::Display for BoltOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "bolt+s" } else { "bolt" };
        write!(formatter, "{scheme}://{}:{}", self.host, self.port)?;
        self.database.as_ref().map_or(Ok(()), |name| write!(formatter, "/{name}"))
    }
}

impl fmt::Debug for BoltOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BoltOptions({self})")
    }
}

fn refusal(message: &str) -> ToolError {
    ToolError::new(Code::Config, message).help(HELP)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8(bytes).ok()
}
