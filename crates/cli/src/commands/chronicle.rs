//! `tgp chronicle`: append, read, verify and migrate events.

use std::io::Read;

use clap::{Args, Subcommand};
use console::Style;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::chronicle::{AuditComparison, AuditProblem, Migration};
use tgp::contract::{ChronicleEvent, Code, ToolError};
use tgp::results::{ChronicleAppendResult, ChroniclePage};

use super::{done, parse_json, result_of};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, short_line, single_line, visible};

/// Bytes of an event on standard input; the chronicle's own cap is below it.
const MAX_INPUT_BYTES: u64 = 4 << 20;
/// Contradictions between chronicles and audit that are shown.
const MAX_SHOWN: usize = 50;
/// Columns of the details in one line of a listing.
const DETAIL_COLUMNS: usize = 100;

#[derive(Debug, Args)]
pub struct ChronicleArgs {
    #[command(subcommand)]
    command: ChronicleCommand,
}

#[derive(Debug, Subcommand)]
enum ChronicleCommand {
    /// Add an event; the same event again changes nothing.
    Append {
        /// The file it is about, or a chronicle, such as .sage/decisions.sage.
        path: String,
        /// The event: type, timestamp, actor and more; - is standard input.
        #[arg(value_name = "JSON", allow_hyphen_values = true)]
        event: String,
        /// Say what would be added, and add nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print every event, oldest first, one JSON document a line.
    Read {
        /// The file it is about, or the chronicle itself.
        path: String,
    },
    /// Show the last events.
    Tail {
        /// The file it is about, or the chronicle itself.
        path: String,
        /// How many.
        #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000))]
        number: u64,
    },
    /// Check events against their ids and the audit; all without a PATH.
    Verify {
        /// The file it is about, or the chronicle itself.
        path: Option<String>,
    },
    /// Move old chronicles to where the configuration has them.
    ///
    /// Until then they are not read. Each is checked line by line; one that is not intact stays where it is. Look at
    /// what --dry-run prints first: after the move the events in them are believed.
    Migrate {
        /// Say what would be moved and what refused, and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

pub async fn run(arguments: ChronicleArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let outcome = match arguments.command {
        ChronicleCommand::Append { path, event, dry_run } => {
            append(&kernel, &path, &event, dry_run, printer).await
        }
        ChronicleCommand::Read { path } => read(&kernel, &path, printer),
        ChronicleCommand::Tail { path, number } => tail(&kernel, &path, number, printer).await,
        ChronicleCommand::Verify { path } => verify(&kernel, path.as_deref(), printer).await,
        ChronicleCommand::Migrate { dry_run } => migrate(&kernel, dry_run, printer).await,
    };
    kernel.shutdown().await;
    outcome
}

async fn append(
    kernel: &Kernel,
    path: &str,
    event: &str,
    dry_run: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let text = if event == "-" { standard_input()? } else { event.to_owned() };
    let event = parse_json("the event", &text)?;
    let arguments = json!({ "path": path, "event": event });
    let data = session::call(kernel, "chronicle_append", arguments, session::typed(dry_run)).await?;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let ChronicleAppendResult { path, event_id, appended, .. } = result_of(data)?;
    printer.line(&visible(&event_id));
    let path = visible(path.as_str());
    printer.note(&match appended {
        Some(true) => format!("appended to {path}"),
        Some(false) => format!("{path} has this event already, so nothing was added"),
        None => format!("would be appended to {path}, unless it is there already (dry run)"),
    });
    warn_of_unmigrated(kernel, &path, printer);
    Ok(())
}

/// Says that a chronicle has earlier events that are not read.
fn warn_of_unmigrated(kernel: &Kernel, path: &str, printer: &Printer) {
    if let Some(file) = kernel.knowledge().unmigrated_chronicle(path) {
        printer.warn(&format!(
            "{file} has earlier events, which are not read; `tgp chronicle migrate` moves them"
        ));
    }
}

async fn migrate(kernel: &Kernel, dry_run: bool, printer: &Printer) -> Result<(), Failure> {
    let extent = if dry_run { Migration::DryRun } else { Migration::Apply };
    let report = kernel.migrate_chronicles(extent).await?;
    if printer.json() {
        printer.document(&done(json!({
            "dryRun": dry_run,
            "moved": report.moved,
            "refused": report.refused,
        })));
    } else {
        for moved in &report.moved {
            let events = count(usize::try_from(moved.events).unwrap_or(usize::MAX), "event");
            let merged = if moved.merged { ", before those that are there" } else { "" };
            printer.line(&single_line(&format!("{} -> {} ({events}{merged})", moved.from, moved.to)));
        }
        for refused in &report.refused {
            printer.warn(&single_line(&format!("{} stays where it is: {}", refused.path, refused.reason)));
        }
        let moved = count(report.moved.len(), "chronicle");
        let verb = if dry_run { "would be moved (dry run)" } else { "moved" };
        printer.note(&match report.refused.len() {
            0 => format!("{moved} {verb}"),
            refused => format!("{moved} {verb}, {refused} refused"),
        });
    }
    if report.refused.is_empty() { Ok(()) } else { Err(Failure::Silent(Code::Integrity)) }
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text);
    read.map_err(|error| {
        ToolError::new(Code::Validation, format!("standard input cannot be read: {error}"))
    })?;
    Ok(text)
}

fn read(kernel: &Kernel, path: &str, printer: &Printer) -> Result<(), Failure> {
    kernel.knowledge().read_chronicle(path, |line| printer.data(&format!("{line}\n")))?;
    Ok(())
}

async fn tail(kernel: &Kernel, path: &str, number: u64, printer: &Printer) -> Result<(), Failure> {
    let arguments = json!({ "path": path, "last": number });
    let data = session::call(kernel, "chronicle_read", arguments, session::typed(false)).await?;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let page: ChroniclePage = result_of(data)?;
    page.events.iter().for_each(|event| printer.line(&line(event, printer)));
    if page.events.is_empty() {
        printer.note(&format!("{} has no events yet", visible(page.path.as_str())));
    }
    warn_of_unmigrated(kernel, path, printer);
    Ok(())
}

/// One event in one line: when, what, who, about which file, and the rest.
fn line(event: &ChronicleEvent, printer: &Printer) -> String {
    let kind = printer.paint_out(&Style::new().cyan(), &visible(&event.kind));
    let actor = format!("{}:{}", visible(&event.actor.agent), visible(&event.actor.id));
    // What leads to the audit is only in `--json`.
    let mut fields: Vec<(&String, &Value)> =
        event.fields.iter().filter(|(name, _)| name.as_str() != "audit").collect();
    // What happened comes before its hashes.
    fields.sort_by_key(|(name, _)| name.as_str() != "change");
    let rest: Vec<String> = fields
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) if is_hash(text) => format!("{name}={}", text.get(..8).unwrap_or(text)),
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        })
        .collect();
    let rest = short_line(&rest.join(" "), DETAIL_COLUMNS, "…");
    let about = event.file_path.as_deref().map(|file| format!(" {}", visible(file))).unwrap_or_default();
    format!("{} {kind} {actor}{about} {rest}", visible(&event.timestamp)).trim_end().to_owned()
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

async fn verify(kernel: &Kernel, path: Option<&str>, printer: &Printer) -> Result<(), Failure> {
    let comparison = kernel.compare_chronicles(path).await?;
    let reports = match kernel.knowledge().verify_chronicles(path) {
        // The file of the chronicle was deleted, and the audit names its events.
        Err(error) if error.code == Code::NotFound && !comparison.is_intact() => Vec::new(),
        other => other?,
    };
    let intact = reports.iter().all(tgp::chronicle::ChronicleReport::is_intact) && comparison.is_intact();
    let torn = reports.iter().filter(|report| report.torn.is_some()).count();
    let unmigrated = match path {
        None => kernel.knowledge().unmigrated_chronicles()?,
        Some(path) => kernel.knowledge().unmigrated_chronicle(path).into_iter().collect(),
    };
    if printer.json() {
        let document = json!({
            "intact": intact,
            "chronicles": reports,
            "unmigrated": unmigrated,
            "audit": comparison,
        });
        printer.document(&done(document));
    } else {
        for report in &reports {
            for problem in &report.problems {
                let shown = format!("{}:{}: {}", report.stored, problem.line, problem.problem);
                printer.line(&single_line(&shown));
            }
            if let Some(torn) = &report.torn {
                let words = "its last line was not finished; the next append sets it aside";
                printer.warn(&format!("{}: {words} ({} bytes)", report.stored, torn.bytes));
            }
        }
        show_comparison(&comparison, printer);
        let events: u64 = reports.iter().map(|report| report.events).sum();
        let (style, said) =
            if intact { (Style::new().green(), "intact") } else { (Style::new().red(), "broken") };
        printer.line(&format!(
            "{}: {} in {}{}",
            printer.paint_out(&style, said),
            count(usize::try_from(events).unwrap_or(usize::MAX), "event"),
            count(reports.len(), "chronicle"),
            if torn == 0 { String::new() } else { format!(", {torn} with a torn last line") }
        ));
        for unknown in &comparison.unknown {
            printer.note(&single_line(unknown));
        }
        let repeated: u64 = reports.iter().map(|report| report.repeated).sum();
        if repeated > 0 {
            let repeated = count(usize::try_from(repeated).unwrap_or(usize::MAX), "line");
            printer.note(&format!("{repeated} say again what one before says, as merges leave them"));
        }
        if let Some(first) = unmigrated.first() {
            let subject = match unmigrated.len() {
                1 => format!("{first} is"),
                all => format!("{first} and {} more are", all - 1),
            };
            let next = "look at what `tgp chronicle migrate --dry-run` prints";
            printer.warn(&format!(
                "{subject} not read, as left by an earlier version or another layout; {next}"
            ));
        }
    }
    if intact { Ok(()) } else { Err(Failure::Silent(Code::Integrity)) }
}

/// The first contradictions between the chronicles and the audit.
fn show_comparison(comparison: &AuditComparison, printer: &Printer) {
    for AuditProblem { file, line, problem, .. } in comparison.problems.iter().take(MAX_SHOWN) {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        printer.line(&single_line(&format!("{file}{line}: {problem}")));
    }
    let hidden = comparison.problems.len().saturating_sub(MAX_SHOWN) as u64 + comparison.more_problems;
    if hidden > 0 {
        printer.line(&format!("and {hidden} more; `--json` has up to 1000 of them"));
    }
}
