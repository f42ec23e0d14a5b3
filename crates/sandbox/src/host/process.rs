//! One worker process: started with a socket pair as its standard input or forked from a template, known by its
//! credentials, killed for good.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeVal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::time::ClockId;
use nix::unistd::Pid;
use tgp_jail::LockReport;

use super::SandboxError;
use crate::os;
use crate::protocol::{FromWorker, StartFailure, read_blocking};
use crate::worker::{COMPILE_WORKER, WORKER_ARGUMENT};

/// A worker that is not ready after this long is given up.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that ends while it starts was killed by somebody else, such as the system when it is short of memory. It is
/// started again, at most so often.
const MAX_STARTS: u32 = 3;

/// How long a worker that closed its connection may take to die before it is killed.
const DEATH_GRACE: Duration = Duration::from_millis(200);

/// How to start a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

impl WorkerCommand {
    /// The running binary itself. It keeps working when the file is replaced during an upgrade.
    #[must_use]
    pub fn this_binary() -> Self {
        Self { program: os::this_program(), arguments: Vec::new() }
    }
}

/// The worker that a thread waits for, within reach of whoever shuts that thread down.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach(Arc<Mutex<Reached>>);

#[derive(Debug, Default)]
struct Reached {
    closed: bool,
    /// Set only while its process is not reaped, so that no other process can have the number.
    pid: Option<Pid>,
}

impl Reach {
    /// Ends the wait by killing the worker; from now on every other one is killed as soon as it is waited for.
    pub(super) fn close(&self) {
        let mut reached = self.lock();
        reached.closed = true;
        if let Some(pid) = reached.pid {
            // The only failure is that it has ended already.
            let _ = kill(pid, Signal::SIGKILL);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Puts a worker within reach until the guard is dropped, which must be before the worker is reaped.
    pub(super) fn hold(&self, pid: Pid) -> Held<'_> {
        let mut reached = self.lock();
        reached.pid = Some(pid);
        if reached.closed {
            let _ = kill(pid, Signal::SIGKILL);
        }
        Held(self)
    }

    fn lock(&self) -> MutexGuard<'_, Reached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[must_use]
pub(super) struct Held<'a>(&'a Reach);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.lock().pid = None;
    }
}

/// A started and locked worker. It is a child of this process, however it was started.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    pub(super) child: ChildProcess,
    pub(super) connection: UnixStream,
    pub(super) lock: LockReport,
}

impl WorkerProcess {
    /// Starts a worker of `kind` and waits until it has locked itself.
    ///
    /// Call it from a thread that lives as long as the worker may: the worker dies with that thread.
    pub(super) fn start(
        command: &WorkerCommand,
        kind: &str,
        heap_bytes: u64,
        reach: &Reach,
    ) -> Result<Self, SandboxError> {
        let mut starts = 1;
        loop {
            match Self::start_once(command, kind, heap_bytes, reach) {
                Err(SandboxError::EndedEarly { .. }) if starts < MAX_STARTS => starts += 1,
                started => return started,
            }
        }
    }

    fn start_once(
        command: &WorkerCommand,
        kind: &str,
        heap_bytes: u64,
        reach: &Reach,
    ) -> Result<Self, SandboxError> {
        if reach.is_closed() {
            return Err(SandboxError::Closed);
        }
        os::check_support()
            .map_err(|missing| SandboxError::Unlockable { missing: vec![missing.to_owned()] })?;
        let (mut ours, theirs) = connection_pair()?;
        let child = Command::new(&command.program)
            .arg0("tgp-worker")
            // Ctrl-C at a terminal is the kernel's to handle; its workers end by the kernel's hand.
            .process_group(0)
            .args(&command.arguments)
            .arg(WORKER_ARGUMENT)
            .arg(kind)
            .arg(heap_bytes.to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(SandboxError::Spawn)?;
        let mut child = ChildProcess::new(Pid::from_raw(child.id().cast_signed()));
        let held = reach.hold(child.pid);
        let greeted = greet(&mut ours, child.pid);
        drop(held);
        match greeted.map_err(|error| with_end(error, &mut child))? {
            // Without the filter the engine's process could open files and connections. A compile worker runs no tool code.
            FromWorker::Locked(lock) if !lock.seccomp && kind != COMPILE_WORKER => {
                Err(SandboxError::Unlockable { missing: lock.missing })
            }
            FromWorker::Locked(lock) => Ok(Self { child, connection: ours, lock }),
            FromWorker::StartFailed(failure) => Err(cannot_lock(&failure)),
            _ => Err(SandboxError::NotReady("it spoke before it was locked".to_owned())),
        }
    }

    /// A worker that a template with this lock has forked as the process `pid`, with the other end of `connection`.
    /// Waits until it has locked itself.
    pub(super) fn forked(
        pid: Pid,
        mut connection: UnixStream,
        lock: LockReport,
        reach: &Reach,
    ) -> Result<Self, SandboxError> {
        let mut child = ChildProcess::new(pid);
        let held = reach.hold(child.pid);
        let greeted = greet(&mut connection, child.pid);
        drop(held);
        match greeted.map_err(|error| with_end(error, &mut child))? {
            FromWorker::Warm => Ok(Self { child, connection, lock }),
            FromWorker::StartFailed(failure) => Err(cannot_lock(&failure)),
            _ => Err(SandboxError::NotReady("it did not say that it is warm".to_owned())),
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.child.pid
    }
}

/// A child of this process that is killed and reaped when it is dropped.
#[derive(Debug)]
pub(super) struct ChildProcess {
    pid: Pid,
    /// Set once it is reaped. From then on another process may have its number.
    status: Option<ExitStatus>,
}

impl ChildProcess {
    fn new(pid: Pid) -> Self {
        Self { pid, status: None }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// The clock of the CPU time it has used. Valid until it is reaped.
    pub(super) fn cpu_clock(&self) -> Option<ClockId> {
        os::cpu_clock(self.pid)
    }

    /// False when it has ended while it waited for work.
    pub(super) fn is_alive(&mut self) -> bool {
        self.ended(WaitPidFlag::WNOHANG).is_none()
    }

    /// How a worker that closed its connection ended; it is killed when it does not end by itself.
    pub(super) fn await_end(&mut self) -> Option<ExitStatus> {
        let patience = std::time::Instant::now() + DEATH_GRACE;
        while std::time::Instant::now() < patience {
            if let Some(status) = self.ended(WaitPidFlag::WNOHANG) {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kill();
        None
    }

    pub(super) fn kill(&self) {
        if self.status.is_none() {
            // The only failure is that it has ended already.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
    }

    /// How it ended, if it has; without `WNOHANG` waits until it has.
    fn ended(&mut self, flag: WaitPidFlag) -> Option<ExitStatus> {
        while self.status.is_none() {
            self.status = match waitpid(self.pid, Some(flag)) {
                Ok(WaitStatus::Exited(_, code)) => Some(ExitStatus::from_raw(code << 8)),
                Ok(WaitStatus::Signaled(_, signal, _)) => Some(ExitStatus::from_raw(signal as i32)),
                Ok(WaitStatus::StillAlive) => return None,
                Ok(_) | Err(nix::errno::Errno::EINTR) => continue,
                // Somebody else has reaped it; how it ended is lost.
                Err(_) => Some(ExitStatus::default()),
            };
        }
        self.status
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
        self.ended(WaitPidFlag::empty());
    }
}

/// Our end of a connection, which tells who writes to it, and the worker's.
pub(super) fn connection_pair() -> Result<(UnixStream, OwnedFd), SandboxError> {
    let (ours, theirs) = UnixStream::pair().map_err(SandboxError::Start)?;
    os::report_sender(&ours, true).map_err(errno)?;
    let timeout = TimeVal::new(START_TIMEOUT.as_secs().cast_signed(), 0);
    setsockopt(&ours, sockopt::ReceiveTimeout, &timeout).map_err(errno)?;
    Ok((ours, OwnedFd::from(theirs)))
}

/// Reads the greeting, and with it the proof of who sent it: the operating system attaches the sender's process
/// id, which must be the child's.
fn greet(connection: &mut UnixStream, child: Pid) -> Result<FromWorker, SandboxError> {
    let received = os::peek_sender(connection).map_err(errno)?;
    if received.bytes == 0 {
        return Err(SandboxError::EndedEarly { how: String::new() });
    }
    if received.sender != Some(child) {
        return Err(SandboxError::NotReady("another process answered in its place".to_owned()));
    }
    os::report_sender(connection, false).map_err(errno)?;
    read_blocking(connection).map_err(|error| SandboxError::NotReady(error.to_string()))
}

fn cannot_lock(failure: &StartFailure) -> SandboxError {
    let (step, cause) = failure.shown();
    SandboxError::CannotLock { step, cause }
}

/// Adds to the error of a worker that ended without a word how it ended.
fn with_end(error: SandboxError, child: &mut ChildProcess) -> SandboxError {
    let SandboxError::EndedEarly { .. } = error else { return error };
    let Some(status) = child.await_end() else { return error };
    match (status.signal(), status.code()) {
        // A filter around this process, such as that of a container, kills for a call that it forbids.
        (Some(nix::libc::SIGSYS), _) => SandboxError::CannotLock {
            step: "lock itself".to_owned(),
            cause: "the system killed it for a system call that is forbidden here (SIGSYS)".to_owned(),
        },
        (Some(signal), _) => SandboxError::EndedEarly { how: format!(", by signal {signal}") },
        (None, Some(code)) => SandboxError::EndedEarly { how: format!(", with exit status {code}") },
        (None, None) => error,
    }
}

pub(super) fn errno(error: nix::errno::Errno) -> SandboxError {
    SandboxError::Start(io::Error::from(error))
}
