//! `tgp audit`: verify, read and export the record of every call.

use std::io::{BufWriter, Write};

use clap::{Args, Subcommand, ValueEnum};
use console::Style;
use serde_json::{Value, json};
use tgp::audit::{AuditEntry, AuditFilter, ExportFormat};
use tgp::contract::{Code, Execution, ToolError};
use tgp_text::{now_ms, parse_rfc3339_ms};

use super::{done, text_of};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, visible};

#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Verify every entry, their chain, and its anchor.
    Verify,
    /// Show the last entries.
    Tail {
        /// How many.
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
        number: u64,
        #[command(flatten)]
        selection: Selection,
    },
    /// Write entries to standard output, oldest first.
    Export {
        /// One JSON document a line with its hash, or a table.
        #[arg(long, value_enum, default_value_t = ExportFormatArg::Jsonl)]
        format: ExportFormatArg,
        #[command(flatten)]
        selection: Selection,
    },
    /// Set a broken record aside, and begin a new one that says why.
    Restart {
        /// Why; it is the first entry of the new record.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormatArg {
    Jsonl,
    Csv,
}

#[derive(Debug, Args)]
struct Selection {
    /// Only calls of this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only calls of this tool, by its own name.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only calls that ended so, such as approved or denied.
    #[arg(long, value_name = "WORD", value_parser = verdict)]
    verdict: Option<String>,
    /// Only calls since then: 2026-01-31, or 15m, 12h, 7d ago.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<u64>,
    /// Only calls before then.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<u64>,
}

impl Selection {
    fn filter(self) -> AuditFilter {
        AuditFilter {
            session: self.session,
            tool: self.tool,
            verdict: self.verdict,
            since_ms: self.since,
            until_ms: self.until,
            after: None,
        }
    }
}

/// One of the words that an entry's verdict can be.
fn verdict(text: &str) -> Result<String, String> {
    let known = tgp::audit::VERDICTS.contains(&text);
    if known {
        Ok(text.to_owned())
    } else {
        Err(format!("the verdicts are: {}", tgp::audit::VERDICTS.join(", ")))
    }
}

/// `2026-01-31`
const DATE_LENGTH: usize = 10;

/// Milliseconds since the epoch of a moment, or of so long ago.
fn moment(text: &str) -> Result<u64, String> {
    let wrong = || {
        "write a time as 2026-01-31, 2026-01-31T12:00:00Z, or 90s, 15m, 12h, 7d for so long ago".to_owned()
    };
    let at = match super::token::duration(text) {
        Ok(ago) => u64::try_from(ago.as_millis()).ok().and_then(|ago| now_ms().checked_sub(ago)),
        Err(_) if text.len() == DATE_LENGTH => parse_rfc3339_ms(&format!("{text}T00:00:00Z")),
        Err(_) => parse_rfc3339_ms(text),
    };
    at.ok_or_else(wrong)
}

pub async fn run(arguments: AuditArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    match arguments.command {
        AuditCommand::Verify => verify(global, printer).await,
        AuditCommand::Tail { number, selection } => {
            let reader = session::records(global).await?;
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            tail(&reader.tail(&selection.filter(), number)?, printer);
            Ok(())
        }
        AuditCommand::Export { format, selection } => {
            let reader = session::records(global).await?;
            let format = match format {
                ExportFormatArg::Jsonl => ExportFormat::Jsonl,
                ExportFormatArg::Csv => ExportFormat::Csv,
            };
            let mut out = BufWriter::new(printer.data_writer());
            reader.export(&selection.filter(), format, &mut out)?;
            out.flush().map_err(|error| {
                ToolError::new(Code::Internal, format!("standard output could not be written: {error}"))
            })?;
            Ok(())
        }
        AuditCommand::Restart { reason } => {
            let restarted = session::restart_records(global, &reason).await?;
            let aside = restarted.set_aside.as_ref().map(|path| path.display().to_string());
            if printer.json() {
                printer.document(&done(
                    json!({ "setAside": aside, "problem": restarted.problem, "chain": restarted.head.chain }),
                ));
            } else {
                let aside = aside.map_or_else(String::new, |path| format!("; the old one is kept at {path}"));
                printer.note(&format!("a new record begins{}", visible(&aside)));
            }
            Ok(())
        }
    }
}

async fn verify(global: &Global, printer: &Printer) -> Result<(), Failure> {
    let report = session::records(global).await?.verify()?;
    if printer.json() {
        printer.document(&done(json!({
            "entries": report.entries,
            "chain": report.head.chain,
            "sequence": report.head.sequence,
            "hash": report.head.hash,
            "anchored": report.anchored,
        })));
        return Ok(());
    }
    let entries = usize::try_from(report.entries).unwrap_or(usize::MAX);
    let word = printer.paint_out(&Style::new().green(), "intact");
    let short: String = report.head.hash.chars().take(16).collect();
    printer.line(&format!(
        "the audit is {word}: {}, head {short}",
        count(entries, "entry").replace("entrys", "entries")
    ));
    match report.anchored {
        Some(sequence) => printer.line(&format!("anchored up to entry {sequence}")),
        None => printer.warn("no anchor stands outside the database yet"),
    }
    Ok(())
}

fn tail(entries: &[AuditEntry], printer: &Printer) {
    if printer.json() {
        let all: Vec<Value> =
            entries.iter().map(|entry| json!({ "hash": entry.hash, "entry": entry.body })).collect();
        printer.document(&done(json!({ "entries": all })));
        return;
    }
    entries.iter().for_each(|entry| printer.line(&line(entry, printer)));
    if entries.is_empty() {
        printer.note("there is no such entry");
    }
}

/// The tool, and what it called where that is a tool of its own.
fn called(body: &Value) -> String {
    let tool = text_of(body, "tool");
    let target = body.get("targets").and_then(Value::as_array).into_iter().flatten();
    let upstream = target.filter(|target| text_of(target, "kind") == "upstream_tool");
    let upstream =
        upstream.map(|target| format!("mcp:{}/{}", text_of(target, "server"), text_of(target, "tool")));
    upstream.fold(tool, |called, name| format!("{called} {name}"))
}

fn line(entry: &AuditEntry, printer: &Printer) -> String {
    let body = &entry.body;
    let verdict = text_of(body, "verdict");
    let style = match verdict.as_str() {
        "denied" | "refused" => Style::new().red(),
        "invalid" | "cancelled" => Style::new().yellow(),
        _ => Style::new().green(),
    };
    let outcome = body.get("outcome").cloned().unwrap_or_default();
    let micros = outcome.get("durationUs").and_then(Value::as_u64).unwrap_or_default();
    let ended = match outcome.get("errorCode").and_then(Value::as_str) {
        Some(code) => format!(" {}", visible(code)),
        None => String::new(),
    };
    // The verdict and the code say the rest.
    let unknown = body.get("execution").and_then(Value::as_str) == Some(Execution::Unknown.as_str());
    let ended = if unknown { format!("{ended}, outcome unknown") } else { ended };
    let actor = match body.get("actor").map(|actor| text_of(actor, "id")).unwrap_or_default() {
        // Earlier versions wrote `unknown` where the environment named no user.
        id if id.is_empty() || id == "unknown" => "a user without a name".to_owned(),
        id => id,
    };
    format!(
        "{} {} {} {} by {actor}{ended} ({}.{:03} ms)",
        entry.sequence,
        body.get("time").and_then(Value::as_u64).map(super::shown_time).unwrap_or_default(),
        printer.paint_out(&style, &verdict),
        called(body),
        micros / 1000,
        micros % 1000
    )
}
