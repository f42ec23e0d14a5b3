//! A call as one readable line: the tool, its key arguments, the verdict, what came of it, how long it took.

use console::{Style, measure_text_width};
use serde_json::Value;
use tgp::contract::{CallVerdict, Code, ToolError, ToolResult};

use super::TextStyle;
use super::approval_prompt::is_answer;
use super::key::{LEAST_COLUMNS, key_arguments};
use super::test_line::TestRun;
use crate::text::{count, short_line, single_line, wrap};

/// Columns of the tool's name; those of our own tools are shorter.
const MAX_NAME: usize = 64;
/// Columns of a message; `-v` shows all of it.
const MAX_MESSAGE: usize = 800;
/// Characters of a forged tool's result that is on the line.
const MAX_RESULT: usize = 40;
/// Where lines that belong to a call begin.
pub const INDENT: &str = "      ";
/// Rows of a place, a message or a next step below a call.
const MAX_NOTE_ROWS: usize = 8;

/// Columns of the word that says how a process ended.
const MAX_ENDING: usize = 40;

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub tool: &'a str,
    pub arguments: Option<&'a Value>,
    pub result: &'a ToolResult,
    pub verdict: CallVerdict,
    pub duration_ms: f64,
}

impl Ended<'_> {
    /// The line, and below it where a failure happened and what to do next.
    pub fn text(&self, manner: TextStyle) -> String {
        let (mark, style) = match self.is_good() {
            true => (manner.charset.good(), Style::new().green()),
            false => (manner.charset.bad(), Style::new().red()),
        };
        let verdict = match self.verdict {
            CallVerdict::Denied | CallVerdict::Refused | CallVerdict::Invalid | CallVerdict::Cancelled => {
                Style::new().yellow()
            }
            CallVerdict::Allowed | CallVerdict::Approved | CallVerdict::Recovered => Style::new().dim(),
        };
        let duration = duration(self.duration_ms);
        let (short, message) = self.said();
        let head = format!("  {mark} {}", short_line(self.tool, MAX_NAME, manner.charset.dots()));
        let tail = measure_text_width(&short) + duration.len() + 4;
        let room = manner.columns.saturating_sub(measure_text_width(&head) + 1 + tail);
        let key = self.arguments.map(|arguments| key_arguments(self.tool, arguments, room, manner));
        let head = match key.filter(|key| !key.is_empty()) {
            Some(key) => format!("{head} {key}"),
            None => head,
        };
        // What does not fit beside the rest goes below the line; in a pipe no line has an end.
        let width = measure_text_width(&head) + tail;
        let fits = |more: usize| !manner.terminal || width.saturating_add(more) <= manner.columns;
        let (said, below) = match message {
            Some(message) if fits(measure_text_width(&message) + 2) => (format!("{short}: {message}"), None),
            message => (short, message),
        };
        let paint = |style: &Style, text: &str| manner.paint(style, text);
        let tail = format!("{}  {}", paint(&verdict, &said), paint(&Style::new().dim(), &duration));
        let mut text = match fits(0) {
            true => format!("{head}  {tail}\n"),
            false => format!("{}\n{INDENT}{tail}\n", folded(&head, manner)),
        };
        text = text.replacen(mark, &paint(&style, mark), 1);
        if let Some(below) = below {
            text.push_str(&note("", &below, manner));
        }
        match (self.result.error(), self.tests()) {
            (Some(error), _) => text.push_str(&notes(error, manner)),
            (None, Some(tests)) => text.push_str(&tests.notes(manner)),
            (None, None) => {}
        }
        text
    }

    fn tests(&self) -> Option<TestRun<'_>> {
        self.result.data().and_then(TestRun::of)
    }

    fn is_good(&self) -> bool {
        let Some(data) = self.result.data() else { return false };
        if let Some(tests) = TestRun::of(data) {
            return tests.is_good();
        }
        let exit_code = data.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        let is_valid = data.get("valid").and_then(Value::as_bool) != Some(false);
        exit_code == 0 && is_valid && ended_early(data).is_none()
    }

    /// The verdict with what came of it, and the message of a failure.
    fn said(&self) -> (String, Option<String>) {
        let verdict = self.verdict.to_string();
        if let Some(tests) = self.tests() {
            let why = tests.why().map(|why| first_sentence(&why));
            return (format!("{verdict}, {}", tests.words()), why);
        }
        let Some(error) = self.result.error() else {
            let data = self.result.data();
            return match data.and_then(outcome) {
                Some(outcome) => (format!("{verdict}, {outcome}"), None),
                None => match data.and_then(|data| self.short_result(data)) {
                    Some(result) => (format!("{verdict}  = {result}"), None),
                    None => (verdict, None),
                },
            };
        };
        let ran =
            matches!(self.verdict, CallVerdict::Allowed | CallVerdict::Approved | CallVerdict::Recovered);
        let failed = if ran { ", failed" } else { "" };
        (format!("{verdict}{failed} {}", error.code), Some(first_sentence(&message(error))))
    }

    /// What a forged tool gave back, where that is a few characters of JSON.
    fn short_result(&self, data: &Value) -> Option<String> {
        let result = data.get("result").filter(|result| self.tool == "exec_tool" && !result.is_null())?;
        let text = single_line(&result.to_string());
        text.chars().nth(MAX_RESULT).is_none().then_some(text)
    }
}

/// A call that runs, as it is shown until it ends.
pub fn running(tool: &str, arguments: &Value, manner: TextStyle) -> String {
    let dots = manner.charset.dots();
    let head = format!("  {dots} {}", short_line(tool, MAX_NAME, dots));
    let room = manner.columns.saturating_sub(measure_text_width(&head) + 2);
    let key = key_arguments(tool, arguments, room, manner);
    format!("{head} {key}").trim_end().to_owned()
}

/// A line of ours that is broken between words at a terminal; what follows is indented.
pub fn folded(line: &str, manner: TextStyle) -> String {
    if !manner.terminal || measure_text_width(line) <= manner.columns {
        return line.to_owned();
    }
    let text = line.trim_start();
    let before = line.get(..line.len() - text.len()).unwrap_or_default();
    let width = manner.columns.saturating_sub(INDENT.len()).max(LEAST_COLUMNS);
    format!("{before}{}", wrap(text, Some(width)).replace('\n', &format!("\n{INDENT}")))
}

/// The place of an error, and the next step.
fn notes(error: &ToolError, manner: TextStyle) -> String {
    let mut text = String::new();
    if let Some(place) = error.place_of() {
        text.push_str(&note("at ", &place.to_string(), manner));
    }
    if let Some(help) = error.help_of().filter(|_| !was_answered(error)) {
        text.push_str(&note("help: ", help, manner));
    }
    text
}

/// True for a refusal by the user: advice on how to be asked does not help then.
pub fn was_answered(error: &ToolError) -> bool {
    let is_about_asking = error.help_of().is_some_and(|help| help.contains("--yes"));
    error.code == Code::Approval && is_about_asking && is_answer(&error.message)
}

/// One sentence below a call, broken between words at a terminal.
pub fn note(label: &str, sentence: &str, manner: TextStyle) -> String {
    let room = manner.columns.saturating_sub(INDENT.len() + label.len()).max(LEAST_COLUMNS);
    let sentence = short_line(sentence, room.saturating_mul(MAX_NOTE_ROWS), manner.charset.dots());
    let sentence = if manner.terminal { wrap(&sentence, Some(room)) } else { sentence };
    let under = format!("\n{INDENT}{}", " ".repeat(label.len()));
    format!("{INDENT}{label}{}\n", sentence.replace('\n', &under))
}

/// The message without the place, which has its own line.
pub fn message(error: &ToolError) -> String {
    match error.place_of() {
        Some(place) => error.message.replacen(&format!("{place}: "), "", 1),
        None => error.message.clone(),
    }
}

/// Up to the first full stop that ends a sentence, or the first line end.
fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find(". ").unwrap_or(line.len());
    let line = line.get(..end).unwrap_or(line);
    short_line(line, MAX_MESSAGE, "...")
}

/// The result of a call, where its line should show one.
fn outcome(data: &Value) -> Option<String> {
    if let Some(ended) = ended_early(data) {
        return Some(format!("ended by {}", short_line(&ended.replace('_', " "), MAX_ENDING, "...")));
    }
    if let Some(code) = data.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0) {
        return Some(format!("exit code {code}"));
    }
    if data.get("valid").and_then(Value::as_bool) == Some(false) {
        let errors = data.get("errors").and_then(Value::as_array).map_or(0, Vec::len);
        return Some(format!("not valid: {}", count(errors, "error")));
    }
    None
}

/// What ended a command before its own end; such a command has no exit code.
fn ended_early(data: &Value) -> Option<&str> {
    let ended = data.get("ended").and_then(Value::as_str).filter(|ended| *ended != "exit")?;
    data.get("exitCode").is_some_and(Value::is_null).then_some(ended)
}

/// Milliseconds as a person says them.
pub fn duration(milliseconds: f64) -> String {
    const SECOND: f64 = 1000.0;
    const MINUTE: f64 = 60.0 * SECOND;
    const HOUR: f64 = 60.0 * MINUTE;
    let whole = |value: f64, unit: f64| (value / unit).floor();
    if milliseconds < 10.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < SECOND {
        format!("{milliseconds:.0} ms")
    } else if milliseconds < MINUTE {
        format!("{:.1} s", milliseconds / SECOND)
    } else if milliseconds < HOUR {
        format!("{} min {} s", whole(milliseconds, MINUTE), whole(milliseconds % MINUTE, SECOND))
    } else {
        format!("{} h {} min", whole(milliseconds, HOUR), whole(milliseconds % HOUR, MINUTE))
    }
}

/// An error that ended or disturbed the session.
pub fn error_text(error: &ToolError, manner: TextStyle) -> String {
    let mark = manner.paint(&Style::new().red(), manner.charset.bad());
    let head = format!("  {mark} {}: ", error.code);
    let room = manner.columns.saturating_sub(INDENT.len()).max(LEAST_COLUMNS);
    let message = single_line(&message(error));
    let message = short_line(&message, MAX_MESSAGE, manner.charset.dots());
    let message = if manner.terminal { wrap(&message, Some(room)) } else { message };
    format!("{head}{}\n{}", message.replace('\n', &format!("\n{INDENT}")), notes(error, manner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_as_a_person_says_it() {
        for (milliseconds, expected) in [
            (0.04, "0.0 ms"),
            (0.44, "0.4 ms"),
            (9.96, "10.0 ms"),
            (42.4, "42 ms"),
            (1234.0, "1.2 s"),
            (61_500.0, "1 min 1 s"),
            (3_700_000.0, "1 h 1 min"),
        ] {
            assert_eq!(duration(milliseconds), expected);
        }
    }
}
