//! One who appends at a time, across processes and threads.
//!
//! The lock is a `flock` on the chronicle itself: it ends with its holder, however that ends. Those who read take it
//! together, for the moment in which they look where the last whole line ends.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use tgp_contract::RelativePath;

use crate::failure::{Doing, Failure};

/// An append takes well below a millisecond, so waiting is looking again soon.
const FIRST_LOOK: Duration = Duration::from_micros(100);
const LONGEST_LOOK: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// Takes the lock of `file`, waiting for at most `patience`. It ends when the file is closed.
pub(crate) fn take(file: &File, kind: Kind, patience: Duration, path: &RelativePath) -> Result<(), Failure> {
    let start = Instant::now();
    let mut pause = FIRST_LOOK;
    loop {
        let taken = match kind {
            Kind::Read => file.try_lock_shared(),
            Kind::Write => file.try_lock(),
        };
        match taken {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).doing("cannot lock", path),
        }
        if start.elapsed() >= patience {
            return Err(Failure::Busy { path: path.clone(), seconds: patience.as_secs() });
        }
        std::thread::sleep(jittered(pause));
        pause = (pause * 2).min(LONGEST_LOOK);
    }
}

/// Between half of `pause` and one and a half, so that those who wait do not all look at once.
fn jittered(pause: Duration) -> Duration {
    let thousandths =
        500 + u32::try_from(RandomState::new().build_hasher().finish() % 1000).unwrap_or_default();
    pause * thousandths / 1000
}
