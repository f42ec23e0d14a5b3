//! Many files of the project at once: what a command has changed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use tgp_contract::{Change, FsError, RelativePath, Root, ToolError};
use tgp_fs::FileLimits;

use super::directories::Directories;
use super::{ProjectFiles, is_write_protected};

impl ProjectFiles {
    /// Applies all changes or none of them, after `check` has raised no objection. No other write comes in between.
    pub fn apply_all(
        &self,
        changes: &[Change],
        check: impl FnOnce() -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let mut batch = Vec::with_capacity(changes.len());
        for change in changes {
            let path = self.within(change.path())?;
            if self.is_sealed(&path) || is_write_protected(Root::Project, change.path()) {
                let reason = "the kernel's configuration, its rules and the packages are read-only";
                return Err(FsError::Security { path: change.path().to_string(), reason }.into());
            }
            batch.push(match change {
                Change::Write { content, .. } => Change::Write { path, content: Arc::clone(content) },
                Change::Remove { .. } => Change::Remove { path },
            });
        }
        let _lock = self.base.commit_lock_blocking();
        check()?;
        let asked = changes.first().map(|change| change.path().clone()).unwrap_or_default();
        Ok(self.host.apply(&batch).map_err(|error| self.as_named(error, &asked))?)
    }

    /// Does something on the blocking pool during which no other call of this kernel changes a file.
    pub fn while_unchanged<T>(&self, work: impl FnOnce() -> T) -> T {
        let _lock = self.base.commit_lock_blocking();
        work()
    }

    /// Refuses a path that is deeper than files are written and listed.
    ///
    /// # Errors
    /// `TooDeep` with the path.
    pub fn check_depth(&self, path: &RelativePath) -> Result<(), FsError> {
        let host = if path.is_root() { self.project.clone() } else { self.project.join(path.as_str())? };
        FileLimits::default().check_depth(&host).map_err(|error| self.as_named(error, path))
    }

    /// Makes a directory, or leaves the one that is there.
    ///
    /// # Errors
    /// Where it would be too deep, and what the system says.
    pub fn make_directory(&self, path: &RelativePath) -> Result<(), FsError> {
        self.check_depth(path)?;
        let host = self.within(path)?;
        self.base.directories.make(&host).map_err(|error| self.as_named(error, path))
    }

    /// Lets every user who may read a file execute it as well, or no user.
    pub fn set_executable(&self, path: &RelativePath, executable: bool) -> Result<(), FsError> {
        let set = |mode: u32| if executable { mode | (mode & 0o444) >> 2 } else { mode & !0o111 };
        let host = self.within(path)?;
        self.base.directories.change_mode(&host, set).map_err(|error| self.as_named(error, path))
    }

    /// Gives a file these permissions, without any that let it run as another user.
    pub fn set_mode(&self, path: &RelativePath, mode: u32) -> Result<(), FsError> {
        self.change_mode(path, |_| mode & 0o777)
    }

    /// Gives the owner of a file the rights of a mode, and the others those of them that they have now: what was closed to
    /// them since stays closed.
    ///
    /// # Errors
    /// As [`ProjectFiles::set_mode`].
    pub fn restore_mode(&self, path: &RelativePath, mode: u32) -> Result<(), FsError> {
        self.change_mode(path, |now| mode & 0o700 | mode & now & 0o077)
    }

    fn change_mode(&self, path: &RelativePath, change: impl Fn(u32) -> u32) -> Result<(), FsError> {
        let host = self.within(path)?;
        let set = self.base.directories.change_mode(&host, change);
        set.map_err(|error| self.as_named(error, path))
    }
}

impl Directories {
    fn make(&self, path: &RelativePath) -> Result<(), FsError> {
        let Some(name) = path.name() else { return Ok(()) };
        let parent = self.handle(&path.parent())?;
        match mkdirat(&parent, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(nix::errno::Errno::EEXIST) => Ok(()),
            Err(errno) => Err(FsError::Io { path: path.clone(), source: errno.into() }),
        }
    }

    /// By a handle that was opened without following a link: what is there now is what is changed.
    fn change_mode(&self, path: &RelativePath, change: impl FnOnce(u32) -> u32) -> Result<(), FsError> {
        let Some(name) = path.name() else { return Ok(()) };
        let parent = self.handle(&path.parent())?;
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let failed = |source: std::io::Error| FsError::Io { path: path.clone(), source };
        let file = openat(&parent, name, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let file = std::fs::File::from(file);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() {
            let mode = change(metadata.permissions().mode());
            file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
        }
        Ok(())
    }
}
