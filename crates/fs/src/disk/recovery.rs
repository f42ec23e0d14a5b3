//! Temporary files that do not outlive their process.
//!
//! A batch first makes an *intent*: a file in the root that is locked while the batch is under way and names the
//! directories in which it stages. A killed process loses the lock, so the next process that opens the root can
//! tell dead intents from live ones, also across containers that share no process ids, and need not walk the
//! whole tree.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use tgp_contract::{EntryKind, FsError, RelativePath};

use super::handle;
use super::listing::{Name, names};
use crate::batch::TEMPORARY_PREFIX;

const INTENT_SUFFIX: &str = "-batch";
const MAX_ATTEMPTS: u32 = 16;
const MAX_INTENT_BYTES: u64 = 4 << 20;

/// The announcement of one batch. Dropping it ends the batch.
#[derive(Debug)]
pub(super) struct Intent<'r> {
    root: &'r OwnedFd,
    /// Begins the names of all temporary files of the batch.
    prefix: String,
    issued: u64,
    noted: BTreeSet<RelativePath>,
    /// Absent where the root itself cannot be written. Such a batch works, but its files are not swept if it
    /// is killed.
    file: Option<File>,
}

impl<'r> Intent<'r> {
    pub(super) fn begin(root: &'r OwnedFd) -> Result<Self, FsError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let prefix = format!("{TEMPORARY_PREFIX}{}-{:016x}", std::process::id(), random());
            let name = format!("{prefix}{INTENT_SUFFIX}");
            let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let file = match openat(root, name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR) {
                Ok(handle) => Some(File::from(handle)),
                Err(Errno::EEXIST) => continue,
                Err(Errno::EACCES | Errno::EPERM | Errno::EROFS) => None,
                Err(errno) => return Err(handle::io(&RelativePath::root(), errno)),
            };
            let intent = Self { root, prefix, issued: 0, noted: BTreeSet::new(), file };
            // Between making and locking it, a sweep may have taken it for a dead one. Then the next name is tried,
            // but not forever: a disk whose inode numbers are made up would never agree.
            if attempts == MAX_ATTEMPTS || intent.file.as_ref().is_none_or(|file| intent.is_ours(file, &name))
            {
                return Ok(intent);
            }
        }
    }

    fn is_ours(&self, file: &File, name: &str) -> bool {
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return false;
        }
        let standing = handle::stat(self.root, name, &RelativePath::root()).ok().flatten();
        let opened = fstat(file).ok();
        standing.zip(opened).is_some_and(|(one, other)| one.st_ino == other.st_ino)
    }

    /// Must be called before the first temporary file appears in `directory`.
    pub(super) fn note(&mut self, directory: &RelativePath) -> Result<(), FsError> {
        // A sweep always looks into the root.
        if directory.is_root() || !self.noted.insert(directory.clone()) {
            return Ok(());
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        // A path holds no control character, so a line is a path.
        file.write_all(format!("{}\n", directory.as_str()).as_bytes())
            .map_err(|source| FsError::Io { path: directory.clone(), source })
    }

    /// A name that no file has yet.
    pub(super) fn temporary_name(&mut self) -> String {
        self.issued += 1;
        format!("{}-{}", self.prefix, self.issued)
    }
}

impl Drop for Intent<'_> {
    fn drop(&mut self) {
        if self.file.is_some() {
            unlink(self.root, &format!("{}{INTENT_SUFFIX}", self.prefix));
        }
    }
}

/// Removes a temporary file. A failure is not reported; the next sweep tries again.
pub(super) fn unlink(directory: impl AsFd, name: &str) {
    let _ = unlinkat(directory, name, UnlinkatFlags::NoRemoveDir);
}

/// Removes the temporary files of batches whose process is gone. It is a favour and never an error: a root that
/// cannot be written can still be read.
pub(super) fn sweep(root: &OwnedFd) {
    let here = RelativePath::root();
    let found = temporaries(root, &here, TEMPORARY_PREFIX);
    for intent in found.iter().filter(|name| name.ends_with(INTENT_SUFFIX)) {
        sweep_batch(root, intent);
    }
    // An intent is made before its temporary files and removed after them, so one without an intent is dead.
    for name in found.iter().filter(|name| !name.ends_with(INTENT_SUFFIX)) {
        let Some((prefix, _)) = name.rsplit_once('-') else { continue };
        if matches!(handle::stat(root, &format!("{prefix}{INTENT_SUFFIX}"), &here), Ok(None)) {
            unlink(root, name);
        }
    }
}

fn sweep_batch(root: &OwnedFd, intent: &str) {
    let here = RelativePath::root();
    if !matches!(handle::stat(root, intent, &here), Ok(Some(stat)) if handle::kind(&stat) == EntryKind::File)
    {
        return;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(handle) = openat(root, intent, flags, Mode::empty()) else { return };
    let file = File::from(handle);
    if file.try_lock().is_err() {
        return;
    }
    let mut text = String::new();
    if (&file).take(MAX_INTENT_BYTES).read_to_string(&mut text).is_err() {
        text.clear();
    }
    let prefix = format!("{}-", intent.trim_end_matches(INTENT_SUFFIX));
    for line in text.lines() {
        let Ok(path) = RelativePath::new(line) else { continue };
        let Ok(walked) = handle::walk(root, &path) else { continue };
        if walked.stopped.is_none() {
            for name in temporaries(&walked.directory, &path, &prefix) {
                unlink(&walked.directory, &name);
            }
        }
    }
    unlink(root, intent);
}

fn temporaries(directory: impl AsFd, path: &RelativePath, prefix: &str) -> Vec<String> {
    let names = names(directory, path).unwrap_or_default().into_iter();
    names
        .filter_map(|name| match name {
            Name::Plain(name) if name.starts_with(prefix) => Some(name),
            Name::Plain(_) | Name::Unspeakable(_) => None,
        })
        .collect()
}

/// Enough to keep two batches of one process apart; the rest is done by refusing a name that exists.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
