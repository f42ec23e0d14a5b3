//! What a file holds, and the metadata that shows that it is unchanged.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use tgp_contract::{RelativePath, canonical};

use super::{Stamp, Tree};

/// How much of a file is searched for patterns.
const MAX_HEAD_BYTES: usize = 1 << 20;
/// How often a file that is written to meanwhile is read again. After that the next scan finds what is new.
const MAX_TRIES: usize = 3;
/// A larger file that is written to meanwhile is not read again at once: all other changes wait for it.
const MAX_RETRIED_BYTES: u64 = 16 << 20;
const BUFFER_BYTES: usize = 128 << 10;

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
            let now = SystemTime::now();
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
        Ok(canonical::hex(&hasher.finalize()))
    }

    /// The beginning of the file that was read last.
    pub(crate) fn head(&self) -> Option<&[u8]> {
        self.keeps_head.then_some(self.head.as_slice())
    }
}

fn cause(error: io::Error) -> ContentError {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    // A device without a driver and a socket cannot be opened; they are not files either.
    let is_special = matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::ELOOP));
    if is_special || matches!(error.kind(), NotFound | NotADirectory | IsADirectory) {
        ContentError::Vanished
    } else {
        ContentError::Unreadable(error)
    }
}
