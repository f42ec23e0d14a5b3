//! One trait for every file system a tool or the kernel may see.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Code, PathError, RelativePath, ToolError};

/// What is at a path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    File,
    Directory,
    /// A symbolic link or a special file. It is listed so that nothing is hidden, and never followed.
    Other,
}

/// One row of a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    pub path: RelativePath,
    pub kind: EntryKind,
    /// Bytes of a file, 0 otherwise.
    pub size: u64,
}

/// One change of a batch. Copies of it share the content: a change is judged, shown and applied by several parts of the
/// kernel, and each of them holding its own copy of a large file would multiply the memory a caller can make it use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Write { path: RelativePath, content: Arc<[u8]> },
    Remove { path: RelativePath },
}

impl Change {
    #[must_use]
    pub fn path(&self) -> &RelativePath {
        match self {
            Self::Write { path, .. } | Self::Remove { path } => path,
        }
    }

    /// The bytes that the file has afterwards; `None` when it is removed.
    #[must_use]
    pub fn content(&self) -> Option<&[u8]> {
        match self {
            Self::Write { content, .. } => Some(content),
            Self::Remove { .. } => None,
        }
    }
}

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    #[error("no such file or directory: `{0}`")]
    NotFound(RelativePath),
    #[error("security violation: {reason}: `{path}`")]
    Security { path: String, reason: &'static str },
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("`{path}` is not UTF-8 text: bad byte at offset {offset}")]
    NotText { path: RelativePath, offset: usize },
    #[error("`{0}` is a directory, not a file")]
    IsDirectory(RelativePath),
    #[error("`{0}` is a file, not a directory")]
    NotDirectory(RelativePath),
    #[error("`{path}` has {size} bytes, more than the {limit} allowed")]
    TooLarge { path: RelativePath, size: u64, limit: u64 },
    /// A path that is written or listed has more names than a listing would follow.
    #[error("`{path}` is deeper than {limit} directories")]
    TooDeep { path: RelativePath, limit: usize },
    #[error("`{path}` has more than {limit} entries")]
    TooMany { path: RelativePath, limit: usize },
    #[error("cannot access `{path}`: {source}")]
    Io { path: RelativePath, source: std::io::Error },
}

impl FsError {
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::NotFound(_) => Code::NotFound,
            Self::Security { .. } => Code::Security,
            Self::Path(error) => error.code(),
            Self::NotText { .. }
            | Self::IsDirectory(_)
            | Self::NotDirectory(_)
            | Self::TooLarge { .. }
            | Self::TooDeep { .. }
            | Self::TooMany { .. } => Code::Validation,
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                Code::Permission
            }
            Self::Io { .. } => Code::Internal,
        }
    }
}

impl From<FsError> for ToolError {
    fn from(error: FsError) -> Self {
        let help = match &error {
            FsError::NotFound(_) => "list the directory above it to see what is there",
            FsError::Security { .. } | FsError::Path(_) => {
                "name a file below the root, without links that leave it"
            }
            FsError::NotText { .. } => "only UTF-8 files can be read as text",
            FsError::IsDirectory(_) => "name a file inside it",
            FsError::NotDirectory(_) => "name the directory that holds it",
            FsError::TooLarge { .. } => "split the file or write less",
            FsError::TooDeep { .. } => "use a path with fewer directories",
            FsError::TooMany { .. } => "list a smaller directory",
            FsError::Io { .. } => "check the permissions and the free space of the disk",
        };
        ToolError::new(error.code(), error.to_string()).help(help)
    }
}

/// Decides on a batch, while it can still be undone; `false` undoes it.
pub type CommitVote<'a> = &'a mut dyn FnMut() -> bool;

/// A tree of files below one root. No operation reaches anything outside it.
pub trait FileSystem: Send + Sync {
    /// The exact bytes of a file.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`, or a violation.
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError>;

    /// What is at `path`, without following links; `None` when nothing is.
    ///
    /// # Errors
    /// When a part of the way leaves the root or cannot be read.
    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError>;

    /// Everything below `directory`, recursively, sorted by path.
    ///
    /// # Errors
    /// `NotFound` or `NotDirectory`.
    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError>;

    /// Applies all changes or none of them. A write makes the missing parents and replaces the file atomically;
    /// removing what does not exist is not an error. `last_word` is asked once, when nothing of the files can
    /// fail any more: so the files can be committed together with something else. Returns whether the changes
    /// were kept.
    ///
    /// # Errors
    /// The first failure; nothing half-done stays, and `last_word` was not asked.
    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError>;

    /// Applies all changes or none of them.
    ///
    /// # Errors
    /// As [`FileSystem::apply_if`].
    fn apply(&self, changes: &[Change]) -> Result<(), FsError> {
        self.apply_if(changes, None).map(|_| ())
    }

    /// Writes one file.
    ///
    /// # Errors
    /// As [`FileSystem::apply`].
    fn write(&self, path: &RelativePath, content: &[u8]) -> Result<(), FsError> {
        self.apply(&[Change::Write { path: path.clone(), content: content.into() }])
    }

    /// Removes one file.
    ///
    /// # Errors
    /// As [`FileSystem::apply`].
    fn remove(&self, path: &RelativePath) -> Result<(), FsError> {
        self.apply(&[Change::Remove { path: path.clone() }])
    }

    /// The content of a file as UTF-8 text.
    ///
    /// # Errors
    /// `NotText` when the bytes are not UTF-8, else as [`FileSystem::read`].
    fn read_text(&self, path: &RelativePath) -> Result<String, FsError> {
        String::from_utf8(self.read(path)?).map_err(|error| FsError::NotText {
            path: path.clone(),
            offset: error.utf8_error().valid_up_to(),
        })
    }
}
