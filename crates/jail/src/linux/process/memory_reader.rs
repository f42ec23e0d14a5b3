//! Memory of a tree that no line of a process's status shows.
//!
//! One part are pages: files in memory (`memfd_create`), segments of System V, and shared mappings whose pages were let go
//! of and are still there. All of them live in one file system of the kernel's own, so a descriptor or a mapping belongs to
//! it when its device is that of a file in memory that we have made ourselves. What is found is counted once, by its inode.
//!
//! The other part is what the system keeps for the tree: descriptors, mappings, pipes, sockets, messages and semaphores.
//! Where a pipe or a socket cannot be looked into it may hold as much as it can, and that much is believed as the memory of
//! the system has grown.
#![expect(unsafe_code, reason = "how full a pipe is has no safe wrapper among our dependencies")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::socket_memory::socket_bytes;
use crate::NetworkAccess;

/// Bytes of one list of the system that are read: of a process's mappings, or of all segments. What is beyond is not
/// known, and counts as much as it could be.
const LIST_BYTES: u64 = 4 << 20;

/// What the two directions of a socket can hold, when each is set to the most of Linux's default settings: twice
/// `net.core.wmem_max`.
const SOCKET_BYTES: u64 = 4 * 212_992;

/// What a pipe can hold, with Linux's default settings: `fs.pipe-max-size`.
const PIPE_BYTES: u64 = 1 << 20;

/// What the system keeps for a descriptor: the file with its inode and its name.
const DESCRIPTOR_BYTES: u64 = 1024;

/// Memory of a pipe without data: two pages that were read, for the next writer, and its structures.
const EMPTY_PIPE_BYTES: u64 = 2 * 4096 + 512;

/// What a pipe has for each of its bytes of room: 40 bytes for a page, in a table whose size is a power of two.
const PIPE_ROOM_SHARE: u64 = 64;

/// Memory of the system for a mapping: its description, its place in the tree of mappings, and its list of own pages.
const MAPPING_BYTES: u64 = 384;

/// What it keeps for a mapping in addition, for each process that the mapping was inherited through.
const INHERITANCE_BYTES: u64 = 64;

/// What the system keeps for a message beside its text.
const MESSAGE_BYTES: u64 = 128;

/// What the system keeps for a semaphore, and what more for each process that wants its changes undone.
const SEMAPHORE_BYTES: u64 = 64;
const UNDO_BYTES: u64 = 2;

/// Looks for it.
#[derive(Debug)]
pub(crate) struct MemoryReader {
    devices: Devices,
    lists: [(File, EntryBytes); 3],
    sockets: OwnedFd,
    network: NetworkAccess,
    /// The most processes that a look has found.
    most_processes: u64,
}

/// Devices by which a descriptor is known.
#[derive(Clone, Copy, Debug)]
struct Devices {
    /// Of files in memory.
    memory: Option<u64>,
    /// Of pipes without a name.
    pipes: Option<u64>,
}

/// Reads an entry of a list.
type EntryBytes = fn(&[u64]) -> Option<ListEntry>;

/// What the memory of a jail is read from: descriptors that were opened in its namespaces.
#[derive(Debug)]
pub(crate) struct MemorySources {
    pub(crate) segments: OwnedFd,
    pub(crate) messages: OwnedFd,
    pub(crate) semaphores: OwnedFd,
    /// Reports on the sockets of its network.
    pub(crate) sockets: OwnedFd,
    pub(crate) network: NetworkAccess,
}

/// What a tree holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryUse {
    /// Bytes by inode. Those of a process that maps one are among them.
    inodes: BTreeMap<u64, u64>,
    /// Bytes that the system keeps for it.
    in_system: u64,
    /// Bytes of shared memory that the tree may hold in addition, where we cannot read.
    pub(crate) hidden: u64,
    /// Bytes of the system that the tree may hold in addition, in pipes and sockets.
    pub(crate) possible: u64,
}

impl MemoryUse {
    pub(crate) fn bytes(&self) -> u64 {
        self.inodes.values().fold(self.in_system, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// What of it the system has taken from its own memory.
    pub(crate) fn system_bytes(&self) -> u64 {
        self.in_system
    }

    fn add(&mut self, inode: u64, bytes: u64) {
        let known = self.inodes.entry(inode).or_default();
        *known = bytes.max(*known);
    }

    /// Counts the pages of a file in memory.
    fn add_file(&mut self, metadata: &Metadata) {
        self.add(metadata.ino(), metadata.blocks().saturating_mul(512));
    }

    fn add_to_system(&mut self, bytes: u64) {
        self.in_system = self.in_system.saturating_add(bytes);
    }

    fn hide(&mut self, bytes: u64) {
        self.hidden = self.hidden.saturating_add(bytes);
    }

    /// What may be there, if the memory of the system has grown by as much.
    pub(crate) fn allow_for(&mut self, bytes: u64) {
        self.possible = self.possible.saturating_add(bytes);
    }

    /// What cannot be read at all may be anything.
    fn hide_all(&mut self) {
        self.hidden = u64::MAX;
        self.possible = u64::MAX;
    }
}

impl MemoryReader {
    pub(crate) fn new(sources: MemorySources) -> Self {
        let device = |file: File| file.metadata().ok().map(|metadata| metadata.dev());
        let memory = memfd_create(c"device", MFdFlags::MFD_CLOEXEC).ok();
        let pipe = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).ok();
        Self {
            devices: Devices {
                memory: memory.and_then(|memory| device(memory.into())),
                pipes: pipe.and_then(|(pipe, _)| device(pipe.into())),
            },
            lists: [
                (sources.segments.into(), segment),
                (sources.messages.into(), messages_of_queue),
                (sources.semaphores.into(), semaphores_of_set),
            ],
            sockets: sources.sockets,
            network: sources.network,
            most_processes: 0,
        }
    }

    /// What these processes hold, by their directories in `/proc` and the number of their ancestors in the tree, with
    /// `tasks` threads together.
    pub(crate) fn look<'a>(
        &mut self,
        processes: impl Iterator<Item = (&'a Path, u64)>,
        tasks: u64,
    ) -> MemoryUse {
        let mut held = MemoryUse::default();
        let Some(device) = self.devices.memory else {
            held.hide_all();
            return held;
        };
        for (list, entry) in &mut self.lists {
            look_at_list(list, *entry, tasks, &mut held);
        }
        let mut channels = Channels::default();
        let (mut count, mut mappings) = (0_u64, 0_u64);
        for (process, depth) in processes {
            look_at_program(process, device, &mut held);
            look_at_descriptors(process, self.devices, &mut channels, &mut held);
            count += 1;
            let own = look_at_mappings(process, device, &mut held);
            held.add_to_system(own.saturating_mul(MAPPING_BYTES + INHERITANCE_BYTES * depth));
            mappings = mappings.saturating_add(own);
        }
        // A mapping may have come through more forks: those in between have ended, or gave their parent to their child. A
        // chain of them is at most as long as there were processes at one time.
        self.most_processes = self.most_processes.max(count);
        let inherited = mappings.saturating_mul(self.most_processes.saturating_sub(1));
        held.allow_for(inherited.saturating_mul(INHERITANCE_BYTES));
        if !channels.sockets.is_empty() {
            match socket_bytes(&self.sockets, self.network, &channels.sockets) {
                Some(bytes) => held.add_to_system(bytes),
                None => held.allow_for(SOCKET_BYTES.saturating_mul(channels.sockets.len() as u64)),
            }
        }
        held
    }

    /// How many bytes of a process's mappings are of what was found already.
    pub(crate) fn counted_bytes(&self, process: &Path, held: &MemoryUse) -> u64 {
        let Some(device) = self.devices.memory else { return 0 };
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

/// An entry is there until it is removed, whether a process uses it or not.
fn look_at_list(list: &mut File, entry: EntryBytes, tasks: u64, held: &mut MemoryUse) {
    let mut text = String::new();
    if list.rewind().and_then(|()| list.take(LIST_BYTES).read_to_string(&mut text)).is_err() {
        return;
    }
    if text.len() as u64 >= LIST_BYTES {
        held.hide_all();
    }
    for line in text.lines().skip(1) {
        // A column that is not a number is the key, in some versions.
        let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        let Some(found) = entry(&numbers) else { continue };
        if let Some((inode, bytes)) = found.pages {
            held.add(inode, bytes);
        }
        held.add_to_system(found.bytes.saturating_add(found.bytes_per_task.saturating_mul(tasks)));
    }
}

/// Pipes and sockets that were met, by their inodes.
#[derive(Debug, Default)]
struct Channels {
    /// With their devices.
    pipes: BTreeSet<(u64, u64)>,
    sockets: BTreeSet<u64>,
}

/// A process keeps the file it was started from, also when it has neither open nor mapped it any more.
fn look_at_program(process: &Path, device: u64, held: &mut MemoryUse) {
    match fs::metadata(process.join("exe")) {
        Ok(metadata) if metadata.dev() == device => held.add_file(&metadata),
        Ok(_) => {}
        Err(error) if has_ended(&error) => {}
        Err(_) => held.hide_all(),
    }
}

fn look_at_descriptors(process: &Path, devices: Devices, channels: &mut Channels, held: &mut MemoryUse) {
    let entries = match fs::read_dir(process.join("fd")) {
        Ok(entries) => entries,
        Err(error) if has_ended(&error) => return,
        // A process that may not be traced shows nothing of it, and may hold anything.
        Err(_) => return held.hide_all(),
    };
    for entry in entries.flatten() {
        held.add_to_system(DESCRIPTOR_BYTES);
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        let (device, inode, kind) = (Some(metadata.dev()), metadata.ino(), metadata.file_type());
        if device == devices.memory {
            held.add_file(&metadata);
        } else if kind.is_socket() {
            channels.sockets.insert(inode);
            // Descriptors may be on their way in it, which no process has open.
            held.hide(u64::MAX);
        } else if kind.is_fifo() && channels.pipes.insert((metadata.dev(), inode)) {
            held.add_to_system(EMPTY_PIPE_BYTES);
            // Another process may wait for one that opens a pipe with a name, so it is left alone.
            match if device == devices.pipes { pipe_bytes(&entry.path()) } else { None } {
                Some(bytes) => held.add_to_system(bytes),
                None => held.allow_for(PIPE_BYTES + PIPE_BYTES / PIPE_ROOM_SHARE),
            }
        }
    }
}

/// Whether a page of a process cannot be read because there is no process any more.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// What a pipe without a name may hold now in addition: all of its room, unless it is empty, and the table of its pages. A
/// reader more does not change what its processes see of it.
fn pipe_bytes(path: &Path) -> Option<u64> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let pipe = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut waiting: libc::c_int = 0;
    // SAFETY: the kernel writes one number to a place that is there.
    if unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut waiting) } != 0 {
        return None;
    }
    let room = u64::try_from(fcntl(&pipe, FcntlArg::F_GETPIPE_SZ).ok()?).ok()?;
    Some(room / PIPE_ROOM_SHARE + if waiting == 0 { 0 } else { room })
}

/// Mappings without a descriptor. Root can ask each for its file; for others it may be of any size.
/// Returns how many mappings there are, of every kind.
fn look_at_mappings(process: &Path, device: u64, held: &mut MemoryUse) -> u64 {
    let text = match read_list(&process.join("maps")) {
        Ok(text) => text,
        Err(error) if has_ended(&error) => return 0,
        Err(_) => {
            held.hide_all();
            return 0;
        }
    };
    if text.len() as u64 >= LIST_BYTES {
        held.hide_all();
    }
    // There may be many, and few of them are of this kind: what is read of each is as little as can be, since a long look is a
    // late one.
    let count = text.matches('\n').count() as u64;
    let wanted = format!(" {:02x}:{:02x} ", libc::major(device), libc::minor(device));
    if !text.contains(&wanted) {
        return count;
    }
    let lines = text.lines().filter(|line| line.contains(&wanted));
    for mapping in lines.filter_map(Mapping::parse).filter(|mapping| mapping.is_on(device)) {
        match fs::metadata(process.join("map_files").join(&mapping.range)) {
            Ok(metadata) => held.add_file(&metadata),
            Err(_) if held.inodes.contains_key(&mapping.inode) => {}
            // One page that is mapped keeps all of its file.
            Err(_) => held.hide(u64::MAX),
        }
    }
    count
}

/// One mapping, as `maps` and `smaps` begin it.
struct Mapping {
    range: PathBuf,
    is_shared: bool,
    device: (u32, u32),
    inode: u64,
}

impl Mapping {
    /// `7f5c-7f5d rw-s 00000000 00:01 1027 /memfd:x (deleted)`
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (range, rights, _offset) = (words.next()?, words.next()?, words.next()?);
        range.split_once('-')?;
        let (major, minor) = words.next()?.split_once(':')?;
        let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let inode = words.next()?.parse().ok()?;
        Some(Self { range: PathBuf::from(range), is_shared: rights.ends_with('s'), device, inode })
    }

    fn is_on(&self, device: u64) -> bool {
        self.device == (libc::major(device), libc::minor(device))
    }
}

/// An entry of a list of System V.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ListEntry {
    /// The inode of its pages and their bytes, in memory or swapped out.
    pages: Option<(u64, u64)>,
    bytes: u64,
    bytes_per_task: u64,
}

/// A segment: its number is the inode of its file.
fn segment(numbers: &[u64]) -> Option<ListEntry> {
    let pages = numbers.get(14)?.saturating_add(numbers.get(15).copied().unwrap_or(0));
    Some(ListEntry { pages: Some((*numbers.get(1)?, pages)), ..ListEntry::default() })
}

/// A queue of messages: the bytes of their texts and how many there are.
fn messages_of_queue(numbers: &[u64]) -> Option<ListEntry> {
    let bytes = numbers.get(4)?.saturating_mul(MESSAGE_BYTES).saturating_add(*numbers.get(3)?);
    Some(ListEntry { bytes: bytes.saturating_add(DESCRIPTOR_BYTES), ..ListEntry::default() })
}

/// A set of semaphores.
fn semaphores_of_set(numbers: &[u64]) -> Option<ListEntry> {
    let semaphores = *numbers.get(3)?;
    Some(ListEntry {
        pages: None,
        bytes: semaphores.saturating_mul(SEMAPHORE_BYTES).saturating_add(DESCRIPTOR_BYTES),
        bytes_per_task: semaphores.saturating_mul(UNDO_BYTES),
    })
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
    use super::{ListEntry, Mapping, MemoryUse, messages_of_queue, segment, semaphores_of_set};

    #[test]
    fn lines_of_the_system_are_read() {
        let line =
            "7f1c00000000-7f1c00100000 rw-s 00000000 00:01 1027                       /memfd:x (deleted)";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.is_shared, mapping.device, mapping.inode), (true, (0, 1), 1027));
        assert!(Mapping::parse("Pss:                 100 kB").is_none() && Mapping::parse("").is_none());
        let numbers =
            |line: &str| -> Vec<u64> { line.split_whitespace().map(|word| word.parse().unwrap()).collect() };
        let found = segment(&numbers("0 5 600 524288000 411 411 0 0 0 0 0 1 2 3 524288000 4096")).unwrap();
        assert_eq!(found, ListEntry { pages: Some((5, 524_288_000 + 4096)), bytes: 0, bytes_per_task: 0 });
        let found = messages_of_queue(&numbers("0 0 600 16000 1000 411 411 0 0 0 0 1 1 1")).unwrap();
        assert_eq!(found.bytes, 16_000 + 1000 * 128 + 1024);
        let found = semaphores_of_set(&numbers("0 0 600 32000 0 0 0 0 0 1")).unwrap();
        assert_eq!((found.bytes, found.bytes_per_task), (32_000 * 64 + 1024, 64_000));
        assert!(segment(&[]).is_none() && messages_of_queue(&[1]).is_none());
    }

    #[test]
    fn what_is_held_twice_counts_once_and_what_is_hidden_has_no_bound() {
        let mut held = MemoryUse::default();
        held.add(1, 100);
        held.add(1, 200);
        held.add(2, 50);
        held.add_to_system(7);
        assert_eq!((held.bytes(), held.system_bytes()), (257, 7));
        held.hide_all();
        held.hide(1);
        assert_eq!((held.hidden, held.possible), (u64::MAX, u64::MAX));
    }
}
