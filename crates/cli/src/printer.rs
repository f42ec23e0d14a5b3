//! Everything that is printed goes through here: data to standard output, the rest to standard error.
//!
//! INVARIANT: nothing that came from a tool, a model, a remote, a file or a database acts on a terminal. What goes to
//! one passes [`screened`], which lets our own colours through and shows everything else. Data for a program, on a
//! standard output that is not a terminal, stays as it is to the byte; standard error is always screened, because logs are
//! read on terminals later.

use std::cell::Cell;
use std::io::{self, ErrorKind, IsTerminal, Write};

use console::{Style, Term};
use serde_json::{Value, json};
use tgp::contract::{ToolError, ToolResult};
use tgp::results::{LogLevel, LogLine};

use crate::exit::Failure;
use crate::screen::{self, Look};
use crate::text::{hang, json_on_terminal, screened, screened_line, single_line, table, visible};
use crate::theme;

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
        let width =
            if terminal { term.size_checked().map(|(_, columns)| usize::from(columns)) } else { None };
        Self { terminal, look: Look { colour: terminal && theme::has_colours(), width } }
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
            // A reader that went away (`tgp list | head`) is not an error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => self.lost.set(Some(error.kind())),
        }
    }

    /// What a file or a tool gave: exact bytes for a program, and nothing that acts on a person's terminal.
    pub fn data(&self, text: &str) {
        if self.out.terminal { self.write(&visible(text)) } else { self.write(text) }
    }

    /// The same for data that comes in pieces.
    pub fn data_writer(&self) -> DataWriter {
        DataWriter { terminal: self.out.terminal, rest: Vec::new() }
    }

    /// A piece of the conversation's own screen, which moves the cursor itself and escapes what it shows.
    pub fn piece(&self, text: &str) {
        self.write(text);
    }

    /// One line of our own text.
    pub fn line(&self, text: &str) {
        let text = format!("{text}\n");
        if self.out.terminal { self.write(&screened(&text)) } else { self.write(&text) }
    }

    /// One JSON document.
    pub fn document(&self, value: &Value) {
        let text = value.to_string();
        self.write(&format!("{}\n", if self.out.terminal { json_on_terminal(&text) } else { text }));
    }

    /// Rows under their column names. At a terminal each row is one line, whatever the cells hold.
    pub fn table(&self, columns: &[String], rows: &[Vec<String>]) {
        if !self.out.terminal {
            return self.write(&table(columns, rows));
        }
        let clean = |cells: &[String]| cells.iter().map(|cell| single_line(cell)).collect::<Vec<String>>();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| clean(row)).collect();
        self.write(&table(&clean(columns), &rows));
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

    /// A line beside the data. It stays one line, whatever names it holds.
    pub fn note(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{}", screened_line(text));
    }

    /// Lines beside the data: a screen, a difference, a log.
    pub fn lines(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{}", screened(text));
    }

    /// A sentence that is a person's business, with nothing in it that acts on a terminal, colours included.
    pub fn warn(&self, text: &str) {
        let text = single_line(text);
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
                let logs = shown.error.details.get("logs").cloned().unwrap_or_default();
                self.logs(&serde_json::from_value::<Vec<LogLine>>(logs).unwrap_or_default());
                self.lines(screen::error(&shown.error, shown.source.as_deref(), self.err.look).trim_end());
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
    pub fn logs(&self, logs: &[LogLine]) {
        for log in logs {
            let (level, style) = match log.level {
                LogLevel::Error => ("error", Style::new().red()),
                LogLevel::Warn => ("warn", Style::new().yellow()),
                LogLevel::Info => ("info", Style::new().dim()),
                LogLevel::Debug => ("debug", Style::new().dim()),
            };
            let tag = self.paint_err(&style, &format!("[{level}]"));
            self.lines(&format!("{tag} {}", hang(&visible(&log.text), level.len() + 3)));
        }
    }
}

/// Lines without an end that are kept back; a longer one is shown in parts.
const MAX_REST_BYTES: usize = 1 << 20;

/// Standard output for data: as it is for a program, with nothing that acts on a terminal for a person.
#[derive(Debug)]
pub struct DataWriter {
    terminal: bool,
    /// What a character may still be missing of.
    rest: Vec<u8>,
}

impl DataWriter {
    fn show(&mut self, until: usize) -> io::Result<()> {
        let behind = self.rest.split_off(until.min(self.rest.len()));
        let line = std::mem::replace(&mut self.rest, behind);
        io::stdout().write_all(visible(&String::from_utf8_lossy(&line)).as_bytes())
    }
}

impl Write for DataWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return io::stdout().write(bytes);
        }
        self.rest.extend_from_slice(bytes);
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        if let Some(until) = end.or_else(|| (self.rest.len() > MAX_REST_BYTES).then_some(self.rest.len())) {
            self.show(until)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.show(self.rest.len())?;
        io::stdout().flush()
    }
}
