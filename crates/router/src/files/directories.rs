//! Directories of the disk: one level at a time, with no link followed on the way.
//!
//! The trait of all file systems lists whole trees, which is too much for a project that holds its packages and its
//! builds. A walk goes level by level, so that it can leave out what is ignored.

use std::path::Path;

use tgp_contract::{FsError, RelativePath};
use tgp_fs::{Directory, DirectoryEntries};

/// Entries of one directory; a larger one is a store of data, and no place to look around in.
const MAX_CHILDREN: usize = 500_000;
/// Begins the names under which the disk file system stages its writes.
pub(super) const TEMPORARY_PREFIX: &str = ".tgp-tmp-";

/// The tree below one directory of the disk.
pub(super) struct Directories {
    root: Directory,
}

impl Directories {
    pub(super) fn open(root: &Path) -> Result<Self, std::io::Error> {
        Ok(Self { root: Directory::open(root)? })
    }

    /// Opens `path`, name by name.
    pub(super) fn handle(&self, path: &RelativePath) -> Result<Directory, FsError> {
        self.root.descend(path)
    }

    /// What is in `directory`, in no order.
    pub(super) fn children(&self, directory: &RelativePath) -> Result<DirectoryEntries, FsError> {
        let mut found = self.handle(directory)?.entries(MAX_CHILDREN)?;
        found
            .entries
            .retain(|entry| !entry.path.name().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX)));
        Ok(found)
    }

    /// Removes `directory`, if it is empty. Returns whether it was.
    pub(super) fn remove_empty(&self, directory: &RelativePath) -> Result<bool, FsError> {
        let Some(name) = directory.name() else { return Ok(false) };
        self.handle(&directory.parent())?.remove_empty(name)
    }
}
