//! The worker process: locks itself, then serves.
//!
//! The same binary as the kernel, started with a hidden argument. Its standard input is one end of a socket pair
//! made by the kernel; it has no other descriptor of use. A run worker serves one run and ends; a template forks run
//! workers, and a compile worker compiles, until the kernel closes the connection.

mod bytecode;
mod compile;
mod engine;
mod host;
mod quickjs;
mod template;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::rc::Rc;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use tgp_jail::{JailError, LockReport, Profile, lock_this_process};

use crate::os;
use crate::protocol::{FromWorker, RunRequest, StartFailure, ToWorker, read_blocking, write_blocking};
pub use compile::{Frontend, FrontendReply};
use engine::Engine;
use host::Host;
pub use quickjs::engine_version;
use quickjs::{HeapMeter, QuickJs};

/// The first argument that turns the binary into a worker.
pub const WORKER_ARGUMENT: &str = "__worker";

pub(crate) const RUN_WORKER: &str = "run";
pub(crate) const COMPILE_WORKER: &str = "compile";
pub(crate) const TEMPLATE: &str = "template";

/// Address space a run worker may take beyond its heap: stack, code, and buffers of the protocol.
const ADDRESS_SPACE_SLACK: u64 = 192 * 1024 * 1024;
/// A compile worker's parser recurses deeply on nested sources; the kernel leaves at least this much room above
/// the main stack of every process.
const COMPILE_STACK_BYTES: u64 = 120 * 1024 * 1024;
/// The main stack of a run worker. The engine ends a recursion long before.
const RUN_STACK_BYTES: u64 = 64 * 1024 * 1024;
/// What the engine must leave of the main stack to native functions.
const NATIVE_STACK_BYTES: u64 = 2 * 1024 * 1024;
/// The engine takes 0 for no limit at all, so it never gets less than this.
const MIN_ENGINE_STACK_BYTES: u64 = 256 * 1024;
const COMPILE_ADDRESS_SPACE: u64 = 1024 * 1024 * 1024;
/// Backstop for a worker whose kernel is gone and that ignores its own limits.
const CPU_SECONDS: u64 = 120;

/// Serves as a worker when the process was started as one; `None` when it was not.
///
/// Call it first thing in `main`: a worker must lock itself before anything else runs.
#[must_use]
pub fn worker_main(frontend: &dyn Frontend) -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(WORKER_ARGUMENT) {
        return None;
    }
    let kind = arguments.next().unwrap_or_default();
    let heap_bytes: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(match serve(&kind, heap_bytes, frontend) {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

fn serve(kind: &str, heap_bytes: u64, frontend: &dyn Frontend) -> Option<()> {
    let mut connection = connection()?;
    let LockedProcess { report, stack_bytes, kernel, birth } = match lock(kind, heap_bytes) {
        Ok(locked) => locked,
        Err(failure) => {
            // Later failures are silent, and the kernel sees the closed connection: by then this process has read requests,
            // and its words would be those of whoever made it fail.
            let _ = write_blocking(&mut connection, &FromWorker::StartFailed(failure));
            return None;
        }
    };
    write_blocking(&mut connection, &FromWorker::Locked(report)).ok()?;
    if kind == COMPILE_WORKER {
        return compile::serve(&mut connection, frontend).ok();
    }
    let serving = Serving::warm(connection, usize::try_from(heap_bytes).ok()?, stack_bytes)?;
    if let Some(birth) = birth {
        return template::serve(&serving, birth, kernel);
    }
    serving.host.send(&FromWorker::Warm).ok()?;
    serving.serve_run()
}

/// A process that has locked itself, and has read nothing yet.
struct LockedProcess {
    report: LockReport,
    stack_bytes: u64,
    kernel: Pid,
    /// What a template needs for its copies.
    birth: Option<template::Birth>,
}

fn lock(kind: &str, heap_bytes: u64) -> Result<LockedProcess, StartFailure> {
    // What the embedding program left open is none of a worker's business.
    os::close_all_from(os::FIRST_OTHER)
        .ok_or_else(|| StartFailure::last_error("close the descriptors that it inherited"))?;
    let stack_bytes = grow_stack(if kind == COMPILE_WORKER { COMPILE_STACK_BYTES } else { RUN_STACK_BYTES })
        .map_err(|errno| StartFailure::new("set the limit of its stack", errno.desc()))?;
    let kernel = nix::unistd::getppid();
    let profile =
        profile(kind, heap_bytes).ok_or_else(|| StartFailure::new("serve", "it is a worker of no kind"))?;
    let birth = match kind {
        TEMPLATE => Some(template::Birth::prepare(&worker_profile(heap_bytes).limits)?),
        _ => None,
    };
    // A worker never outlives the thread that started it, even when the kernel is killed outright.
    os::die_with_parent().ok_or_else(|| StartFailure::last_error("ask to end with its parent"))?;
    let report = lock_this_process(&profile)?;
    Ok(LockedProcess { report, stack_bytes, kernel, birth })
}

impl From<JailError> for StartFailure {
    fn from(error: JailError) -> Self {
        match error {
            JailError::Refused { step, source } => Self::new(step, &source.to_string()),
            other => {
                let mut cause = other.to_string();
                let mut source = std::error::Error::source(&other);
                while let Some(error) = source {
                    cause = format!("{cause}: {error}");
                    source = error.source();
                }
                Self::new("lock itself", &cause)
            }
        }
    }
}

/// Standard input as the connection, once it is certain that the kernel made it.
fn connection() -> Option<UnixStream> {
    // SAFETY: descriptor 0 is open for the life of the process and nothing else in a worker uses it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(std::io::stdin().as_raw_fd()) };
    let stream = UnixStream::from(descriptor);
    os::is_from_parent(&stream).then_some(stream)
}

/// What a process of this kind may still do after it has locked itself.
fn profile(kind: &str, heap_bytes: u64) -> Option<Profile> {
    let mut profile = match kind {
        RUN_WORKER => return Some(worker_profile(heap_bytes)),
        TEMPLATE => Profile::worker_template(),
        COMPILE_WORKER => Profile::compute_worker(),
        _ => return None,
    };
    profile.limits.address_space =
        Some(if kind == TEMPLATE { address_space(heap_bytes) } else { COMPILE_ADDRESS_SPACE });
    Some(profile)
}

fn worker_profile(heap_bytes: u64) -> Profile {
    let mut profile = Profile::compute_worker();
    profile.limits.cpu_seconds = Some(CPU_SECONDS);
    profile.limits.address_space = Some(address_space(heap_bytes));
    profile
}

fn address_space(heap_bytes: u64) -> u64 {
    heap_bytes.saturating_mul(2).saturating_add(ADDRESS_SPACE_SLACK)
}

/// Lets the main stack grow to `bytes`, or as far as the system allows, and gives what it may have. The lock forbids
/// this and even the question, so it comes before.
fn grow_stack(bytes: u64) -> Result<u64, Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_STACK)?;
    let allowed = bytes.min(hard);
    setrlimit(Resource::RLIMIT_STACK, allowed, hard)?;
    Ok(allowed)
}

/// A warm engine and its connection.
struct Serving {
    // The engine goes first: it holds JavaScript values whose natives use the host.
    engine: QuickJs,
    host: Rc<Host>,
    stack_bytes: u64,
}

impl Serving {
    /// Makes the engine and loads what the kernel wants to be there before a run.
    fn warm(mut connection: UnixStream, heap_bytes: usize, stack_bytes: u64) -> Option<Self> {
        let ToWorker::WarmUp(warm_up) = read_blocking(&mut connection).ok()? else { return None };
        let heap = HeapMeter::new(heap_bytes);
        let host = Host::new(connection, Rc::clone(&heap));
        let engine = QuickJs::new(&host, &heap).ok()?;
        // An engine that is not as good as new is of no use to any run; the kernel sees that it did not get ready.
        if !engine.warm_up(&host, warm_up.modules) {
            leave();
        }
        Some(Self { engine, host, stack_bytes })
    }

    /// Serves one run.
    fn serve_run(&self) -> Option<()> {
        let request = match read_blocking(&mut *self.host.connection.borrow_mut()).ok()? {
            ToWorker::Run(request) => *request,
            _ => return None,
        };
        let within = self.stack_bytes.saturating_sub(NATIVE_STACK_BYTES).max(MIN_ENGINE_STACK_BYTES);
        let request =
            RunRequest { stack_bytes: request.stack_bytes.clamp(MIN_ENGINE_STACK_BYTES, within), ..request };
        let outcome = self.engine.run(&self.host, request);
        self.host.send_or_die(&FromWorker::Done(outcome));
        // The kernel ends this process when it has time to; taking it apart now would slow down what the kernel does next.
        let _ = std::io::Read::read(&mut *self.host.connection.borrow_mut(), &mut [0]);
        leave()
    }
}

/// Ends the process at once. Nothing here is worth tearing down, and a heap full of hostile objects least of all.
fn leave() -> ! {
    // SAFETY: _exit takes any status and does not return.
    unsafe { libc::_exit(0) }
}
