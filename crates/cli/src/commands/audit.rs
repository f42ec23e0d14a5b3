//! `tgp audit`: verify, read and export the record of every call.

use std::io::{BufWriter, Write};

use clap::{Args, Subcommand, ValueEnum};
use console::Style;
use serde_json::{Value, json};
use tgp::audit::{AuditEntry, AuditFilter, AuditReader, ExportFormat, RestartScope, restart_records};
use tgp::contract::{Code, Execution, ToolError};
use tgp_text::{now_ms, parse_rfc3339_ms};

use super::{done, text_of};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, short_line, visible};

#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Verify every entry, their chain, and its anchor.
    Verify {
        #[command(flatten)]
        place: Place,
    },
    /// Show the last entries.
    Tail {
        /// How many.
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
        number: u64,
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        place: Place,
    },
    /// Write entries to standard output, oldest first.
    Export {
        /// One JSON document a line with its hash, or a table.
        #[arg(long, value_enum, default_value_t = ExportFormatArg::Jsonl)]
        format: ExportFormatArg,
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        place: Place,
    },
    /// Set the record aside, and begin a new one that says by whom and why.
    Restart {
        /// Why; it is in the first entry of the new record.
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Restart an intact record without being asked.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        place: Place,
    },
}

/// Which record a command is about.
#[derive(Clone, Copy, Debug, Args)]
struct Place {
    /// Your own record: decisions made outside of projects.
    #[arg(long)]
    user: bool,
}

impl Place {
    async fn reader(self, global: &Global) -> Result<AuditReader, Failure> {
        if self.user { session::user_records() } else { session::records(global).await }
    }
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
        AuditCommand::Verify { place } => verify(&place.reader(global).await?, printer),
        AuditCommand::Tail { number, selection, place } => {
            let reader = place.reader(global).await?;
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            tail(&reader.tail(&selection.filter(), number)?, printer);
            Ok(())
        }
        AuditCommand::Export { format, selection, place } => {
            let reader = place.reader(global).await?;
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
        AuditCommand::Restart { reason, yes, place } => {
            confirm_restart(place, yes, global, printer).await?;
            let scope = if place.user { RestartScope::User } else { RestartScope::Project };
            let options = session::records_options(global)?;
            let restarted = restart_records(&options, scope, &reason).await.map_err(ToolError::from)?;
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

/// Asks before a record is set aside that is not broken. What is broken, or not there, needs no question.
async fn confirm_restart(place: Place, yes: bool, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let Ok(report) = place.reader(global).await.and_then(|reader| Ok(reader.verify()?)) else {
        return Ok(());
    };
    let text = format!(
        "The audit is intact, with {} entries. A new record begins after entry {}; the old one is kept beside it.\n",
        report.entries, report.head.sequence
    );
    super::trust::agree(&text, "Begin a new record?", yes, printer).await?;
    Ok(())
}

fn verify(reader: &AuditReader, printer: &Printer) -> Result<(), Failure> {
    let report = reader.verify()?;
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

/// Columns of what a call was about.
const ABOUT_COLUMNS: usize = 72;

/// Returns what a call was about: the forged tool, the file, the kind of statement, the host, the command.
fn about(body: &Value) -> String {
    let tool = text_of(body, "tool");
    let mut words: Vec<String> = Vec::new();
    for target in body.get("targets").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| text_of(target, name);
        let word = match text("kind").as_str() {
            "upstream_tool" => format!("mcp:{}/{}", text("server"), text("tool")),
            "file" => text("path"),
            "statement" => {
                let kinds = target.get("kinds").and_then(Value::as_array).into_iter().flatten();
                kinds.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
            }
            "command" => text("command"),
            "host" => text("host"),
            "secret" | "host_tool" | "branch" => text("name"),
            _ => String::new(),
        };
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    }
    // What a person has decided names no target.
    let arguments = body.get("arguments").cloned().unwrap_or_default();
    if words.is_empty() {
        let named = ["path", "scope", "name", "id", "family", "file", "project", "query", "session"];
        let named = named.map(|name| match arguments.get(name) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        });
        words.extend(named.into_iter().find(|word| !word.is_empty()));
        words.extend(arguments.get("state").and_then(Value::as_str).map(str::to_owned));
    }
    if body.get("kind").and_then(Value::as_str) == Some("restart") {
        let previous = body.get("previousChain").cloned().unwrap_or_default();
        let head = previous.get("stored").map(|head| text_of(head, "hash")).unwrap_or_default();
        let head: String = head.chars().take(16).collect();
        words = vec![format!("\"{}\", after head {head}", text_of(body, "reason"))];
    }
    if words.is_empty() {
        return tool;
    }
    format!("{tool} {}", short_line(&words.join(" "), ABOUT_COLUMNS, " ..."))
}

/// Returns how a call ended: what the gates said, unless it failed after they let it through.
fn ending(body: &Value) -> (String, Style) {
    let verdict = text_of(body, "verdict");
    let passed = ["allowed", "approved"].contains(&verdict.as_str());
    let failed =
        body.get("outcome").and_then(|outcome| outcome.get("ok")).and_then(Value::as_bool) == Some(false);
    if passed && failed {
        return (format!("{verdict}, failed"), Style::new().red());
    }
    let style = match verdict.as_str() {
        "denied" | "refused" => Style::new().red(),
        "invalid" | "cancelled" => Style::new().yellow(),
        _ => Style::new().green(),
    };
    (verdict, style)
}

fn line(entry: &AuditEntry, printer: &Printer) -> String {
    let body = &entry.body;
    let (verdict, style) = ending(body);
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
        about(body),
        micros / 1000,
        micros % 1000
    )
}
