//! Who is alive, read from `/proc`.
#![expect(unsafe_code, reason = "sending a signal and starting a session are calls of the operating system")]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long workers may take to die after their kernel.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process, distinguished from a later one with the same number by its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub id: u32,
    parent: u32,
    session: u32,
    start: u64,
}

/// Everything that runs. A dead process that is not reaped yet does not count.
fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn read(id: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may hold anything, so what follows its last parenthesis counts.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    let alive = !matches!(*fields.first()?, "Z" | "X");
    alive.then_some(())?;
    Some(Process { id, parent: number(1)?, session: number(3)?, start: fields.get(19)?.parse().ok()? })
}

/// The children of a process and theirs.
pub fn descendants(id: u32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![id];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.id);
            found.push(process.clone());
        }
    }
    found
}

/// None of these, and none of the session, is left after a while.
pub fn assert_gone(known: &[Process], session: u32) {
    let patience = Instant::now() + PATIENCE;
    loop {
        let left: Vec<Process> = all()
            .into_iter()
            .filter(|process| process.session == session || known.contains(process))
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < patience, "still running: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a program in its own session, whose number is the program's.
pub fn start_session(command: &mut Command) -> Child {
    // SAFETY: setsid is safe to call between fork and exec, and nothing else happens there.
    unsafe {
        command.pre_exec(|| if libc::setsid() < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) });
    }
    command.spawn().unwrap()
}

pub fn send(id: u32, signal: i32) {
    // SAFETY: kill takes two numbers; the caller has not waited for the process, so the number is still its own.
    let sent = unsafe { libc::kill(id.cast_signed(), signal) };
    assert_eq!(sent, 0, "{}", std::io::Error::last_os_error());
}
