//! The command line of TGP: one file a command, printing, exit codes.
#![forbid(unsafe_code)]

mod approval;
mod arguments;
mod candidates;
mod commands;
mod conversation;
mod exit;
mod help;
mod help_examples;
mod logging;
mod printer;
mod screen;
mod session;
mod standard_streams;
mod text;
mod theme;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use tgp::FirstWorker;
use tgp::contract::{Code, ToolError};
use tokio::runtime::{self, Runtime};

use arguments::{Command, GREETING, Global, with_run};
use conversation::Interrupts;
use exit::{Failure, exit_code};
use logging::Log;
use printer::Printer;

fn main() -> ExitCode {
    // A worker must lock itself before anything else runs.
    if let Some(code) = tgp::worker_main() {
        return code;
    }
    // A shell asks what can follow; it is answered here, and the process ends.
    clap_complete::CompleteEnv::with_factory(help::plain_command)
        .shells(candidates::SHELLS)
        .var(candidates::VARIABLE)
        .complete();
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(as_json) = version::is_asked(&words) {
        version::print(&Printer::new(as_json));
        return ExitCode::from(exit::DONE);
    }
    let mut cli = match help::parse(with_run(words.into_iter())) {
        Ok(cli) => cli,
        Err(error) => return answer(&error),
    };
    cli.global.first_worker = cli.command.as_ref().map_or(FirstWorker::None, Command::first_worker);
    cli.global.key_variable = cli.command.as_ref().and_then(Command::key_variable).cloned();
    theme::apply();
    let printer = Printer::new(cli.global.json);
    let wanted = std::env::var(logging::VARIABLE).ok();
    match Log::start(wanted.as_deref(), cli.global.log_file.as_deref()) {
        Ok(log) => cli.global.log = log,
        Err(error) => {
            let failure = Failure::from(error);
            printer.failure(&failure);
            return ExitCode::from(exit_code(&failure));
        }
    }
    let interrupts = Interrupts::listen();
    // `tgp call` answers programs, and so always in JSON.
    let answers_in_json = cli.global.json || matches!(cli.command, Some(Command::Call(_)));
    let outcome = match cli.command {
        Some(command) => run(command, &cli.global, &printer, &interrupts),
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
            match failure {
                Failure::Interrupted if answers_in_json => printer.failed(interrupted(&interrupts)),
                _ => printer.failure(&failure),
            }
            match exit_code(&failure) {
                exit::INTERRUPTED if interrupts.is_terminated() => ExitCode::from(exit::TERMINATED),
                code => ExitCode::from(code),
            }
        }
    }
}

/// The answer of a command that a signal has ended, for a program.
fn interrupted(interrupts: &Interrupts) -> ToolError {
    let signal = interrupts.signal().unwrap_or("a signal");
    ToolError::new(Code::Runtime, format!("the command was ended by {signal}"))
        .detail("signal", signal)
        // A call that took effect already was not rolled back.
        .detail("outcome", "unknown")
        .help("`tgp audit tail` shows how its calls ended")
}

/// How long a name lookup or another thread that hangs may hold up the exit.
const EXIT_GRACE: Duration = Duration::from_millis(100);
/// The same after a signal: calls that did not end are recorded meanwhile, and what a stopped command wrote is removed.
const RECORD_GRACE: Duration = Duration::from_millis(1500);

fn run(command: Command, global: &Global, printer: &Printer, interrupts: &Interrupts) -> Result<(), Failure> {
    let runtime = runtime(&command)
        .map_err(|error| ToolError::new(Code::Internal, format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(async {
        // Signals are polled first, so that nothing has begun before they are caught.
        let outcome = tokio::select! {
            biased;
            () = interrupts.ended() => None,
            outcome = commands::run(command, global, printer, interrupts.clone()) => Some(outcome),
        };
        if outcome.is_none() {
            // The command's future is dropped, and its calls are cancelled. Those that take effect already, and the
            // rollbacks of the others, are waited for; what is left then is recorded as unknown when its task is dropped.
            global.kernels.finished(interrupts.time_left()).await;
        }
        outcome
    });
    runtime.shutdown_timeout(if interrupts.was_signalled() { RECORD_GRACE } else { EXIT_GRACE });
    outcome.unwrap_or(Err(Failure::Interrupted))
}

/// Commands that make calls beside each other have threads for them; one that makes one call starts faster without.
fn runtime(command: &Command) -> std::io::Result<Runtime> {
    let mut builder = match command {
        Command::Run(_)
        | Command::Sessions(_)
        | Command::Demo(_)
        | Command::Guardian(_)
        | Command::Aql(_)
        | Command::Valve(_)
        | Command::Relay(_)
        | Command::Mcp(_)
        | Command::Serve(_) => runtime::Builder::new_multi_thread(),
        _ => runtime::Builder::new_current_thread(),
    };
    builder.thread_name("tgp-runtime").enable_all().build()
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
            Printer::new(false).lines(
                "\nTo give an agent a task, put it in quotes: tgp \"<task>\". For one word: tgp run <TASK>.",
            );
        }
    }
    ExitCode::from(exit::USAGE)
}
