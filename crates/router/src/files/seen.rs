//! A file system without what a call may not see: a hidden file is as if it were not there.

use std::sync::Arc;

use tgp_contract::{Change, CommitVote, Entry, FileSystem, FsError, RelativePath, Root, Visibility};

/// Shows of another file system what may be seen.
pub struct VisibleFs {
    inner: Arc<dyn FileSystem>,
    root: Root,
    visible: Visibility,
}

impl VisibleFs {
    pub fn new(inner: Arc<dyn FileSystem>, root: Root, visible: Visibility) -> Self {
        Self { inner, root, visible }
    }

    fn shows(&self, path: &RelativePath) -> bool {
        path.is_root() || self.visible.shows(self.root, path)
    }
}

impl FileSystem for VisibleFs {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        if !self.shows(path) {
            return Err(FsError::NotFound(path.clone()));
        }
        self.inner.read(path)
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        if !self.shows(path) {
            return Ok(None);
        }
        self.inner.entry(path)
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        if !self.shows(directory) {
            return Err(FsError::NotFound(directory.clone()));
        }
        let entries = self.inner.list(directory)?;
        Ok(entries.into_iter().filter(|entry| self.shows(&entry.path)).collect())
    }

    /// What is written is judged by the gates, not by what may be seen.
    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        self.inner.apply_if(changes, last_word)
    }
}
