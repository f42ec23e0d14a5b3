//! One file a command.

pub mod approve;
pub mod aql;
pub mod audit;
pub mod call;
pub mod check;
pub mod chronicle;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod exec;
pub mod graph;
pub mod guardian;
pub mod init;
mod input;
pub mod list;
pub mod log;
pub mod man;
pub mod mcp;
mod mcp_install;
pub mod models;
pub mod patch;
pub mod policy;
pub mod read;
pub mod relay;
pub mod replay;
pub mod run;
pub mod search;
pub mod serve;
pub mod sessions;
pub mod sql;
pub mod state;
pub mod sync;
pub mod test;
pub mod token;
pub mod tools;
pub mod trust;
pub mod undo;
pub mod upstream;
pub mod valve;
pub mod write;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tgp::contract::{Code, JsonLimits, ToolError, ToolResult, measure};
use tgp::results::ToolWrite;

use crate::arguments::{Command, Global};
use crate::conversation::Interrupts;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::text::visible;

pub async fn run(
    command: Command,
    global: &Global,
    printer: &Printer,
    interrupts: Interrupts,
) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(*arguments, global, printer, interrupts).await,
        Command::Sessions(arguments) => sessions::run(arguments, global, printer, interrupts).await,
        Command::Replay(arguments) => replay::run(arguments, global, printer).await,
        Command::Undo(arguments) => undo::run(arguments, global, printer).await,
        Command::Models(arguments) => models::run(arguments, global, printer).await,
        Command::Init(arguments) => init::run(&arguments, global, printer).await,
        Command::Demo(arguments) => demo::run(&arguments, printer, interrupts).await,
        Command::Call(arguments) => call::run(arguments, global, printer).await,
        Command::Tools(arguments) => tools::run(&arguments, global, printer).await,
        Command::List(arguments) => list::run(arguments, global, printer).await,
        Command::Read(arguments) => read::run(arguments, global, printer).await,
        Command::Write(arguments) => write::run(arguments, global, printer).await,
        Command::Patch(arguments) => patch::run(arguments, global, printer).await,
        Command::Check(arguments) => check::run(arguments, global, printer).await,
        Command::Exec(arguments) => exec::run(arguments, global, printer).await,
        Command::Test(arguments) => test::run(arguments, global, printer).await,
        Command::Search(arguments) => search::run(arguments, global, printer).await,
        Command::Sql(arguments) => sql::run(arguments, global, printer).await,
        Command::Sync(arguments) => sync::run(&arguments, global, printer).await,
        Command::Log(arguments) => log::run(arguments, global, printer).await,
        Command::Audit(arguments) => audit::run(arguments, global, printer).await,
        Command::Policy(arguments) => policy::run(arguments, global, printer).await,
        Command::Approve(arguments) => approve::run(arguments, global, printer).await,
        Command::Trust(arguments) => trust::run(arguments, global, printer).await,
        Command::State(arguments) => state::run(arguments, global, printer).await,
        Command::Chronicle(arguments) => chronicle::run(arguments, global, printer).await,
        Command::Graph(arguments) => graph::run(arguments, global, printer).await,
        Command::Guardian(arguments) => guardian::run(arguments, global, printer).await,
        Command::Aql(arguments) => aql::run(arguments, global, printer, interrupts).await,
        Command::Valve(arguments) => valve::run(arguments, global, printer, interrupts).await,
        Command::Relay(arguments) => relay::run(arguments, global, printer).await,
        Command::Token(arguments) => token::run(arguments, global, printer).await,
        Command::Serve(arguments) => serve::run(arguments, global, printer).await,
        Command::Mcp(arguments) => mcp::run(arguments, global, printer).await,
        Command::Upstream(arguments) => upstream::run(arguments, global, printer).await,
        Command::Doctor(arguments) => doctor::run(&arguments, global, printer).await,
        Command::Completions(arguments) => completions::run(&arguments, printer),
        Command::Man(arguments) => man::run(&arguments, printer),
    }
}

/// JSON from the command line or a pipe. What it is made of is counted before it is made.
fn parse_json(what: &str, text: &str) -> Result<Value, Failure> {
    measure(text.as_bytes(), JsonLimits::ARGUMENTS).map_err(|error| {
        ToolError::new(Code::Validation, format!("{what} is too large: {error}"))
            .detail("field", what)
            .help("pass less at a time, or put the data into a file")
    })?;
    serde_json::from_str(text).map_err(|error| {
        ToolError::new(Code::Validation, format!("{what} is not valid JSON: {error}"))
            .detail("field", what)
            .help("quote the whole document for your shell, such as '{\"n\": 10}'")
            .into()
    })
}

/// Milliseconds since the epoch as a person reads them.
fn shown_time(milliseconds: u64) -> String {
    tgp_text::rfc3339(milliseconds - milliseconds % 1000)
}

/// A text field of an answer, safe to be shown.
fn text_of(value: &Value, name: &str) -> String {
    visible(value.get(name).and_then(Value::as_str).unwrap_or_default())
}

/// A finished call as `--json` prints it.
pub fn done(data: Value) -> Value {
    serde_json::to_value(ToolResult::Done(data)).unwrap_or_default()
}

/// The result of a tool as its own type.
fn result_of<T: DeserializeOwned>(data: Value) -> Result<T, Failure> {
    serde_json::from_value(data).map_err(|error| {
        ToolError::new(Code::Internal, format!("a result is not of its type: {error}")).into()
    })
}

/// The result of a file write: its commit, its way to the remote, and tools that do the same.
fn show_write(done: &str, write: &ToolWrite, printer: &Printer) {
    let write = match write {
        ToolWrite::DryRun(preview) => return printer.data(&preview.diff),
        ToolWrite::Done(write) => write,
    };
    let commit: String = visible(write.commit.as_deref().unwrap_or_default()).chars().take(8).collect();
    let delivered = if write.pushed {
        format!(", pushed to {}", visible(write.branch.as_deref().unwrap_or_default()))
    } else {
        String::new()
    };
    printer.note(&format!("{done}, commit {commit}{delivered}"));
    if let Some(request) = &write.request {
        printer.note(&format!("request: {}", visible(&request.url)));
    }
    if let Some(why) = write.why.as_deref().map(visible) {
        printer.warn(&match write.pushed {
            true => why,
            false => {
                format!("not pushed, the commit is kept on this machine until `tgp sync` pushes it: {why}")
            }
        });
    }
    for error in &write.errors {
        printer.warn(&format!("the checker finds an error: {}", visible(error)));
    }
    for similar in &write.similar {
        let (path, why) = (visible(similar.path.as_str()), visible(&similar.why));
        printer.warn(&format!("{path} does this already (score {:.2}: {why})", similar.score));
    }
}
