//! URLs of databases.

use tgp_sql::DatabaseUrl;

use super::{ensure, same, text};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "database-url",
    about: "neither the shown form of a URL nor the error about it has a password in it, and the shown form does not depend on it",
    oracle: check,
    dictionary: &[
        "postgres://",
        "postgresql://",
        "mysql://",
        "mariadb://",
        "sqlite:",
        "sqlite://",
        "file:",
        "user",
        ":",
        "@",
        "/",
        "//",
        "?",
        "&",
        "#",
        "%40",
        "%2F",
        "%00",
        "%",
        "+",
        "localhost",
        "127.0.0.1",
        "[::1]",
        ":5432",
        ":99999",
        "db",
        "sslmode=require",
        "sslrootcert=/a",
        "password=",
        "user=x",
        "host=/run/pg",
        "host=a,b",
        "options=-c",
        "ssl-mode=REQUIRED",
        "ssl-ca=/a",
        "socket=/run/m",
        "connect_timeout=5",
        "port=1",
        "dbname=x",
        "hostaddr=127.0.0.1",
        ":memory:",
        "\\",
        " ",
        "\n",
        "\0",
        "é",
    ],
    generate: None,
    iterations: 80_000,
};

/// Represents a password: no URL has it by chance.
const SECRET: &str = "sEcReT7q";
const SERVERS: [&str; 4] = ["postgres:", "postgresql:", "mysql:", "mariadb:"];

fn check(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let Ok(url) = DatabaseUrl::parse(&text) else { return replaced(&text, None) };
    let shown = url.to_string();
    ensure!(format!("{url:?}").contains(&shown), "`Debug` shows another URL");
    if let Some(file) = url.sqlite_file() {
        same("the file", &format!("sqlite:{}", file.display()), &shown)?;
        // `sqlite://a` is the file `a`, so a path that begins with two slashes has no URL.
        if shown.starts_with("sqlite://") {
            return Ok(());
        }
        let again =
            DatabaseUrl::parse(&shown).map_err(|error| format!("its own form is refused: {error}"))?;
        same("the file does not round-trip", &again.sqlite_file(), &Some(file))?;
    }
    replaced(&text, Some(&shown))
}

/// The same URL with another password.
fn replaced(text: &str, shown: Option<&str>) -> Result<(), String> {
    let text = text.trim();
    // Without the name of a server it is a path, and a path is shown.
    let Some(scheme) = SERVERS.iter().find(|scheme| text.starts_with(**scheme)) else { return Ok(()) };
    let rest = text.get(scheme.len()..).unwrap_or_default();
    let begin = rest.len() - rest.trim_start_matches('/').len();
    let authority = rest.get(begin..).unwrap_or_default();
    if let Some((user, host)) = authority.split_once('@')
        && let Some((name, _)) = user.split_once(':')
    {
        let slashes = rest.get(..begin).unwrap_or_default();
        hidden(&format!("{scheme}{slashes}{name}:{SECRET}@{host}"), shown)?;
    }
    if scheme.starts_with("postgres") && rest.starts_with("//") {
        let joint = if rest.contains('?') { "&" } else { "?" };
        hidden(&format!("{text}{joint}password={SECRET}"), shown)?;
    }
    Ok(())
}

fn hidden(text: &str, shown: Option<&str>) -> Result<(), String> {
    match (DatabaseUrl::parse(text), shown) {
        (Ok(url), Some(shown)) => {
            ensure!(!format!("{url:?} {url}").contains(SECRET), "the password of {text:?} is shown: {url}");
            same("the shown form depends on the password", &url.to_string().as_str(), &shown)
        }
        (Ok(url), None) => {
            ensure!(!format!("{url:?} {url}").contains(SECRET), "the password of {text:?} is shown: {url}");
            Ok(())
        }
        (Err(error), _) => {
            let json = serde_json::to_string(&error).map_err(|error| error.to_string())?;
            ensure!(!json.contains(SECRET), "the error has the password of {text:?}: {json}");
            Ok(())
        }
    }
}
