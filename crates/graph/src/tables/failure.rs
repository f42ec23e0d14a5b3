//! What can fail below the store, and the error that the caller gets then.

use tgp_contract::{Code, ToolError};

/// Why the store of the graph failed.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error("the graph's store failed: {0}")]
    Store(#[from] rusqlite::Error),
    #[error("git failed: {}", .0.message())]
    Git(#[from] git2::Error),
    #[error("cannot read `{path}`: {source}")]
    File { path: String, source: std::io::Error },
    #[error("a record of the graph's store cannot be read: {0}")]
    Record(#[from] postcard::Error),
    #[error("a note of the graph's store cannot be read: {0}")]
    Note(#[from] serde_json::Error),
    #[error("{0}")]
    Told(Box<ToolError>),
}

impl GraphError {
    /// Whether git does not have what was asked for.
    pub(crate) fn is_missing_object(&self) -> bool {
        matches!(self, Self::Git(error) if error.code() == git2::ErrorCode::NotFound)
    }
}

impl From<ToolError> for GraphError {
    fn from(error: ToolError) -> Self {
        Self::Told(Box::new(error))
    }
}

impl From<GraphError> for ToolError {
    fn from(error: GraphError) -> Self {
        let message = error.to_string();
        match error {
            GraphError::Told(told) => *told,
            GraphError::Git(_) => {
                ToolError::new(Code::Git, message).help("run `git fsck` in the project to see what is wrong")
            }
            GraphError::File { .. } => {
                ToolError::new(Code::Permission, message).help("check the permissions of the project's files")
            }
            GraphError::Store(_) | GraphError::Record(_) | GraphError::Note(_) => {
                ToolError::new(Code::Internal, message).help(
                    "run `tgp graph ingest`, which reads everything again; if it fails too, check the disk that the store is on",
                )
            }
        }
    }
}
