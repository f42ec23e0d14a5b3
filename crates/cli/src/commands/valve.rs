//! `tgp valve`: changes of files as events.

use std::sync::Arc;

use clap::{Args, Subcommand};
use console::Style;
use serde_json::{Value, json};
use tgp::agent::{StopLevel, StopSignal};
use tgp::contract::ToolError;
use tgp::valve::{ScanReport, ValveEvent, ValveRequest, ValveStatus};
use tokio::sync::mpsc;

use super::run::ModelArgs;
use super::{done, shown_time};
use crate::approval::{TerminalApprover, silence};
use crate::arguments::Global;
use crate::conversation::Interrupts;
use crate::exit::{Failure, ShownError};
use crate::printer::Printer;
use crate::session;
use crate::text::{count, single_line, visible};

/// Events on their way to the screen. The valve waits when the screen is slower.
const EVENT_ROOM: usize = 256;

/// The type of the event that a matching change becomes.
const TRIGGER: &str = "VALVE_PERSONA_TRIGGER";

#[derive(Debug, Args)]
pub struct ValveArgs {
    #[command(subcommand)]
    command: ValveCommand,
}

#[derive(Debug, Subcommand)]
enum ValveCommand {
    /// Watch the project until Ctrl-C.
    Watch(WorkArgs),
    /// Scan the project once, and record what has changed since the last time.
    Scan(WorkArgs),
    /// Show personas, what is pending, and who watches.
    Status,
}

#[derive(Debug, Args)]
struct WorkArgs {
    /// The first time, record every file as created.
    #[arg(long)]
    all: bool,
    /// Agree to what personas do, but not on files that run later.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    model: ModelArgs,
}

impl ValveArgs {
    /// The variable that the command line names for the key of a model.
    pub fn key_variable(&self) -> Option<&String> {
        match &self.command {
            ValveCommand::Watch(work) | ValveCommand::Scan(work) => work.model.key_variable.as_ref(),
            ValveCommand::Status => None,
        }
    }
}

impl From<WorkArgs> for ValveRequest {
    fn from(arguments: WorkArgs) -> Self {
        Self { all: arguments.all, agreed: arguments.yes, model: arguments.model.into(), ..Self::default() }
    }
}

pub async fn run(
    arguments: ValveArgs,
    global: &Global,
    printer: &Printer,
    interrupts: Interrupts,
) -> Result<(), Failure> {
    let kernel = session::boot(global, Some(Arc::new(TerminalApprover { has_yes: true })), printer).await?;
    let (handle, mut stop) = StopSignal::new();
    let cancelled = Box::pin(async move { stop.reached(StopLevel::AfterCall).await });
    // A signal is a wish until the kernel is shut down in order.
    let work = async {
        let outcome = match arguments.command {
            ValveCommand::Status => kernel.valve_status().map(|status| show_status(&status, printer)),
            ValveCommand::Scan(arguments) => match kernel.valve(arguments.into()) {
                Ok(mut valve) => valve.scan(cancelled).await.map(|report| show_scan(&report, printer)),
                Err(error) => Err(error),
            },
            ValveCommand::Watch(arguments) => match kernel.valve(arguments.into()) {
                Ok(mut valve) => {
                    let (sender, events) = mpsc::channel(EVENT_ROOM);
                    let (outcome, ()) = tokio::join!(valve.watch(sender, cancelled), follow(events, printer));
                    outcome
                }
                Err(error) => Err(error),
            },
        };
        kernel.shutdown().await;
        outcome
    };
    interrupts.during(handle, work).await.map_err(|error| {
        let stopped = error.is_of_cancellation();
        if stopped { Failure::Interrupted } else { at_its_line(error, global) }
    })
}

/// An error in the file of personas is shown at its line.
fn at_its_line(error: ToolError, global: &Global) -> Failure {
    let directory = global.directory.clone().unwrap_or_default();
    let source = error.place_of().and_then(|place| std::fs::read_to_string(directory.join(place.file)).ok());
    Failure::Error(Box::new(ShownError { error, source }))
}

async fn follow(mut events: mpsc::Receiver<ValveEvent>, printer: &Printer) {
    while let Some(event) = events.recv().await {
        if printer.json() {
            printer.document(&serde_json::to_value(&event).unwrap_or_default());
            continue;
        }
        // A question stays on the screen until it is answered.
        let _silence = silence().await;
        show_event(&event, printer);
        if matches!(event, ValveEvent::Started { .. }) {
            printer.note("watching; Ctrl-C ends it");
        }
    }
}

fn show_event(event: &ValveEvent, printer: &Printer) {
    match event {
        ValveEvent::Started { files, baseline, backfilled, personas } => {
            let files = numbered(*files, "file");
            let personas = numbered(*personas, "persona");
            printer.note(&match (*baseline, *backfilled) {
                (true, _) => format!("{files} remembered, for {personas}; changes from now on are reported"),
                (false, 0) => format!("{files} known, for {personas}; nothing has changed since last time"),
                (false, changed) => {
                    format!("{files} known, for {personas}; {} since last time", numbered(changed, "change"))
                }
            });
        }
        // What came of an action is said when it is done.
        ValveEvent::Triggered { event, .. } if event.kind != TRIGGER => {}
        ValveEvent::Triggered { persona, event, .. } => {
            let field = |name: &str| event.fields.get(name).and_then(Value::as_str).unwrap_or_default();
            let from = match field("from") {
                "" => String::new(),
                from => format!(" from {from}"),
            };
            let path = event.file_path.as_deref().unwrap_or_default();
            let name = printer.paint_out(&Style::new().cyan(), &visible(persona));
            let at = event.timestamp.get(11..19).unwrap_or_default();
            printer.line(&format!("{at} {name} {} {}{}", field("change"), visible(path), visible(&from)));
        }
        ValveEvent::ActionBegun { persona, file_path, .. } => {
            let line = format!("  … {persona} acts on {file_path}");
            printer.note(&printer.paint_err(&Style::new().dim(), &visible(&line)));
        }
        ValveEvent::ActionDone { persona, file_path, ok, summary, error, suppressed, .. } => {
            let (mark, words) = match (ok, suppressed, error) {
                (_, Some(why), _) => (printer.paint_err(&Style::new().yellow(), "-"), suppression(why)),
                (true, ..) => (printer.paint_err(&Style::new().green(), "✓"), single_line(summary)),
                (false, _, Some(error)) => {
                    let words = single_line(&format!("{}: {}", error.code, error.message));
                    (printer.paint_err(&Style::new().red(), "✗"), words)
                }
                (false, _, None) => (printer.paint_err(&Style::new().red(), "✗"), single_line(summary)),
            };
            printer.note(&format!("  {mark} {} {}: {words}", visible(persona), visible(file_path.as_str())));
        }
        ValveEvent::Skipped { chronicle, reason, .. } => {
            printer.warn(&format!(
                "not recorded in {}: {}",
                visible(chronicle.as_str()),
                single_line(reason)
            ));
        }
        ValveEvent::Problem { error } => say_problem(error, printer),
        ValveEvent::Rescanned { reason, files, changes } => {
            let (files, changes) = (numbered(*files, "file"), numbered(*changes, "change"));
            printer.note(&format!("looked at all {files} again ({}): {changes}", single_line(reason)));
        }
        ValveEvent::Reloaded { personas } => {
            printer.note(&format!("personas were read again: {}", numbered(*personas, "persona")));
        }
    }
}

fn suppression(why: &str) -> String {
    match why {
        "own" => "not acted on: it is the persona's own change".to_owned(),
        "chain" => "not acted on: too many actions follow from one another".to_owned(),
        other => format!("not acted on: {}", single_line(other)),
    }
}

fn say_problem(error: &ToolError, printer: &Printer) {
    printer.warn(&single_line(&format!("{}: {}", error.code, error.message)));
    if let Some(help) = error.help_of() {
        printer.note(&format!("  {}", single_line(help)));
    }
}

fn show_scan(report: &ScanReport, printer: &Printer) {
    if printer.json() {
        printer.document(&done(serde_json::to_value(report).unwrap_or_default()));
        return;
    }
    report.events.iter().for_each(|event| show_event(event, printer));
    if report.left_out > 0 {
        printer.note(&format!("and {} more events", report.left_out));
    }
    if report.baseline && report.triggered == 0 {
        return;
    }
    let mut facts = vec![numbered(report.changes, "change"), numbered(report.triggered, "event")];
    let mut add = |number: u64, words: &str| {
        if number > 0 {
            facts.push(format!("{number} {words}"));
        }
    };
    add(report.skipped, "skipped");
    add(report.pending, "pending");
    add(report.actions_done, "acted on");
    add(report.actions_failed, "failed");
    printer.note(&facts.join(", "));
}

fn show_status(status: &ValveStatus, printer: &Printer) {
    if printer.json() {
        printer.document(&done(serde_json::to_value(status).unwrap_or_default()));
        return;
    }
    if let Some(error) = &status.personas_error {
        say_problem(error, printer);
    } else if status.personas.is_empty() {
        printer.note("there are no personas; write some into .sage/valve.yml");
    } else {
        let columns = ["persona", "filters", "action", "events"].map(str::to_owned);
        let row = |persona: &tgp::valve::PersonaStatus| {
            let filters = persona.filters.iter().chain(&persona.contents).cloned().collect::<Vec<_>>();
            vec![
                single_line(&persona.name),
                single_line(&filters.join(" ")),
                persona.action.clone(),
                persona.triggered.to_string(),
            ]
        };
        let rows: Vec<Vec<String>> = status.personas.iter().map(row).collect();
        printer.table(&columns, &rows);
    }
    let mut facts = Vec::new();
    facts.push(match (&status.watcher, status.has_journal) {
        (Some(watcher), _) => {
            let since = shown_time(watcher.since_ms);
            format!("process {} is at it ({}, since {since})", watcher.pid, watcher.purpose)
        }
        (None, true) => "not watched".to_owned(),
        (None, false) => "never watched".to_owned(),
    });
    if status.has_journal {
        facts.push(format!(
            "{} known, {} recorded",
            numbered(status.files, "file"),
            numbered(status.told_events, "event")
        ));
    }
    let mut add = |number: u64, words: &str| {
        if number > 0 {
            facts.push(format!("{number} {words}"));
        }
    };
    add(status.pending_events, "waiting for their chronicle");
    add(status.held_changes, "held back by a cooldown");
    add(status.pending_actions, "to be acted on");
    add(status.skipped, "skipped");
    facts.iter().for_each(|fact| printer.line(fact));
    for unfinished in &status.unfinished {
        let state = json!(unfinished.state);
        let state = state.as_str().unwrap_or_default();
        let why = unfinished.message.as_deref().map(|why| format!(": {}", single_line(why)));
        let line =
            format!("{} on {} {state}{}", unfinished.persona, unfinished.file_path, why.unwrap_or_default());
        printer.line(&visible(&line));
    }
    for skip in &status.skips {
        let line = format!("skipped {} for {}: {}", skip.sequence, skip.chronicle, skip.reason);
        printer.line(&single_line(&line));
    }
}

fn numbered(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}
