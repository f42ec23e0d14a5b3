//! One file a command.

pub mod call;
pub mod check;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod exec;
pub mod init;
pub mod list;
pub mod patch;
pub mod read;
pub mod tools;
pub mod write;

use serde_json::Value;
use tgp::contract::{Code, ToolError, ToolResult};

use crate::arguments::{Command, Global};
use crate::exit::Failure;
use crate::printer::Printer;

pub async fn run(command: Command, global: &Global, printer: &Printer) -> Result<(), Failure> {
    match command {
        Command::Init(arguments) => init::run(&arguments, global, printer),
        Command::Demo(arguments) => demo::run(&arguments, printer).await,
        Command::Call(arguments) => call::run(arguments, global, printer).await,
        Command::Tools(arguments) => tools::run(&arguments, global, printer).await,
        Command::List(arguments) => list::run(arguments, global, printer).await,
        Command::Read(arguments) => read::run(arguments, global, printer).await,
        Command::Write(arguments) => write::run(arguments, global, printer).await,
        Command::Patch(arguments) => patch::run(arguments, global, printer).await,
        Command::Check(arguments) => check::run(arguments, global, printer).await,
        Command::Exec(arguments) => exec::run(arguments, global, printer).await,
        Command::Doctor(arguments) => doctor::run(&arguments, global, printer).await,
        Command::Completions(arguments) => {
            completions::run(&arguments, printer);
            Ok(())
        }
    }
}

/// JSON from the command line.
fn parse_json(what: &str, text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        ToolError::new(Code::Validation, format!("{what} is not valid JSON: {error}"))
            .detail("field", what)
            .help("quote the whole document for your shell, such as '{\"n\": 10}'")
            .into()
    })
}

/// A finished call as `--json` prints it.
fn done(data: Value) -> Value {
    serde_json::to_value(ToolResult::Done(data)).unwrap_or_default()
}
