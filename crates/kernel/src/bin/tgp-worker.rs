//! The sandbox worker as a separate program, for embedding programs that cannot start themselves again.

use std::process::ExitCode;

fn main() -> ExitCode {
    tgp::worker_main().unwrap_or(ExitCode::from(2))
}
