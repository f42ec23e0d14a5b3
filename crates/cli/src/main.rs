//! The command line of TGP: one file a command, printing, exit codes.
#![forbid(unsafe_code)]

mod approval;
mod arguments;
mod commands;
mod conversation;
mod exit;
mod printer;
mod screen;
mod session;
mod text;

use std::process::ExitCode;

use clap::Parser;
use tgp::contract::{Code, ToolError};

use arguments::{Cli, Command, GREETING, Global, with_run};
use conversation::Interrupts;
use exit::{Failure, exit_code};
use printer::Printer;

fn main() -> ExitCode {
    // A worker must lock itself before anything else runs.
    if let Some(code) = tgp::worker_main() {
        return code;
    }
    let cli = match Cli::try_parse_from(with_run(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return answer(&error),
    };
    let printer = Printer::new(cli.global.json);
    let outcome = match cli.command {
        Some(command) => run(command, &cli.global, &printer),
        None if cli.global.json => Err(ToolError::new(Code::Validation, "no command was given")
            .help("`tgp --help` lists them")
            .into()),
        None => {
            printer.line(GREETING);
            Ok(())
        }
    };
    match (outcome, printer.lost()) {
        (Ok(()), None) => ExitCode::from(exit::DONE),
        (Ok(()), Some(reason)) => {
            printer.warn(&format!("standard output could not be written: {reason}"));
            ExitCode::from(exit::FAILED)
        }
        (Err(failure), _) => {
            printer.failure(&failure);
            ExitCode::from(exit_code(&failure))
        }
    }
}

fn run(command: Command, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ToolError::new(Code::Internal, format!("cannot start: {error}")))?;
    let interrupts = Interrupts::default();
    let outcome = runtime.block_on(async {
        // Dropping the command's future ends its kernel, and with it every worker and temporary file. Signals are
        // looked at first, so that nothing has begun before they are caught.
        tokio::select! {
            biased;
            () = interrupts.unheeded() => Err(Failure::Interrupted),
            outcome = commands::run(command, global, printer, interrupts.clone()) => outcome,
        }
    });
    // A name lookup that hangs must not hold up the exit.
    runtime.shutdown_timeout(std::time::Duration::from_millis(100));
    outcome
}

/// What the parser says instead of a command: help and version are answers, everything else is a usage error.
fn answer(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(exit::DONE);
    }
    if std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json") {
        let text = error.render().to_string();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut paragraphs = text.trim_start_matches("error: ").split("\n\n").map(words);
        let message = paragraphs.next().unwrap_or_default();
        let help: Vec<String> = paragraphs.filter(|text| !text.starts_with("For more")).collect();
        Printer::new(true).failed(ToolError::new(Code::Validation, message).help(help.join("; ")));
    } else {
        let _ = error.print();
        if error.kind() == clap::error::ErrorKind::InvalidSubcommand {
            Printer::new(false).lines("\nTo give an agent a task of one word, use `tgp run <TASK>`.");
        }
    }
    ExitCode::from(exit::USAGE)
}
