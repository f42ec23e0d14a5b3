//! `tgp man`: the manual page, made of the same words as the help.

use clap::{Args, CommandFactory};
use serde_json::json;
use tgp::contract::{Code, ToolError};

use super::done;
use crate::arguments::Cli;
use crate::exit::Failure;
use crate::printer::Printer;

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The page of this command; without it, that of `tgp`.
    command: Option<String>,
}

pub fn run(arguments: &ManArgs, printer: &Printer) -> Result<(), Failure> {
    let mut program = Cli::command();
    program.build();
    let page = match &arguments.command {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            ToolError::new(Code::Validation, format!("`{name}` is not a command of tgp"))
                .help("`tgp --help` lists the commands")
        })?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .map_err(|error| ToolError::new(Code::Internal, format!("the page cannot be made: {error}")))?;
    let text = String::from_utf8_lossy(&text);
    if printer.json() {
        printer.document(&done(json!({ "page": text })));
    } else {
        printer.data(&text);
    }
    Ok(())
}
