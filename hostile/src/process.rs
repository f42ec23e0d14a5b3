//! Programs with a bound on their time and on what is kept of their output.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Bytes of each output that are kept.
const MAX_OUTPUT: u64 = 32 << 20;

/// How long a program that was asked to end may take for it.
const ENDING: Duration = Duration::from_secs(10);

/// What a program left.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// Whether it was killed because its time was over.
    pub timed_out: bool,
}

impl Ran {
    /// Both outputs.
    #[must_use]
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs a program to its end, or kills its process group when `limit` is over. Its output goes to files in `folder`, so
/// that a process which outlives it cannot hold up the one who reads.
///
/// # Errors
/// When it cannot be started, or its output cannot be kept.
pub fn run(mut command: Command, input: &str, limit: Duration, folder: &Path) -> Result<Ran> {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    command.stdout(File::create(&out)?).stderr(File::create(&err)?).process_group(0);
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read all of it has its reasons, and its outcome shows them.
        let _ = stdin.write_all(input.as_bytes());
    }
    let status = wait(&mut child, limit)?;
    let timed_out = status.is_none();
    if timed_out {
        kill(&child);
        child.wait()?;
    }
    let code = status.and_then(|status| status.code());
    Ok(Ran { code, stdout: text(&out)?, stderr: text(&err)?, timed_out })
}

/// Waits for a child; nothing when it is still there after `limit`.
///
/// # Errors
/// When it cannot be waited for.
pub fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() >= limit {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends a program as Ctrl-C does, and by force when it does not end.
///
/// # Errors
/// When it cannot be waited for.
pub fn interrupt(child: &mut Child) -> Result<bool> {
    // One that has ended already is only waited for.
    let _ = nix::sys::signal::kill(pid(child), Signal::SIGINT);
    if wait(child, ENDING)?.is_some() {
        return Ok(true);
    }
    kill(child);
    child.wait()?;
    Ok(false)
}

fn kill(child: &Child) {
    // It leads its own process group; one that is gone needs no signal.
    let _ = killpg(pid(child), Signal::SIGKILL);
}

fn pid(child: &Child) -> Pid {
    // A process id is positive and fits.
    Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

fn text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    fs::remove_file(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
