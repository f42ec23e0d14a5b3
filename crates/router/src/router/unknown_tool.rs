//! The error of a call of a tool that does not exist.

use tgp_contract::{Code, ToolError};
use tgp_text::did_you_mean;

/// What other programs call a tool that moves a file. Here a command does it.
const MOVES: [&str; 4] = ["rename", "move", "mv", "copy"];

/// What moves a file, where commands can be run.
const SHELL: &str = "shell_exec";

pub(super) fn error<'a>(
    name: &str,
    tools: impl Iterator<Item = &'a str>,
    aliases: impl Iterator<Item = &'a str>,
) -> ToolError {
    let tools: Vec<&str> = tools.collect();
    let is_move = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .any(|word| MOVES.iter().any(|known| word.eq_ignore_ascii_case(known)));
    let help = if is_move && tools.contains(&SHELL) {
        format!("no tool moves or copies files: run `mv` or `cp` with `{SHELL}`")
    } else {
        did_you_mean(name, tools.iter().copied())
            .or_else(|| did_you_mean(name, aliases))
            .unwrap_or_else(|| format!("the tools are: {}", tools.join(", ")))
    };
    ToolError::new(Code::NotFound, format!("there is no tool `{name}`")).help(help)
}
