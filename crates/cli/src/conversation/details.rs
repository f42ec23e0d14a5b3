//! What `-v` shows below a call: its arguments and what it answered.

use serde_json::Value;
use tgp::contract::ToolResult;

use super::call_line::INDENT;
use super::{TextStyle, Verbosity};
use crate::text::{count, short_line, single_line, visible};

/// Lines of one text, and columns of one line, that are shown of arguments and results; `-vv` shows all.
const MAX_LINES: usize = 20;
const MAX_COLUMNS: usize = 200;
/// Fields of one object that are shown.
const MAX_FIELDS: usize = 40;

/// Arguments and result, indented.
pub fn details(
    arguments: Option<&Value>,
    result: &ToolResult,
    verbosity: Verbosity,
    manner: TextStyle,
) -> String {
    if verbosity == Verbosity::Brief {
        return String::new();
    }
    let mut writer = Writer { verbosity, manner, text: String::new() };
    if let Some(arguments) = arguments {
        writer.value("arguments", arguments);
    }
    match result {
        ToolResult::Done(data) => writer.value("answer", data),
        ToolResult::Failed(error) => {
            writer.value("error", &Value::String(format!("{}: {}", error.code, error.message)));
            // The place and the next step are below the line already.
            let rest = error.details.iter().filter(|(name, _)| !matches!(name.as_str(), "place" | "help"));
            rest.for_each(|(name, value)| writer.value(name, value));
        }
    }
    writer.text
}

struct Writer {
    verbosity: Verbosity,
    manner: TextStyle,
    text: String,
}

impl Writer {
    fn value(&mut self, label: &str, value: &Value) {
        match value {
            Value::Object(fields) if fields.is_empty() => {}
            Value::Object(fields) => {
                self.line(&format!("{}:", single_line(label)));
                let bound = if self.is_all() { usize::MAX } else { MAX_FIELDS };
                for (name, value) in fields.iter().take(bound) {
                    self.field(name, value);
                }
                if fields.len() > bound {
                    self.left_out(fields.len() - bound, "more field", "  ");
                }
            }
            Value::Array(items) if is_logs(items) => self.block(label, &logs(items)),
            Value::String(text) if text.contains('\n') => self.block(label, text),
            Value::String(text) => self.line(&format!("{}: {}", single_line(label), single_line(text))),
            other => self.line(&format!("{}: {}", single_line(label), single_line(&other.to_string()))),
        }
    }

    /// A field of arguments or of an answer: texts line by line, everything else as JSON.
    fn field(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) if text.is_empty() => {}
            Value::String(text) if text.contains('\n') => self.block(&format!("  {name}"), text),
            Value::String(text) => self.line(&format!("  {}: {}", single_line(name), single_line(text))),
            Value::Array(items) if items.is_empty() => {}
            Value::Array(items) if is_logs(items) => self.block(&format!("  {name}"), &logs(items)),
            Value::Array(_) | Value::Object(_) => {
                let short = value.to_string();
                if short.len() <= self.manner.columns.saturating_sub(INDENT.len() + name.len() + 4) {
                    self.line(&format!("  {}: {}", single_line(name), single_line(&short)));
                } else {
                    let pretty = serde_json::to_string_pretty(value).unwrap_or(short);
                    self.block(&format!("  {name}"), &pretty);
                }
            }
            other => self.line(&format!("  {}: {other}", single_line(name))),
        }
    }

    fn block(&mut self, label: &str, text: &str) {
        self.line(&format!("{}:", single_line(label)));
        let bound = if self.is_all() { usize::MAX } else { MAX_LINES };
        let indent = " ".repeat(label.len() - label.trim_start().len() + 2);
        let bar = self.manner.charset.bar();
        let mut lines = text.lines();
        for line in lines.by_ref().take(bound) {
            let line = visible(line);
            self.line(&format!("{indent}{bar} {line}"));
        }
        let left = lines.count();
        if left > 0 {
            self.left_out(left, "more line", &indent);
        }
    }

    fn left_out(&mut self, number: usize, noun: &str, indent: &str) {
        let dots = self.manner.charset.dots();
        self.line(&format!("{indent}{dots} {} (-vv shows all)", count(number, noun)));
    }

    /// One line; its text is visible already.
    fn line(&mut self, line: &str) {
        let bounded = if self.is_all() { line.to_owned() } else { bounded(line, self.manner) };
        self.text.push_str(format!("{INDENT}{bounded}").trim_end());
        self.text.push('\n');
    }

    fn is_all(&self) -> bool {
        self.verbosity == Verbosity::Everything
    }
}

fn bounded(line: &str, manner: TextStyle) -> String {
    // Tabs inside a line are kept: this text has been made visible already.
    let line = line.replace('\t', "    ");
    short_line(&line, MAX_COLUMNS, manner.charset.dots())
}

/// The log lines of a run: `[{level, text}]`.
fn is_logs(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item.get("level").is_some() && item.get("text").is_some())
}

fn logs(items: &[Value]) -> String {
    let word =
        |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lines: Vec<String> =
        items.iter().map(|item| format!("[{}] {}", word(item, "level"), word(item, "text"))).collect();
    lines.join("\n")
}
