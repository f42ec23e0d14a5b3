//! The end of a chronicle after a crash: where the last whole line ends, and what is done with the rest.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use serde::Serialize;
use sha2::{Digest, Sha256};
use tgp_contract::{RelativePath, canonical};

use crate::dirfd::Directory;
use crate::failure::{Doing, Failure};
use crate::line::{self, MAX_LINE_BYTES};
use crate::lines;

/// How every line begins.
pub(crate) const BEGINNING: &[u8] = b"{\"";
const MARK: &str = ".torn-";
/// How many digits of the hash make a name; more when a shorter name is taken by other bytes.
const DIGITS: [usize; 3] = [8, 16, 64];
const MAX_NAME_BYTES: usize = 255;
/// How much is copied at once.
const BLOCK: usize = 64 << 10;

/// A last line that was not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Torn {
    /// Where it begins; all before it are whole lines.
    pub offset: u64,
    pub bytes: u64,
}

/// A torn line that was moved out of its chronicle, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quarantined {
    pub file: RelativePath,
    /// Where its bytes are now.
    pub kept: RelativePath,
    pub offset: u64,
    pub bytes: u64,
}

/// Where the whole lines of a file end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) whole: u64,
    pub(crate) torn: Option<Torn>,
    /// Whether the torn line could never have been the beginning of an event: then another program wrote it.
    pub(crate) is_foreign: bool,
}

/// How a foreign end is called.
pub(crate) const FOREIGN: &str = "its last line is not an event, and not the beginning of one";

/// Examines the end of `file`. A last line is torn when it has no end, or is not JSON: a disk that lost power may keep
/// the end of a line and not its middle.
pub(crate) fn extent(file: &File) -> io::Result<Extent> {
    let size = file.metadata()?.len();
    let unfinished = lines::start_of_last(file, size, 0, u64::MAX)?.unwrap_or_default();
    let whole = if unfinished == size { start_of_broken(file, size)? } else { unfinished };
    let torn = (whole < size).then(|| Torn { offset: whole, bytes: size - whole });
    let is_foreign = match &torn {
        Some(torn) => is_foreign(file, torn)?,
        None => false,
    };
    Ok(Extent { whole, torn, is_foreign })
}

/// The beginning of the last line before `end`, if it is not JSON; else the end.
fn start_of_broken(file: &File, end: u64) -> io::Result<u64> {
    let Some(start) = lines::start_of_last(file, end, 1, MAX_LINE_BYTES as u64 + 1)? else {
        // Too long to be a line of ours: broken in another way, and no trace of a crash.
        return Ok(end);
    };
    let length = usize::try_from(end - start).unwrap_or_default();
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, start)?;
    Ok(if line::is_json(&bytes) || length == 0 { end } else { start })
}

/// Moves a torn line, which is not foreign, out of the chronicle. The caller holds the lock for writing.
pub(crate) fn set_aside(
    directory: &Directory,
    file: &File,
    path: &RelativePath,
    torn: &Torn,
) -> Result<Quarantined, Failure> {
    let hash = hash(file, torn).doing("cannot read", path)?;
    let name = path.name().unwrap_or_default();
    for digits in DIGITS {
        let kept = kept_name(name, hash.get(..digits).unwrap_or(&hash));
        let kept_path = path.parent().join(&kept).unwrap_or_default();
        if keep(directory, &kept, &kept_path, file, torn)? {
            directory.sync()?;
            // Only now, when its bytes are safe elsewhere, does the file lose them.
            file.set_len(torn.offset)
                .and_then(|()| file.sync_all())
                .doing("cannot cut the torn line off", path)?;
            return Ok(Quarantined {
                file: path.clone(),
                kept: kept_path,
                offset: torn.offset,
                bytes: torn.bytes,
            });
        }
    }
    Err(Failure::Foreign {
        path: path.clone(),
        what: "its torn line was set aside before, under the same hash",
    })
}

/// Whether the file `name` now holds the torn bytes: written, or found there from a try that was interrupted.
fn keep(
    directory: &Directory,
    name: &str,
    path: &RelativePath,
    file: &File,
    torn: &Torn,
) -> Result<bool, Failure> {
    const DOING: &str = "cannot set a torn line aside as";
    let Some(mut copy) = directory.create(name)? else {
        return match directory.open(name)? {
            Some(existing) => is_same(file, torn, &existing).doing(DOING, path),
            None => Ok(false),
        };
    };
    let copied = bytes_of(file, torn).and_then(|mut bytes| io::copy(&mut bytes, &mut copy));
    if let Err(error) = copied.and_then(|_| copy.flush()).and_then(|()| copy.sync_all()) {
        // Half a copy is useless, and the bytes are still where they were.
        let _ = directory.remove(name);
        return Err(error).doing(DOING, path);
    }
    Ok(true)
}

/// Whether the digits in the name of a file that holds a torn line are those of its bytes.
pub(crate) fn is_named_by_hash(name: &str, file: &File) -> io::Result<bool> {
    let whole = Torn { offset: 0, bytes: file.metadata()?.len() };
    let digits = name.rsplit_once(MARK).map(|(_, digits)| digits).unwrap_or_default();
    Ok(hash(file, &whole)?.starts_with(digits))
}

/// Copies a file that holds a torn line. Returns whether its bytes are there now.
pub(crate) fn keep_whole(
    directory: &Directory,
    name: &str,
    path: &RelativePath,
    file: &File,
) -> Result<bool, Failure> {
    let bytes = file.metadata().doing("cannot look at", path)?.len();
    keep(directory, name, path, file, &Torn { offset: 0, bytes })
}

fn is_foreign(file: &File, torn: &Torn) -> io::Result<bool> {
    let mut first = vec![0; BEGINNING.len().min(usize::try_from(torn.bytes).unwrap_or(usize::MAX))];
    file.read_exact_at(&mut first, torn.offset)?;
    // What a disk did not write in time reads as zeros.
    Ok(!BEGINNING.starts_with(&first) && first.first() != Some(&0))
}

fn bytes_of<'a>(file: &'a File, torn: &Torn) -> io::Result<impl Read + use<'a>> {
    let mut reader = file;
    reader.seek(SeekFrom::Start(torn.offset))?;
    Ok(reader.take(torn.bytes))
}

fn hash(file: &File, torn: &Torn) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut bytes = bytes_of(file, torn)?;
    let mut block = vec![0; BLOCK];
    loop {
        let size = bytes.read(&mut block)?;
        if size == 0 {
            break;
        }
        hasher.update(block.get(..size).unwrap_or_default());
    }
    Ok(canonical::hex(&hasher.finalize()))
}

fn is_same(file: &File, torn: &Torn, existing: &File) -> io::Result<bool> {
    let size = existing.metadata()?.len();
    Ok(size == torn.bytes && hash(file, torn)? == hash(existing, &Torn { offset: 0, bytes: size })?)
}

/// `name` with the mark and the digits; shortened where no file could have such a long name.
fn kept_name(name: &str, digits: &str) -> String {
    let room = MAX_NAME_BYTES - MARK.len() - digits.len();
    format!("{}{MARK}{digits}", tgp_text::head(name, room))
}

/// Whether `name` is one that [`set_aside`] gives to what it takes out of the chronicle `of`.
pub(crate) fn is_kept(name: &str, of: &str) -> bool {
    name.rsplit_once(MARK).is_some_and(|(stem, digits)| {
        !stem.is_empty()
            && of.starts_with(stem)
            && (stem == of || name.len() == MAX_NAME_BYTES)
            && DIGITS.contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
