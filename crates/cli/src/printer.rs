//! Everything that is printed goes through here: data to standard output, the rest to standard error.

use std::cell::Cell;
use std::io::{self, ErrorKind, IsTerminal, Write};

use console::{Style, Term};
use serde_json::{Value, json};
use tgp::contract::{ToolError, ToolResult};

use crate::exit::Failure;
use crate::screen::{self, Look};
use crate::text::{hang, visible};

#[derive(Debug)]
pub struct Printer {
    json: bool,
    out: Stream,
    err: Stream,
    /// Why standard output did not take all of the data.
    lost: Cell<Option<ErrorKind>>,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    terminal: bool,
    look: Look,
}

impl Stream {
    fn new(term: &Term, terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let wanted = set("NO_COLOR").is_none() && set("TERM").is_none_or(|name| name != "dumb");
        let width =
            if terminal { term.size_checked().map(|(_, columns)| usize::from(columns)) } else { None };
        Self { terminal, look: Look { colour: wanted && terminal, width } }
    }

    fn paint(&self, style: &Style, text: &str) -> String {
        style.clone().force_styling(self.look.colour).apply_to(text).to_string()
    }
}

impl Printer {
    pub fn new(json: bool) -> Self {
        Self {
            json,
            out: Stream::new(&Term::stdout(), io::stdout().is_terminal()),
            err: Stream::new(&Term::stderr(), io::stderr().is_terminal()),
            lost: Cell::new(None),
        }
    }

    /// True when the user asked for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// How screens look on standard output.
    pub fn look_out(&self) -> Look {
        self.out.look
    }

    /// How screens look on standard error.
    pub fn look_err(&self) -> Look {
        self.err.look
    }

    /// Why data was lost on its way to standard output, if it was.
    pub fn lost(&self) -> Option<ErrorKind> {
        self.lost.get()
    }

    fn write(&self, text: &str) {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => {}
            // A reader that went away (`tgp list | head`) is no error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => self.lost.set(Some(error.kind())),
        }
    }

    /// What a file or a tool gave: exact bytes for a program, and nothing that acts on a person's terminal.
    pub fn data(&self, text: &str) {
        if self.out.terminal { self.write(&visible(text)) } else { self.write(text) }
    }

    /// A piece of text as it is, at once.
    pub fn piece(&self, text: &str) {
        self.write(text);
    }

    /// One line of our own words.
    pub fn line(&self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    /// One JSON document.
    pub fn document(&self, value: &Value) {
        self.line(&value.to_string());
    }

    /// A value for a person: text as it is, everything else as indented JSON.
    pub fn value(&self, value: &Value) {
        match value {
            Value::String(text) => self.data(&format!("{text}\n")),
            other => {
                let text = serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string());
                self.data(&format!("{text}\n"));
            }
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
        self.err.paint(style, text)
    }

    pub fn paint_out(&self, style: &Style, text: &str) -> String {
        self.out.paint(style, text)
    }

    /// Why a command failed: a JSON result on standard output, or a screen on standard error.
    pub fn failure(&self, failure: &Failure) {
        match failure {
            Failure::Error(shown) if self.json => self.failed(shown.error.clone()),
            Failure::Error(shown) => {
                self.logs(shown.error.details.get("logs"));
                self.note(screen::error(&shown.error, shown.source.as_deref(), self.err.look).trim_end());
            }
            Failure::Silent(_) | Failure::Stopped => {}
            Failure::Interrupted => self.note("interrupted"),
        }
    }

    /// An error as a JSON result.
    pub fn failed(&self, error: ToolError) {
        let result = ToolResult::Failed(error);
        self.document(&serde_json::to_value(&result).unwrap_or_else(|_| json!({ "ok": false })));
    }

    /// The log lines of a run.
    pub fn logs(&self, logs: Option<&Value>) {
        let text =
            |log: &Value, name: &str| log.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        for log in logs.and_then(Value::as_array).into_iter().flatten() {
            let level = text(log, "level");
            let style = match level.as_str() {
                "error" => Style::new().red(),
                "warn" => Style::new().yellow(),
                _ => Style::new().dim(),
            };
            let tag = self.paint_err(&style, &format!("[{level}]"));
            self.note(&format!("{tag} {}", hang(&visible(&text(log, "text")), level.len() + 3)));
        }
    }
}
