//! Programs that the soak starts: each has a bound on its time, and chaos knows which ones run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tgp_hostile::process::{Ran, wait};

use crate::load::Soak;
use crate::report::{Report, lock};

/// How long a program may take. A loaded machine takes a while; a hang lasts forever.
pub const LIMIT: Duration = Duration::from_secs(90);

/// Files that an actor's programs print to.
const OUT: &str = "stdout";
const ERR: &str = "stderr";

/// The programs of all actors that run, and those that were sent a signal.
#[derive(Debug, Default)]
pub struct Programs {
    running: Mutex<BTreeMap<u32, String>>,
    signalled: Mutex<BTreeSet<u32>>,
}

impl Programs {
    /// The programs that run, with their command lines.
    #[must_use]
    pub fn running(&self) -> Vec<(u32, String)> {
        lock(&self.running).iter().map(|(pid, name)| (*pid, name.clone())).collect()
    }

    /// A program was started.
    pub fn started(&self, child: &Child, name: &str) {
        // The system may give a number of an earlier program again.
        lock(&self.signalled).remove(&child.id());
        lock(&self.running).insert(child.id(), name.to_owned());
    }

    /// A program has ended. One that ended by a signal that the soak did not send is a finding.
    pub fn ended(&self, report: &Report, id: u32, status: Option<ExitStatus>) {
        let name = lock(&self.running).remove(&id).unwrap_or_default();
        let signal = status.and_then(|status| status.signal());
        if let Some(signal) = signal
            && !lock(&self.signalled).contains(&id)
        {
            report.find(format!("`{name}` was ended by signal {signal}, which the soak did not send"));
        }
    }

    /// Whether the soak has sent a signal to this program.
    #[must_use]
    pub fn was_signalled(&self, id: u32) -> bool {
        lock(&self.signalled).contains(&id)
    }

    /// Sends a signal to a program of an actor that still runs.
    pub fn signal(&self, id: u32, signal: Signal) -> bool {
        let running = lock(&self.running);
        if !running.contains_key(&id) {
            return false;
        }
        lock(&self.signalled).insert(id);
        kill(pid(id), signal).is_ok()
    }
}

/// A process id as the system's calls take it.
#[must_use]
pub fn pid(id: u32) -> Pid {
    // A process id is positive and fits.
    Pid::from_raw(i32::try_from(id).unwrap_or(i32::MAX))
}

/// Starts programs one after the other for one actor, whose output goes to its own files: a full disk of the
/// project does not touch them, and a process that outlives its parent does not hold up the reader.
#[derive(Debug)]
pub struct Runner<'a> {
    programs: &'a Programs,
    report: &'a Report,
    folder: PathBuf,
}

impl<'a> Runner<'a> {
    /// A runner that keeps its files in a new folder below `parent`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(programs: &'a Programs, report: &'a Report, parent: &Path, name: &str) -> Result<Self> {
        let folder = parent.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { programs, report, folder })
    }

    /// A path for a file of this actor.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a program to its end. Hangs, panics and crashes become findings.
    ///
    /// # Errors
    /// When it cannot be started, or its output cannot be kept.
    pub fn run(&self, command: Command, input: &str) -> Result<Ran> {
        let (mut child, name) = self.start(command, input)?;
        let status = wait(&mut child, LIMIT)?;
        self.finish(child, &name, status)
    }

    /// Runs a program that ends by a signal only: Ctrl-C after `length` or at the end of the load.
    ///
    /// # Errors
    /// When it cannot be started, or its output cannot be kept.
    pub fn run_until(&self, command: Command, length: Duration, soak: &Soak) -> Result<Ran> {
        let (mut child, name) = self.start(command, "")?;
        let started = Instant::now();
        let mut status = None;
        while status.is_none() && started.elapsed() < length && !soak.is_over() {
            status = wait(&mut child, Duration::from_millis(100))?;
        }
        if status.is_none() {
            self.programs.signal(child.id(), Signal::SIGINT);
            status = wait(&mut child, LIMIT)?;
        }
        self.finish(child, &name, status)
    }

    fn start(&self, mut command: Command, input: &str) -> Result<(Child, String)> {
        let name = name(&command);
        command.stdout(File::create(self.file(OUT))?).stderr(File::create(self.file(ERR))?).process_group(0);
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        let mut child = command.spawn().with_context(|| format!("cannot start `{name}`"))?;
        self.programs.started(&child, &name);
        if let Some(mut stdin) = child.stdin.take() {
            // A program that was killed does not read it.
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok((child, name))
    }

    fn finish(&self, mut child: Child, name: &str, status: Option<ExitStatus>) -> Result<Ran> {
        let timed_out = status.is_none();
        if timed_out {
            let _ = killpg(pid(child.id()), Signal::SIGKILL);
            child.wait()?;
        }
        self.programs.ended(self.report, child.id(), status);
        let text =
            |name: &str| fs::read(self.file(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let ran = Ran {
            code: status.and_then(|status| status.code()),
            stdout: text(OUT)?,
            stderr: text(ERR)?,
            timed_out,
        };
        if timed_out {
            let seconds = LIMIT.as_secs();
            self.report.find(format!("`{name}` did not end within {seconds} seconds: {}", ran.said()));
        }
        find_panics(self.report, name, &ran.stderr);
        Ok(ran)
    }
}

/// What a panic prints is a finding, whatever the program's end was.
pub fn find_panics(report: &Report, name: &str, stderr: &str) {
    if let Some(at) = stderr.find("panicked at") {
        let told: String = stderr.get(at..).unwrap_or_default().chars().take(400).collect();
        report.find(format!("`{name}` panicked: {told}"));
    }
}

/// The command line of a program, shortened for messages.
fn name(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    format!("{program} {}", words.join(" ")).chars().take(160).collect()
}

/// The JSON documents that a program has printed, one a line; what is torn is left out.
#[must_use]
pub fn documents(stdout: &str) -> Vec<Value> {
    stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
