//! One writer per repository, across processes.
//!
//! The lock is a `flock` on a file below `.state`: it ends with its process, however that ends. While a writer works,
//! the file says so; a process that finds this mark in a free lock knows that the previous writer was killed, and
//! cleans up after it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::OFlag;
use tgp_contract::{Code, ToolError};
use tgp_fs::jittered;

use crate::failure::At;

const BUSY: &[u8] = b"busy\n";
/// A writer works for milliseconds, so a waiter tries again soon.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(25);

/// A lock that is held. Dropping it says that the work is done and lets the next one in.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// Since when a writer that was killed had been at work.
    pub(crate) abandoned: Option<SystemTime>,
}

impl Lock {
    /// Takes the lock if it is free.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>, ToolError> {
        // Rust opens with close-on-exec, so no child holds the lock for longer than we do.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path)
            .at("cannot open the lock", path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).at("cannot lock", path),
        }
        let mut word = Vec::new();
        (&mut file).take(BUSY.len() as u64).read_to_end(&mut word).at("cannot read the lock", path)?;
        let abandoned =
            if word.is_empty() { None } else { file.metadata().and_then(|data| data.modified()).ok() };
        let mut lock = Self { file, abandoned };
        // A mark that was found stays as old as it is: this holder may be killed before it has cleaned up.
        if lock.abandoned.is_none() {
            lock.mark(BUSY).at("cannot write the lock", path)?;
        }
        Ok(Some(lock))
    }

    /// Takes the lock, waiting for at most `patience`. Blocks its thread.
    pub(crate) fn take(path: &Path, patience: Duration) -> Result<Self, ToolError> {
        let start = Instant::now();
        let mut pause = FIRST_LOOK;
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(lock);
            }
            if start.elapsed() >= patience {
                return Err(busy(path, patience));
            }
            std::thread::sleep(jittered(pause));
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    fn mark(&mut self, word: &[u8]) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(word)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A failure here only makes the next writer look for leftovers that are not there.
        let _ = self.mark(b"");
    }
}

pub(crate) fn busy(path: &Path, patience: Duration) -> ToolError {
    let message = format!(
        "another process has been writing the tool repository for {} seconds (`{}` is locked)",
        patience.as_secs(),
        PathBuf::from(path).display()
    );
    ToolError::new(Code::Git, message).help("wait for it, or end it, and try again")
}
