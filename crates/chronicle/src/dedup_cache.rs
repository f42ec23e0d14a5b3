//! Which lines a chronicle has already, known without reading it again.
//!
//! The same event is the same line, byte for byte. So a keyed hash of each line and its place are enough: a hit is
//! looked up in the file, and no hit can be wrong for long. What others appended since is read when it is needed.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use tgp_contract::RelativePath;
use tgp_fs::Stamp;

use crate::lines::Lines;

/// Lines that are remembered in all, at some twenty bytes each. A chronicle with more is searched from its beginning
/// for every event, which takes a fraction of a second.
const MAX_LINES: usize = 1 << 20;
/// Chronicles that are remembered. Each one costs a name and a table.
const MAX_FILES: usize = 4096;

/// What is known of all chronicles.
#[derive(Debug, Default)]
pub(crate) struct DedupCache {
    files: Mutex<Remembered>,
    state: RandomState,
}

#[derive(Debug, Default)]
struct Remembered {
    files: HashMap<RelativePath, Known>,
    /// Counts uses, so that the one that was used longest ago is known.
    clock: u64,
}

/// What is known of one chronicle.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// How the file looked when the table was complete.
    stamp: Option<Stamp>,
    /// The lines up to here are in the table.
    upto: u64,
    /// The last of them: where it is, and its hash.
    last: Option<(u64, u64)>,
    lines: HashMap<u64, u64>,
    /// More lines than may be remembered.
    is_large: bool,
    used: u64,
}

impl DedupCache {
    /// Takes out what is known of `path`. The caller holds the lock of the file, so no other caller asks
    /// meanwhile.
    pub(crate) fn take(&self, path: &RelativePath) -> Known {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).files.remove(path).unwrap_or_default()
    }

    /// Puts it back, and forgets what was used longest ago where that is too much.
    pub(crate) fn put(&self, path: &RelativePath, mut known: Known) {
        let mut remembered = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.clock += 1;
        known.used = remembered.clock;
        remembered.files.insert(path.clone(), known);
        let count =
            |remembered: &Remembered| remembered.files.values().map(|known| known.lines.len()).sum::<usize>();
        while remembered.files.len() > 1
            && (remembered.files.len() > MAX_FILES || count(&remembered) > MAX_LINES)
        {
            let oldest =
                remembered.files.iter().min_by_key(|(_, known)| known.used).map(|(path, _)| path.clone());
            let Some(oldest) = oldest else { break };
            remembered.files.remove(&oldest);
        }
    }

    /// Brings `known` up to date with the whole lines of `file`, which end at `whole`.
    pub(crate) fn refresh(&self, known: &mut Known, file: &File, whole: u64) -> io::Result<()> {
        let stamp = stamp(file)?;
        if !self.is_continued(known, file, whole, &stamp)? {
            *known = Known::default();
        }
        known.stamp = Some(stamp);
        if known.is_large {
            return Ok(());
        }
        let mut lines = Lines::new(file, known.upto, whole)?;
        while let Some(line) = lines.next()? {
            if let Some(bytes) = line.bytes {
                known.insert(line.offset, self.state.hash_one(bytes));
            }
            if known.lines.len() > MAX_LINES {
                known.forget();
                return Ok(());
            }
        }
        known.upto = whole;
        Ok(())
    }

    /// Whether the lines that are known are still the first ones of the file.
    fn is_continued(&self, known: &Known, file: &File, whole: u64, stamp: &Stamp) -> io::Result<bool> {
        let Some(before) = &known.stamp else { return Ok(true) };
        if (before.device, before.inode) != (stamp.device, stamp.inode) {
            return Ok(false);
        }
        if known.is_large || (known.upto == whole && before.ctime_ns == stamp.ctime_ns) {
            return Ok(true);
        }
        // Of the same length and yet changed: something wrote into it.
        if known.upto >= whole {
            return Ok(false);
        }
        let Some((offset, hash)) = known.last else { return Ok(true) };
        let mut lines = Lines::new(file, offset, known.upto)?;
        let last = lines.next()?.and_then(|line| line.bytes.map(|bytes| self.state.hash_one(bytes)));
        Ok(last == Some(hash))
    }

    /// Whether `line`, given with its end, is one of the file's whole lines.
    pub(crate) fn contains(&self, known: &Known, file: &File, whole: u64, line: &[u8]) -> io::Result<bool> {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        if !known.is_large {
            let Some(offset) = known.lines.get(&self.state.hash_one(bare)) else { return Ok(false) };
            let mut found = vec![0; line.len()];
            let is_there = offset.checked_add(line.len() as u64).is_some_and(|end| end <= whole);
            if is_there && file.read_exact_at(&mut found, *offset).is_ok() && found == line {
                return Ok(true);
            }
        }
        // The table does not know, so the file is read.
        let mut lines = Lines::new(file, 0, whole)?;
        while let Some(found) = lines.next()? {
            if found.bytes == Some(bare) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a line that was just written at `offset`.
    pub(crate) fn add(&self, known: &mut Known, file: &File, offset: u64, line: &[u8]) -> io::Result<()> {
        known.stamp = Some(stamp(file)?);
        if known.is_large {
            return Ok(());
        }
        known.insert(offset, self.state.hash_one(line.strip_suffix(b"\n").unwrap_or(line)));
        known.upto = offset + line.len() as u64;
        if known.lines.len() > MAX_LINES {
            known.forget();
        }
        Ok(())
    }
}

impl Known {
    fn insert(&mut self, offset: u64, hash: u64) {
        self.lines.entry(hash).or_insert(offset);
        self.last = Some((offset, hash));
    }

    fn forget(&mut self) {
        self.is_large = true;
        self.lines = HashMap::new();
        self.last = None;
    }
}

fn stamp(file: &File) -> io::Result<Stamp> {
    Ok(Stamp::of(&file.metadata()?))
}
