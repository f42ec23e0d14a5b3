//! The compile worker as the kernel sees it: one process, asked one thing at a time, replaced when it dies.

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeVal;
use tokio::sync::oneshot;

use super::SandboxError;
use super::process::{Reach, WorkerCommand, WorkerProcess};
use crate::protocol::{CompileAnswer, CompileJob, FrameError, read_blocking, write_blocking};
use crate::worker::COMPILE_WORKER;

/// A source that takes longer than this to compile is refused.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(10);

/// What came back for one source.
#[derive(Clone, Debug)]
pub struct CompiledSource {
    /// The front end's answer, in its own language.
    pub answer: Vec<u8>,
    /// Bytecode of what the front end emitted, if it emitted anything.
    pub bytecode: Option<Vec<u8>>,
}

/// Why a source could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileFailure {
    #[error("the compiler gave up on this source: it is nested too deeply or too large")]
    Crashed,
    #[error("the compiler did not finish within {} seconds", COMPILE_TIMEOUT.as_secs())]
    TooSlow,
    #[error("the engine refused the compiled code: {0}")]
    Refused(String),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// What the thread of the compile worker is asked for.
enum Job {
    /// A worker that waits for the first source.
    Start,
    Compile {
        request: Vec<u8>,
        answer: oneshot::Sender<Result<CompiledSource, CompileFailure>>,
    },
}

/// A thread that owns the compile worker. It starts the worker at the first job, so that a kernel that finds all
/// its bytecode in the cache never pays for one.
#[derive(Debug)]
pub(super) struct Compiler {
    jobs: Option<blocking::SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    reach: Reach,
}

/// Jobs that may wait; a caller beyond that waits for room.
const MAX_WAITING_JOBS: usize = 64;

impl Compiler {
    pub(super) fn start(command: WorkerCommand) -> Result<Self, SandboxError> {
        let (jobs, inbox) = blocking::sync_channel::<Job>(MAX_WAITING_JOBS);
        let reach = Reach::default();
        let reached = reach.clone();
        let thread = std::thread::Builder::new()
            .name("tgp-compiler".to_owned())
            .spawn(move || {
                let mut worker = None;
                for job in inbox {
                    match job {
                        // One that fails is started again for the first source, which reports why.
                        Job::Start => {
                            worker = worker.or_else(|| start_worker(&command, &reached).ok());
                        }
                        Job::Compile { request, answer } => {
                            let result = compile(&command, &mut worker, request, &reached);
                            // Nobody waits any more: the answer is of no use.
                            let _ = answer.send(result);
                        }
                    }
                }
            })
            .map_err(SandboxError::Start)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), reach })
    }

    /// Starts the worker. A full queue is one that has started it already.
    pub(super) fn warm(&self) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.try_send(Job::Start);
        }
    }

    pub(super) async fn compile(
        self: &Arc<Self>,
        request: Vec<u8>,
    ) -> Result<CompiledSource, CompileFailure> {
        let (answer, result) = oneshot::channel();
        let Some(jobs) = self.jobs.clone() else { return Err(SandboxError::Closed.into()) };
        let job = Job::Compile { request, answer };
        if let Err(error) = jobs.try_send(job) {
            let job = match error {
                blocking::TrySendError::Full(job) => job,
                blocking::TrySendError::Disconnected(_) => return Err(SandboxError::Closed.into()),
            };
            let sent = tokio::task::spawn_blocking(move || jobs.send(job)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return Err(SandboxError::Closed.into());
            }
        }
        result.await.unwrap_or(Err(SandboxError::Closed.into()))
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        self.reach.close();
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn compile(
    command: &WorkerCommand,
    slot: &mut Option<WorkerProcess>,
    request: Vec<u8>,
    reach: &Reach,
) -> Result<CompiledSource, CompileFailure> {
    let job = CompileJob { request };
    let answer = match ask(command, slot, &job, reach)? {
        Ended::Answered(answer) => answer,
        // Somebody else has killed it, such as the system when it is short of memory: one more try.
        Ended::Killed => match ask(command, slot, &job, reach)? {
            Ended::Answered(answer) => answer,
            Ended::Killed => return Err(CompileFailure::Crashed),
        },
    };
    match answer.bytecode {
        Some(Err(text)) => Err(CompileFailure::Refused(text)),
        Some(Ok(bytecode)) => Ok(CompiledSource { answer: answer.answer, bytecode: Some(bytecode) }),
        None => Ok(CompiledSource { answer: answer.answer, bytecode: None }),
    }
}

/// How a job ended, apart from failures of the source itself.
enum Ended {
    Answered(CompileAnswer),
    Killed,
}

fn start_worker(command: &WorkerCommand, reach: &Reach) -> Result<WorkerProcess, SandboxError> {
    let worker = WorkerProcess::start(command, COMPILE_WORKER, 0, reach)?;
    let timeout = TimeVal::new(COMPILE_TIMEOUT.as_secs().cast_signed(), 0);
    setsockopt(&worker.connection, sockopt::ReceiveTimeout, &timeout)
        .map_err(|error| SandboxError::Start(error.into()))?;
    Ok(worker)
}

fn ask(
    command: &WorkerCommand,
    slot: &mut Option<WorkerProcess>,
    job: &CompileJob,
    reach: &Reach,
) -> Result<Ended, CompileFailure> {
    let mut worker = match slot.take().map(|mut worker| (worker.child.is_alive(), worker)) {
        Some((true, worker)) => worker,
        // There is none yet, or it was killed while it waited.
        _ => start_worker(command, reach)?,
    };
    let held = reach.hold(worker.pid());
    let answer = exchange(&mut worker.connection, job);
    drop(held);
    match answer {
        Ok(answer) => {
            *slot = Some(worker);
            Ok(Ended::Answered(answer))
        }
        Err(CompileFailure::Crashed) if !reach.is_closed() && was_killed(&mut worker) => Ok(Ended::Killed),
        Err(failure) => Err(failure),
    }
}

/// A source that overflows the stack or the heap ends its worker by another signal.
fn was_killed(worker: &mut WorkerProcess) -> bool {
    worker.child.await_end().and_then(|status| status.signal()) == Some(Signal::SIGKILL as i32)
}

/// On any failure the worker is not put back, and so ended.
fn exchange(connection: &mut UnixStream, job: &CompileJob) -> Result<CompileAnswer, CompileFailure> {
    let failure = |error: FrameError| match error {
        FrameError::Io(error) if error.kind() == std::io::ErrorKind::WouldBlock => CompileFailure::TooSlow,
        _ => CompileFailure::Crashed,
    };
    write_blocking(connection, job).map_err(failure)?;
    read_blocking(connection).map_err(failure)
}
