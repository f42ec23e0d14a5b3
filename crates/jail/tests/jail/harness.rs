//! Starting probes and reading their verdicts.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::Duration;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use tgp_jail::{ChildLock, Profile};

use crate::{compute, probes};

/// The user `nobody`, who represents every user but root.
pub const NOBODY: u32 = 65534;

const REQUEST: &str = "TGP_JAIL_PROBE";
const LOCK: &str = "TGP_JAIL_LOCK";

/// Exit codes of a probe.
pub const REFUSED: i32 = 70;
pub const ALLOWED: i32 = 71;

/// Who runs a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The user who runs the tests.
    Caller,
    /// An ordinary user; only root can become one.
    Nobody,
}

/// Both, when the tests run as a root who can become another user.
pub fn everybody() -> Vec<Who> {
    if nix::unistd::geteuid().is_root() && Command::new("true").uid(NOBODY).gid(NOBODY).status().is_ok() {
        vec![Who::Caller, Who::Nobody]
    } else {
        println!("not root: probes run as the caller only");
        vec![Who::Caller]
    }
}

/// How a probe is locked before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    Not,
    Compute,
    /// As a worker that was forked from a locked template, which is still there.
    Forked,
}

/// A copy of this binary that every user can run.
pub static EXECUTABLE: LazyLock<PathBuf> = LazyLock::new(|| {
    extern "C" fn clean_up() {
        let _ = std::fs::remove_dir_all(EXECUTABLE.parent().unwrap());
    }
    let folder = tempfile::tempdir().unwrap().keep();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    let copy = folder.join("probe");
    // By another process: were it open for writing here, a child that another test starts just now would hold it open
    // for a moment, and a file that is open for writing cannot be executed.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status().unwrap();
    assert!(copied.success());
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    unsafe { libc::atexit(clean_up) };
    copy
});

/// A temporary folder that belongs to the user of the probe.
pub fn folder_of(who: Who) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    give(folder.path(), who);
    folder
}

pub fn give(path: &Path, who: Who) {
    if who == Who::Nobody {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

pub fn as_user(command: &mut Command, who: Who) {
    if who == Who::Nobody {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// A command that runs one probe.
pub fn probe_command(name: &str, locked: Locked) -> Command {
    let mut command = Command::new(&*EXECUTABLE);
    command
        .args(["--exact", "probe_child", "--nocapture", "--quiet"])
        .env(REQUEST, name)
        .env(LOCK, format!("{locked:?}"));
    command
}

pub fn run_probe(name: &str, locked: Locked, who: Who) -> Output {
    let mut command = probe_command(name, locked);
    as_user(&mut command, who);
    command.output().unwrap()
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Refused,
    Allowed,
    /// The kernel ended it because of a forbidden call, which is a refusal too.
    Killed,
}

pub fn verdict(name: &str, output: &Output) -> Verdict {
    match (output.status.code(), output.status.signal()) {
        (Some(REFUSED), _) => Verdict::Refused,
        (Some(ALLOWED), _) => Verdict::Allowed,
        (_, Some(libc::SIGSYS)) => Verdict::Killed,
        _ => panic!(
            "`{name}` ended with {:?}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

/// What a copy of the binary was asked to do.
pub struct Request {
    name: String,
    locked: Locked,
}

impl Request {
    pub fn from_environment() -> Option<Self> {
        let name = std::env::var(REQUEST).ok()?;
        let locked = match std::env::var(LOCK).as_deref() {
            Ok("Compute") => Locked::Compute,
            Ok("Forked") => Locked::Forked,
            _ => Locked::Not,
        };
        Some(Self { name, locked })
    }

    /// The test runner has threads, and a lock wants a process without. A fork has one thread; its end becomes ours.
    pub fn run(self) -> ! {
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let done = std::panic::catch_unwind(|| self.act());
                exit(done.unwrap_or(101));
            }
            // Of a template and its worker, both our children, the worker ends first.
            ForkResult::Parent { child } => match waitpid(None, None).unwrap() {
                ended @ (WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..))
                    if self.locked == Locked::Forked && pid == child =>
                {
                    panic!("the template ended: {ended:?}")
                }
                WaitStatus::Exited(_, code) => {
                    end(child);
                    exit(code)
                }
                WaitStatus::Signaled(_, signal, _) => {
                    end(child);
                    let _ = nix::sys::prctl::set_dumpable(false);
                    unsafe { libc::signal(signal as i32, libc::SIG_DFL) };
                    nix::sys::signal::raise(signal).unwrap();
                    exit(102)
                }
                _ => exit(103),
            },
        }
    }

    fn act(&self) -> i32 {
        if let Some(work) = compute::WORK.iter().find(|work| work.name == self.name) {
            (work.run)();
            return 0;
        }
        let mut all = probes::ALL.iter().chain(probes::ON_TEMPLATE);
        let probe = all.find(|probe| probe.name == self.name).expect("no such probe");
        let prepared = (probe.prepare)();
        match self.locked {
            Locked::Not => {}
            Locked::Compute => {
                tgp_jail::lock_this_process(&Profile::compute_worker()).unwrap();
            }
            Locked::Forked => fork_from_template(),
        }
        if (probe.attempt)(prepared) { ALLOWED } else { REFUSED }
    }
}

/// Locks the process as a template and goes on in a worker of it. The template itself waits to be ended.
fn fork_from_template() {
    let mut lock = ChildLock::prepare(&Profile::compute_worker().limits).unwrap();
    tgp_jail::lock_this_process(&Profile::worker_template()).unwrap();
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        0 => lock.apply().unwrap(),
        worker if worker > 0 => loop {
            std::thread::sleep(Duration::from_secs(60));
        },
        _ => panic!("no worker: {}", std::io::Error::last_os_error()),
    }
}

/// Ends a child that may have ended already.
fn end(child: Pid) {
    let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL);
}

/// Leaves at once: what the test runner does at its end is not part of a probe.
pub fn exit(code: i32) -> ! {
    unsafe { libc::_exit(code) }
}
