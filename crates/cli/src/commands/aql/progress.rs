//! A run on the screen, step by step.

use console::Style;
use tgp::aql::{RunEvent, ValueSource};
use tgp::contract::ToolError;
use tokio::sync::mpsc;

use crate::approval::silence;
use crate::printer::Printer;
use crate::text::{count, single_line, visible};

/// Shows the events of a run until they end: lines on standard error, or JSON lines on standard output.
pub(super) async fn follow(mut events: mpsc::Receiver<RunEvent>, printer: &Printer) {
    while let Some(event) = events.recv().await {
        if printer.json() {
            printer.document(&serde_json::to_value(&event).unwrap_or_default());
            continue;
        }
        // A question stays on the screen until it is answered.
        let _silence = silence().await;
        if let Some(line) = line_of(&event, printer) {
            printer.note(&line);
        }
    }
}

fn line_of(event: &RunEvent, printer: &Printer) -> Option<String> {
    let paint = |style: Style, text: &str| printer.paint_err(&style, text);
    Some(match event {
        RunEvent::Run { id, query, steps, resumed } => {
            let word = if *resumed { "going on with" } else { "run" };
            let steps = count(usize::try_from(*steps).unwrap_or_default(), "step");
            format!("{word} {id}: {} ({steps})", visible(query))
        }
        RunEvent::Begun { step, kind, attempt } => {
            let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            paint(Style::new().dim(), &format!("  … {} {kind}{again}", visible(step)))
        }
        RunEvent::Done { step, kind, how, duration_ms, tokens, .. } => {
            let mut facts = vec![match how {
                ValueSource::Ran => shown_time(*duration_ms),
                ValueSource::Cached => "cached".to_owned(),
                ValueSource::Kept => "done before".to_owned(),
            }];
            if *tokens > 0 {
                facts.push(format!("{tokens} tokens"));
            }
            let mark = paint(Style::new().green(), "✓");
            format!("  {mark} {} {kind} ({})", visible(step), facts.join(", "))
        }
        RunEvent::Failed { step, kind, error, again, .. } => {
            let mark = paint(Style::new().red(), "✗");
            let next = if *again { ", trying again" } else { "" };
            format!("  {mark} {} {kind}: {}{next}", visible(step), told(error))
        }
        RunEvent::Excused { step, kind, error } => {
            let mark = paint(Style::new().yellow(), "-");
            format!("  {mark} {} {kind}: {}, excused", visible(step), told(error))
        }
        RunEvent::End { report } => {
            let mut facts = vec![format!("{} done", report.ran)];
            let mut add = |number: u64, words: &str| {
                if number > 0 {
                    facts.push(format!("{number} {words}"));
                }
            };
            add(report.cached, "cached");
            add(report.kept, "done before");
            add(report.calls, if report.calls == 1 { "call" } else { "calls" });
            add(report.tokens, "tokens");
            let word = match &report.error {
                None => paint(Style::new().green(), "done"),
                Some(_) => paint(Style::new().red(), "failed"),
            };
            format!("{word} in {}: {}", shown_time(report.duration_ms), facts.join(", "))
        }
    })
}

fn told(error: &ToolError) -> String {
    single_line(&format!("{}: {}", error.code, error.message))
}

fn shown_time(milliseconds: u64) -> String {
    if milliseconds < 1000 {
        format!("{milliseconds} ms")
    } else {
        format!("{:.1} s", milliseconds as f64 / 1000.0)
    }
}
