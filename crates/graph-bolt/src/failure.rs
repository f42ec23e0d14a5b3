//! What can go wrong between this program and a graph server.

use std::io;
use std::time::Duration;

use tgp_contract::{Code, ToolError};

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("cannot reach the graph server at {server}: {source}")]
    Unreachable { server: String, source: io::Error },
    #[error("the connection to the graph server broke: {0}")]
    Connection(#[from] io::Error),
    #[error("the graph server does not speak Bolt as it should: {0}")]
    Protocol(String),
    #[error("the graph server speaks no version of Bolt that is known here (4.1 to 5.4)")]
    Version,
    #[error("the graph server did not answer within {} seconds", .0.as_secs())]
    Slow(Duration),
    /// The server's own word.
    #[error("the graph server refused: {message} ({code})")]
    Refused { code: String, message: String },
    #[error("{0}")]
    Told(Box<ToolError>),
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Told(Box::new(error))
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        let (code, help) = match failure {
            Failure::Told(error) => return *error,
            Failure::Unreachable { .. } | Failure::Connection(_) => {
                (Code::Fetch, "see that the server runs, and that its address and encryption are right")
            }
            Failure::Protocol(_) | Failure::Version => {
                (Code::Fetch, "see that the address is the server's Bolt port and not another one")
            }
            Failure::Slow(_) => (Code::Budget, "ask for less: fewer hops, a label, a path, a LIMIT"),
            Failure::Refused { code, .. } => {
                let (kind, help) = refused(&code);
                return ToolError::new(kind, message).detail("server", code).help(help);
            }
        };
        ToolError::new(code, message).help(help)
    }
}

/// The codes are Neo4j's, and the others have taken them over.
fn refused(code: &str) -> (Code, &'static str) {
    if code.contains(".Security.") {
        (Code::Permission, "check the user, the password and the rights of that user")
    } else if code.contains("TimedOut") || code.contains("Timeout") {
        (Code::Budget, "ask for less: fewer hops, a label, a path, a LIMIT")
    } else if code.contains("Database.DatabaseNotFound") {
        (Code::Config, "name a database that the server has")
    } else if code.starts_with("Neo.ClientError.") {
        (Code::Validation, "the server knows less of Cypher than the embedded store; say it in simpler words")
    } else {
        (Code::Fetch, "look at the server's log, and try again")
    }
}
