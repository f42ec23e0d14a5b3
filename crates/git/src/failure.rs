//! How errors of git2 and of the disk become the one error shape.

use std::io;
use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError, background};

/// What went wrong with the repository itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{doing}: {}", .source.message())]
    Git { doing: &'static str, source: git2::Error },
    #[error("{doing} `{}`: {source}", .path.display())]
    Disk { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("a worker thread ended before its work did")]
    Thread,
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let error = ToolError::new(Code::Git, failure.to_string());
        match failure {
            Failure::Git { source, .. } if source.code() == git2::ErrorCode::Owner => error.help(
                "the repository belongs to another user of this machine; run as that user or change its owner",
            ),
            Failure::Git { .. } => error.help(
                "run `git fsck` in the tool repository; a new clone of the remote replaces what cannot be repaired",
            ),
            Failure::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                error.help("the disk is full; free some space and run `tgp sync`")
            }
            Failure::Disk { .. } => error.help("see that the tool repository can be written"),
            Failure::Thread => error.help("try again"),
        }
    }
}

/// Says what was being done when git2 failed.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, ToolError>;
}

impl<T> Doing<T> for Result<T, git2::Error> {
    fn doing(self, doing: &'static str) -> Result<T, ToolError> {
        self.map_err(|source| Failure::Git { doing, source }.into())
    }
}

/// Says what was being done to which file when the disk failed.
pub(crate) trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, ToolError>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, ToolError> {
        self.map_err(|source| Failure::Disk { doing, path: path.to_owned(), source: source.into() }.into())
    }
}

/// Says that a commit is in place, though what has to follow it failed. The next writer finishes that.
pub(crate) fn after_commit(error: ToolError) -> ToolError {
    let message =
        format!("the change is committed, but the working tree has not followed: {}", error.message);
    let help = "do not write it again: see that the disk has room, and the next `tgp sync` finishes the work";
    error.with_message(message).help(help).after_effect()
}

/// Runs blocking work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    // The repository's lock bounds how much of it there is, and it may wait for the compile worker.
    background::run_bounded(work).await
}
