//! The directories that forged tools may use besides their own root: some to write, some only to read.

use std::path::{Path, PathBuf};

use tgp_contract::RelativePath;
use tgp_fs::RepositoryAccess;

use super::{WorkspaceError, lexical};

/// Whether a path may name its parent directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpwardTraversal {
    #[default]
    Blocked,
    Allowed,
}

/// The directories that a configuration names, relative to the project.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolDirectories<'d> {
    /// `fs.allowedDirs`.
    pub writable: &'d [String],
    /// `fs.readDirs`.
    pub readable: &'d [String],
    /// `fs.blockUpwardTraversal`.
    pub upward: UpwardTraversal,
    /// Where the project's repository may be besides in the project; nowhere else by default.
    pub repository: Option<&'d RepositoryAccess>,
}

impl<'d> ToolDirectories<'d> {
    /// Each directory as it was named and where it is: those to write first, then those to read.
    pub(super) fn places(&self, project: &Path) -> Result<Vec<(&'d str, PathBuf)>, WorkspaceError> {
        let named = self.writable.iter().chain(self.readable);
        named
            .map(|text| {
                let directory = lexical(&project.join(text));
                if self.upward == UpwardTraversal::Blocked && !directory.starts_with(project) {
                    return Err(WorkspaceError::Outside(text.clone()));
                }
                Ok((text.as_str(), directory))
            })
            .collect()
    }
}

/// The same directories, by their place in the host directory of a workspace.
#[derive(Clone, Debug, Default)]
pub struct OpenedDirectories {
    pub writable: Vec<RelativePath>,
    pub readable: Vec<RelativePath>,
}

impl OpenedDirectories {
    /// Whether a tool may read `path`.
    #[must_use]
    pub fn may_read(&self, path: &RelativePath) -> bool {
        path.nearest_depth(&self.writable).max(path.nearest_depth(&self.readable)).is_some()
    }

    /// Whether a tool may write `path`: of two directories that hold it the inner one decides, and a directory in both
    /// lists is only read.
    #[must_use]
    pub fn may_write(&self, path: &RelativePath) -> bool {
        path.nearest_depth(&self.writable) > path.nearest_depth(&self.readable)
    }
}
