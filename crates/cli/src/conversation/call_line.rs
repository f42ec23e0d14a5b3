//! A call as one readable line: the tool, its key arguments, the verdict, what came of it, how long it took.

use console::{Style, measure_text_width};
use serde_json::Value;
use tgp::contract::{ToolError, ToolResult};

use super::Manner;
use crate::text::{count, short_line, single_line, wrap};

/// Arguments that say what a call is about, in the order in which they are shown, for tools whose first words do not.
const KEYS_BY_TOOL: [(&[&str], &[&str]); 3] = [
    (&["exec_tool"], &["path", "args"]),
    (&["fetch"], &["method", "url"]),
    (&["search_grep", "search.grep", "Grep", "search_glob", "search.glob", "Glob"], &["pattern", "path"]),
];
/// For all other tools: the first of these that a call has.
const KEYS: [&str; 10] = ["path", "command", "query", "sql", "url", "pattern", "name", "id", "dir", "only"];
/// Arguments without a known name that are shown, and their longest text.
const MAX_SCALARS: usize = 3;
const MAX_SCALAR: usize = 40;
/// Columns that key arguments have, however narrow the terminal or long the rest is.
const LEAST_COLUMNS: usize = 16;
/// Columns of the tool's name; those of our own tools are shorter.
const MAX_NAME: usize = 64;
/// Columns of a message; `-v` shows all of it.
const MAX_MESSAGE: usize = 800;
/// Where lines that belong to a call begin.
pub const INDENT: &str = "      ";
/// Rows of a place, a message or a next step below a call.
const MAX_NOTE_ROWS: usize = 8;

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub tool: &'a str,
    pub arguments: Option<&'a Value>,
    pub result: &'a ToolResult,
    pub verdict: &'a str,
    pub duration_ms: f64,
}

impl Ended<'_> {
    /// The line, and below it where a failure happened and what to do next.
    pub fn text(&self, manner: Manner) -> String {
        let (mark, style) = match self.is_good() {
            true => (manner.charset.good(), Style::new().green()),
            false => (manner.charset.bad(), Style::new().red()),
        };
        let verdict = match self.verdict {
            "denied" | "refused" | "invalid" | "cancelled" => Style::new().yellow(),
            _ => Style::new().dim(),
        };
        let duration = duration(self.duration_ms);
        let head = format!("  {mark} {}", short_line(self.tool, MAX_NAME, manner.charset.dots()));
        let (short, message) = self.said(manner);
        let fixed = measure_text_width(&head) + measure_text_width(&short) + duration.len() + 5;
        let room = manner.columns.saturating_sub(fixed).max(LEAST_COLUMNS);
        let key = self.arguments.map(|arguments| key_arguments(self.tool, arguments, room, manner));
        let key = key.unwrap_or_default();
        // A message that does not fit beside the rest goes below the line.
        let fits = |message: &String| {
            fixed + measure_text_width(&key) + measure_text_width(message) + 2 <= manner.columns
        };
        let (said, below) = match message {
            Some(message) if fits(&message) => (format!("{short}: {message}"), None),
            message => (short, message),
        };
        let head = head.replacen(mark, &manner.paint(&style, mark), 1);
        let key = if key.is_empty() { key } else { format!(" {key}") };
        let dim = Style::new().dim();
        let mut text =
            format!("{head}{key}  {}  {}\n", manner.paint(&verdict, &said), manner.paint(&dim, &duration));
        if let Some(error) = self.result.error() {
            text.push_str(&notes(error, below.as_deref(), manner));
        }
        text
    }

    fn is_good(&self) -> bool {
        let data = self.result.data();
        let number =
            |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_i64).unwrap_or_default();
        let is_valid = data.and_then(|data| data.get("valid")).and_then(Value::as_bool) != Some(false);
        self.result.is_ok() && number("exitCode") == 0 && number("failed") == 0 && is_valid
    }

    /// The verdict with what came of it, and the message of a failure.
    fn said(&self, manner: Manner) -> (String, Option<String>) {
        let verdict = short_line(self.verdict, MAX_SCALAR, manner.charset.dots());
        let Some(error) = self.result.error() else {
            return match self.result.data().and_then(outcome) {
                Some(outcome) => (format!("{verdict}, {outcome}"), None),
                None => (verdict, None),
            };
        };
        let ran = matches!(self.verdict, "allowed" | "approved" | "recovered");
        let failed = if ran { ", failed" } else { "" };
        (format!("{verdict}{failed} {}", error.code), Some(first_sentence(&message(error))))
    }
}

/// A call that runs, as it is shown until it ends.
pub fn running(tool: &str, arguments: &Value, manner: Manner) -> String {
    let dots = manner.charset.dots();
    let head = format!("  {dots} {}", short_line(tool, MAX_NAME, dots));
    let room = manner.columns.saturating_sub(measure_text_width(&head) + 2).max(LEAST_COLUMNS);
    let key = key_arguments(tool, arguments, room, manner);
    format!("{head} {key}").trim_end().to_owned()
}

/// The place of an error, what could not stand on the line, and the next step.
fn notes(error: &ToolError, message: Option<&str>, manner: Manner) -> String {
    let mut text = String::new();
    if let Some(message) = message {
        text.push_str(&note("", message, manner));
    }
    if let Some(place) = error.place_of() {
        text.push_str(&note("at ", &place.to_string(), manner));
    }
    if let Some(help) = error.help_of() {
        text.push_str(&note("help: ", help, manner));
    }
    text
}

/// One sentence below a call, broken between words at a terminal.
pub fn note(label: &str, sentence: &str, manner: Manner) -> String {
    let room = manner.columns.saturating_sub(INDENT.len() + label.len()).max(LEAST_COLUMNS);
    let sentence = short_line(sentence, room.saturating_mul(MAX_NOTE_ROWS), manner.charset.dots());
    let sentence = if manner.terminal { wrap(&sentence, Some(room)) } else { sentence };
    let under = format!("\n{INDENT}{}", " ".repeat(label.len()));
    format!("{INDENT}{label}{}\n", sentence.replace('\n', &under))
}

/// The message without the place, which has a line of its own.
fn message(error: &ToolError) -> String {
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

/// What a call came to that is worth a word on its line.
fn outcome(data: &Value) -> Option<String> {
    let number = |name: &str| data.get(name).and_then(Value::as_i64);
    if let (Some(passed), Some(failed)) = (number("passed"), number("failed")) {
        return Some(format!("{passed} passed, {failed} failed"));
    }
    if let Some(code) = number("exitCode").filter(|code| *code != 0) {
        return Some(format!("exit code {code}"));
    }
    if data.get("valid").and_then(Value::as_bool) == Some(false) {
        let errors = data.get("errors").and_then(Value::as_array).map_or(0, Vec::len);
        return Some(format!("not valid: {}", count(errors, "error")));
    }
    None
}

/// What a call is about, on one line of at most so many columns.
fn key_arguments(tool: &str, arguments: &Value, columns: usize, manner: Manner) -> String {
    let cut = |text: &str| short_line(text, columns, manner.charset.dots());
    let Some(fields) = arguments.as_object() else {
        return match arguments {
            Value::Null => String::new(),
            Value::String(text) => cut(text),
            other => cut(&other.to_string()),
        };
    };
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    };
    let by_tool = KEYS_BY_TOOL.iter().find(|(tools, _)| tools.contains(&tool)).map(|(_, keys)| *keys);
    let named: Vec<String> = match by_tool {
        Some(keys) => keys.iter().filter_map(|key| fields.get(*key)).map(word).collect(),
        None => KEYS.iter().find_map(|key| fields.get(*key)).map(word).into_iter().collect(),
    };
    let named: Vec<String> = named.into_iter().filter(|word| !word.is_empty()).collect();
    if !named.is_empty() {
        return cut(&named.join(" "));
    }
    let is_short = |value: &Value| match value {
        Value::String(text) => text.chars().nth(MAX_SCALAR).is_none(),
        Value::Bool(_) | Value::Number(_) => true,
        _ => false,
    };
    let scalars = fields.iter().filter(|(_, value)| is_short(value)).take(MAX_SCALARS);
    let scalars: Vec<String> = scalars.map(|(name, value)| format!("{name}={}", word(value))).collect();
    match scalars.is_empty() {
        false => cut(&scalars.join(" ")),
        true if fields.is_empty() => String::new(),
        true => cut(&arguments.to_string()),
    }
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
pub fn error_text(error: &ToolError, manner: Manner) -> String {
    let mark = manner.paint(&Style::new().red(), manner.charset.bad());
    let head = format!("  {mark} {}: ", error.code);
    let room = manner.columns.saturating_sub(INDENT.len()).max(LEAST_COLUMNS);
    let message = single_line(&message(error));
    let message = short_line(&message, MAX_MESSAGE, manner.charset.dots());
    let message = if manner.terminal { wrap(&message, Some(room)) } else { message };
    format!("{head}{}\n{}", message.replace('\n', &format!("\n{INDENT}")), notes(error, None, manner))
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
