//! Everything that is printed goes through here: data to standard output, the rest to standard error.

use std::io::{self, IsTerminal, Write};

use console::Style;
use serde_json::{Value, json};
use tgp::contract::ToolResult;

use crate::exit::Failure;
use crate::screen;

#[derive(Debug)]
pub struct Printer {
    json: bool,
    colour_out: bool,
    colour_err: bool,
}

impl Printer {
    pub fn new(json: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            json,
            colour_out: wanted && io::stdout().is_terminal(),
            colour_err: wanted && io::stderr().is_terminal(),
        }
    }

    /// True when the user asked for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether error screens may be coloured.
    pub fn colour(&self) -> bool {
        self.colour_err
    }

    /// Bytes of data, exactly.
    pub fn raw(&self, text: &str) {
        // A reader that went away (`tgp list | head`) is no error.
        let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    }

    /// One line of data.
    pub fn line(&self, text: &str) {
        self.raw(&format!("{text}\n"));
    }

    /// One JSON document.
    pub fn document(&self, value: &Value) {
        self.line(&value.to_string());
    }

    /// A value for a person: text as it is, everything else as indented JSON.
    pub fn value(&self, value: &Value) {
        match value {
            Value::String(text) => self.line(text),
            other => self.line(&serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string())),
        }
    }

    /// A line beside the data.
    pub fn note(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    pub fn warn(&self, text: &str) {
        self.note(&format!("{} {text}", self.paint_err(&Style::new().yellow().bold(), "warning:")));
    }

    pub fn paint_err(&self, style: &Style, text: &str) -> String {
        style.clone().force_styling(self.colour_err).apply_to(text).to_string()
    }

    pub fn paint_out(&self, style: &Style, text: &str) -> String {
        style.clone().force_styling(self.colour_out).apply_to(text).to_string()
    }

    /// Why a command failed: a JSON result on standard output, or a screen on standard error.
    pub fn failure(&self, failure: &Failure) {
        match failure {
            Failure::Error(shown) if self.json => {
                let result = ToolResult::Failed(shown.error.clone());
                self.document(&serde_json::to_value(&result).unwrap_or_else(|_| json!({ "ok": false })));
            }
            Failure::Error(shown) => {
                self.note(screen::error(&shown.error, shown.source.as_deref(), self.colour_err).trim_end());
            }
            Failure::Silent(_) => {}
            Failure::Interrupted => self.note("interrupted"),
        }
    }

    /// A log line of a tool.
    pub fn log(&self, level: &str, text: &str) {
        let style = match level {
            "error" => Style::new().red(),
            "warn" => Style::new().yellow(),
            _ => Style::new().dim(),
        };
        self.note(&format!("{} {text}", self.paint_err(&style, &format!("[{level}]"))));
    }
}
