//! The sandbox worker as a program of its own, for embedding programs that cannot start themselves again.

use std::process::ExitCode;

fn main() -> ExitCode {
    tgp::worker_main().unwrap_or(ExitCode::from(2))
}
