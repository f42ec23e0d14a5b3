//! The end of a session, for a reader who does not know the session.

use console::Style;
use serde_json::Value;
use tgp::agent::{Ending, Summary, TestCount, TouchedFile};
use tgp::contract::{Code, Root, TddState, ToolError};

use super::call_line::{duration, folded, note};
use super::key::LEAST_COLUMNS;
use super::{InterruptState, TextStyle, Verbosity};
use crate::text::{short_line, single_line, wrap};

/// Files and tools that are named; `-vv` names all of them.
const MAX_NAMES: usize = 20;
/// Columns of a name in the table.
const MAX_NAME: usize = 160;
/// Columns of the left side of the table.
const LABEL: usize = 8;

/// What was done, in the order in which a person asks for it. `heard` is the result of the signals.
pub fn summary_text(
    summary: &Summary,
    heard: InterruptState,
    verbosity: Verbosity,
    manner: TextStyle,
) -> String {
    let mut table = Table { manner, text: String::new() };
    let bound = if verbosity == Verbosity::Everything { usize::MAX } else { MAX_NAMES };
    let session = single_line(&summary.session);
    for (root, label) in [(Root::Project, "files"), (Root::Tools, "library"), (Root::Host, "outside")] {
        let files: Vec<String> =
            summary.files.iter().filter(|file| file.root == root).map(file_words).collect();
        table.list(label, &files, bound);
    }
    if summary.files_omitted > 0 {
        table.row("", &format!("and {} more", number(summary.files_omitted)));
    }
    table.list("forged", &visible_names(&summary.forged), bound);
    table.list("reused", &visible_names(&summary.reused), bound);
    if let Some(tests) = summary.tests {
        table.row("tests", &test_words(tests));
    }
    if summary.calls > 0 {
        table.row("calls", &calls(summary));
    }
    table.list("unknown", &unknown(summary), bound);
    table.row("steps", &number(summary.steps));
    let (input, output) = (summary.usage.input_tokens, summary.usage.output_tokens);
    if input > 0 || output > 0 {
        let about = if summary.usage_estimated { "about " } else { "" };
        let cached = match summary.usage.cached_input_tokens {
            0 => String::new(),
            cached => format!(" ({} of them cached)", number(cached)),
        };
        table.row("tokens", &format!("{about}{} in{cached}, {} out", number(input), number(output)));
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
    let advice = Advice::of(summary);
    if let Some(command) = &advice.go_on {
        table.row("go on", &single_line(command));
    }
    format!("\n{}{}", ending(summary, heard, &advice, manner), table.text)
}

/// Why it ended, and what to do about it.
fn ending(summary: &Summary, heard: InterruptState, advice: &Advice<'_>, manner: TextStyle) -> String {
    let (good, stopped, bad) = (Style::new().green(), Style::new().yellow(), Style::new().red());
    let (words, style) = match &summary.ending {
        Ending::Done => ("is done.", good),
        Ending::Interrupted => (interrupted(heard), stopped),
        Ending::Budget { .. } => ("was stopped: a budget is used up.", stopped),
        Ending::Stuck { .. } => ("was stopped: the same call failed again and again.", stopped),
        Ending::NeedsUser { error } => (trouble(error), bad),
        Ending::Broken { .. } => ("was stopped: something is broken, so nothing may go on.", bad),
    };
    let words = folded(&format!("Session {} {words}", single_line(&summary.session)), manner);
    let mut text = format!("{}\n", manner.paint(&style.bold(), &words));
    if let Some(error) = ending_error(summary) {
        text.push_str(&note("", &format!("{}: {}", error.code, error.message), manner));
    }
    if let Some(help) = advice.help {
        text.push_str(&note("help: ", help, manner));
    }
    text
}

/// The error that ended the session.
pub fn ending_error(summary: &Summary) -> Option<&ToolError> {
    match &summary.ending {
        Ending::Budget { error }
        | Ending::Stuck { error }
        | Ending::NeedsUser { error }
        | Ending::Broken { error } => Some(error),
        Ending::Done | Ending::Interrupted => None,
    }
}

fn interrupted(heard: InterruptState) -> &'static str {
    match heard {
        InterruptState::AfterCall | InterruptState::Now => "was stopped, as you wished.",
        InterruptState::Terminated => "was stopped by SIGTERM.",
        InterruptState::HungUp => "was stopped by SIGHUP: its terminal is gone.",
        InterruptState::Nothing => "was stopped.",
    }
}

/// What a person has to do with, by what it is.
fn trouble(error: &ToolError) -> &'static str {
    let detail = |name: &str| error.details.get(name);
    let status = detail("status").and_then(Value::as_u64);
    let is_passing = detail("retryable").and_then(Value::as_bool);
    match error.code {
        Code::Provider => match (status, is_passing) {
            (Some(401 | 403 | 407), _) => "was stopped: the provider does not accept the key.",
            (Some(429), _) => "was stopped: the provider allows no more requests for now.",
            (Some(408 | 500..), _) | (None, Some(true)) => "was stopped: the provider did not answer.",
            (Some(_), _) => "was stopped: the provider does not accept the request.",
            (None, Some(false)) => "was stopped: the provider's answer cannot be used.",
            (None, None) => "was stopped: the model gave no answer.",
        },
        Code::Config => "was stopped: the configuration has to be changed.",
        Code::Budget => "was stopped: a budget is used up.",
        Code::State if detail("state").and_then(Value::as_str) == Some(TddState::Halted.as_str()) => {
            "was stopped: a person has halted the work."
        }
        _ => "was stopped: only you can fix this.",
    }
}

/// How to continue, and what to do before. The command is in one of both.
struct Advice<'a> {
    help: Option<&'a str>,
    go_on: Option<String>,
}

impl<'a> Advice<'a> {
    fn of(summary: &'a Summary) -> Self {
        if summary.ending == Ending::Done {
            return Self { help: None, go_on: None };
        }
        let command = format!("tgp run --resume {}", summary.session);
        let Some(help) = ending_error(summary).and_then(ToolError::help_of) else {
            return Self { help: None, go_on: Some(command) };
        };
        // A help that ends with the very command, which may have more words than ours, is divided.
        let divided = help
            .strip_suffix('`')
            .and_then(|help| help.rsplit_once("resume with `").or_else(|| help.rsplit_once("go on with `")));
        match divided.filter(|(_, own)| own.starts_with(&command)) {
            Some((before, own)) => {
                let before = before.trim_end();
                let before = before.strip_suffix("when that is fixed,").unwrap_or(before);
                let before =
                    before.strip_suffix(", then").unwrap_or(before).trim_end_matches([' ', ';', ',']);
                Self { help: Some(before).filter(|help| !help.is_empty()), go_on: Some(own.to_owned()) }
            }
            None if help.contains(&command) => Self { help: Some(help), go_on: None },
            None => Self { help: Some(help), go_on: Some(command) },
        }
    }
}

fn test_words(tests: TestCount) -> String {
    let last = match tests.runs > 1 {
        true => format!(" in the last of {} runs", number(tests.runs)),
        false => String::new(),
    };
    let counted = format!("{} passed, {} failed", number(tests.passed), number(tests.failed));
    match (tests.passed, tests.failed) {
        (0, 0) if tests.inconclusive => format!("no result{last}"),
        _ if tests.inconclusive => format!("no result{last}; before it {counted}"),
        (0, 0) => format!("none was counted{last}"),
        _ => format!("{counted}{last}"),
    }
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

/// Calls of which it is unknown whether they happened, and what to do about them.
fn unknown(summary: &Summary) -> Vec<String> {
    let mut names = visible_names(&summary.unknown);
    match names.as_mut_slice() {
        [] => {}
        [only] => only.push_str(": look whether it happened"),
        _ => names.insert(0, "look whether these happened:".to_owned()),
    }
    names
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
    manner: TextStyle,
    text: String,
}

impl Table {
    fn row(&mut self, label: &str, text: &str) {
        let label = self.manner.paint(&Style::new().dim(), &format!("{label:LABEL$}"));
        let room = self.manner.columns.saturating_sub(LABEL + 4).max(LEAST_COLUMNS);
        let text = wrap(text, self.manner.terminal.then_some(room));
        let text = text.replace('\n', &format!("\n{}", " ".repeat(LABEL + 4)));
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
