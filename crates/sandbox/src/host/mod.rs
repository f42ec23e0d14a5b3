//! The kernel's side: spawn, warm, run, watch, kill, replace.

mod allocator;
mod bridge;
mod compile;
mod limits;
mod pool;
mod process;
mod run;
mod run_error;
mod sandbox;
mod template;
mod watch;

pub use allocator::release_free_memory;
pub use bridge::{Bridge, BridgeAnswer};
pub use compile::{CompileFailure, CompiledSource};
pub use limits::RunLimits;
pub use process::WorkerCommand;
pub use run::{LogLine, Program, RunInput, RunStats, ToolRunOptions, ToolRunReport};
pub use run_error::{RunError, RunErrorKind};
pub use sandbox::{Sandbox, SandboxError, SandboxOptions};
