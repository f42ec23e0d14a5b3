//! What the system knows of processes and files, to be compared before and after an attack.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::project::MARK;

/// Something that is not as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding(pub String);

impl Finding {
    /// A finding in words.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// What one process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    pub memory_kb: u64,
    pub descriptors: usize,
    pub children: usize,
    pub locks: usize,
}

impl Marks {
    /// What a kernel may have more after one attack: descriptors and locks of databases that were opened for it stay, and
    /// the allocator keeps what it once had.
    pub const ROOM_OF_A_CASE: Self = Self { memory_kb: 192 * 1024, descriptors: 24, children: 2, locks: 12 };

    /// What it may have more when the same attacks are made a second time: nothing, but for what the allocator keeps
    /// and for the worker that is just being started.
    pub const ROOM_OF_A_REPETITION: Self =
        Self { memory_kb: 48 * 1024, descriptors: 4, children: 1, locks: 0 };

    /// Reads the state of a process.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        Self {
            memory_kb: memory_kb(pid),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count).unwrap_or_default(),
            children: children(pid).len(),
            locks: locks(pid),
        }
    }

    /// The processes of a kernel that has run something and rests: the template, the two warm workers, and the one that
    /// compiles. It starts them when they are first needed, so it may have fewer before an attack.
    const RESTING: usize = 4;

    /// Where this is more than `before` and what it may have more.
    #[must_use]
    pub fn beyond(&self, before: &Self, room: &Self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut compare = |what: &str, before: u64, after: u64, room: u64| {
            if after > before + room {
                findings.push(Finding(format!(
                    "{what}: {before} before, {after} after ({room} more are allowed)"
                )));
            }
        };
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        compare("memory of the kernel in kB", before.memory_kb, self.memory_kb, room.memory_kb);
        compare(
            "descriptors",
            number(before.descriptors),
            number(self.descriptors),
            number(room.descriptors),
        );
        let resting = before.children.max(Self::RESTING);
        compare("child processes", number(resting), number(self.children), number(room.children));
        compare("locks", number(before.locks), number(self.locks), number(room.locks));
        findings
    }
}

fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// The processes whose parent this is.
#[must_use]
pub fn children(parent: u32) -> Vec<u32> {
    processes().into_iter().filter(|&pid| parent_of(pid) == Some(parent)).collect()
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything; the parent is the second field after it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// How many locks on files a process holds.
fn locks(pid: u32) -> usize {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let pid = pid.to_string();
    // Those that wait for another's have an arrow in the second field.
    locks.lines().filter(|line| line.split_whitespace().any(|field| field == pid)).count()
}

/// Processes that have this mark in their environment, and what they are.
#[must_use]
pub fn marked(mark: &str) -> Vec<(u32, String)> {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    processes().into_iter().filter(is_marked).map(|pid| (pid, command_of(pid))).collect()
}

/// The command line of a process, for a message.
#[must_use]
pub fn command_of(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").chars().take(200).collect()
}

/// Names of files in a project that a process should have removed: everything temporary, and locks that are held by
/// being there.
#[must_use]
pub fn left_behind(root: &Path) -> Vec<String> {
    let mut left = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            if is_left_over(&relative) {
                left.push(relative);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            }
        }
    }
    left.sort();
    left
}

fn is_left_over(name: &str) -> bool {
    let last = Path::new(name).file_name().unwrap_or_default().as_bytes();
    // The kernel's own locks are files that stay; the system knows which process holds them.
    let lock = last.ends_with(b".lock") && name.contains(".git/");
    let temporary = name.strip_prefix("tmp/").is_some_and(|rest| !is_of_mktemp(rest));
    temporary || last.starts_with(b".tgp-tmp-") || lock
}

/// Whether a script of the case has made it: `mktemp` gives names like `tmp.Xy12345678`.
fn is_of_mktemp(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or_default();
    let letters = first.strip_prefix("tmp.");
    letters.is_some_and(|letters| {
        letters.len() == 10 && letters.bytes().all(|letter| letter.is_ascii_alphanumeric())
    })
}
