//! The words between the kernel and a worker process.
//!
//! A worker runs hostile code, so everything it sends is checked: frames have a size cap, messages are decoded
//! strictly, and only JSON text crosses as a value.

mod bytes;
mod frame;
mod message;

pub(crate) use frame::{FrameError, encode, read, read_blocking, write_blocking};
pub(crate) use message::{
    CallReply, CompileAnswer, CompileJob, Failure, FailureKind, FromWorker, RunOutcome, RunRequest, ToWorker,
    WarmUp, WorkerStats,
};
pub use message::{EmitRequest, LogLevel, ModuleCode, ModuleKind, RelatedErrors, StackSample, StopReport};
