//! `tgp completions`.

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;
use serde_json::json;
use tgp::contract::{Code, ToolError};

use super::done;
use crate::candidates::VARIABLE;
use crate::exit::Failure;
use crate::printer::Printer;

/// The program as a shell calls it.
const PROGRAM: &str = "tgp";

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that reads the script.
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

/// Prints a script that asks this program what can follow, so that tools and sessions are offered too.
pub fn run(arguments: &CompletionsArgs, printer: &Printer) -> Result<(), Failure> {
    let shells = Shells::builtins();
    let mut script = Vec::new();
    let written = shells
        .completer(&arguments.shell)
        .map(|shell| shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script));
    if !matches!(written, Some(Ok(()))) || script.flush().is_err() {
        return Err(ToolError::new(Code::Internal, "the script cannot be made").into());
    }
    let script = String::from_utf8_lossy(&script);
    if printer.json() {
        printer.document(&done(json!({ "shell": arguments.shell, "script": script })));
    } else {
        printer.data(&script);
    }
    Ok(())
}
