//! System calls, counted with strace.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::calls::{CallPlan, MARK_FOLDER};
use super::{COLD_EXEC, Counts, EXEC_TOOL, FS_READ, per_call, tracer};
use crate::project::{ARGUMENTS, Project, TOOL};

/// What threads do to wait for and to wake each other. How often depends on which of them is faster.
const NOISE: [&str; 9] = [
    "futex",
    "epoll_wait",
    "epoll_pwait",
    "sched_yield",
    "restart_syscall",
    "clock_nanosleep",
    "rt_sigreturn",
    "madvise",
    "ppoll",
];

/// Within the pause the pool is full again and the record of the call is in the database.
const PLAN: CallPlan = CallPlan { warm_up: 10, counted: 40, pause: Duration::from_millis(80) };
/// Parts of a count that are named when it has grown.
const NAMED_PARTS: usize = 8;

/// Counts the system calls of the kernel and of all its children.
pub fn count(counts: &mut Counts) -> Result<()> {
    let own = std::env::current_exe().context("this program's own path is not known")?;
    for what in [EXEC_TOOL, FS_READ] {
        let trace = traced(own.as_os_str(), &PLAN.arguments(what), &[])?;
        let window = between_marks(&trace).with_context(|| format!("the trace of {what} has no marks"))?;
        add(counts, what, &tally(window), PLAN.counted);
    }
    let project = Project::new()?;
    let command = project.command(&["exec", TOOL, "--args", ARGUMENTS])?;
    let environment: Vec<_> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    let words: Vec<OsString> = command.get_args().map(OsString::from).collect();
    let program = command.get_program().to_owned();
    // The first process fills the caches.
    traced(&program, &words, &environment)?;
    let trace = traced(&program, &words, &environment)?;
    add(counts, COLD_EXEC, &tally(&trace), 1);
    Ok(())
}

fn add(counts: &mut Counts, what: &str, tally: &BTreeMap<String, u64>, calls: usize) {
    let name = format!("system_calls.{what}");
    counts.counts.insert(name.clone(), per_call(tally.values().sum(), calls));
    let mut parts: Vec<_> = tally.iter().collect();
    parts.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let parts =
        parts.iter().take(NAMED_PARTS).map(|(name, count)| format!("{name} {}", per_call(**count, calls)));
    counts.parts.insert(name, parts.collect::<Vec<_>>().join(", "));
}

/// The trace of a program and all its children.
fn traced(program: &OsStr, arguments: &[OsString], environment: &[(OsString, OsString)]) -> Result<String> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let file = folder.path().join("trace");
    let output = tracer("strace")
        .args(["-f", "-qq", "-s", "64", "--signal=none", "-o"])
        .arg(&file)
        .arg("--")
        .arg(program)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .output()
        .context("strace cannot be started")?;
    ensure!(
        output.status.success(),
        "{} failed under strace: {}",
        Path::new(program).display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let trace = fs::read(&file).context("strace wrote no trace")?;
    Ok(String::from_utf8_lossy(&trace).into_owned())
}

/// What lies between the two marks.
fn between_marks(trace: &str) -> Option<&str> {
    let begin = trace.find(&format!("{MARK_FOLDER}/begin"))?;
    let rest = trace.get(begin..)?;
    let rest = rest.split_once('\n')?.1;
    let end = rest.find(&format!("{MARK_FOLDER}/end"))?;
    let window = rest.get(..end)?;
    // The line of the mark itself has begun.
    Some(window.rsplit_once('\n').map_or("", |(window, _)| window))
}

/// How often each system call was begun, without the noise.
fn tally(trace: &str) -> BTreeMap<String, u64> {
    let mut tally = BTreeMap::new();
    for line in trace.lines() {
        // `1234  openat(AT_FDCWD, …`; what was interrupted by another thread ends on a line with `<... resumed>`.
        let Some((_, call)) = line.split_once(char::is_whitespace) else { continue };
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if is_name && !name.is_empty() && !NOISE.contains(&name) {
            *tally.entry(name.to_owned()).or_default() += 1;
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::{between_marks, tally};

    const TRACE: &str = "\
10  openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3
10  statx(AT_FDCWD, \"/tgp-count-mark/begin\", 0, 0, 0x7ffc) = -1 ENOENT (No such file or directory)
10  read(3, \"(a\", 2) = 2
11  futex(0x1, FUTEX_WAIT, 1) = 0
11  read(4,  <unfinished ...>
10  write(5, \"x\", 1) = 1
11  <... read resumed>\"x\", 8) = 1
11  +++ exited with 0 +++
10  statx(AT_FDCWD, \"/tgp-count-mark/end\", 0, 0, 0x7ffc) = -1 ENOENT (No such file or directory)
10  close(3) = 0
";

    #[test]
    fn calls_between_the_marks_count_once_each() {
        let counted = tally(between_marks(TRACE).unwrap());
        let counted: Vec<_> = counted.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(counted, [("read", 2), ("write", 1)]);
    }

    #[test]
    fn a_trace_without_marks_has_no_window() {
        assert!(between_marks("10  read(3) = 0\n").is_none());
    }
}
