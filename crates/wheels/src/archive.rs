//! The archive of a wheel: its entries, checked before one of them is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive};

use crate::WheelError;

pub(crate) const MAX_ENTRIES: u64 = 20_000;
/// Bytes of all files together.
pub(crate) const MAX_BYTES: u64 = 2 << 30;
/// Bytes of one file.
pub(crate) const MAX_ENTRY_BYTES: u64 = 1 << 30;
/// Bytes of the archive itself.
const MAX_ARCHIVE_BYTES: u64 = 2 << 30;
/// Bytes of the list of entries.
const MAX_DIRECTORY_BYTES: u64 = 4 << 20;
const MAX_PATH_BYTES: usize = 1024;
const MAX_NAME_BYTES: usize = 255;
const MAX_DEPTH: usize = 32;

const END_BYTES: u64 = 22;
const ZIP64_LOCATOR_BYTES: u64 = 20;
const HEADER_BYTES: u64 = 46;

/// An opened archive, whose entries are plain files at plain places.
pub(crate) struct Archive {
    zip: ZipArchive<File>,
    /// Its files by their paths.
    entries: BTreeMap<String, ArchiveEntry>,
}

/// A file of an archive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArchiveEntry {
    index: usize,
    pub(crate) bytes: u64,
    pub(crate) executable: bool,
}

impl Archive {
    pub(crate) fn open(mut file: File, stop: &dyn Fn() -> bool) -> Result<Self, WheelError> {
        check_end(&mut file)?;
        // What is before the archive would be read by other programs, so nothing is.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut zip = ZipArchive::with_config(config, file).map_err(|error| invalid(&error))?;
        if zip.has_duplicate_names() {
            return Err(WheelError::Archive("two entries have one name".to_owned()));
        }
        if zip.has_overlapping_entries().map_err(|error| invalid(&error))? {
            return Err(WheelError::Archive("two entries share bytes".to_owned()));
        }
        zip.validate_header_consistency().map_err(|error| invalid(&error))?;
        let entries = entries(&zip, stop)?;
        Ok(Self { zip, entries })
    }

    pub(crate) fn entries(&self) -> &BTreeMap<String, ArchiveEntry> {
        &self.entries
    }

    /// A reader of an entry, which ends with an error where there is more than the entry says.
    pub(crate) fn reader(&mut self, entry: ArchiveEntry) -> Result<impl Read + '_, WheelError> {
        self.zip.by_index(entry.index).map_err(|error| invalid(&error))
    }

    /// The content of a small entry.
    pub(crate) fn content(&mut self, path: &str, most: u64) -> Result<Vec<u8>, WheelError> {
        let missing = || WheelError::Archive(format!("it has no `{path}`"));
        let entry = self.entries.get(path).copied().ok_or_else(missing)?;
        if entry.bytes > most {
            return Err(WheelError::Limit {
                what: "the bytes of METADATA, WHEEL, RECORD or entry points",
                limit: most,
            });
        }
        let mut content = Vec::new();
        self.reader(entry)?.take(most + 1).read_to_end(&mut content)?;
        if content.len() as u64 != entry.bytes {
            return Err(WheelError::Archive(format!("`{path}` is not as long as it says")));
        }
        Ok(content)
    }
}

fn invalid(error: &zip::result::ZipError) -> WheelError {
    WheelError::Archive(error.to_string())
}

/// Checks the end of an archive and its list of entries by hand: the number of entries and their sizes decide how much memory a
/// reader takes, and a reader that finds the list broken looks for another one.
fn check_end(file: &mut File) -> Result<(), WheelError> {
    let refused = |why: &str| WheelError::Archive(why.to_owned());
    let length = file.seek(SeekFrom::End(0))?;
    if length > MAX_ARCHIVE_BYTES {
        return Err(WheelError::Limit { what: "the archive's length in bytes", limit: MAX_ARCHIVE_BYTES });
    }
    let at = length.checked_sub(END_BYTES).ok_or_else(|| refused("it is too short"))?;
    file.seek(SeekFrom::Start(at))?;
    let mut end = [0; END_BYTES as usize];
    file.read_exact(&mut end)?;
    let short = |at: usize| u64::from(number::<2>(&end, at));
    let long = |at: usize| u64::from(number::<4>(&end, at));
    // No comment follows, and no other disk.
    if !end.starts_with(b"PK\x05\x06") || short(20) != 0 || short(4) != 0 || short(6) != 0 {
        return Err(refused("it does not end with the end of an archive"));
    }
    let (count, size, start) = (short(10), long(12), long(16));
    if count > MAX_ENTRIES {
        return Err(WheelError::Limit { what: "the number of entries", limit: MAX_ENTRIES });
    }
    if size > MAX_DIRECTORY_BYTES {
        return Err(WheelError::Limit {
            what: "the length of the list of entries",
            limit: MAX_DIRECTORY_BYTES,
        });
    }
    if short(8) != count || start.checked_add(size) != Some(at) {
        return Err(refused("its list of entries is not where it says"));
    }
    if let Some(locator) = at.checked_sub(ZIP64_LOCATOR_BYTES).filter(|locator| *locator >= start) {
        file.seek(SeekFrom::Start(locator))?;
        let mut magic = [0; 4];
        file.read_exact(&mut magic)?;
        if &magic == b"PK\x06\x07" {
            return Err(refused("it has the format of larger archives (ZIP64)"));
        }
    }
    file.seek(SeekFrom::Start(start))?;
    let mut list = Vec::new();
    file.take(size).read_to_end(&mut list)?;
    let mut rest = list.as_slice();
    for _ in 0..count {
        let header = rest.get(..HEADER_BYTES as usize).filter(|header| header.starts_with(b"PK\x01\x02"));
        let header = header.ok_or_else(|| refused("its list of entries is broken"))?;
        let further: u64 = [28, 30, 32].iter().map(|at| u64::from(number::<2>(header, *at))).sum();
        let length = usize::try_from(HEADER_BYTES + further).unwrap_or(usize::MAX);
        rest = rest.get(length..).ok_or_else(|| refused("its list of entries is broken"))?;
    }
    if rest.is_empty() { Ok(()) } else { Err(refused("its list of entries is longer than it says")) }
}

/// A number of some bytes, the lowest first.
fn number<const N: usize>(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..at + N).unwrap_or_default();
    part.iter().rev().fold(0, |sum, byte| (sum << 8) | u32::from(*byte))
}

fn entries(
    zip: &ZipArchive<File>,
    stop: &dyn Fn() -> bool,
) -> Result<BTreeMap<String, ArchiveEntry>, WheelError> {
    let mut found = BTreeMap::new();
    let (mut files, mut directories) = (BTreeSet::new(), BTreeSet::new());
    let mut sum: u64 = 0;
    for index in 0..zip.len() {
        if stop() {
            return Err(WheelError::Stopped);
        }
        let data = zip.by_index_data(index).map_err(|error| invalid(&error))?;
        let name = data.name().map_err(|error| invalid(&error))?.into_owned();
        let refused = |problem| WheelError::Entry { path: name.clone(), problem };
        if name.as_bytes() != data.name_raw() {
            return Err(refused("has a name in an unknown encoding"));
        }
        let path = name.strip_suffix('/').unwrap_or(&name);
        check_path(path).map_err(refused)?;
        // The type of a file, where the archive was made on a system that has them.
        let kind = data.unix_mode().unwrap_or_default() & 0o170_000;
        if data.encrypted() {
            return Err(refused("is encrypted"));
        }
        if !matches!(data.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
            return Err(refused("has a compression that is not supported"));
        }
        if data.is_dir() || name.ends_with('/') {
            if data.size() != 0 || !matches!(kind, 0 | 0o040_000) {
                return Err(refused("is a directory with a content"));
            }
            directories.insert(path.to_lowercase());
            continue;
        }
        if data.is_symlink() || !matches!(kind, 0 | 0o100_000) {
            return Err(refused("is a link or a special file"));
        }
        if data.size() > MAX_ENTRY_BYTES {
            return Err(WheelError::Limit { what: "the length of a file", limit: MAX_ENTRY_BYTES });
        }
        sum = sum.saturating_add(data.size());
        if sum > MAX_BYTES {
            return Err(WheelError::Limit { what: "the length of all files", limit: MAX_BYTES });
        }
        if !files.insert(path.to_lowercase()) {
            return Err(refused("is there twice"));
        }
        let mut above = path;
        while let Some((parent, _)) = above.rsplit_once('/') {
            directories.insert(parent.to_lowercase());
            above = parent;
        }
        let executable = data.unix_mode().unwrap_or_default() & 0o111 != 0;
        found.insert(path.to_owned(), ArchiveEntry { index, bytes: data.size(), executable });
    }
    match files.intersection(&directories).next() {
        Some(path) => Err(WheelError::Entry { path: path.clone(), problem: "is a file and a directory" }),
        None => Ok(found),
    }
}

/// Whether a path stays where it is unpacked, on every file system.
pub(crate) fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES {
        return Err("has an empty or a too long name");
    }
    if path.chars().any(|letter| letter.is_control() || letter == '\\') {
        return Err("has a control character or a backslash in its name");
    }
    if path.starts_with('/') {
        return Err("has an absolute path");
    }
    let mut depth = 0;
    for part in path.split('/') {
        depth += 1;
        if matches!(part, "" | "." | "..") {
            return Err("leads out of its directory");
        }
        if part.len() > MAX_NAME_BYTES || depth > MAX_DEPTH {
            return Err("has a too long name or too many directories");
        }
    }
    Ok(())
}
