//! `tgp doctor`: what this machine offers, what is missing, and what that means.

mod advice;
mod bundle;
mod machine;
mod setup;

use std::path::PathBuf;

use clap::Args;
use console::Style;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{Code, ToolError};

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, hang, shown_invariants, shown_sources, visible, wrap};
use bundle::Bundle;

/// Columns before a row's text.
const INDENT: usize = 16;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Write an archive for a bug report, without contents.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    bundle: Option<Option<PathBuf>>,
    /// Put the end of a log into the archive.
    #[arg(long, value_name = "FILE", requires = "bundle")]
    with_log: Option<PathBuf>,
}

enum Health {
    Good,
    /// It works, with less protection or fewer features.
    Weak,
    Bad,
}

struct Row {
    name: &'static str,
    health: Health,
    text: String,
}

pub async fn run(arguments: &DoctorArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let directory = session::directory(global)?;
    let mut rows =
        vec![Row { name: "version", health: Health::Good, text: env!("CARGO_PKG_VERSION").to_owned() }];
    let mut broken = None;
    match session::boot(global, None, printer).await {
        Ok(kernel) => {
            rows.extend(project_rows(&kernel));
            rows.push(repository_row(&kernel).await);
            rows.push(database_row(&kernel).await);
            rows.extend(sandbox_rows(&kernel).await);
            rows.extend(gate_rows(&kernel).await);
            rows.extend([invariants_row(&kernel), valve_row(&kernel)]);
            rows.extend(unread_rows(&kernel));
            rows.extend(setup::rows(&kernel));
            kernel.shutdown().await;
        }
        Err(Failure::Error(shown)) => {
            rows.push(Row { name: "project", health: Health::Bad, text: explained(&shown.error) });
            rows.extend(lock_rows("sandbox", &tgp::sandbox::probe_jail()));
            rows.extend(setup::rows_without_project());
            broken = Some(shown.error);
        }
        Err(other) => return Err(other),
    }
    rows.extend(machine::rows(&directory));
    rows.push(machine::terminal_row(printer));
    let checks: Vec<Value> = rows.iter().map(document).collect();
    let written = match &arguments.bundle {
        None => None,
        Some(file) => {
            let path = file.clone().unwrap_or_else(bundle::default_name);
            let log = arguments.with_log.as_deref();
            let redaction = global.log.redaction()?;
            let bundle = Bundle { global, redaction: &redaction, checks: &checks, log };
            let parts = bundle.write(&path).await?;
            Some((path, parts))
        }
    };
    let healthy = !rows.iter().any(|row| matches!(row.health, Health::Bad));
    let ended = if healthy { Ok(()) } else { Err(Failure::Silent(Code::Runtime)) };
    if printer.json() {
        return match broken {
            Some(error) => Err(error.detail("checks", checks).into()),
            None => {
                let mut found = json!({ "healthy": healthy, "checks": checks });
                if let (Some((path, _)), Some(fields)) = (&written, found.as_object_mut()) {
                    fields.insert("bundle".to_owned(), json!(path.display().to_string()));
                }
                printer.document(&done(found));
                ended
            }
        };
    }
    print(&rows, printer);
    if let Some((path, parts)) = written {
        printer.line(&format!("wrote {}: {}", visible(&path.display().to_string()), parts.join(", ")));
        printer.line(
            "The archive has no configuration, arguments, file contents or transcripts. Read it before you send it.",
        );
    }
    broken.map_or(ended, |error| Err(Failure::Silent(error.code)))
}

/// CPU and wall clock in milliseconds as `tgp init` wrote them into configurations of the first releases.
const OLD_DEFAULTS: (u128, u128) = (50, 5_000);

fn project_rows(kernel: &Kernel) -> Vec<Row> {
    let mut rows = vec![
        Row { name: "project", health: Health::Good, text: kernel.project().display().to_string() },
        Row { name: "tools", health: Health::Good, text: kernel.root().display().to_string() },
        limits_row(&kernel.config().sandbox),
    ];
    if !kernel.state_path().starts_with(kernel.root()) {
        let text = format!("this user cannot write it in the project: {}", kernel.state_path().display());
        rows.push(Row { name: "state", health: Health::Weak, text });
    }
    rows.extend(read_directories_row(kernel));
    rows
}

/// The directories of `fs.readDirs`. One that does not exist is most likely misspelt: it is never made.
fn read_directories_row(kernel: &Kernel) -> Option<Row> {
    let directories = &kernel.config().fs.read_dirs;
    let missing: Vec<&str> = directories
        .iter()
        .filter(|directory| !kernel.project().join(directory).is_dir())
        .map(String::as_str)
        .collect();
    let name = "read dirs";
    match (directories.is_empty(), missing.is_empty()) {
        (true, _) => None,
        (false, true) => Some(Row { name, health: Health::Good, text: directories.join(", ") }),
        (false, false) => {
            let text = format!("fs.readDirs names no directory: {}", missing.join(", "));
            Some(Row { name, health: Health::Weak, text })
        }
    }
}

fn limits_row(sandbox: &tgp::config::SandboxConfig) -> Row {
    let (limits, ceiling) = (&sandbox.limits, sandbox.highest_limits().as_request());
    let (cpu, wall) = (limits.cpu.as_millis(), limits.wall.as_millis());
    let mut text = format!("{} MB memory, {cpu} ms CPU, {wall} ms wall clock", limits.heap_bytes >> 20);
    text.push_str(&format!("; a call may ask for {ceiling}"));
    if (cpu, wall) != OLD_DEFAULTS {
        return Row { name: "limits", health: Health::Good, text };
    }
    text.push_str(
        "; these are old defaults: remove sandbox from the configuration to get 1000 ms and 10000 ms",
    );
    Row { name: "limits", health: Health::Weak, text }
}

async fn database_row(kernel: &Kernel) -> Row {
    let name = kernel.database_name();
    match kernel.check_database().await {
        Ok(()) => Row { name: "database", health: Health::Good, text: name.to_owned() },
        Err(error) => Row { name: "database", health: Health::Bad, text: format!("{name}: {error}") },
    }
}

/// Where the tools are kept, and what is not delivered yet.
async fn repository_row(kernel: &Kernel) -> Row {
    let name = "repository";
    let status = match kernel.repository().await {
        Ok(status) => status,
        Err(error) => return Row { name, health: Health::Bad, text: ToolError::to_string(&error) },
    };
    let Some(remote) = status.remote else {
        let text = format!("branch {}, on this machine only (git.url names a remote)", status.branch);
        return Row { name, health: Health::Good, text };
    };
    let mut text = format!("branch {} of {remote}", status.branch);
    let waiting = [
        (
            status.unpushed,
            "commit not pushed yet (`tgp sync` pushes it)",
            "commits not pushed yet (`tgp sync` pushes them)",
        ),
        (status.kept.len(), "branch that lost a conflict", "branches that lost a conflict"),
        (status.pending.len(), "branch without its request", "branches without their requests"),
    ];
    let mut health = Health::Good;
    for (number, one, many) in waiting.into_iter().filter(|(number, ..)| *number > 0) {
        health = Health::Weak;
        text.push_str(&format!("; {number} {}", if number == 1 { one } else { many }));
    }
    Row { name, health, text }
}

async fn sandbox_rows(kernel: &Kernel) -> Vec<Row> {
    match kernel.lock_report().await {
        Ok(report) => lock_rows("sandbox", &report),
        Err(error) => vec![Row { name: "sandbox", health: Health::Bad, text: explained(&error) }],
    }
}

/// Restrictions of an agent besides the sandbox.
async fn gate_rows(kernel: &Kernel) -> Vec<Row> {
    let tdd = kernel.state().tdd();
    let state = tdd.state(&tgp::gates::Scope::Project).map_or("unknown", tgp::contract::TddState::as_str);
    let rules = match kernel.policy().listing().await {
        Ok(listing) => Row {
            name: "policy",
            health: Health::Good,
            text: format!("{}; the built-in rules come on top", visible(&shown_sources(&listing))),
        },
        Err(error) => Row { name: "policy", health: Health::Bad, text: ToolError::to_string(&error) },
    };
    vec![
        audit_row(kernel).await,
        rules,
        Row {
            name: "tdd",
            health: Health::Good,
            text: format!("mode {}, the project is {state}", tdd.mode().as_str()),
        },
    ]
}

/// Entries of an audit that is verified whole here; of a longer one only what came since the last checkpoint was.
const MAX_VERIFIED: u64 = 200_000;

/// What was verified of the audit, and when: a start verifies only what came since the last checkpoint.
async fn audit_row(kernel: &Kernel) -> Row {
    let name = "audit";
    let durability = match kernel.config().audit.durability {
        tgp::config::AuditDurability::Batched => "batched",
        tgp::config::AuditDurability::Call => "on the disk with every call",
    };
    let (newest, verified) = kernel.verified_at_start();
    if newest > MAX_VERIFIED {
        let first = newest.saturating_sub(verified).saturating_add(1);
        let text = format!(
            "verified from entry {first} to {newest} at this start; `tgp audit verify` verifies all; records are {durability}"
        );
        return Row { name, health: Health::Weak, text };
    }
    match kernel.verify_audit().await {
        Ok(report) => {
            let entries = count_of(report.entries, "entry", "entries");
            let text = format!("{entries} verified now, from the first; records are {durability}");
            Row { name, health: Health::Good, text }
        }
        Err(error) => Row { name, health: Health::Bad, text: explained(&error) },
    }
}

fn count_of(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A rule file that cannot be read refuses every write, so it is reported before an agent meets it.
fn invariants_row(kernel: &Kernel) -> Row {
    match kernel.knowledge().guardian().invariants() {
        Ok(invariants) => {
            let file = kernel.knowledge().invariants_file();
            let text = shown_invariants(invariants.len(), &visible(file));
            Row { name: "invariants", health: Health::Good, text }
        }
        Err(error) => Row { name: "invariants", health: Health::Bad, text: explained(&error) },
    }
}

/// Files that look like rules and that nothing reads. While there is one, no call has an effect.
fn unread_rows(kernel: &Kernel) -> Vec<Row> {
    let row = |text: String| Row { name: "rule files", health: Health::Bad, text };
    match kernel.policy().unread_files() {
        Ok(files) => files.iter().map(|file| row(explained(&file.error()))).collect(),
        Err(error) => vec![row(explained(&error))],
    }
}

fn valve_row(kernel: &Kernel) -> Row {
    if !kernel.has_personas() {
        return Row { name: "valve", health: Health::Good, text: "no personas".to_owned() };
    }
    let status = kernel.valve_status();
    match status.and_then(|status| status.personas_error.map_or(Ok(status.personas.len()), Err)) {
        Ok(personas) => Row { name: "valve", health: Health::Good, text: count(personas, "persona") },
        Err(error) => Row { name: "valve", health: Health::Bad, text: explained(&error) },
    }
}

/// The error with its next step. What the machine lacks has a help that leads to this very command, so the next step
/// is the one after that.
fn explained(error: &ToolError) -> String {
    let help = match error.code {
        Code::Capability => Some(advice::for_machine(error)),
        _ => error.help_of(),
    };
    help.map_or_else(|| error.to_string(), |help| format!("{error} ({help})"))
}

fn lock_rows(name: &'static str, report: &tgp::sandbox::LockReport) -> Vec<Row> {
    let mut parts = Vec::new();
    if report.no_new_privileges {
        parts.push("no new privileges".to_owned());
    }
    if let Some(abi) = report.landlock_abi {
        parts.push(format!("Landlock (ABI {abi})"));
    }
    if report.seccomp {
        parts.push("seccomp".to_owned());
    }
    if !report.namespaces.is_empty() {
        parts.push(format!("namespaces: {}", report.namespaces.join(", ")));
    }
    let (health, text) = match (report.seccomp, report.missing.is_empty()) {
        (true, true) => (Health::Good, parts.join("; ")),
        (true, false) => (Health::Weak, parts.join("; ")),
        (false, _) => {
            let text = "forged tools refuse: this machine cannot lock their process";
            (Health::Bad, format!("{text} ({})", advice::NO_LOCK))
        }
    };
    let mut rows = vec![Row { name, health, text }];
    rows.extend(report.missing.iter().map(|text| Row {
        name: "missing",
        health: Health::Weak,
        text: text.clone(),
    }));
    rows
}

fn document(row: &Row) -> Value {
    let health = match row.health {
        Health::Good => "good",
        Health::Weak => "weak",
        Health::Bad => "bad",
    };
    json!({ "name": row.name, "health": health, "text": row.text })
}

fn print(rows: &[Row], printer: &Printer) {
    let width = printer.look_out().width.map(|width| width.saturating_sub(INDENT));
    for row in rows {
        let (mark, style) = match row.health {
            Health::Good => ("ok  ", Style::new().green()),
            Health::Weak => ("note", Style::new().yellow()),
            Health::Bad => ("bad ", Style::new().red()),
        };
        let text = hang(&wrap(&row.text, width), INDENT);
        printer.line(&format!("{} {:<10} {text}", printer.paint_out(&style, mark), row.name));
    }
}
