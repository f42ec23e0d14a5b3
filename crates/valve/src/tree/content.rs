//! What a file holds, and by what signs one tells that it holds the same as before.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use tgp_contract::RelativePath;

use super::Tree;

/// How much of a file is searched for patterns.
const MAX_HEAD_BYTES: usize = 1 << 20;
/// How often a file that is written to meanwhile is read again. After that the next look finds what is new.
const MAX_TRIES: usize = 3;
/// A file that was changed so shortly before it was read may be changed again within the same tick of its file system's
/// clock; two seconds is the coarsest clock in use.
const TICK: Duration = Duration::from_secs(2);
/// A larger file that is written to meanwhile is not read again at once: all other changes wait for it.
const MAX_RETRIED_BYTES: u64 = 16 << 20;
const BUFFER_BYTES: usize = 128 << 10;

/// The signs of a file. Whoever changes a file changes its `ctime`, and cannot set it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// When the inode was made, where the file system knows. Numbers of inodes are used again; this tells them apart.
    pub(crate) born_ns: Option<i64>,
}

impl Stamp {
    pub(crate) fn of(data: &Metadata) -> Self {
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
    pub(crate) fn is_same_inode(&self, other: &Self) -> bool {
        self.born_ns.is_some()
            && (self.device, self.inode, self.born_ns) == (other.device, other.inode, other.born_ns)
    }

    /// Whether a change after `now` would show in this stamp.
    fn is_settled(&self, now: i64) -> bool {
        let limit = now.saturating_sub(i64::try_from(TICK.as_nanos()).unwrap_or(i64::MAX));
        self.ctime_ns < limit && self.mtime_ns < limit
    }
}

fn since_epoch(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanoseconds| -nanoseconds)
        }
    }
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Content {
    /// As it was before the first byte was read, so that what is written later shows.
    pub(crate) stamp: Stamp,
    pub(crate) sha256: String,
    /// False when the same stamp could also belong to another content.
    pub(crate) is_settled: bool,
}

/// Why a file could not be read.
#[derive(Debug)]
pub(crate) enum ContentError {
    /// There is no regular file at this path any more.
    Vanished,
    Unreadable(io::Error),
    Stopped,
}

/// Reads files one after the other, with buffers that are made once.
pub(crate) struct Hashing<'t> {
    tree: &'t Tree,
    stop: &'t AtomicBool,
    buffer: Vec<u8>,
    head: Vec<u8>,
    keeps_head: bool,
}

impl<'t> Hashing<'t> {
    pub(crate) fn new(tree: &'t Tree, stop: &'t AtomicBool, keeps_head: bool) -> Self {
        Self { tree, stop, buffer: vec![0; BUFFER_BYTES], head: Vec::new(), keeps_head }
    }

    pub(crate) fn read(&mut self, path: &RelativePath) -> Result<Content, ContentError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut file = self.tree.open_file(path).map_err(cause)?;
            let data = file.metadata().map_err(cause)?;
            if !data.is_file() {
                return Err(ContentError::Vanished);
            }
            let stamp = Stamp::of(&data);
            // The file's own times come from the system's clock, so it is this clock that they are compared with.
            let now = since_epoch(SystemTime::now());
            let sha256 = self.hash(&mut file)?;
            let after = Stamp::of(&file.metadata().map_err(cause)?);
            if after == stamp || tries >= MAX_TRIES || stamp.size > MAX_RETRIED_BYTES {
                let is_settled = after == stamp && stamp.is_settled(now);
                return Ok(Content { stamp, sha256, is_settled });
            }
        }
    }

    fn hash(&mut self, file: &mut impl Read) -> Result<String, ContentError> {
        let mut hasher = Sha256::new();
        self.head.clear();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ContentError::Stopped);
            }
            let size = match file.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cause(error)),
            };
            let bytes = self.buffer.get(..size).unwrap_or_default();
            hasher.update(bytes);
            if self.keeps_head && self.head.len() < MAX_HEAD_BYTES {
                let room = MAX_HEAD_BYTES - self.head.len();
                self.head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            }
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The beginning of the file that was read last.
    pub(crate) fn head(&self) -> Option<&[u8]> {
        self.keeps_head.then_some(self.head.as_slice())
    }
}

fn cause(error: io::Error) -> ContentError {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    // A device without a driver and a socket cannot be opened; they are no files either.
    let is_special = matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::ELOOP));
    if is_special || matches!(error.kind(), NotFound | NotADirectory | IsADirectory) {
        ContentError::Vanished
    } else {
        ContentError::Unreadable(error)
    }
}
