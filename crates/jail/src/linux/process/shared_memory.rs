//! Memory of a tree that no mapping has to show: files in memory (`memfd_create`), segments of System V, and shared
//! mappings whose pages were let go of and are still there.
//!
//! All of it lives in one file system of the kernel's own, so a descriptor or a mapping belongs to it when its device
//! is that of a file in memory that we have made ourselves. What is found is counted once, by its inode.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// Bytes of one list of the system that are read: of a process's mappings, or of all segments. What is beyond is not
/// known, and counts as much as it could be.
const LIST_BYTES: u64 = 4 << 20;

/// What the two directions of a socket can hold, with Linux's default settings.
const SOCKET_BYTES: u64 = 2 * 212_992;

/// Looks for it.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    /// The device of files in memory.
    device: Option<u64>,
    /// The list of the segments in the jail's own namespace: the process that opens it decides whose segments
    /// it shows.
    segments: File,
}

/// What a tree holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Bytes by inode. Those of a process that maps one are among them.
    inodes: BTreeMap<u64, u64>,
    /// Bytes of shared memory that the tree may hold in addition, where we cannot read.
    pub(crate) hidden: u64,
    /// Bytes that may lie in its sockets.
    pub(crate) in_sockets: u64,
}

impl Held {
    pub(crate) fn bytes(&self) -> u64 {
        self.inodes.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes))
    }

    fn add(&mut self, inode: u64, bytes: u64) {
        let known = self.inodes.entry(inode).or_default();
        *known = bytes.max(*known);
    }

    fn hide(&mut self, bytes: u64) {
        self.hidden = self.hidden.saturating_add(bytes);
    }
}

impl SharedMemory {
    pub(crate) fn new(segments: OwnedFd) -> Self {
        let made = memfd_create(c"device", MFdFlags::MFD_CLOEXEC).ok();
        let device = made.and_then(|file| File::from(file).metadata().ok()).map(|metadata| metadata.dev());
        Self { device, segments: segments.into() }
    }

    /// What these processes hold, by their directories in `/proc`.
    pub(crate) fn look<'a>(&mut self, processes: impl Iterator<Item = &'a Path>) -> Held {
        let mut held = Held::default();
        let Some(device) = self.device else { return held };
        for process in processes {
            look_at_descriptors(process, device, &mut held);
            look_at_mappings(process, device, &mut held);
        }
        self.look_at_segments(&mut held);
        held
    }

    /// A segment is there until it is removed, attached or not.
    fn look_at_segments(&mut self, held: &mut Held) {
        let mut text = String::new();
        let read =
            self.segments.rewind().and_then(|()| (&self.segments).take(LIST_BYTES).read_to_string(&mut text));
        if read.is_err() {
            return;
        }
        for line in text.lines().skip(1) {
            if let Some((inode, bytes)) = segment(line) {
                held.add(inode, bytes);
            }
        }
    }

    /// How many bytes of a process's mappings are of what was found already.
    pub(crate) fn counted_bytes(&self, process: &Path, held: &Held) -> u64 {
        let Some(device) = self.device else { return 0 };
        let Ok(text) = read_list(&process.join("smaps")) else { return 0 };
        let (mut sum, mut counts) = (0_u64, false);
        for line in text.lines() {
            if let Some(mapping) = Mapping::parse(line) {
                // What a private mapping has changed is its own.
                counts =
                    mapping.is_shared && mapping.is_on(device) && held.inodes.contains_key(&mapping.inode);
            } else if counts && let Some(value) = line.strip_prefix("Pss:") {
                sum = sum.saturating_add(kibibytes(value));
            }
        }
        sum
    }
}

fn look_at_descriptors(process: &Path, device: u64, held: &mut Held) {
    let entries = match fs::read_dir(process.join("fd")) {
        Ok(entries) => entries,
        // A process that may not be traced shows nothing of it, and may hold anything.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return held.hide(u64::MAX),
        Err(_) => return,
    };
    for entry in entries.flatten() {
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        if metadata.file_type().is_socket() {
            held.in_sockets = held.in_sockets.saturating_add(SOCKET_BYTES);
            // Descriptors may be on their way in it, which no process has open.
            held.hide(u64::MAX);
        } else if metadata.dev() == device {
            held.add(metadata.ino(), metadata.blocks().saturating_mul(512));
        }
    }
}

/// Mappings without a descriptor. Root can ask each for its file; for others it may be as large as it is mapped.
fn look_at_mappings(process: &Path, device: u64, held: &mut Held) {
    let Ok(text) = read_list(&process.join("maps")) else { return };
    if text.len() as u64 >= LIST_BYTES {
        held.hide(u64::MAX);
    }
    for mapping in text.lines().filter_map(Mapping::parse).filter(|mapping| mapping.is_on(device)) {
        match fs::metadata(process.join("map_files").join(&mapping.range)) {
            Ok(metadata) => held.add(metadata.ino(), metadata.blocks().saturating_mul(512)),
            Err(_) if held.inodes.contains_key(&mapping.inode) => {}
            Err(_) => held.hide(mapping.bytes),
        }
    }
}

/// One mapping, as `maps` and `smaps` begin it.
struct Mapping {
    range: PathBuf,
    bytes: u64,
    is_shared: bool,
    device: (u32, u32),
    inode: u64,
}

impl Mapping {
    /// `7f5c-7f5d rw-s 00000000 00:01 1027 /memfd:x (deleted)`
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (range, rights, _offset) = (words.next()?, words.next()?, words.next()?);
        let (from, to) = range.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let (major, minor) = words.next()?.split_once(':')?;
        let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let inode = words.next()?.parse().ok()?;
        Some(Self {
            range: PathBuf::from(range),
            bytes: to.saturating_sub(from),
            is_shared: rights.ends_with('s'),
            device,
            inode,
        })
    }

    fn is_on(&self, device: u64) -> bool {
        self.device == (libc::major(device), libc::minor(device))
    }
}

/// A line of the list of segments: its number, which is the inode of its file, and what is in memory or swapped out.
fn segment(line: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok());
    Some((number(1)?, number(14)?.saturating_add(number(15).unwrap_or(0))))
}

pub(crate) fn kibibytes(value: &str) -> u64 {
    let number = value.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

fn read_list(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LIST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Held, Mapping, segment};

    #[test]
    fn lines_of_the_system_are_read() {
        let line =
            "7f1c00000000-7f1c00100000 rw-s 00000000 00:01 1027                       /memfd:x (deleted)";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!(
            (mapping.bytes, mapping.is_shared, mapping.device, mapping.inode),
            (1 << 20, true, (0, 1), 1027)
        );
        assert!(Mapping::parse("Pss:                 100 kB").is_none() && Mapping::parse("").is_none());
        let line = "         0          5   600  524288000   411   411      0     0     0     0     0 1 2 3 524288000 4096";
        assert_eq!(segment(line), Some((5, 524_288_000 + 4096)));
        assert_eq!(segment("       key      shmid perms                  size"), None);
    }

    #[test]
    fn what_is_held_twice_counts_once_and_what_is_hidden_has_no_bound() {
        let mut held = Held::default();
        held.add(1, 100);
        held.add(1, 200);
        held.add(2, 50);
        assert_eq!(held.bytes(), 250);
        held.hide(u64::MAX);
        held.hide(1);
        assert_eq!(held.hidden, u64::MAX);
    }
}
