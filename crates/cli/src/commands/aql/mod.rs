//! `tgp aql`: agents as queries.

mod explain;
mod files;
mod progress;
mod run;
mod runs;

use clap::{Args, Subcommand};
use serde_json::json;
use tgp::Kernel;
use tgp::aql::{CompiledQuery, QueryProblems};
use tgp::contract::ToolError;

use crate::arguments::Global;
use crate::conversation::Interrupts;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::screen;

#[derive(Debug, Args)]
pub struct AqlArgs {
    #[command(subcommand)]
    command: AqlCommand,
}

#[derive(Debug, Subcommand)]
enum AqlCommand {
    /// Check queries: syntax, names, types, and the tools they use.
    Check(files::CheckArgs),
    /// Format queries.
    Fmt(files::FmtArgs),
    /// Show what a query would do, and which gates will ask.
    Explain(explain::ExplainArgs),
    /// Run a query, or continue a run.
    Run(Box<run::RunArgs>),
    /// List the runs of queries.
    Runs(runs::RunsArgs),
}

impl AqlArgs {
    /// The variable that the command line names for the key of a model.
    pub fn key_variable(&self) -> Option<&String> {
        match &self.command {
            AqlCommand::Run(run) => run.key_variable(),
            _ => None,
        }
    }
}

pub async fn run(
    arguments: AqlArgs,
    global: &Global,
    printer: &Printer,
    interrupts: Interrupts,
) -> Result<(), Failure> {
    match arguments.command {
        AqlCommand::Check(arguments) => files::check(arguments, global, printer).await,
        AqlCommand::Fmt(arguments) => files::format(&arguments, global, printer),
        AqlCommand::Explain(arguments) => explain::run(arguments, global, printer).await,
        AqlCommand::Run(arguments) => run::run(*arguments, global, printer, interrupts).await,
        AqlCommand::Runs(arguments) => runs::run(&arguments, global, printer).await,
    }
}

/// A file of queries that must be right; what is wrong with it is shown.
fn compile(kernel: &Kernel, file: &str, printer: &Printer) -> Result<CompiledQuery, Failure> {
    let text = files::read(kernel, file)?;
    kernel.compile_queries(file, &text).map_err(|problems| refuse(&problems, printer))
}

/// Shows every problem on standard error, or all of them as one result.
fn refuse(problems: &QueryProblems, printer: &Printer) -> Failure {
    let error = problems.to_error();
    if printer.json() {
        return error.into();
    }
    for problem in &problems.problems {
        printer.lines(&screen::problem(problem, &problems.sources, printer.look_err()));
        printer.note("");
    }
    Failure::Silent(error.code)
}

/// An error of a query as a JSON document says it.
fn problem_list(error: &ToolError) -> serde_json::Value {
    error.details.get("problems").cloned().unwrap_or_else(|| json!([]))
}
