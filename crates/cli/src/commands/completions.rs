//! `tgp completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use super::done;
use crate::arguments::Cli;
use crate::printer::Printer;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that reads the script.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &CompletionsArgs, printer: &Printer) {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "tgp", &mut script);
    let script = String::from_utf8_lossy(&script);
    if printer.json() {
        printer.document(&done(json!({ "shell": arguments.shell.to_string(), "script": script })));
    } else {
        printer.data(&script);
    }
}
