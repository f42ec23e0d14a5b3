//! `tgp completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Cli;
use crate::printer::Printer;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &CompletionsArgs, printer: &Printer) {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "tgp", &mut script);
    printer.raw(&String::from_utf8_lossy(&script));
}
