//! A file system without what no call may touch: git's own files, the kernel's state, and the further paths it is
//! given.

use std::sync::Arc;

use tgp_contract::{Change, CommitVote, Entry, FileSystem, FsError, RelativePath, Root, chronicled};
use tgp_fs::is_kernel_private;

use super::{check_chronicle, is_protected};

/// Names that no call may read or write at any depth. Compared without case, because some disks do.
const HIDDEN: [&str; 2] = [".git", ".state"];

/// Folders of installed packages. Test runners are among them, and what a runner reports is believed, so no call replaces
/// one.
const PACKAGES: [&str; 2] = ["node_modules", ".venv"];

/// Packages are looked for in the project's root and in this many levels of folders below it, which is where test runners
/// are found. Deeper ones are files like others, such as those of test data.
const PACKAGE_LEVELS: usize = 2;

/// Keeps hidden names and whole trees out of reach.
pub struct ProtectedFs {
    inner: Arc<dyn FileSystem>,
    kept: Vec<RelativePath>,
    /// The project whose packages are not written.
    project: Option<RelativePath>,
    /// Whether the files are a tool repository, where some names are private to the kernel.
    is_tool_root: bool,
}

impl ProtectedFs {
    /// `kept` are files and directories that are out of reach in addition to the hidden names.
    #[must_use]
    pub fn new(inner: Arc<dyn FileSystem>, kept: Vec<RelativePath>) -> Self {
        Self { inner, kept, project: None, is_tool_root: false }
    }

    /// The files of a tool repository, without those that are private to the kernel.
    #[must_use]
    pub fn of_tools(inner: Arc<dyn FileSystem>) -> Self {
        Self { is_tool_root: true, ..Self::new(inner, Vec::new()) }
    }

    /// The same without a way to write the packages of the project.
    #[must_use]
    pub(super) fn with_packages_of(self, project: RelativePath) -> Self {
        Self { project: Some(project), ..self }
    }

    fn is_out_of_reach(&self, path: &RelativePath) -> bool {
        is_hidden_name(path)
            || (self.is_tool_root && path.parts().next().is_some_and(is_kernel_private))
            || is_protected(Root::Project, path)
            || chronicled(path).is_some_and(|file| is_protected(Root::Project, &file))
            || self.kept.iter().any(|kept| is_at_or_below(path, kept))
    }

    fn check(&self, path: &RelativePath) -> Result<(), FsError> {
        if self.is_out_of_reach(path) {
            let reason =
                "git's own files, credentials, the kernel's state and its configuration are out of reach";
            return Err(FsError::Security { path: path.to_string(), reason });
        }
        Ok(())
    }
}

/// Whether a path has a name that is hidden at any depth.
pub(super) fn is_hidden_name(path: &RelativePath) -> bool {
    path.parts().any(|part| HIDDEN.iter().any(|hidden| part.eq_ignore_ascii_case(hidden)))
}

/// Whether a path is in a folder of packages of the project.
pub(super) fn is_package(path: &RelativePath, project: &RelativePath) -> bool {
    if !is_at_or_below(path, project) {
        return false;
    }
    let mut parts = path.parts().skip(project.parts().count()).take(PACKAGE_LEVELS + 1);
    parts.any(|part| PACKAGES.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

/// Compared without case, because some disks do.
pub(super) fn is_at_or_below(path: &RelativePath, directory: &RelativePath) -> bool {
    let mut parts = path.parts();
    directory.parts().all(|name| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(name)))
}

impl FileSystem for ProtectedFs {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        self.check(path)?;
        self.inner.read(path)
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        self.check(path)?;
        self.inner.entry(path)
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        self.check(directory)?;
        let entries = self.inner.list(directory)?;
        Ok(entries.into_iter().filter(|entry| !self.is_out_of_reach(&entry.path)).collect())
    }

    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        for change in changes {
            self.check(change.path())?;
            if self.project.as_ref().is_some_and(|project| is_package(change.path(), project)) {
                let reason = "installed packages are read-only";
                return Err(FsError::Security { path: change.path().to_string(), reason });
            }
            check_chronicle(change.path(), || self.inner.read(change.path()).ok(), change.content())?;
        }
        self.inner.apply_if(changes, last_word)
    }
}
