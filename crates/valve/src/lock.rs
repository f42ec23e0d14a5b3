//! One valve at a time, on one project.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::Failure;
use crate::report::Watcher;

/// A process that asks for the status holds the lock for a moment, which is waited for.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);
/// A note of who holds the lock is smaller.
const MAX_NOTE_BYTES: u64 = 1_000;

/// The lock. It ends with its holder, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// Whether a process has held it before: then there was a journal too.
    pub(crate) was_held: bool,
}

fn place(journal: &Path) -> PathBuf {
    let mut name = OsString::from(journal);
    name.push(".lock");
    PathBuf::from(name)
}

impl Lock {
    pub(crate) fn take(journal: &Path, note: &Watcher) -> Result<Self, Failure> {
        let path = place(journal);
        let failed = |source| Failure::JournalFile { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => {
                    let was_held = read(&file).is_some();
                    let mut lock = Self { file, was_held };
                    lock.note(note);
                    return Ok(lock);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        let who = read(&file).map_or_else(
            || "it has left no name".to_owned(),
            |watcher| format!("process {} ({})", watcher.pid, watcher.purpose),
        );
        Err(Failure::Busy(who))
    }

    /// Says who holds it. The note is only for people, so it may fail.
    pub(crate) fn note(&mut self, note: &Watcher) {
        let written = serde_json::to_vec(note).map_err(io::Error::from).and_then(|bytes| {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&bytes)
        });
        drop(written);
    }
}

fn read(mut file: &File) -> Option<Watcher> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(MAX_NOTE_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Who holds the lock now.
pub(crate) fn holder(journal: &Path) -> Option<Watcher> {
    let file = File::open(place(journal)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => read(&file),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}
