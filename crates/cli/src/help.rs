//! The help of `tgp` itself: its commands, grouped by what they are for.

use std::ffi::OsString;
use std::fmt::Write;

use clap::{Command, CommandFactory, FromArgMatches};

use crate::arguments::Cli;
use crate::help_examples;

/// Every command is in one group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Work", &["init", "demo", "run", "sessions", "replay", "undo", "models"]),
    (
        "Tools",
        &[
            "search", "write", "patch", "read", "list", "check", "test", "exec", "call", "tools", "sql",
            "log", "sync",
        ],
    ),
    ("Knowledge", &["graph", "aql", "chronicle", "guardian", "valve"]),
    ("Rules and records", &["approve", "policy", "state", "token", "audit"]),
    ("Administration", &["trust", "serve", "mcp", "upstream", "doctor", "relay", "completions", "man"]),
];

/// The column in which the descriptions begin.
const WIDTH: usize = 13;

const USAGE: &str = "tgp [OPTIONS] [COMMAND]\n       tgp [OPTIONS] \"<task>\"";

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n{groups}\n{all-args}{after-help}";

/// Parses the words of a command line.
///
/// # Errors
/// What to print instead: help, the version, or what is wrong.
pub fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The commands as the parser has them.
pub fn plain_command() -> Command {
    Cli::command()
}

fn command() -> Command {
    let mut command = Cli::command();
    let groups = groups(&command);
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    for name in names {
        let examples = examples(&name);
        // They are listed in their groups instead.
        command = command.mut_subcommand(name, |one| one.hide(true).after_help(examples));
    }
    // What is left is `help`.
    command
        .subcommand_help_heading("Help")
        .override_usage(USAGE)
        .help_template(TEMPLATE.replace("{groups}", &groups))
}

fn examples(command: &str) -> String {
    let lines = help_examples::of(command).iter().map(|line| format!("\n  {line}"));
    format!("Examples:{}", lines.collect::<String>())
}

fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = write!(text, "\n{group}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<WIDTH$}{about}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CommandFactory, GROUPS, command, parse};
    use crate::arguments::Cli;
    use crate::help_examples;

    #[test]
    fn every_command_is_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(listed.len(), unique.len());
        let real = Cli::command();
        let real: BTreeSet<&str> = real.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(unique, real);
        command().debug_assert();
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let real = Cli::command();
        for name in real.get_subcommands().map(clap::Command::get_name) {
            let examples = help_examples::of(name);
            assert!(!examples.is_empty(), "{name} has no example");
            for line in examples {
                assert!(line.chars().count() <= 76, "{line}");
                // What follows is the shell's.
                let line = [" < ", " > ", " | "]
                    .iter()
                    .fold(*line, |line, mark| line.split(mark).next().unwrap_or(line));
                let words = shlex::split(line).unwrap();
                assert!(words.iter().any(|word| word == name), "{line}");
                let parsed = parse(words.into_iter().map(Into::into).collect());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn the_help_fits_on_one_screen() {
        let help = command().render_help().to_string();
        assert!(help.lines().count() <= 65, "{} lines", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
