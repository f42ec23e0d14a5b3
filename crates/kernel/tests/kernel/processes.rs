//! The children of this process, as `/proc` shows them.

use std::fs;
use std::time::{Duration, Instant};

/// The processes named `tgp-worker` that this process has started and that live, zombies included.
pub fn workers() -> Vec<i32> {
    let own = std::process::id();
    let mut found: Vec<i32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
            // `pid (name) state ppid …`; a name may hold blanks and brackets.
            let Some((name, rest)) = stat.rsplit_once(") ") else { return false };
            let parent = rest.split(' ').nth(1).and_then(|text| text.parse().ok());
            parent == Some(own) && name.ends_with("(tgp-worker")
        })
        .collect();
    found.sort_unstable();
    found
}

/// The command line of a process, without its zero bytes.
pub fn arguments(pid: i32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// What a worker is: `run`, `template` or `compile`. A worker that was forked has the command line of its template; unlike
/// that it can never fork.
pub fn kind(pid: i32) -> String {
    match arguments(pid).get(2).map(String::as_str) {
        Some("template") if limit(pid, "Max processes").is_some_and(|(_, hard)| hard == "0") => {
            "run".to_owned()
        }
        kind => kind.unwrap_or_default().to_owned(),
    }
}

/// The workers of this process that are of one kind.
pub fn of_kind(wanted: &str) -> Vec<i32> {
    workers().into_iter().filter(|pid| kind(*pid) == wanted).collect()
}

/// A resource limit of a process, soft and hard.
pub fn limit(pid: i32, name: &str) -> Option<(String, String)> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace().map(str::to_owned);
    Some((words.next()?, words.next()?))
}

/// One field of a process's status.
pub fn status(pid: &str, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned()))
}

/// Waits until `condition` holds, and reports whether it ever did. The bound is for a machine that does other
/// things.
pub fn eventually(condition: impl Fn() -> bool) -> bool {
    let patience = Instant::now() + Duration::from_secs(20);
    while Instant::now() < patience {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    condition()
}

/// Kills these processes and waits until they are dead, even if they are not reaped yet.
pub fn kill_all(processes: &[i32]) {
    for pid in processes {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), nix::sys::signal::Signal::SIGKILL);
    }
    let dead =
        |pid: &i32| status(&pid.to_string(), "State").is_none_or(|state| state.starts_with(['Z', 'X']));
    assert!(eventually(|| processes.iter().all(dead)), "they live on: {processes:?}");
}
