//! The messages themselves.

use serde::{Deserialize, Serialize};
use tgp_contract::Code;
use tgp_jail::LockReport;

/// How the engine loads a module's bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModuleKind {
    /// An ES module.
    Module,
    /// A script whose value is a CommonJS wrapper function.
    CommonJs,
}

/// One compiled module as a worker takes it: bytecode and links, never a path on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleCode {
    pub id: String,
    pub kind: ModuleKind,
    #[serde(with = "super::bytes")]
    pub bytecode: Vec<u8>,
    /// Specifier to module id.
    pub links: Vec<(String, String)>,
}

/// What the compile worker turns into bytecode after the front end is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitRequest {
    pub id: String,
    pub kind: ModuleKind,
    pub code: String,
    /// Libraries go without their debug information: nobody debugs them here and it is a third of their size.
    pub keep_debug_info: bool,
}

/// The level of a line that a tool logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// The last line of a log that was cut. It comes on top of the caps.
pub(crate) const LOG_CUT_NOTE: &str =
    "the log ends here: the tool logged more than sandbox.logLines or sandbox.logBytes allow";

/// Kernel to compile worker: one request of the front end's own language.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CompileJob {
    #[serde(with = "super::bytes")]
    pub request: Vec<u8>,
}

/// Compile worker to kernel.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CompileAnswer {
    #[serde(with = "super::bytes")]
    pub answer: Vec<u8>,
    /// Bytecode of what the front end emitted, or why the engine refused it.
    pub bytecode: Option<Result<Vec<u8>, String>>,
}

/// What a run worker gets ahead of its run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WarmUp {
    pub modules: Vec<ModuleCode>,
}

/// One run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunRequest {
    pub entry: String,
    /// Modules the worker does not have from its warm-up.
    pub modules: Vec<ModuleCode>,
    /// JSON.
    pub arguments: String,
    /// True: call the default export. False: its value is the result (configuration files).
    pub call_default: bool,
    pub environment: Vec<(String, String)>,
    pub heap_bytes: u64,
    pub cpu_us: u64,
    pub wall_us: u64,
    pub stack_bytes: u64,
    pub output_bytes: u64,
    pub log_lines: u64,
    pub log_bytes: u64,
    pub bridge_calls: u64,
    pub seed: [u32; 4],
    /// True when `seed` was asked for, so that `crypto` must repeat too.
    pub seeded: bool,
    pub frozen_clock_ms: Option<f64>,
}

/// The answer to one bridge call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallReply {
    pub call: u32,
    /// The value, or code and message of the failure.
    pub result: Result<ReplyValue, (Code, String)>,
}

/// What a bridge call has given.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ReplyValue {
    Json(String),
    Bytes(#[serde(with = "super::bytes")] Vec<u8>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    WarmUp(WarmUp),
    Run(Box<RunRequest>),
    Reply(CallReply),
    /// The time by the clock is up: end, and report where.
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FailureKind {
    Memory,
    CpuTime,
    WallTime,
    /// The tool threw.
    Thrown,
    /// A cap on output, logs or bridge calls.
    Cap,
    /// The tool's promise can never settle.
    NeverSettles,
    /// The worker was given something it cannot run.
    BadProgram,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub kind: FailureKind,
    /// The class of the error, such as `TypeError`; empty when there is none.
    pub name: String,
    pub message: String,
    /// The engine's stack, in emitted places.
    pub stack: String,
    /// `error.code` when it is a string: bridge errors carry theirs through the tool.
    pub code: Option<String>,
    pub related: Box<RelatedErrors>,
    pub stop: Box<StopReport>,
}

/// What is known of a run that a limit stopped; empty for every other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// Where its CPU time was spent.
    pub samples: Vec<StackSample>,
    /// It did nothing but wait for the call that the stack of the failure shows.
    pub is_waiting: bool,
}

/// A stack that was seen while a run was busy, in emitted places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSample {
    pub stack: String,
    /// How often.
    pub count: u32,
}

/// The errors behind a thrown error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelatedErrors {
    /// The chain of `error.cause`, one line each.
    pub causes: Vec<String>,
    /// The errors of an `AggregateError`, one line each.
    pub errors: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WorkerStats {
    pub cpu_us: u64,
    pub heap_peak_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunOutcome {
    /// JSON of the result.
    pub result: Result<String, Failure>,
    pub stats: WorkerStats,
}

impl RunOutcome {
    /// Whether a limit on time or memory ended the run.
    pub(crate) fn is_stopped(&self) -> bool {
        let stops = |kind| matches!(kind, FailureKind::Memory | FailureKind::CpuTime | FailureKind::WallTime);
        self.result.as_ref().is_err_and(|failure| stops(failure.kind))
    }
}

/// Bytes beside the arguments of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Attachment(#[serde(with = "super::bytes")] pub Vec<u8>);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// Locked, and waiting for its first request.
    Locked(LockReport),
    /// Warmed up, and waiting for its run.
    Warm,
    Log {
        level: LogLevel,
        text: String,
    },
    Call {
        call: u32,
        name: String,
        /// JSON.
        arguments: String,
        /// What crosses beside the JSON: the content of a file.
        bytes: Option<Attachment>,
    },
    /// The tool aborted a call it had made.
    Cancel {
        call: u32,
    },
    Done(RunOutcome),
    /// It could not lock itself, and ends. Sent in the place of its first message, by a process that has run nothing.
    StartFailed(StartFailure),
}

/// Why a process could not become a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartFailure {
    /// What was tried, as a verb phrase.
    step: String,
    /// What the system reported.
    cause: String,
}

/// Bytes of each of the two texts, as a person sees them.
const MAX_FAILURE_BYTES: usize = 400;

impl StartFailure {
    pub(crate) fn new(step: &str, cause: &str) -> Self {
        Self { step: step.to_owned(), cause: cause.to_owned() }
    }

    /// For a step that gives no reason: the last error of the system.
    pub(crate) fn last_error(step: &str) -> Self {
        Self::new(step, &std::io::Error::last_os_error().to_string())
    }

    /// Step and cause, short and without characters that a terminal obeys, whatever the sender is.
    pub(crate) fn shown(&self) -> (String, String) {
        (shown(&self.step), shown(&self.cause))
    }
}

fn shown(text: &str) -> String {
    let escape = |character: char| match tgp_text::is_unseen(character) {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    let escaped: String = tgp_text::head(text, MAX_FAILURE_BYTES).chars().map(escape).collect();
    tgp_text::head(&escaped, MAX_FAILURE_BYTES).to_owned()
}
