//! How much a file system takes before it says no.

use tgp_contract::{FsError, RelativePath};

/// Bounds of one file system. Reaching one is an error, never a silent cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// The largest file that is read or written.
    pub file_bytes: u64,
    /// All bytes a memory file system or an overlay holds, or one batch brings to disk.
    pub total_bytes: u64,
    /// The longest listing.
    pub entries: usize,
    /// The most names in a path that is written or listed, counted from the root.
    pub depth: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { file_bytes: 16 << 20, total_bytes: 256 << 20, entries: 100_000, depth: 64 }
    }
}

impl FileLimits {
    /// Refuses a file of `size` bytes when it is too large.
    pub(crate) fn check_file(&self, path: &RelativePath, size: u64) -> Result<(), FsError> {
        if size > self.file_bytes {
            return Err(FsError::TooLarge { path: path.clone(), size, limit: self.file_bytes });
        }
        Ok(())
    }

    /// Refuses a path that is deeper than a listing would follow, so that one write cannot spoil every listing.
    ///
    /// # Errors
    /// `TooDeep` with the path.
    pub fn check_depth(&self, path: &RelativePath) -> Result<(), FsError> {
        if path.parts().count() > self.depth {
            return Err(FsError::TooDeep { path: path.clone(), limit: self.depth });
        }
        Ok(())
    }

    /// Refuses a listing of `directory` that has grown to `count` entries.
    pub(crate) fn check_entries(&self, directory: &RelativePath, count: usize) -> Result<(), FsError> {
        if count > self.entries {
            return Err(FsError::TooMany { path: directory.clone(), limit: self.entries });
        }
        Ok(())
    }
}
