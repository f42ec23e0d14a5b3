//! The metadata that shows, without reading a file, that its contents are unchanged.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that was changed so shortly before its stamp was taken may be changed again within the same tick of its
/// file system's clock, and the stamp would not show it. Two seconds is the coarsest clock in use.
const TICK: Duration = Duration::from_secs(2);

/// The metadata of a file. Every change of a file changes its `ctime`, which cannot be set back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub device: u64,
    pub inode: u64,
    /// When the inode was made, where the file system knows. Numbers of inodes are used again; this distinguishes
    /// them.
    pub born_ns: Option<i64>,
}

impl Stamp {
    #[must_use]
    pub fn of(data: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            size: data.len(),
            mtime_ns: nanoseconds(data.mtime(), data.mtime_nsec()),
            ctime_ns: nanoseconds(data.ctime(), data.ctime_nsec()),
            device: data.dev(),
            inode: data.ino(),
            born_ns: data.created().ok().map(since_epoch),
        }
    }

    /// Whether two stamps are of the same inode, for certain.
    #[must_use]
    pub fn is_same_inode(&self, other: &Self) -> bool {
        self.born_ns.is_some()
            && (self.device, self.inode, self.born_ns) == (other.device, other.inode, other.born_ns)
    }

    /// Whether a change after `now` would show in this stamp. What was read before a stamp has settled must be read again.
    #[must_use]
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let limit = since_epoch(now).saturating_sub(i64::try_from(TICK.as_nanos()).unwrap_or(i64::MAX));
        self.ctime_ns < limit && self.mtime_ns < limit
    }
}

/// Nanoseconds since 1970, before it where negative.
#[must_use]
pub fn since_epoch(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanoseconds| -nanoseconds)
        }
    }
}
