//! The words between the kernel and a worker process.
//!
//! A worker runs hostile code, so everything it sends is checked: frames have a size cap, messages are decoded
//! strictly, and only JSON text and the bytes of files cross as values.

mod bytes;
mod fork;
mod frame;
mod message;

pub(crate) use fork::{FORK_ANSWER_BYTES, FORK_REQUEST, fork_answer, forked};
pub(crate) use frame::{FrameError, encode, read, read_blocking, write_blocking};
pub(crate) use message::{
    Attachment, CallReply, CompileAnswer, CompileJob, Failure, FailureKind, FromWorker, LOG_CUT_NOTE,
    ReplyValue, RunOutcome, RunRequest, StartFailure, ToWorker, WarmUp, WorkerStats,
};
pub use message::{EmitRequest, LogLevel, ModuleCode, ModuleKind, RelatedErrors, StackSample, StopReport};
