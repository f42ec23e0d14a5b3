//! Single-use locked worker processes that run compiled tools.
//!
//! The kernel's side ([`Sandbox`]) keeps warm workers, hands one run to each, watches its CPU and wall-clock time
//! and kills it afterwards. The worker's side ([`worker_main`]) locks itself before it reads its first request.
//! Between them stands the module `protocol`: length-prefixed, size-capped frames over a socket pair.
#![deny(unsafe_code)]

mod host;
#[allow(unsafe_code, reason = "system calls without a safe interface")]
mod os;
mod protocol;
#[allow(unsafe_code, reason = "the engine is a C library, and a worker ends by _exit")]
mod worker;

pub use host::{
    Bridge, BridgeAnswer, CompileFailure, CompiledSource, LogLine, Program, RunError, RunErrorKind, RunInput,
    RunLimits, RunStats, Sandbox, SandboxError, SandboxOptions, ToolRunOptions, ToolRunReport, WorkerCommand,
    release_free_memory,
};
pub use protocol::{EmitRequest, LogLevel, ModuleCode, ModuleKind, RelatedErrors, StackSample, StopReport};
pub use worker::{Frontend, FrontendReply, WORKER_ARGUMENT, engine_version, worker_main};

/// The entry point of `fuzz/`: reads a worker's frame as the host does, and encodes its message again.
#[doc(hidden)]
pub async fn reencode_frame(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> Result<Vec<u8>, impl std::error::Error> {
    protocol::encode(&protocol::read::<protocol::FromWorker>(stream).await?)
}
