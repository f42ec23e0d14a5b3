//! What the system does not bound for a whole tree of processes: its memory, the number of processes of root, and the
//! bytes of the layer. They are checked several times a second.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;

use super::group::Group;
use super::memory_reader::{MemoryReader, MemoryUse};
use super::status::{Machine, Member};
use crate::{Exit, ProcessLimits};

/// How often a tree is checked. In this time a machine writes some hundred megabytes, which is how far a limit can be
/// overshot.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// How often it is checked while a process maps so much that page tables alone could fill the machine, or while the last
/// look found too much and the next one decides.
const SHORT_PERIOD: Duration = Duration::from_millis(10);
const LARGE_MAPPING_BYTES: u64 = 64 << 30;

/// A look that takes long is repeated after this many times its duration, so that watching stays below a tenth of a
/// processor.
const REST: u32 = 10;

/// Files and directories in a layer: an installation of packages fits, and removing them ends.
const LAYER_ENTRIES: u64 = 250_000;

/// What must stay free, of the disk of the layer and of the machine's memory, if it was there at the start. Files that are
/// open and have no name are in no directory, and some of what the system keeps for a tree is in no list.
const RESERVE_BYTES: u64 = 256 << 20;

/// Checks one tree and its layer.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: ProcessLimits,
    upper: PathBuf,
    /// The jail's `/proc`.
    processes: OwnedFd,
    memory_reader: MemoryReader,
    group: Option<Group>,
    /// What was found that no status shows, when the next search is due, and how the machine was at the last.
    held: MemoryUse,
    next_search: Instant,
    machine_at_search: Machine,
    machine_at_start: Machine,
    /// The least memory that the system had for itself since the start.
    least_system_bytes: u64,
    /// Whether the last check found memory missing that the tree may hold where we cannot look.
    suspected: bool,
    /// Whether a process maps so much that its page tables have to be looked at more often.
    maps_much: bool,
    look_took: Duration,
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
        memory_reader: MemoryReader,
        group: Option<Group>,
    ) -> Self {
        let read = Machine::read();
        let machine = read.unwrap_or_default();
        let free = free_bytes(&upper).unwrap_or(0);
        let now = Instant::now();
        Self {
            limits,
            upper,
            processes,
            memory_reader,
            group,
            held: MemoryUse::default(),
            next_search: now,
            machine_at_search: machine,
            machine_at_start: machine,
            least_system_bytes: read.map_or(u64::MAX, |machine| machine.system_bytes),
            suspected: false,
            maps_much: false,
            look_took: Duration::ZERO,
            free_at_start: free,
            free_at_walk: free,
            next_walk: now,
            next_weighing: now,
            heavy: false,
        }
    }

    /// Returns the limit that is crossed, if any.
    pub(crate) fn look(&mut self) -> Option<Exit> {
        let begun = Instant::now();
        let crossed = self.look_at_processes().or_else(|| self.look_at_layer());
        self.look_took = begun.elapsed();
        crossed
    }

    /// Returns the time until the next look.
    pub(crate) fn pause(&self) -> Duration {
        if self.maps_much || self.heavy || self.suspected {
            (self.look_took * REST).clamp(SHORT_PERIOD, PERIOD)
        } else {
            PERIOD
        }
    }

    fn look_at_processes(&mut self) -> Option<Exit> {
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.processes.as_raw_fd()));
        let (mut tasks, mut own_bytes, mut system_bytes) = (0, 0, 0);
        let mut members = Vec::new();
        self.maps_much = false;
        // A tree that cannot be looked at is not believed.
        let Ok(entries) = fs::read_dir(&folder) else { return self.confirm(true) };
        for entry in entries.flatten() {
            // The first process is ours. Everything that is not a number is not a process.
            if !entry.file_name().to_str().is_some_and(|name| name.parse().is_ok_and(|id: u32| id > 1)) {
                continue;
            }
            let Some(member) = Member::read(entry.path()) else { continue };
            tasks += member.threads;
            own_bytes += member.own_bytes;
            system_bytes += member.system_bytes;
            self.maps_much |= member.mapped_bytes > LARGE_MAPPING_BYTES;
            members.push(member);
            if tasks > self.limits.processes {
                return Some(Exit::TooManyProcesses);
            }
        }
        let Some(machine) = Machine::read() else { return self.confirm(true) };
        self.least_system_bytes = self.least_system_bytes.min(machine.system_bytes);
        self.search(&members, tasks, machine);
        let now = Instant::now();
        let bytes = own_bytes + system_bytes + self.held.bytes();
        if bytes <= self.limits.memory_bytes {
            self.heavy = false;
            return self.suspect(bytes, system_bytes + self.held.system_bytes(), machine);
        }
        let mut bytes = system_bytes + self.held.bytes();
        // Pages that several share were counted for each. Now it is worth the trouble to count them once, unless the rest is
        // too much without them.
        if bytes <= self.limits.memory_bytes {
            if now < self.next_weighing {
                return None;
            }
            let own_bytes = |member: &Member| {
                let counted = self.memory_reader.counted_bytes(&member.directory, &self.held);
                member.proportional_bytes().saturating_sub(counted)
            };
            bytes += members.iter().map(own_bytes).sum::<u64>();
            self.next_weighing = now + now.elapsed() * REST;
        }
        // The shares of those who end while others are weighed go to the others, so one weighing may find too much.
        let was_heavy = std::mem::replace(&mut self.heavy, bytes > self.limits.memory_bytes);
        match self.heavy {
            true => was_heavy.then_some(Exit::MemoryFull),
            false => self.suspect(bytes, system_bytes + self.held.system_bytes(), machine),
        }
    }

    /// Looks for memory that no status shows, now and then; at once when the machine has lost much since.
    fn search(&mut self, members: &[Member], tasks: u64, machine: Machine) {
        let now = Instant::now();
        let shrinks = machine.lost_since(self.machine_at_search) > self.limits.memory_bytes / 8;
        if now < self.next_search && !shrinks {
            return;
        }
        let parents = Member::parents(members);
        let processes = members.iter().map(|member| (member.directory.as_path(), member.depth(&parents)));
        self.held = self.memory_reader.look(processes, tasks);
        self.held.allow_for(members.iter().map(Member::filter_bytes).sum());
        self.machine_at_search = machine;
        self.next_search = now + (now.elapsed() * REST).max(PERIOD);
    }

    /// A tree that may hold memory where we cannot look is not believed when as much of that kind has come to be on the
    /// machine since it started; `system_bytes` of it are counted already. Neither is one that has much, or for which the
    /// system has much, when the machine has none left.
    fn suspect(&mut self, bytes: u64, system_bytes: u64, machine: Machine) -> Option<Exit> {
        let limits = &self.limits;
        let much = limits.memory_bytes.saturating_add(limits.temporary_bytes.saturating_mul(3));
        let shared = machine.shared_bytes.saturating_sub(self.machine_at_start.shared_bytes);
        let in_shared = shared > much && bytes.saturating_add(self.held.hidden) > limits.memory_bytes;
        let grown = machine.system_bytes.saturating_sub(self.least_system_bytes).saturating_sub(system_bytes);
        let in_system = bytes.saturating_add(grown.min(self.held.possible)) > limits.memory_bytes;
        let short = machine.available_bytes < RESERVE_BYTES
            && self.machine_at_start.available_bytes >= RESERVE_BYTES
            && bytes.saturating_add(grown) >= RESERVE_BYTES;
        self.confirm(in_shared || in_system || short)
    }

    /// Two looks in a row have to find it.
    fn confirm(&mut self, is_suspect: bool) -> Option<Exit> {
        let was_suspected = std::mem::replace(&mut self.suspected, is_suspect);
        (was_suspected && is_suspect).then_some(Exit::MemoryFull)
    }

    /// Whether the kernel itself has found the tree's memory full.
    pub(crate) fn group_was_full(&self) -> bool {
        self.group.as_ref().is_some_and(Group::was_full)
    }

    fn look_at_layer(&mut self) -> Option<Exit> {
        let free = free_bytes(&self.upper)?;
        if free < RESERVE_BYTES && self.free_at_start >= RESERVE_BYTES {
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
