//! What the system does not bound for a whole tree of processes: its memory, the number of processes of root, and the
//! bytes of the layer. They are checked several times a second.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;

use super::group::Group;
use super::shared_memory::{Held, SharedMemory, kibibytes};
use crate::{Exit, ProcessLimits};

/// How often a tree is checked. In this time a machine writes some hundred megabytes, which is how far a limit can be
/// overshot.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// A look that takes long is repeated after this many times its duration, so that watching stays below a tenth of a
/// processor.
const REST: u32 = 10;

/// Files and directories in a layer: an installation of packages fits, and removing them ends.
const LAYER_ENTRIES: u64 = 250_000;

/// What must stay free on the disk of the layer, if it was there at the start. Files that are open and have no name
/// are in no directory, so the layer's own bytes do not include them.
const DISK_RESERVE_BYTES: u64 = 256 << 20;

/// A process's own page about itself is a kilobyte or two.
const STATUS_BYTES: u64 = 16 * 1024;

/// Checks one tree and its layer.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: ProcessLimits,
    upper: PathBuf,
    /// The jail's `/proc`.
    processes: OwnedFd,
    shared: SharedMemory,
    group: Option<Group>,
    /// What was found of shared memory, when the next search is due, and how the machine was at the last.
    held: Held,
    next_search: Instant,
    machine_at_search: Machine,
    machine_at_start: Machine,
    /// Whether the last check found memory missing that the tree may hold where we cannot look.
    suspected: bool,
    free_at_start: u64,
    free_at_walk: u64,
    next_walk: Instant,
    next_weighing: Instant,
    /// Whether the last weighing found too much.
    heavy: bool,
}

impl Watch {
    pub(crate) fn new(
        limits: ProcessLimits,
        upper: PathBuf,
        processes: OwnedFd,
        shared: SharedMemory,
        group: Option<Group>,
    ) -> Self {
        let machine = Machine::read();
        let free = free_bytes(&upper).unwrap_or(0);
        let now = Instant::now();
        Self {
            limits,
            upper,
            processes,
            shared,
            group,
            held: Held::default(),
            next_search: now,
            machine_at_search: machine,
            machine_at_start: machine,
            suspected: false,
            free_at_start: free,
            free_at_walk: free,
            next_walk: now,
            next_weighing: now,
            heavy: false,
        }
    }

    /// Which limit is crossed, if any.
    pub(crate) fn look(&mut self) -> Option<Exit> {
        self.look_at_processes().or_else(|| self.look_at_layer())
    }

    fn look_at_processes(&mut self) -> Option<Exit> {
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.processes.as_raw_fd()));
        let (mut tasks, mut bytes) = (0, 0);
        let mut members = Vec::new();
        for entry in fs::read_dir(&folder).ok()?.flatten() {
            // The first process is ours. Everything that is not a number is not a process.
            if !entry.file_name().to_str().is_some_and(|name| name.parse().is_ok_and(|id: u32| id > 1)) {
                continue;
            }
            let process = entry.path();
            let Some(status) = Status::read(&process) else { continue };
            tasks += status.threads;
            bytes += status.memory_bytes;
            members.push((process, status));
            if tasks > self.limits.processes {
                return Some(Exit::TooManyProcesses);
            }
        }
        let machine = Machine::read();
        self.search(&members, machine);
        let now = Instant::now();
        let bytes = bytes + self.held.bytes();
        if bytes <= self.limits.memory_bytes {
            self.heavy = false;
            return self.suspect(bytes, machine);
        }
        if now < self.next_weighing {
            return None;
        }
        // Pages that several share were counted for each. Now it is worth the trouble to count them once.
        let mapped = members.iter().map(|(process, status)| {
            let counted = self.shared.counted_bytes(process, &self.held);
            proportional_bytes(process, *status).saturating_sub(counted)
        });
        let bytes = mapped.sum::<u64>() + self.held.bytes();
        self.next_weighing = now + now.elapsed() * REST;
        // The shares of those who end while others are weighed go to the others, so one weighing may find too much.
        let was_heavy = std::mem::replace(&mut self.heavy, bytes > self.limits.memory_bytes);
        (was_heavy && self.heavy).then_some(Exit::MemoryFull)
    }

    /// Looks for memory that no mapping shows, now and then; at once when the machine has lost much since.
    fn search(&mut self, members: &[(PathBuf, Status)], machine: Machine) {
        let now = Instant::now();
        let shrinks = machine.lost_since(self.machine_at_search) > self.limits.memory_bytes / 8;
        if now < self.next_search && !shrinks {
            return;
        }
        self.held = self.shared.look(members.iter().map(|(process, _)| process.as_path()));
        self.machine_at_search = machine;
        self.next_search = now + (now.elapsed() * REST).max(PERIOD);
    }

    /// A tree that may hold memory where we cannot look is not believed when as much of that kind has come to be on the
    /// machine since it started, its files in memory aside.
    fn suspect(&mut self, bytes: u64, machine: Machine) -> Option<Exit> {
        let limits = &self.limits;
        let much = limits.memory_bytes.saturating_add(limits.temporary_bytes.saturating_mul(3));
        let may_hold = |more: u64| bytes.saturating_add(more) > limits.memory_bytes;
        let shared = machine.shared_bytes.saturating_sub(self.machine_at_start.shared_bytes);
        let in_shared = shared > much && may_hold(self.held.hidden);
        let in_sockets = machine.lost_since(self.machine_at_start) > much && may_hold(self.held.in_sockets);
        let was_suspected = std::mem::replace(&mut self.suspected, in_shared || in_sockets);
        (was_suspected && self.suspected).then_some(Exit::MemoryFull)
    }

    /// Whether the kernel itself has found the tree's memory full.
    pub(crate) fn group_was_full(&self) -> bool {
        self.group.as_ref().is_some_and(Group::was_full)
    }

    fn look_at_layer(&mut self) -> Option<Exit> {
        let free = free_bytes(&self.upper)?;
        if free < DISK_RESERVE_BYTES && self.free_at_start >= DISK_RESERVE_BYTES {
            return Some(Exit::LayerFull);
        }
        let now = Instant::now();
        let shrinks = self.free_at_walk.saturating_sub(free) > self.limits.layer_bytes / 4;
        if now < self.next_walk && !shrinks {
            return None;
        }
        let full = exceeds(&self.upper, self.limits.layer_bytes);
        self.free_at_walk = free;
        self.next_walk = now + (now.elapsed() * REST).max(PERIOD);
        full.then_some(Exit::LayerFull)
    }

    /// A last check when all processes have ended: between two checks much can be written.
    pub(crate) fn layer_is_full(&self) -> bool {
        exceeds(&self.upper, self.limits.layer_bytes)
    }
}

/// The memory of the whole machine.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    /// What it can still give to processes.
    available_bytes: u64,
    /// What is shared memory, of whomever.
    shared_bytes: u64,
}

impl Machine {
    fn read() -> Self {
        let text = read_short(Path::new("/proc/meminfo")).unwrap_or_default();
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(kibibytes);
        Self {
            available_bytes: number("MemAvailable:").unwrap_or(0),
            shared_bytes: number("Shmem:").unwrap_or(0),
        }
    }

    fn lost_since(self, before: Self) -> u64 {
        before.available_bytes.saturating_sub(self.available_bytes)
    }
}

fn free_bytes(path: &Path) -> Option<u64> {
    let disk = statvfs(path).ok()?;
    Some(disk.blocks_available().saturating_mul(disk.fragment_size()))
}

/// Whether the directory holds more than these bytes, or more entries than a layer may. What cannot be reached by its
/// path is too deep to be read later, which is too much as well.
#[must_use]
pub fn exceeds(directory: &Path, limit: u64) -> bool {
    let (mut bytes, mut entries) = (0, 0);
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        // It is gone again, or the process has shut it; then nothing can write to it either.
        let Ok(contents) = fs::read_dir(&directory) else { continue };
        for entry in contents.flatten() {
            let path = entry.path();
            if path.as_os_str().len() >= libc::PATH_MAX as usize {
                return true;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            entries += 1;
            // A file with holes takes no room on the disk, and all of its length in whatever reads it.
            let length = if metadata.is_file() { metadata.len() } else { 0 };
            bytes = length.max(metadata.blocks().saturating_mul(512)).saturating_add(bytes);
            if bytes > limit || entries > LAYER_ENTRIES {
                return true;
            }
            if metadata.is_dir() {
                waiting.push(path);
            }
        }
    }
    false
}

/// What a process says of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Status {
    threads: u64,
    memory_bytes: u64,
}

impl Status {
    fn read(process: &Path) -> Option<Self> {
        let text = read_short(&process.join("status")).ok()?;
        let mut status = Self { threads: 1, ..Self::default() };
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let number = || value.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            match name {
                "Threads" => status.threads = number().unwrap_or(1),
                // What no file backs: it can only go to swap, and counts there as well.
                "RssAnon" | "RssShmem" | "VmSwap" => status.memory_bytes += number().unwrap_or(0) * 1024,
                _ => {}
            }
        }
        Some(status)
    }
}

/// Memory of a process in which a shared page counts only its part.
fn proportional_bytes(process: &Path, status: Status) -> u64 {
    let text = match read_short(&process.join("smaps_rollup")) {
        Ok(text) => text,
        // It does not let us look, and so it pays for all.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return status.memory_bytes,
        // It has ended.
        Err(_) => return 0,
    };
    let number = |wanted: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(wanted))?;
        value.split_whitespace().next()?.parse::<u64>().ok()
    };
    match (number("Pss_Anon:"), number("Pss_Shmem:")) {
        (Some(own), Some(shared)) => (own + shared + number("SwapPss:").unwrap_or(0)) * 1024,
        // Before Linux 5.4 it is not distinguished.
        _ => status.memory_bytes,
    }
}

fn read_short(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(STATUS_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
