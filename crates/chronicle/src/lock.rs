//! One who appends at a time, across processes and threads.
//!
//! The lock is on the chronicle itself. Those who read take it together, for the moment in which they look where the last
//! whole line ends.

use std::fs::File;
use std::time::Duration;

use tgp_contract::RelativePath;
pub(crate) use tgp_fs::LockKind;
use tgp_fs::{LockWait, take_lock};

use crate::failure::{Doing, Failure};

/// An append takes well below a millisecond, so a waiter tries again soon.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Takes the lock of `file`, waiting for at most `patience`. It ends when the file is closed.
pub(crate) fn take(
    file: &File,
    kind: LockKind,
    patience: Duration,
    path: &RelativePath,
) -> Result<(), Failure> {
    let wait = LockWait { patience, first_pause: FIRST_PAUSE, longest_pause: LONGEST_PAUSE };
    if take_lock(file, kind, wait).doing("cannot lock", path)? {
        return Ok(());
    }
    Err(Failure::Busy { path: path.clone(), seconds: patience.as_secs() })
}
