//! What an idle kernel with two warm workers takes, and the template that they are forked from.
//!
//! No command of `tgp` stays idle, so a fresh child of this program does: the same kernel, whose workers are its own
//! binary as in `tgp`, and nothing of the measurement in its memory.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::peer_process::PeerProcess;
use crate::peers::node;
use crate::project::{Project, TOOL, boot, run_small_tool};
use crate::report::{Budget, Row, Section, Unit};
use crate::settings::BenchSettings;

const BUDGET_MB: f64 = 40.0;
/// Of a warm worker, what it shares with no other process.
const PRIVATE_BUDGET_MB: f64 = 2.0;
const WARM_WORKERS: usize = 2;
/// The first argument of the child that holds a kernel; the project, the cache and what to do first follow.
const HOLD_ARGUMENT: &str = "__hold-kernel";
const CHECK_FIRST: &str = "check";
const RUN_FIRST: &str = "run";
/// A kernel whose processes used no CPU for this long is idle.
const IDLE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(20);

/// Holds a kernel until standard input ends, when this process was started to do that.
pub fn held_kernel_main() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(HOLD_ARGUMENT) {
        return None;
    }
    let mut next = || arguments.next().unwrap_or_default();
    let (directory, cache, first) = (PathBuf::from(next()), PathBuf::from(next()), next());
    Some(match hold(&directory, &cache, &first) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn hold(directory: &Path, cache: &Path, first: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let kernel = boot(directory, cache, None).await?;
        run_small_tool(&kernel).await?;
        if first == CHECK_FIRST {
            kernel
                .call("check_tool", json!({ "path": TOOL }))
                .await
                .into_result()
                .context("check_tool failed")?;
        }
        println!("up");
        // Blocking is right here: nothing asks this kernel for anything.
        std::io::stdin().read_to_end(&mut Vec::new())?;
        kernel.shutdown().await;
        Ok(())
    })
}

/// A child that holds a kernel; it ends with its standard input.
struct Held(Child);

impl Held {
    fn start(project: &Project, first: &str) -> Result<Self> {
        let program = std::env::current_exe().context("this program's own path is not known")?;
        let mut child = Command::new(program)
            .arg(HOLD_ARGUMENT)
            .args([project.directory(), project.beside("cache")])
            .arg(first)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a child")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the child has no output")?).read_line(&mut line)?;
        let held = Self(child);
        if line.trim() != "up" {
            bail!("the kernel in the child did not come up");
        }
        Ok(held)
    }

    /// The kernel and its workers, once the pool is full and everything is quiet.
    fn idle_processes(&self) -> Result<Vec<Process>> {
        let patience = Instant::now() + PATIENCE;
        let mut before = (Vec::new(), Instant::now());
        while Instant::now() < patience {
            let processes = family(self.0.id())?;
            let state: Vec<_> = processes.iter().map(|process| (process.pid, process.ticks)).collect();
            let warm = processes.iter().filter(|process| process.kind.is_warm_worker()).count();
            if state != before.0 || warm != WARM_WORKERS {
                before = (state, Instant::now());
            } else if before.1.elapsed() > IDLE {
                return Ok(processes);
            }
            sleep(Duration::from_millis(50));
        }
        bail!("the kernel did not become idle with {WARM_WORKERS} warm workers")
    }

    fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait()?;
        if !status.success() {
            bail!("the child that held a kernel ended with {status}");
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    /// A process of its own, which is the first worker of a kernel.
    FirstWorker,
    /// What all other workers are forked from. It is recognised by its age.
    Template,
    /// A worker that was forked from the template.
    ForkedWorker,
    CompileWorker,
}

impl Kind {
    fn is_warm_worker(self) -> bool {
        matches!(self, Self::FirstWorker | Self::ForkedWorker)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::FirstWorker => "warm worker, the first",
            Self::Template => "template",
            Self::ForkedWorker => "warm worker, forked",
            Self::CompileWorker => "compile worker",
        }
    }
}

#[derive(Debug)]
struct Process {
    pid: u32,
    kind: Kind,
    /// CPU time so far, in clock ticks.
    ticks: u64,
    /// When it was started, in clock ticks since the machine was.
    started: u64,
}

/// A process and its children.
fn family(pid: u32) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("there is no /proc")? {
        let Some(other) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end while we look.
        let Ok(stat) = fs::read_to_string(format!("/proc/{other}/stat")) else { continue };
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = fields.split(' ').collect();
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
        if other != pid && number(1) != u64::from(pid) {
            continue;
        }
        let command = fs::read_to_string(format!("/proc/{other}/cmdline")).unwrap_or_default();
        let kind = match command.split('\0').nth(2) {
            _ if other == pid => Kind::Kernel,
            Some("run") => Kind::FirstWorker,
            // Its copies have its command line.
            Some("template") => Kind::ForkedWorker,
            _ => Kind::CompileWorker,
        };
        let ticks = number(11) + number(12);
        found.push(Process { pid: other, kind, ticks, started: number(19) });
    }
    let forked = found.iter_mut().filter(|process| process.kind == Kind::ForkedWorker);
    if let Some(oldest) = forked.min_by_key(|process| (process.started, process.pid)) {
        oldest.kind = Kind::Template;
    }
    Ok(found)
}

#[derive(Clone, Copy, Debug, Default)]
struct Use {
    resident: f64,
    /// Resident memory in which a page that several processes share is counted once. The operating system may refuse
    /// to report it for locked workers to any user but root.
    proportional: Option<f64>,
    /// What no other process shares; as hard to get.
    private: Option<f64>,
}

/// A line of a process's status, such as `VmRSS:`.
pub fn megabytes(text: &str, field: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}

fn memory_of(pid: u32) -> Result<Use> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("a process is gone")?;
    let resident = megabytes(&status, "VmRSS:").context("a process without memory")?;
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let clean = megabytes(&rollup, "Private_Clean:");
    let private = clean.zip(megabytes(&rollup, "Private_Dirty:")).map(|(clean, dirty)| clean + dirty);
    Ok(Use { resident, proportional: megabytes(&rollup, "Pss:"), private })
}

fn total(processes: &[Process]) -> Result<Use> {
    let nothing = Use { resident: 0.0, proportional: Some(0.0), private: Some(0.0) };
    let both = |sum: Option<f64>, one: Option<f64>| sum.zip(one).map(|(sum, one)| sum + one);
    processes.iter().try_fold(nothing, |sum, process| {
        let one = memory_of(process.pid)?;
        Ok(Use {
            resident: sum.resident + one.resident,
            proportional: both(sum.proportional, one.proportional),
            private: both(sum.private, one.private),
        })
    })
}

pub fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let project = Project::new()?;
    // Fills the bytecode cache, so that the next kernel has no need of a compile worker.
    Held::start(&project, RUN_FIRST)?.end()?;
    let peer = peer(section, settings)?;
    for (what, first) in [
        ("idle kernel, two warm workers", RUN_FIRST),
        ("the same and the compile worker, after a check", CHECK_FIRST),
    ] {
        let held = Held::start(&project, first)?;
        let processes = held.idle_processes()?;
        let all = total(&processes)?;
        let row = |what: String, value: f64| Row::new(&what, Unit::Megabytes).ours(value);
        let counted = match all.proportional {
            Some(proportional) => row(format!("{what}, PSS"), proportional),
            None => {
                section.skipped(
                    "PSS",
                    "only root may ask for that of locked workers; RSS counts shared pages twice",
                );
                row(format!("{what}, RSS"), all.resident)
            }
        };
        let counted = counted.budget(Budget::Below(BUDGET_MB));
        section.row(match &peer {
            Some((name, value)) => counted.peer(name, *value),
            None => counted,
        });
        let mut most_private: Option<f64> = None;
        for process in &processes {
            let one = memory_of(process.pid)?;
            let kind = process.kind.name();
            let proportional = one.proportional.map(|value| format!("PSS {value:.1}, ")).unwrap_or_default();
            let private = one.private.map(|value| format!("private {value:.2}, ")).unwrap_or_default();
            section.note(format!("{what}: {kind}: {proportional}{private}RSS {:.1} MB", one.resident));
            if process.kind.is_warm_worker() {
                most_private = most_private.into_iter().chain(one.private).reduce(f64::max);
            }
        }
        if let (Some(private), RUN_FIRST) = (most_private, first) {
            let row = Row::new("private memory of the larger warm worker", Unit::Megabytes).ours(private);
            section.row(row.budget(Budget::Below(PRIVATE_BUDGET_MB)));
        }
        section.note(format!("{what}: RSS of all {:.1} MB", all.resident));
        held.end()?;
    }
    Ok(())
}

/// Node with as many isolates ready; its name and its memory.
fn peer(section: &mut Section, settings: &BenchSettings) -> Result<Option<(String, f64)>> {
    let node = match node() {
        Ok(node) => node,
        Err(missing) => {
            section.skipped("node with isolated-vm", &missing.0);
            return Ok(None);
        }
    };
    let isolated_vm = match settings.peers.isolated_vm(&node)? {
        Ok(installed) => installed,
        Err(missing) => {
            section.skipped("isolated-vm", &missing.0);
            return Ok(None);
        }
    };
    let mut process = PeerProcess::start_isolated_vm(&node, &isolated_vm)?;
    process.run("isolated-vm", 1)?;
    process.hold(WARM_WORKERS)?;
    sleep(IDLE);
    let used = memory_of(process.pid())?;
    let name = format!("{}, two isolates in {}", isolated_vm.name, node.name);
    Ok(Some((name, used.proportional.unwrap_or(used.resident))))
}
