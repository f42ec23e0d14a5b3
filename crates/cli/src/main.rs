//! The command line of TGP: one file a command, printing, exit codes.
#![forbid(unsafe_code)]

mod approval;
mod arguments;
mod commands;
mod exit;
mod printer;
mod screen;
mod session;

use std::process::ExitCode;

use clap::Parser;

use arguments::Cli;
use exit::{Failure, exit_code};
use printer::Printer;

fn main() -> ExitCode {
    // A worker must lock itself before anything else runs.
    if let Some(code) = tgp::worker_main() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, everything else is a usage error.
            let code = if error.use_stderr() { exit::USAGE } else { exit::DONE };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let printer = Printer::new(cli.global.json);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.warn(&format!("cannot start: {error}"));
            return ExitCode::from(exit::FAILED);
        }
    };
    let outcome = runtime.block_on(async {
        // Dropping the command's future ends its kernel, and with it every worker and temporary file.
        tokio::select! {
            outcome = commands::run(cli, &printer) => outcome,
            () = interrupted() => Err(Failure::Interrupted),
        }
    });
    // A name lookup that hangs must not hold up the exit.
    runtime.shutdown_timeout(std::time::Duration::from_millis(100));
    match outcome {
        Ok(()) => ExitCode::from(exit::DONE),
        Err(failure) => {
            printer.failure(&failure);
            ExitCode::from(exit_code(&failure))
        }
    }
}

/// Completes when the process is asked to end.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without handlers the default actions stand: the process ends, and its workers with it.
        _ => std::future::pending().await,
    }
}
