//! What `tgp doctor` says of the machine, with or without a project.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Health, Row};
use crate::printer::Printer;
use crate::session;

/// How long a program may take to say its version, and how much it may say.
const PATIENCE: Duration = Duration::from_secs(3);
const MAX_VERSION_BYTES: u64 = 256;

pub(super) fn rows(directory: &Path) -> Vec<Row> {
    vec![
        kernel_row(),
        jail_row(),
        memory_row(),
        git_row(directory),
        node_row(directory),
        types_row(directory),
        cache_row(directory),
    ]
}

fn kernel_row() -> Row {
    match std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => {
            Row { name: "kernel", health: Health::Good, text: format!("Linux {}", release.trim()) }
        }
        Err(_) if cfg!(target_os = "linux") => {
            Row { name: "kernel", health: Health::Weak, text: "unknown: /proc is not mounted".to_owned() }
        }
        Err(_) => {
            let system = std::env::consts::OS;
            let text = format!("{system}: forged tools, shell_exec and test_run refuse, they need Linux");
            Row { name: "kernel", health: Health::Weak, text }
        }
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

/// What bounds the memory of a command with everything that it starts.
fn memory_row() -> Row {
    let support = tgp::sandbox::process_support();
    let text = if !support.complete() {
        "no commands, so nothing to bound"
    } else if support.has_control_group {
        "a control group bounds each command, and a watch looks at it ten times a second"
    } else {
        "a watch looks at each command ten times a second; no control group (version 2) is delegated to this user"
    };
    Row { name: "memory", health: Health::Good, text: text.to_owned() }
}

/// The first line of what a program says of its version. One that hangs is ended, and one that talks on is not listened to.
/// Programs of the project are not found.
fn version_of(program: &str, project: &Path) -> Option<String> {
    let project = project.canonicalize().ok()?;
    let search = std::env::var_os("PATH").unwrap_or_default();
    let search = tgp::files::search_variable(&search, |entry| entry.starts_with(&project));
    let mut child = Command::new(program)
        .env("PATH", search)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let (sender, line) = std::sync::mpsc::channel();
    // Whatever else holds the pipe open, the thread waits for the first line alone.
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = BufReader::new(output.take(MAX_VERSION_BYTES)).read_until(b'\n', &mut text);
        let _ = sender.send(text);
    });
    let line = line.recv_timeout(PATIENCE).ok();
    // Its children too. It may have ended, and then nothing of it is left to end.
    let group = nix::unistd::Pid::from_raw(child.id().cast_signed());
    let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
    let _ = child.wait();
    let line = String::from_utf8_lossy(&line?).trim().to_owned();
    (!line.is_empty()).then_some(line)
}

fn git_row(directory: &Path) -> Row {
    match version_of("git", directory) {
        Some(text) => Row { name: "git", health: Health::Good, text },
        None => {
            let text = "not found, or silent: tools are kept here alone and cannot be synced with a remote (install git)".to_owned();
            Row { name: "git", health: Health::Weak, text }
        }
    }
}

fn node_row(directory: &Path) -> Row {
    match version_of("node", directory) {
        Some(text) => Row { name: "node", health: Health::Good, text },
        None => {
            let text = "not found, or silent: nothing needs it but npm packages and TypeScript 7 (install Node 20 or newer)";
            Row { name: "node", health: Health::Weak, text: text.to_owned() }
        }
    }
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

fn cache_row(directory: &Path) -> Row {
    let weak = |text: String| Row { name: "cache", health: Health::Weak, text };
    let Some(path) = session::cache_directory() else {
        return weak("in memory only: HOME is not set".to_owned());
    };
    match tgp::sandbox::usable_cache(Some(path.clone()), directory) {
        Some(path) => Row { name: "cache", health: Health::Good, text: path.display().to_string() },
        None => weak(format!(
            "in memory only: `{}` is in the project, not absolute, or open to others (set TGP_CACHE_DIR)",
            path.display()
        )),
    }
}
