//! Directories of one installation: removed when it ends, and swept up after a kernel that was killed.
//!
//! Each is locked by the process that uses it (`flock` on the directory itself). Process ids would not do: they are different
//! ones in another container that shares the disk.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tgp_contract::{Code, ToolError};
use tgp_fs::{LockKind, LockWait, STATE_DIRECTORY, take_lock};
use tgp_jail::remove_tree;

/// Where trees of packages wait for their place, in the kernel's state.
pub const PACKAGE_STAGING: &str = "packages";

/// Names that are tried for a directory.
const MAX_TRIES: u64 = 1_000;

/// How long another installation is waited for that makes, sweeps or puts something in place.
const PATIENCE: LockWait = LockWait {
    patience: Duration::from_secs(30),
    first_pause: Duration::from_millis(2),
    longest_pause: Duration::from_millis(100),
};

/// A private directory with a name of its own.
pub(super) struct Staging {
    path: PathBuf,
    /// Held until the directory is gone.
    _lock: File,
}

/// Where the trees of a project wait, on the project's file system and beside the kernel's state, where no call can reach them.
pub(super) fn trees(tool_root: &Path) -> PathBuf {
    tool_root.join(STATE_DIRECTORY).join(PACKAGE_STAGING)
}

/// Takes the lock of a directory of staging directories; it is free again when the file is dropped.
///
/// # Errors
/// `ECONFLICT` when another installation keeps it too long.
pub(super) fn lock(parent: &Path) -> Result<File, ToolError> {
    let open = || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let directory = File::open(parent)?;
        Ok(take_lock(&directory, LockKind::Exclusive, PATIENCE)?.then_some(directory))
    };
    match open() {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => {
            Err(ToolError::new(Code::Conflict, "another installation of packages is being put in place")
                .help("nothing was installed; call package_install again"))
        }
        Err(error) => Err(no_place(parent, &error)),
    }
}

impl Staging {
    /// A directory for trees that are being made. It is on the project's file system, so that a tree is moved and not copied
    /// into the project.
    pub(super) fn for_trees(tool_root: &Path, project: &Path) -> Result<Self, ToolError> {
        let staging = Self::create(&trees(tool_root))?;
        let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
        if device(&staging.path) != device(project) {
            let message = "the kernel's state and the project are on different file systems";
            return Err(ToolError::new(Code::Capability, message).help(
                "packages are put in place in one step, which needs one file system; install them yourself",
            ));
        }
        Ok(staging)
    }

    /// A directory below another one, which has nothing else in it.
    pub(super) fn create(parent: &Path) -> Result<Self, ToolError> {
        // Nobody else takes a new directory for one that was left before it is locked.
        let _guard = lock(parent)?;
        sweep(parent).and_then(|()| Self::make(parent)).map_err(|error| no_place(parent, &error))
    }

    fn make(parent: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for _ in 0..MAX_TRIES {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{}-{}-{number}", std::process::id(), now.as_nanos()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    let lock = File::open(&path)?;
                    lock.try_lock()?;
                    return Ok(Self { path, _lock: lock });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.path) {
            tracing::warn!(target: "jail", "`{}` cannot be removed: {error}", self.path.display());
        }
    }
}

/// Removes the directories that no process holds.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        // One that is gone since it was listed was removed by its owner.
        let Ok(directory) = File::open(entry.path()) else { continue };
        match directory.try_lock() {
            // What cannot be removed now is tried again by the next installation.
            Ok(()) => drop(remove_tree(&entry.path())),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

fn no_place(parent: &Path, error: &io::Error) -> ToolError {
    ToolError::new(Code::Internal, format!("no place for packages in `{}`: {error}", parent.display()))
        .help("nothing was installed; see that the directory can be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process ids are not the same ones in a container that shares the disk: what looked abandoned was in use.
    #[test]
    fn bug_a_directory_in_use_by_another_container_was_swept() {
        let parent = tempfile::tempdir().unwrap();
        // As if another process made it: an id that no process here has, and locked.
        let foreign = parent.path().join("4000000-1");
        let left = parent.path().join("4000001-1");
        fs::create_dir(&foreign).unwrap();
        fs::create_dir(&left).unwrap();
        // As an earlier kernel of our own process id left it.
        let own = parent.path().join(format!("{}-0", std::process::id()));
        fs::create_dir(&own).unwrap();
        let held = File::open(&foreign).unwrap();
        held.lock().unwrap();
        let staging = Staging::create(parent.path()).unwrap();
        assert!(foreign.is_dir() && staging.path().is_dir() && !left.exists() && !own.exists());
        let second = Staging::create(parent.path()).unwrap();
        assert!(staging.path().is_dir() && second.path() != staging.path());
        drop(held);
        drop(second);
        drop(Staging::create(parent.path()).unwrap());
        assert!(!foreign.exists() && staging.path().is_dir());
        drop(staging);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
