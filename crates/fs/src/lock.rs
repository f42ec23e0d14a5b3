//! Locks between processes: a `flock` ends with its holder, however that ends.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::time::{Duration, Instant};

/// Who may hold a lock together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Any number of readers.
    Shared,
    /// One writer and no other holder.
    Exclusive,
}

/// How long a lock is waited for, and how often it is tried.
#[derive(Clone, Copy, Debug)]
pub struct LockWait {
    pub patience: Duration,
    /// The first pause between two tries; each pause is twice the one before it.
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

/// Takes the lock of an open file. The lock ends when the file is closed. Blocks its thread. Returns false when another
/// holder kept it all the time.
///
/// # Errors
/// What the system says.
pub fn take_lock(file: &File, kind: LockKind, wait: LockWait) -> io::Result<bool> {
    let start = Instant::now();
    let mut pause = wait.first_pause;
    loop {
        let taken = match kind {
            LockKind::Shared => file.try_lock_shared(),
            LockKind::Exclusive => file.try_lock(),
        };
        match taken {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if start.elapsed() >= wait.patience {
            return Ok(false);
        }
        std::thread::sleep(jittered(pause));
        pause = (pause * 2).min(wait.longest_pause);
    }
}

/// Between half of `pause` and one and a half, so that waiting processes do not all try at the same time.
#[must_use]
pub fn jittered(pause: Duration) -> Duration {
    let thousandths =
        500 + u32::try_from(RandomState::new().build_hasher().finish() % 1000).unwrap_or_default();
    pause * thousandths / 1000
}
