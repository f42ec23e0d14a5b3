//! The end of a session, for somebody who never heard of it.

use console::Style;
use tgp::contract::{Root, ToolError};
use tgp::{Ending, Summary, TouchedFile};

use super::call_line::{duration, note};
use super::{Manner, Verbosity};
use crate::text::{short_line, single_line};

/// Files and tools that are named; the audit names all of them.
const MAX_NAMES: usize = 20;
/// Columns of a name in the table.
const MAX_NAME: usize = 160;
/// Columns of the left side of the table.
const LABEL: usize = 8;

/// What was done, in the order in which a person asks for it.
pub fn summary_text(summary: &Summary, verbosity: Verbosity, manner: Manner) -> String {
    let mut table = Table { manner, text: String::new() };
    let bound = if verbosity == Verbosity::Everything { usize::MAX } else { MAX_NAMES };
    let session = single_line(&summary.session);
    for (root, label) in [(Root::Project, "files"), (Root::Tools, "library"), (Root::Host, "outside")] {
        let files: Vec<String> =
            summary.files.iter().filter(|file| file.root == root).map(file_words).collect();
        table.list(label, &files, bound);
    }
    if summary.files_omitted > 0 {
        table.row("", &format!("and {} more, which the audit names", number(summary.files_omitted)));
    }
    table.list("forged", &visible_names(&summary.forged), bound);
    table.list("reused", &visible_names(&summary.reused), bound);
    if let Some(tests) = summary.tests {
        let last = if tests.runs > 1 {
            format!(" in the last of {} runs", number(tests.runs))
        } else {
            String::new()
        };
        table
            .row("tests", &format!("{} passed, {} failed{last}", number(tests.passed), number(tests.failed)));
    }
    if summary.calls > 0 {
        table.row("calls", &calls(summary));
    }
    table.row("steps", &number(summary.steps));
    let (input, output) = (summary.usage.input_tokens, summary.usage.output_tokens);
    if input + output > 0 {
        let about = if summary.usage_estimated { "about " } else { "" };
        table.row("tokens", &format!("{about}{} in, {} out", number(input), number(output)));
    }
    if let Some(cost) = summary.cost {
        table.row("cost", &format!("{cost:.4} by the configured prices"));
    }
    table.row("time", &duration(milliseconds(summary.duration_ms)));
    match summary.audit {
        Some(range) if range.first == range.last => {
            table.row("audit", &format!("entry {}: tgp audit tail --session {session}", range.first));
        }
        Some(range) => {
            let entries = format!("entries {} to {}", range.first, range.last);
            table.row("audit", &format!("{entries}: tgp audit tail --session {session}"));
        }
        None => {}
    }
    if summary.ending != Ending::Done {
        table.row("go on", &format!("tgp run --resume {session}"));
    }
    format!("\n{}{}", ending(summary, manner), table.text)
}

/// Why it ended, and what to do about it.
fn ending(summary: &Summary, manner: Manner) -> String {
    let (good, stopped, bad) = (Style::new().green(), Style::new().yellow(), Style::new().red());
    let (words, error, style) = match &summary.ending {
        Ending::Done => ("is done.", None, good),
        Ending::Interrupted => ("was stopped, as you wished.", None, stopped),
        Ending::Budget { error } => ("was stopped: a budget is used up.", Some(error), stopped),
        Ending::Stuck { error } => {
            ("was stopped: the same call failed again and again.", Some(error), stopped)
        }
        Ending::NeedsUser { error } => ("was stopped: only you can mend this.", Some(error), bad),
        Ending::Broken { error } => {
            ("was stopped: something is broken, so nothing may go on.", Some(error), bad)
        }
    };
    let words = format!("Session {} {words}", single_line(&summary.session));
    let mut text = format!("{}\n", manner.paint(&style.bold(), &words));
    if let Some(error) = error {
        text.push_str(&error_notes(error, manner));
    }
    text
}

fn error_notes(error: &ToolError, manner: Manner) -> String {
    let mut text = note("", &format!("{}: {}", error.code, error.message), manner);
    if let Some(help) = error.help_of() {
        text.push_str(&note("help: ", help, manner));
    }
    text
}

fn calls(summary: &Summary) -> String {
    let mut words = Vec::new();
    if summary.refused > 0 {
        words.push(format!("{} refused", number(summary.refused)));
    }
    if summary.failed > 0 {
        words.push(format!("{} failed", number(summary.failed)));
    }
    let calls = number(summary.calls);
    if words.is_empty() { calls } else { format!("{calls} ({})", words.join(", ")) }
}

fn file_words(file: &TouchedFile) -> String {
    let done = match (file.created, file.deleted) {
        // It came and went within the session.
        (true, true) => " (created and deleted again)",
        (true, false) => " (created)",
        (false, true) => " (deleted)",
        (false, false) => " (changed)",
    };
    format!("{}{done}", short_line(&file.path, MAX_NAME, "..."))
}

fn visible_names(names: &[String]) -> Vec<String> {
    names.iter().map(|name| short_line(name, MAX_NAME, "...")).collect()
}

/// A whole number in groups of three.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "a session of 2^53 milliseconds is longer than history")]
pub fn milliseconds(value: u64) -> f64 {
    value as f64
}

struct Table {
    manner: Manner,
    text: String,
}

impl Table {
    fn row(&mut self, label: &str, text: &str) {
        let label = self.manner.paint(&Style::new().dim(), &format!("{label:LABEL$}"));
        self.text.push_str(&format!("  {label}  {text}\n"));
    }

    fn list(&mut self, label: &str, names: &[String], bound: usize) {
        for (place, name) in names.iter().take(bound).enumerate() {
            self.row(if place == 0 { label } else { "" }, name);
        }
        if names.len() > bound {
            let dots = self.manner.charset.dots();
            self.row("", &format!("{dots} and {} more (-vv shows all)", names.len() - bound));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_groups_of_three() {
        let shown = [0, 12, 123, 1234, 123_456, 1_234_567].map(number);
        assert_eq!(shown, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }
}
