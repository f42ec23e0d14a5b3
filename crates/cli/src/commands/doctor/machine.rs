//! What `tgp doctor` says of the machine, with or without a project.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Health, Row};
use crate::printer::Printer;
use crate::session;

/// The variables with the keys of providers.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

pub(super) fn rows(directory: &Path) -> Vec<Row> {
    vec![kernel_row(), jail_row(), git_row(), node_row(), types_row(directory), keys_row(), cache_row()]
}

fn kernel_row() -> Row {
    match std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => {
            Row { name: "kernel", health: Health::Good, text: format!("Linux {}", release.trim()) }
        }
        Err(_) => Row { name: "kernel", health: Health::Weak, text: "not Linux, or no /proc".to_owned() },
    }
}

/// Whether commands can run: in a whole jail, or not at all.
fn jail_row() -> Row {
    let support = tgp::sandbox::process_support();
    let (health, text) = if support.complete() {
        (Health::Good, "commands run on a layer of their own, in all namespaces".to_owned())
    } else {
        (Health::Weak, format!("shell_exec and test_run refuse: {}", support.missing.join(" ")))
    };
    Row { name: "jail", health, text }
}

/// The first line of what a program says of its version.
fn version_of(program: &str) -> Option<String> {
    let output =
        Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

fn git_row() -> Row {
    match version_of("git") {
        Some(text) => Row { name: "git", health: Health::Good, text },
        None => {
            let text = "not installed: tools have no history (install git)".to_owned();
            Row { name: "git", health: Health::Weak, text }
        }
    }
}

fn node_row() -> Row {
    match version_of("node") {
        Some(text) => Row { name: "node", health: Health::Good, text },
        None => {
            let text = "not installed: nothing needs it but npm packages and TypeScript 7 (install Node 20 or newer)";
            Row { name: "node", health: Health::Weak, text: text.to_owned() }
        }
    }
}

/// Which keys there are. Their values are never read further than to see that they are not empty.
fn keys_row() -> Row {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let found: Vec<&str> = KEYS.into_iter().filter(set).collect();
    if found.is_empty() {
        let text =
            format!("none: set {} for `tgp \"<task>\"`; the other commands need none", KEYS.join(" or "));
        return Row { name: "keys", health: Health::Weak, text };
    }
    Row { name: "keys", health: Health::Good, text: format!("{} in the environment", found.join(" and ")) }
}

pub(super) fn terminal_row(printer: &Printer) -> Row {
    let look = printer.look_out();
    let text = match look.width {
        Some(width) => {
            let colour = if look.colour { "colours" } else { "no colours (NO_COLOR or TERM)" };
            format!("{width} columns, {colour}")
        }
        None => "standard output is not a terminal: plain lines".to_owned(),
    };
    Row { name: "terminal", health: Health::Good, text }
}

fn types_row(directory: &Path) -> Row {
    match tgp::sandbox::native_type_checker(directory) {
        Some(path) => Row { name: "types", health: Health::Good, text: path.display().to_string() },
        None => Row {
            name: "types",
            health: Health::Weak,
            text: "skipped: the project has no TypeScript 7 (npm install --save-dev typescript@7)".to_owned(),
        },
    }
}

fn cache_row() -> Row {
    match session::cache_directory() {
        Some(path) => Row { name: "cache", health: Health::Good, text: path.display().to_string() },
        None => {
            Row { name: "cache", health: Health::Weak, text: "in memory only: HOME is not set".to_owned() }
        }
    }
}
