//! What a process says of itself in `/proc`, and the machine of its memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::memory_reader::kibibytes;

/// A process's own page about itself is a kilobyte or two.
const STATUS_BYTES: u64 = 16 * 1024;

/// What the system keeps for a thread: its stack in the kernel, and the structures that describe it and its process.
const THREAD_BYTES: u64 = 32 * 1024;

/// The largest filter of system calls: as it was given, as it is interpreted, and as it is compiled.
const FILTER_BYTES: u64 = 128 * 1024;

/// The most filters of that size that a thread can have.
const TASK_FILTERS: u64 = 8;

/// A process of a tree.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its directory in `/proc`, or that of a thread of it.
    pub(crate) directory: PathBuf,
    id: u64,
    parent: u64,
    pub(crate) threads: u64,
    /// What no file backs: it can only go to swap, and counts there as well.
    pub(crate) own_bytes: u64,
    /// What the system keeps for it: page tables, huge pages of the system's own pool, and its threads.
    pub(crate) system_bytes: u64,
    /// How much address space it has mapped.
    pub(crate) mapped_bytes: u64,
    /// Filters of system calls of its first thread, the jail's own among them.
    filters: u64,
}

impl Member {
    /// Nothing when the process has ended.
    pub(crate) fn read(process: PathBuf) -> Option<Self> {
        let member = Self::of(process)?;
        if member.mapped_bytes > 0 || member.threads < 2 {
            return Some(member);
        }
        // Its first thread has ended, and its directory shows nothing any more of what the others still have.
        let tasks = fs::read_dir(member.directory.join("task")).ok()?;
        let living = tasks.flatten().filter_map(|task| Self::of(task.path()));
        Some(living.into_iter().find(|task| task.mapped_bytes > 0).unwrap_or(member))
    }

    fn of(directory: PathBuf) -> Option<Self> {
        let text = read_short(&directory.join("status")).ok()?;
        let mut member = Self {
            directory,
            id: 0,
            parent: 0,
            threads: 1,
            own_bytes: 0,
            system_bytes: 0,
            mapped_bytes: 0,
            filters: 0,
        };
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            match name {
                "Tgid" => member.id = value.trim().parse().unwrap_or(0),
                "PPid" => member.parent = value.trim().parse().unwrap_or(0),
                "Threads" => member.threads = value.trim().parse().unwrap_or(1),
                "RssAnon" | "RssShmem" | "VmSwap" => member.own_bytes += kibibytes(value),
                "VmPTE" | "HugetlbPages" => member.system_bytes += kibibytes(value),
                "Seccomp_filters" => member.filters = value.trim().parse().unwrap_or(0),
                "VmSize" => member.mapped_bytes = kibibytes(value),
                _ => {}
            }
        }
        member.system_bytes = member.threads.saturating_mul(THREAD_BYTES).saturating_add(member.system_bytes);
        Some(member)
    }

    /// How many of these processes it comes from, as far as they are there.
    pub(crate) fn depth(&self, parents: &BTreeMap<u64, u64>) -> u64 {
        let mut depth = 0;
        let mut parent = self.parent;
        // What was read one after the other may form a circle.
        while let Some(next) = parents.get(&parent).filter(|_| depth < parents.len() as u64) {
            (parent, depth) = (*next, depth + 1);
        }
        depth
    }

    /// The parents of processes by their numbers.
    pub(crate) fn parents(members: &[Self]) -> BTreeMap<u64, u64> {
        members.iter().map(|member| (member.id, member.parent)).collect()
    }

    /// What its threads may keep in filters of system calls that they have added to the jail's own. How large each is
    /// is not shown.
    pub(crate) fn filter_bytes(&self) -> u64 {
        let added = |filters: u64| filters.saturating_sub(1).min(TASK_FILTERS) * FILTER_BYTES;
        if self.threads < 2 {
            return added(self.filters);
        }
        let Ok(tasks) = fs::read_dir(self.directory.join("task")) else { return added(self.filters) };
        tasks.flatten().filter_map(|task| Self::of(task.path())).map(|task| added(task.filters)).sum()
    }

    /// Its own memory, in which a page that several share counts only its part.
    pub(crate) fn proportional_bytes(&self) -> u64 {
        let text = match read_short(&self.directory.join("smaps_rollup")) {
            Ok(text) => text,
            // It does not let us look, and so it pays for all.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return self.own_bytes,
            // It has ended.
            Err(_) => return 0,
        };
        let number = |wanted: &str| text.lines().find_map(|line| line.strip_prefix(wanted)).map(kibibytes);
        match (number("Pss_Anon:"), number("Pss_Shmem:")) {
            (Some(own), Some(shared)) => own + shared + number("SwapPss:").unwrap_or(0),
            // Before Linux 5.4 it is not distinguished.
            _ => self.own_bytes,
        }
    }
}

/// The memory of the whole machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Machine {
    /// What it can still give to processes.
    pub(crate) available_bytes: u64,
    /// What is shared memory, of whomever.
    pub(crate) shared_bytes: u64,
    /// What is neither free nor a page of a process or of a file: the system has it for itself.
    pub(crate) system_bytes: u64,
}

impl Machine {
    pub(crate) fn read() -> Option<Self> {
        read_short(Path::new("/proc/meminfo")).ok().map(|text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map_or(0, kibibytes);
        let known =
            ["MemFree:", "Buffers:", "Cached:", "SwapCached:", "AnonPages:", "SReclaimable:"].map(number);
        Self {
            available_bytes: number("MemAvailable:"),
            shared_bytes: number("Shmem:"),
            system_bytes: known.into_iter().fold(number("MemTotal:"), u64::saturating_sub),
        }
    }

    pub(crate) fn lost_since(self, before: Self) -> u64 {
        before.available_bytes.saturating_sub(self.available_bytes)
    }
}

fn read_short(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(STATUS_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Machine, Member};

    #[test]
    fn the_memory_of_the_system_is_what_is_left() {
        let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 500 kB\nBuffers: 10 kB\nCached: 300 kB\n\
                    SwapCached: 5 kB\nAnonPages: 400 kB\nShmem: 50 kB\nSReclaimable: 85 kB\n";
        let machine = Machine::parse(text);
        assert_eq!(machine.system_bytes, 100 << 10);
        assert_eq!((machine.available_bytes, machine.shared_bytes), (500 << 10, 50 << 10));
    }

    #[test]
    fn a_process_without_its_first_thread_is_read_by_another() {
        let member = Member::read("/proc/self".into()).unwrap();
        assert!(member.own_bytes > 0 && member.mapped_bytes > member.own_bytes);
        assert!(member.system_bytes >= member.threads * super::THREAD_BYTES);
        assert!(Member::read("/proc/0".into()).is_none());
    }
}
