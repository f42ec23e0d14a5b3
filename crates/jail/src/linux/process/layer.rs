//! The folder of a layer: made for one process, removed with it, and swept up after a kernel that was killed.
//!
//! Beside each folder lies a lock that its owner holds. The system lets go of it however the owner ends, so a lock that
//! can be taken has no owner.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{Flock, FlockArg};

use super::plan::Owner;
use super::removal::remove_tree;
use super::root::{LOWER, ROOT, UPPER, WORK};
use crate::JailError;

const PREFIX: &str = "layer-";
const LOCK: &str = "lock";

/// Names tried before giving up. Only leftovers of an earlier process with our number can be in the way.
const ATTEMPTS: u32 = 1000;

/// Leftovers removed at one start, so that a start never takes long.
const SWEPT_AT_ONCE: usize = 8;

/// What one process has written to its project.
///
/// It lies in the order's scratch directory and is removed when this is dropped.
#[derive(Debug)]
pub struct OverlayLayer {
    folder: PathBuf,
    project: PathBuf,
    owner: Owner,
    /// Held for as long as the folder is in use.
    _lock: Flock<File>,
}

impl OverlayLayer {
    pub(crate) fn create(scratch: &Path, project: &Path, owner: Owner) -> Result<Self, JailError> {
        let refused = |source| JailError::Layer { step: "make a layer in", path: scratch.to_owned(), source };
        sweep(scratch);
        let (folder, lock) = claim(scratch).map_err(refused)?;
        let layer = Self { folder, project: project.to_owned(), owner, _lock: lock };
        let make = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        make(&layer.folder).map_err(refused)?;
        for name in [ROOT, WORK] {
            make(&layer.folder.join(name)).map_err(refused)?;
        }
        // The root of the merged view has the mode of the upper directory.
        let mode = project.metadata().map_err(refused)?.mode() & 0o777 | 0o700;
        make(&layer.upper()).map_err(refused)?;
        fs::set_permissions(layer.upper(), Permissions::from_mode(mode)).map_err(refused)?;
        std::os::unix::fs::symlink(project, layer.folder.join(LOWER)).map_err(refused)?;
        Ok(layer)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.folder.join(UPPER)
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// The project that this is a layer over.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.project
    }
}

impl Drop for OverlayLayer {
    fn drop(&mut self) {
        // What cannot be removed now is a leftover, and swept up at a later start.
        if remove_tree(&self.folder).is_ok() {
            let _ = fs::remove_file(self.folder.with_extension(LOCK));
        }
    }
}

/// Takes an unused name, and its lock.
fn claim(scratch: &Path) -> io::Result<(PathBuf, Flock<File>)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    for _ in 0..ATTEMPTS {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let folder = scratch.join(format!("{PREFIX}{process}-{number}"));
        let file = File::options().write(true).create_new(true).mode(0o600).open(folder.with_extension(LOCK));
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            file => file?,
        };
        // Between the two calls a sweeping process may have taken it for a leftover.
        if let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            && lock.metadata()?.nlink() > 0
        {
            return Ok((folder, lock));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes layers whose owner is gone. What fails is tried again at the next start.
fn sweep(scratch: &Path) {
    let Ok(entries) = fs::read_dir(scratch) else { return };
    let locks = entries.flatten().map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == LOCK)
            && path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    });
    let mut swept = 0;
    for path in locks {
        let Ok(file) = File::options().write(true).custom_flags(libc::O_NOFOLLOW).open(&path) else {
            continue;
        };
        if let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            let folder = path.with_extension("");
            if !folder.exists() || remove_tree(&folder).is_ok() {
                let _ = fs::remove_file(&path);
            }
            swept += 1;
            if swept == SWEPT_AT_ONCE {
                return;
            }
        }
    }
}

/// Whether this is how an upper directory says that something was removed.
pub(crate) fn is_whiteout(metadata: &fs::Metadata) -> bool {
    metadata.file_type().is_char_device() && metadata.rdev() == 0
}
