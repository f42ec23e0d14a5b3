//! `tgp sessions`: what agents have worked on.

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;
use console::Style;
use serde_json::{Value, json};
use tgp::agent::{Ending, SessionInfo, SessionState, Sessions, TranscriptLine, TranscriptLineKind};
use tgp::contract::{StreamEvent, ToolResult};
use tgp_text::truncate;

use super::run::{self, RunArgs};
use super::{done, shown_time};
use crate::arguments::Global;
use crate::candidates;
use crate::conversation::Interrupts;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, hang, visible};

/// Characters of a task that a list shows.
const TASK_WIDTH: usize = 48;
/// Characters of a result that `show` shows; the export has it whole.
const SHOWN_CHARACTERS: usize = 400;

#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// The newest sessions, newest first.
    List {
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        limit: u64,
    },
    /// What happened in a session.
    Show {
        /// Its id, the beginning of it, or `last`.
        #[arg(default_value = "last", add = ArgValueCandidates::new(candidates::sessions))]
        id: String,
    },
    /// Continue a session; the same as `tgp run --resume ID`.
    Resume {
        /// Its id, the beginning of it, or `last`.
        #[arg(default_value = "last", add = ArgValueCandidates::new(candidates::sessions))]
        id: String,
        /// What more to say to the model.
        message: Option<String>,
        /// Agree to every question, but not on files that run later.
        #[arg(long)]
        yes: bool,
        /// Show arguments and results of calls; twice: whole.
        #[arg(short, long, action = clap::ArgAction::Count)]
        verbose: u8,
    },
    /// Print a session for another program, or to keep.
    Export {
        /// Its id, the beginning of it, or `last`.
        #[arg(default_value = "last", add = ArgValueCandidates::new(candidates::sessions))]
        id: String,
        #[arg(long, value_enum, default_value_t = ExportFormat::Ndjson)]
        format: ExportFormat,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    /// The transcript, byte for byte.
    Ndjson,
    /// One JSON document.
    Json,
    /// To be read.
    Markdown,
}

pub async fn run(
    arguments: SessionsArgs,
    global: &Global,
    printer: &Printer,
    interrupts: Interrupts,
) -> Result<(), Failure> {
    let command = match arguments.command {
        SessionsCommand::Resume { id, message, yes, verbose } => {
            let arguments = RunArgs::resuming(id, message, yes, verbose);
            return run::run(arguments, global, printer, interrupts).await;
        }
        other => other,
    };
    let sessions = session::sessions(global).await?;
    match command {
        SessionsCommand::List { limit } => list(&sessions, limit, printer),
        SessionsCommand::Show { id } => show(&sessions, &id, printer),
        SessionsCommand::Export { id, format } => export(&sessions, &id, format, printer),
        SessionsCommand::Resume { .. } => Ok(()),
    }
}

/// The status of a session in one word.
fn word(state: &SessionState) -> &'static str {
    match state {
        SessionState::Running => "running",
        SessionState::Killed => "killed",
        SessionState::Damaged(_) => "damaged",
        SessionState::Ended(summary) => match summary.ending {
            Ending::Done => "done",
            Ending::Budget { .. } => "budget",
            Ending::Stuck { .. } => "stuck",
            Ending::Interrupted => "stopped",
            Ending::NeedsUser { .. } => "waits for you",
            Ending::Broken { .. } => "broken",
        },
    }
}

fn document(info: &SessionInfo) -> Value {
    let summary = match &info.state {
        SessionState::Ended(summary) => serde_json::to_value(summary).unwrap_or_default(),
        _ => Value::Null,
    };
    json!({
        "id": info.id,
        "task": info.task,
        "provider": info.provider,
        "model": info.model,
        "createdMs": info.created_ms,
        "state": word(&info.state),
        "summary": summary,
    })
}

fn list(sessions: &Sessions, limit: u64, printer: &Printer) -> Result<(), Failure> {
    let all = sessions.list(usize::try_from(limit).unwrap_or(usize::MAX))?;
    if printer.json() {
        let all: Vec<Value> = all.iter().map(document).collect();
        printer.document(&done(json!({ "sessions": all })));
        return Ok(());
    }
    let width = all.iter().map(|info| info.id.len()).max().unwrap_or_default();
    for info in &all {
        let word = word(&info.state);
        let style = match word {
            "done" => Style::new().green(),
            "running" => Style::new().cyan(),
            _ => Style::new().yellow(),
        };
        let task = match &info.state {
            SessionState::Damaged(reason) => visible(reason),
            _ => first_line(&info.task),
        };
        let state = printer.paint_out(&style, &format!("{word:<9}"));
        printer.line(&format!("{:<width$}  {state}  {task}", info.id));
    }
    if all.is_empty() {
        printer.note("there are no sessions yet; `tgp \"<task>\"` begins one");
    }
    Ok(())
}

fn first_line(text: &str) -> String {
    let line = visible(text.lines().next().unwrap_or_default());
    let cut: String = line.chars().take(TASK_WIDTH).collect();
    if cut.len() < line.len() || text.lines().nth(1).is_some() { format!("{cut}…") } else { cut }
}

fn show(sessions: &Sessions, id: &str, printer: &Printer) -> Result<(), Failure> {
    let id = sessions.find(id)?;
    let info = sessions.info(&id)?;
    let lines = sessions.lines(&id)?;
    if printer.json() {
        let mut document = document(&info);
        if let Some(fields) = document.as_object_mut() {
            fields.insert("lines".to_owned(), serde_json::to_value(&lines).unwrap_or_default());
        }
        printer.document(&done(document));
        return Ok(());
    }
    printer.line(&format!("session  {}", info.id));
    printer.line(&format!("task     {}", visible(&info.task).replace('\n', "\n         ")));
    printer.line(&format!("model    {} of {}", visible(&info.model), visible(&info.provider)));
    printer.line(&format!("began    {}", shown_time(info.created_ms)));
    printer.line(&format!("state    {}", word(&info.state)));
    for line in &lines {
        print_line(line, printer);
    }
    let next = match &info.state {
        SessionState::Ended(summary) if summary.ending == Ending::Done => None,
        SessionState::Running => None,
        _ => Some(format!("`tgp run --resume {}` continues it", info.id)),
    };
    if let Some(next) = next {
        printer.note(&next);
    }
    Ok(())
}

fn print_line(line: &TranscriptLine, printer: &Printer) {
    let dim = Style::new().dim();
    match &line.kind {
        TranscriptLineKind::Turn { step, events, .. } => {
            printer.line(&printer.paint_out(&dim, &format!("-- step {step}")));
            for event in events {
                if let StreamEvent::Text { value } = event {
                    printer.line(visible(value).trim_end());
                }
            }
        }
        TranscriptLineKind::Call { id, tool, arguments, .. } => {
            printer.line(&format!("{id} {} {}", visible(tool), visible(&arguments.to_string())));
        }
        TranscriptLineKind::Result { id, result, verdict, .. } => {
            let text = match result {
                ToolResult::Done(data) => data.to_string(),
                ToolResult::Failed(error) => error.to_string(),
            };
            let text = visible(&text);
            let shown = truncate(&text, SHOWN_CHARACTERS);
            printer.line(&printer.paint_out(&dim, &format!("{id} {verdict}: {}", hang(&shown, 2))));
        }
        TranscriptLineKind::Resumed { .. } => printer.line(&printer.paint_out(&dim, "-- resumed")),
        TranscriptLineKind::Stop { summary } => {
            let ended = word(&SessionState::Ended(summary.clone()));
            let calls = count(usize::try_from(summary.calls).unwrap_or(usize::MAX), "call");
            printer.line(&printer.paint_out(&dim, &format!("-- {ended} after {calls}")));
        }
        TranscriptLineKind::Session { .. } => {}
    }
}

fn export(sessions: &Sessions, id: &str, format: ExportFormat, printer: &Printer) -> Result<(), Failure> {
    let id = sessions.find(id)?;
    match format {
        ExportFormat::Ndjson => {
            let bytes = sessions.bytes(&id)?;
            printer.data(&String::from_utf8_lossy(&bytes));
        }
        ExportFormat::Json => {
            let lines = sessions.lines(&id)?;
            let mut document = document(&sessions.info(&id)?);
            if let Some(fields) = document.as_object_mut() {
                fields.insert("lines".to_owned(), serde_json::to_value(&lines).unwrap_or_default());
            }
            printer.document(&document);
        }
        ExportFormat::Markdown => {
            let info = sessions.info(&id)?;
            printer.data(&markdown(&info, &sessions.lines(&id)?));
        }
    }
    Ok(())
}

/// A session as a page. What came from outside is in fences that it cannot leave.
fn markdown(info: &SessionInfo, lines: &[TranscriptLine]) -> String {
    let mut page = format!(
        "# Session {}\n\n- model: {} of {}\n- began: {}\n- state: {}\n\n## Task\n\n{}\n",
        info.id,
        info.model,
        info.provider,
        shown_time(info.created_ms),
        word(&info.state),
        fenced("text", &info.task)
    );
    for line in lines {
        match &line.kind {
            TranscriptLineKind::Turn { step, events, .. } => {
                page += &format!("\n## Step {step}\n");
                for event in events {
                    if let StreamEvent::Text { value } = event {
                        page += &format!("\n{}\n", fenced("text", value));
                    }
                }
            }
            TranscriptLineKind::Call { id, tool, arguments, .. } => {
                let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
                page += &format!("\n### {id}\n\n{}\n{}\n", fenced("text", tool), fenced("json", &arguments));
            }
            TranscriptLineKind::Result { result, verdict, .. } => {
                let text = serde_json::to_string_pretty(result).unwrap_or_default();
                page += &format!("\n{verdict}:\n\n{}\n", fenced("json", &text));
            }
            TranscriptLineKind::Resumed { .. } => page += "\n*resumed*\n",
            TranscriptLineKind::Stop { summary } => {
                let text = serde_json::to_string_pretty(summary).unwrap_or_default();
                page += &format!("\n## Summary\n\n{}\n", fenced("json", &text));
            }
            TranscriptLineKind::Session { .. } => {}
        }
    }
    page
}

/// A fence is longer than every run of backticks inside.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}
