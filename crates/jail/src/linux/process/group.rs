//! A control group for a tree, where this machine lets us make one: the system itself then counts every kind of memory,
//! page tables, pipes, sockets and messages among them, and kills the tree before it has more. Where there is none, the
//! watch counts alone.

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::errno::Errno;

use super::changes::attribute;
use crate::ProcessLimits;

/// How our groups are called. The number of the process that made one follows.
const PREFIX: &str = "tgp-jail-";

/// Groups above ours that are tried.
const MAX_ANCESTORS: usize = 8;

/// Beside the memory of the tree: what the system keeps for it, and the first moments in which it is not counted yet.
const SLACK_BYTES: u64 = 64 << 20;

/// Processes beyond the limit that the group admits, so that it is the watch that reports too many.
const SLACK_PROCESSES: u64 = 16;

/// How often a group is tried to be removed whose last process is about to go.
const REMOVAL_TRIES: u32 = 20;

/// The group of one tree; removed when it is dropped, after its processes have ended.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    members: File,
}

impl Group {
    /// A new group with these limits, or nothing where this machine does not let us have one.
    pub(crate) fn create(limits: &ProcessLimits) -> Option<Self> {
        static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let home = HOME.get_or_init(|| {
            let home = find_home()?;
            sweep(&home);
            Some(home)
        });
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = home.as_ref()?.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        match Self::prepare(&path, limits) {
            Some(members) => Some(Self { path, members }),
            None => {
                let _ = fs::remove_dir(&path);
                None
            }
        }
    }

    fn prepare(path: &Path, limits: &ProcessLimits) -> Option<File> {
        let memory = limits
            .memory_bytes
            .saturating_add(limits.temporary_bytes.saturating_mul(3))
            .saturating_add(SLACK_BYTES);
        fs::write(path.join("memory.max"), memory.to_string()).ok()?;
        // Those who share the memory go together.
        fs::write(path.join("memory.oom.group"), "1").ok()?;
        // A machine without swap does not have it.
        let _ = fs::write(path.join("memory.swap.max"), "0");
        fs::write(path.join("pids.max"), limits.processes.saturating_add(SLACK_PROCESSES).to_string())
            .ok()?;
        OpenOptions::new().write(true).open(path.join("cgroup.procs")).ok()
    }

    /// Where a process writes `0` to become a member.
    pub(crate) fn members(&self) -> BorrowedFd<'_> {
        self.members.as_fd()
    }

    /// Whether groups of this machine count what the system keeps for a tree. A parameter of the boot can switch it off.
    pub(crate) fn counts_system_memory() -> bool {
        let parameters = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let switches = parameters.split_whitespace().filter_map(|word| word.strip_prefix("cgroup.memory="));
        !switches.flat_map(|value| value.split(',')).any(|value| value == "nokmem")
    }

    /// Whether the kernel has killed the tree because its memory was full.
    pub(crate) fn was_full(&self) -> bool {
        fs::read_to_string(self.path.join("memory.events")).is_ok_and(|events| kills(&events) > 0)
    }
}

/// The calling process becomes a member. A system call only.
pub(crate) fn join(members: BorrowedFd<'_>) -> Result<(), Errno> {
    nix::unistd::write(members, b"0").map(drop)
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVAL_TRIES {
            match fs::remove_dir(&self.path) {
                // The last process has ended and is not wholly gone.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}

/// A group in which we may make others, with the controllers that we need.
fn find_home() -> Option<PathBuf> {
    let own = own_group(
        &fs::read_to_string("/proc/self/cgroup").ok()?,
        &fs::read_to_string("/proc/self/mountinfo").ok()?,
    )?;
    let fits = |path: &&Path| {
        let given = fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
        let has = |name: &str| given.split_whitespace().any(|word| word == name);
        has("memory") && has("pids") && is_delegated(path)
    };
    own.ancestors().take(MAX_ANCESTORS).find(fits).map(Path::to_owned)
}

/// Whether a group was given to us: to our user, or to the service or container that we are in. Others belong to the
/// system's own manager, and root must not work in them either.
fn is_delegated(path: &Path) -> bool {
    let owner = nix::unistd::geteuid().as_raw();
    if owner != 0 {
        return fs::metadata(path.join("cgroup.procs")).is_ok_and(|metadata| metadata.uid() == owner);
    }
    // The root of the whole machine has no type; that of a container has one.
    let is_container =
        !path.join("..").join("cgroup.controllers").exists() && path.join("cgroup.type").exists();
    is_container || is_marked(path)
}

/// The mark that systemd leaves on what it delegates.
fn is_marked(path: &Path) -> bool {
    let marked = |name| matches!(attribute(path, name), Ok(Some(b'1')));
    marked(c"trusted.delegate") || marked(c"user.delegate")
}

/// Groups of processes that were killed and could not remove them.
fn sweep(home: &Path) {
    let Ok(entries) = fs::read_dir(home) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // One with processes in it stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Our own group as a directory: the path of the second hierarchy, below where it is mounted.
fn own_group(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut words = before.split_whitespace().skip(3);
        let (root, place) = (words.next()?, words.next()?);
        (after.split_whitespace().next() == Some("cgroup2") && root == "/").then(|| PathBuf::from(place))
    })?;
    Some(if path.is_empty() { mount } else { mount.join(path) })
}

fn kills(events: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
    events.lines().find_map(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{kills, own_group};

    const MOUNTS: &str = "24 1 0:22 / /proc rw - proc proc rw\n\
        31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn our_own_group_is_found_below_its_mount() {
        let found = |groups: &str| own_group(groups, MOUNTS);
        assert_eq!(
            found("0::/user.slice/a.scope\n"),
            Some(PathBuf::from("/sys/fs/cgroup/user.slice/a.scope"))
        );
        assert_eq!(found("4:memory:/x\n0::/\n"), Some(PathBuf::from("/sys/fs/cgroup")));
        assert_eq!(found("4:memory:/x\n"), None, "there is only the first hierarchy");
        assert_eq!(found("0::/../x\n"), None, "it is outside of what we see");
        assert_eq!(own_group("0::/a\n", "24 1 0:22 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn kills_are_counted() {
        assert_eq!(kills("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n"), 3);
        assert_eq!(kills(""), 0);
    }
}
