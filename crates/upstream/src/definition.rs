//! What a person has said about a server: how it is reached, and what it gets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tgp_contract::{Code, ToolError};
use tgp_fetch::ProxyHosts;

/// The longest name of a server: it stands in import paths, file names and rules.
pub(crate) const MAX_NAME: usize = 40;

/// A server as its user has added it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "snake_case")]
pub enum ServerDefinition {
    Stdio(StdioServer),
    Http(HttpServer),
}

/// A program that speaks over its standard input and output, in the jail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StdioServer {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// All the variables that it has in addition to the usual ones of the jail.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, ValueSource>,
    /// Files and folders that it reads, and runs programs from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Files and folders that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Hosts that it reaches through the proxy of the kernel; none without an entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// A server that is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HttpServer {
    pub url: String,
    /// Headers of every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, ValueSource>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    /// As it is written.
    Value(String),
    /// A variable of the environment that the kernel was started in.
    Env(String),
    /// A secret of the project's configuration, by its name.
    Secret(String),
}

impl ServerDefinition {
    /// The names of the secrets that the server gets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let values = match self {
            Self::Stdio(server) => &server.env,
            Self::Http(server) => &server.headers,
        };
        values.values().filter_map(|source| match source {
            ValueSource::Secret(name) => Some(name.as_str()),
            ValueSource::Value(_) | ValueSource::Env(_) => None,
        })
    }

    /// Hosts that are reached for its calls, without their ports. `*.example.com` is one of them as it is.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        match self {
            Self::Stdio(server) => server.hosts.iter().map(|entry| host_of(entry)).collect(),
            Self::Http(server) => url::Url::parse(&server.url)
                .ok()
                .and_then(|url| url.host_str().map(str::to_lowercase))
                .into_iter()
                .collect(),
        }
    }

    /// Whether it can be used at all.
    ///
    /// # Errors
    /// `ECONFIG` with what is wrong.
    pub fn check(&self) -> Result<(), ToolError> {
        let wrong = |message: String| Err(ToolError::new(Code::Config, message));
        match self {
            Self::Stdio(server) => {
                if server.command.first().is_none_or(String::is_empty) {
                    return wrong("the definition names no command".to_owned());
                }
                for path in server.read.iter().chain(&server.write) {
                    if !path.is_absolute() {
                        return wrong(format!("`{}` is not an absolute path", path.display()));
                    }
                }
                if let Err(error) = ProxyHosts::parse(&server.hosts) {
                    return wrong(format!("the host `{}` {}", error.entry().escape_debug(), error.problem()));
                }
                match server.env.keys().find(|name| !is_variable(name)) {
                    Some(name) => wrong(format!("`{}` is not the name of a variable", name.escape_debug())),
                    None => Ok(()),
                }
            }
            Self::Http(server) => check_url(&server.url),
        }
    }
}

/// The host of an entry: without port, brackets and final dot.
fn host_of(entry: &str) -> String {
    let host = match entry.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None if entry.matches(':').count() > 1 => entry,
        None => entry.split(':').next().unwrap_or(entry),
    };
    host.trim_end_matches('.').to_lowercase()
}

/// A key may be sent with every request, so only this machine is reached without encryption.
fn check_url(text: &str) -> Result<(), ToolError> {
    let wrong = |message: String| Err(ToolError::new(Code::Config, message));
    let Ok(url) = url::Url::parse(text) else {
        return wrong(format!("`{}` is not a URL", text.escape_debug()));
    };
    let is_here = tgp_net::is_loopback(&url);
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_here => Ok(()),
        "http" => {
            wrong(format!("`{url}` is not encrypted; only servers of this machine are reached with http"))
        }
        other => wrong(format!("`{other}:` cannot be used; an upstream server has an https URL")),
    }
}

fn is_variable(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty() && name.chars().all(is_plain) && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether a text can name a server: what `mcp:NAME`, rules and file names can all hold.
///
/// # Errors
/// `EVALIDATION` with what a name has.
pub fn check_server_name(name: &str) -> Result<(), ToolError> {
    if is_server_name(name) {
        return Ok(());
    }
    let message = format!("`{}` cannot name a server", name.escape_debug());
    Err(ToolError::new(Code::Validation, message).help(format!(
        "a name has 1 to {MAX_NAME} lower-case letters, digits and `-`, and begins with a letter"
    )))
}

pub(crate) fn is_server_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    name.len() <= MAX_NAME
        && name.chars().all(is_plain)
        && name.starts_with(|first: char| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{HttpServer, ServerDefinition, StdioServer, ValueSource, check_server_name};

    #[test]
    fn names_fit_imports_rules_and_files() {
        for good in ["linear", "a", "my-server-2"] {
            assert!(check_server_name(good).is_ok(), "{good}");
        }
        for bad in ["", "Linear", "2fa", "-x", "a.b", "a/b", "../x", "a b", &"x".repeat(41)] {
            assert!(check_server_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_definition_is_checked() {
        let stdio = |command: &[&str], path: &str, variable: &str| {
            ServerDefinition::Stdio(StdioServer {
                command: command.iter().map(|&word| word.to_owned()).collect(),
                read: vec![path.into()],
                env: BTreeMap::from([(variable.to_owned(), ValueSource::Env("HOME".to_owned()))]),
                ..StdioServer::default()
            })
        };
        let http =
            |url: &str| ServerDefinition::Http(HttpServer { url: url.to_owned(), headers: BTreeMap::new() });
        for (definition, problem) in [
            (stdio(&["node", "x.js"], "/srv", "KEY"), ""),
            (stdio(&[], "/srv", "KEY"), "names no command"),
            (stdio(&["node"], "srv", "KEY"), "not an absolute path"),
            (stdio(&["node"], "/srv", "A=B"), "not the name of a variable"),
            (http("https://mcp.example.com/mcp"), ""),
            (http("http://127.0.0.1:9/mcp"), ""),
            (http("http://mcp.example.com/mcp"), "not encrypted"),
            (http("file:///etc/passwd"), "cannot be used"),
            (http("mcp"), "is not a URL"),
        ] {
            let checked = definition.check().err().map(|error| error.message).unwrap_or_default();
            let fits = if problem.is_empty() { checked.is_empty() } else { checked.contains(problem) };
            assert!(fits, "{definition:?}: {checked}");
        }
    }

    #[test]
    fn hosts_are_named_as_rules_name_them() {
        let hosts = ["api.example.com:8443", "LOCALHOST:1", "[::1]:9", "::1", "*.example.org", "a.example."];
        let server = StdioServer { hosts: hosts.map(str::to_owned).to_vec(), ..StdioServer::default() };
        let named = ServerDefinition::Stdio(server).hosts();
        assert_eq!(named, ["api.example.com", "localhost", "::1", "::1", "*.example.org", "a.example"]);
    }

    #[test]
    fn a_definition_reads_back_as_it_was_written() {
        let text = r#"{"transport":"stdio","command":["node","a.js"],"env":{"KEY":{"secret":"GITHUB"}},"hosts":["api.example.com"]}"#;
        let definition: ServerDefinition = serde_json::from_str(text).unwrap();
        assert_eq!(definition.secrets().collect::<Vec<_>>(), ["GITHUB"]);
        assert_eq!(serde_json::to_string(&definition).unwrap(), text);
        let unknown = r#"{"transport":"stdio","command":["node"],"privileged":true}"#;
        assert!(serde_json::from_str::<ServerDefinition>(unknown).is_err());
    }
}
