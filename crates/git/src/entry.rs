//! The files of a tree, and what two trees do not have in common.

use std::path::PathBuf;

use git2::{FileMode, Oid};

/// A file of a tree: its content and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: Oid,
    pub(crate) mode: i32,
}

impl Entry {
    pub(crate) fn is_plain(self) -> bool {
        self.mode == i32::from(FileMode::Blob)
            || self.is_executable()
            || self.mode == i32::from(FileMode::BlobGroupWritable)
    }

    pub(crate) fn is_executable(self) -> bool {
        self.mode == i32::from(FileMode::BlobExecutable)
    }

    pub(crate) fn file_mode(self) -> FileMode {
        const LINK: i32 = 0o120_000;
        const COMMIT: i32 = 0o160_000;
        match self.mode {
            _ if self.is_executable() => FileMode::BlobExecutable,
            LINK => FileMode::Link,
            COMMIT => FileMode::Commit,
            _ => FileMode::Blob,
        }
    }
}

/// One file that two trees do not have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    pub(crate) old: Option<Entry>,
    pub(crate) new: Option<Entry>,
}
