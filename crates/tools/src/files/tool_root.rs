//! The agent's root without what is not the agent's: git's own files and the kernel's state.

use std::sync::Arc;

use tgp_contract::{Change, Entry, FileSystem, FsError, RelativePath};

/// Names that no call may read or write at any depth. Compared without case, because some disks do.
const HIDDEN: [&str; 2] = [".git", ".state"];

/// A file system that does not have the hidden names.
pub struct ToolRoot {
    inner: Arc<dyn FileSystem>,
}

impl ToolRoot {
    #[must_use]
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner }
    }
}

fn is_hidden(path: &RelativePath) -> bool {
    path.parts().any(|part| HIDDEN.iter().any(|hidden| part.eq_ignore_ascii_case(hidden)))
}

fn refuse_hidden(path: &RelativePath) -> Result<(), FsError> {
    if is_hidden(path) {
        let reason = "git's own files and the kernel's state are out of reach";
        return Err(FsError::Security { path: path.to_string(), reason });
    }
    Ok(())
}

impl FileSystem for ToolRoot {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        refuse_hidden(path)?;
        self.inner.read(path)
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        refuse_hidden(path)?;
        self.inner.entry(path)
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        refuse_hidden(directory)?;
        Ok(self.inner.list(directory)?.into_iter().filter(|entry| !is_hidden(&entry.path)).collect())
    }

    fn apply(&self, changes: &[Change]) -> Result<(), FsError> {
        changes.iter().try_for_each(|change| refuse_hidden(change.path()))?;
        self.inner.apply(changes)
    }
}
