//! A server from the words of the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use tgp::contract::{Code, ToolError};
use tgp::upstream::{HttpServer, ServerDefinition, StdioServer, ValueSource};

/// How a value says that it is a secret of the project, or a variable of another name.
const SECRET: &str = "secret:";
const VARIABLE: &str = "env:";

#[derive(Debug, Args)]
pub(super) struct DefinitionArgs {
    /// The address of a server over HTTP.
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// A variable that it gets: NAME, NAME=VALUE, NAME=secret:NAME, NAME=env:NAME.
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "url")]
    env: Vec<String>,
    /// A file or folder that it reads.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    read: Vec<PathBuf>,
    /// A file or folder that it changes.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    write: Vec<PathBuf>,
    /// A host that it reaches: api.example.com, *.example.com.
    #[arg(long, value_name = "HOST", conflicts_with = "url")]
    host: Vec<String>,
    /// A header of each request: NAME=VALUE, NAME=secret:NAME.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "command")]
    header: Vec<String>,
    /// The program of the server, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl DefinitionArgs {
    pub(super) fn into_definition(self) -> Result<ServerDefinition, ToolError> {
        if let Some(url) = self.url {
            return Ok(ServerDefinition::Http(HttpServer { url, headers: values(&self.header, false)? }));
        }
        if self.command.is_empty() {
            let message = "neither a command nor an address was given";
            return Err(ToolError::new(Code::Validation, message)
                .help("write the command after `--`, as in `tgp upstream add NAME -- node server.js`"));
        }
        Ok(ServerDefinition::Stdio(StdioServer {
            command: self.command,
            env: values(&self.env, true)?,
            read: absolute(self.read)?,
            write: absolute(self.write)?,
            hosts: self.host,
        }))
    }
}

/// Names with their values. A variable without one has the value that it has now, each time the server starts.
fn values(words: &[String], may_be_bare: bool) -> Result<BTreeMap<String, ValueSource>, ToolError> {
    let mut found = BTreeMap::new();
    for word in words {
        let (name, source) = match word.split_once('=') {
            Some((name, value)) => (name, source(value)),
            None if may_be_bare => (word.as_str(), ValueSource::Env(word.clone())),
            None => {
                return Err(ToolError::new(Code::Validation, format!("`{word}` has no value"))
                    .help("write NAME=VALUE, or NAME=secret:NAME for a secret of the project"));
            }
        };
        found.insert(name.to_owned(), source);
    }
    Ok(found)
}

fn source(value: &str) -> ValueSource {
    if let Some(name) = value.strip_prefix(SECRET) {
        ValueSource::Secret(name.to_owned())
    } else if let Some(name) = value.strip_prefix(VARIABLE) {
        ValueSource::Env(name.to_owned())
    } else {
        ValueSource::Value(value.to_owned())
    }
}

/// Paths as the server will be given them, whatever directory it is started from.
fn absolute(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, ToolError> {
    let one = |path: PathBuf| {
        path.canonicalize().map_err(|error| {
            ToolError::new(Code::NotFound, format!("`{}` cannot be used: {error}", path.display()))
                .help("name a file or folder that is there")
        })
    };
    paths.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use tgp::upstream::ValueSource;

    use super::values;

    #[test]
    fn a_value_says_where_it_comes_from() {
        let words = ["HOME", "KEY=secret:GITHUB", "MODE=a=b", "PATH2=env:PATH", "EMPTY="].map(str::to_owned);
        let found = values(&words, true).unwrap();
        for (name, expected) in [
            ("HOME", ValueSource::Env("HOME".to_owned())),
            ("KEY", ValueSource::Secret("GITHUB".to_owned())),
            ("MODE", ValueSource::Value("a=b".to_owned())),
            ("PATH2", ValueSource::Env("PATH".to_owned())),
            ("EMPTY", ValueSource::Value(String::new())),
        ] {
            assert_eq!(found.get(name), Some(&expected), "{name}");
        }
        assert!(values(&["X".to_owned()], false).is_err());
    }
}
