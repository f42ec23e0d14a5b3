//! The events of a session as a person reads them, or as lines of JSON.

use std::time::Duration;

use console::Style;
use serde_json::Value;
use tgp::AgentEvent;
use tgp::contract::{TddMode, TddState, Usage};

use super::call_line::{Ended, INDENT, duration, error_text, note, running};
use super::details::details;
use super::live::Live;
use super::summary::{milliseconds, number, summary_text};
use super::{Board, Manner, Verbosity};
use crate::text::{is_unseen, short_line, spoken};

/// Calls of one turn that are remembered until they end. Providers allow fewer; beyond it the oldest is shown without
/// its arguments.
const MAX_RUNNING: usize = 1024;
/// Running calls that are shown at once above the status.
const MAX_SHOWN_RUNNING: usize = 3;
/// Rows of a terminal below which only the status is shown.
const ROWS_FOR_CALLS: usize = 8;
/// Columns of a name in the first line.
const MAX_NAME: usize = 80;

/// What was written last, to know where a line or a paragraph has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    Text { ended: bool },
    Line,
}

/// What the session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing that takes its time.
    Idle,
    Model,
    Speaking,
    Calls,
}

struct Running {
    id: String,
    tool: String,
    arguments: Value,
}

/// How the events become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Words(Verbosity),
    JsonLines,
}

/// Shows events on a board.
pub struct Screen<B: Board> {
    board: B,
    form: Form,
    last: Last,
    phase: Phase,
    running: Vec<Running>,
    live: Live,
    step: u64,
    /// Of the turns before this one.
    tokens: u64,
    /// Of this turn.
    usage: Usage,
    mode: Option<TddMode>,
    state: Option<TddState>,
}

impl<B: Board> Screen<B> {
    pub fn new(board: B, form: Form) -> Self {
        Self {
            board,
            form,
            last: Last::Nothing,
            phase: Phase::Idle,
            running: Vec::new(),
            live: Live::default(),
            step: 0,
            tokens: 0,
            usage: Usage::default(),
            mode: None,
            state: None,
        }
    }

    /// True where a status can be shown.
    pub fn has_status(&self) -> bool {
        self.form != Form::JsonLines && self.board.manner().movable
    }

    /// Shows one event, at once.
    pub fn show(&mut self, event: &AgentEvent) {
        match self.form {
            Form::JsonLines => self.board.write(&json_line(event, self.board.manner())),
            Form::Words(verbosity) => self.say(event, verbosity),
        }
    }

    /// Makes room for somebody else's words: the status is gone and the cursor stands at the beginning of a line.
    pub fn make_room(&mut self) {
        let mut text = self.live.taken_back().to_owned();
        if self.board.manner().terminal && self.last == (Last::Text { ended: false }) {
            text.push('\n');
            self.last = Last::Line;
        }
        if !text.is_empty() {
            self.board.write(&text);
        }
    }

    /// Shows the status, when the session waits for something and the terminal can take it back.
    pub fn tick(&mut self, elapsed: Duration) {
        let waits = matches!(self.phase, Phase::Model | Phase::Calls);
        if !waits || !self.has_status() || self.last == (Last::Text { ended: false }) {
            return;
        }
        let manner = self.board.manner();
        let mut lines = Vec::new();
        if manner.rows >= ROWS_FOR_CALLS {
            let shown = self.running.iter().take(MAX_SHOWN_RUNNING);
            lines.extend(shown.map(|call| running(&call.tool, &call.arguments, narrowed(manner))));
            if self.running.len() > MAX_SHOWN_RUNNING {
                let dots = manner.charset.dots();
                lines.push(format!("  {dots} and {} more", self.running.len() - MAX_SHOWN_RUNNING));
            }
        }
        lines.push(self.status(elapsed, manner));
        let most = manner.columns.saturating_sub(1);
        let dim = Style::new().dim();
        let fitted = |line: &String| manner.paint(&dim, &short_line(line, most, manner.charset.dots()));
        let lines = lines.iter().map(fitted).collect();
        self.live.draw(&self.board, lines);
    }

    /// Step, time, state and tokens; what does not fit is left out, the least important first.
    fn status(&self, elapsed: Duration, manner: Manner) -> String {
        let time = format!("{} s", elapsed.as_secs());
        let time =
            if elapsed.as_secs() < 60 { time } else { duration(milliseconds(elapsed.as_millis() as u64)) };
        let mut parts = vec![format!("step {}", self.step), time];
        if let (Some(mode), Some(state)) = (self.mode, self.state) {
            parts.push(format!("{}, {}", mode.as_str(), state.as_str().replace('_', " ")));
        }
        let tokens = self.tokens + self.usage.input_tokens + self.usage.output_tokens;
        parts.push(format!("{} tokens", number(tokens)));
        if self.phase == Phase::Model {
            parts.push("the model thinks".to_owned());
        }
        let dot = format!(" {} ", manner.charset.dot());
        let room = manner.columns.saturating_sub(3);
        while parts.len() > 1 && console::measure_text_width(&parts.join(&dot)) > room {
            parts.pop();
        }
        format!("  {}", parts.join(&dot))
    }

    fn say(&mut self, event: &AgentEvent, verbosity: Verbosity) {
        let manner = self.board.manner();
        match event {
            AgentEvent::Session { id, provider, model, mode, state, resumed, .. } => {
                (self.mode, self.state) = (Some(*mode), Some(*state));
                let name = |text: &str| short_line(text, MAX_NAME, manner.charset.dots());
                let again = if *resumed { " goes on" } else { "" };
                let parts = [
                    format!("session {}{again}", name(id)),
                    format!("{} of {}", name(model), name(provider)),
                    format!("{}, {}", mode.as_str(), state.as_str().replace('_', " ")),
                ];
                let line = parts.join(&format!(" {} ", manner.charset.dot()));
                self.lines(&format!("{}\n", manner.paint(&Style::new().dim(), &line)));
            }
            AgentEvent::Step { step, tokens } => {
                (self.step, self.tokens, self.usage) = (*step, *tokens, Usage::default());
                self.phase = Phase::Model;
                self.running.clear();
                self.end_text();
            }
            AgentEvent::Text { value } => self.text(value),
            AgentEvent::ToolCall { id, tool_name, arguments, .. } => {
                self.end_text();
                self.phase = Phase::Calls;
                if self.running.len() >= MAX_RUNNING {
                    self.running.remove(0);
                }
                let (id, tool, arguments) = (id.clone(), tool_name.clone(), arguments.clone());
                self.running.push(Running { id, tool, arguments });
            }
            AgentEvent::ToolResult { id, tool_name, result, verdict, duration_ms, state, .. } => {
                self.state = Some(*state);
                let place = self.running.iter().position(|call| call.id == *id);
                let call = place.map(|place| self.running.remove(place));
                let arguments = call.as_ref().map(|call| &call.arguments);
                let ended = Ended { tool: tool_name, arguments, result, verdict, duration_ms: *duration_ms };
                let more = details(arguments, result, verbosity, manner);
                self.lines(&format!("{}{more}", ended.text(manner)));
                if self.running.is_empty() {
                    self.phase = Phase::Model;
                }
            }
            AgentEvent::Usage(usage) => self.usage = *usage,
            AgentEvent::Notice { message } => {
                self.lines(&note("note: ", message, manner).replacen(INDENT, "  ", 1))
            }
            AgentEvent::Error { error } => self.lines(&error_text(error, manner)),
            AgentEvent::End { summary } => {
                self.phase = Phase::Idle;
                self.lines(&summary_text(summary, verbosity, manner));
            }
        }
    }

    /// What the model says, as it comes.
    fn text(&mut self, value: &str) {
        if value.is_empty() {
            return;
        }
        self.phase = Phase::Speaking;
        let mut text = self.live.taken_back().to_owned();
        // A paragraph of its own after calls.
        if self.last == Last::Line {
            text.push('\n');
        }
        text.push_str(&spoken(value));
        self.last = Last::Text { ended: value.ends_with('\n') };
        self.board.write(&text);
    }

    /// Whole lines of our own.
    fn lines(&mut self, lines: &str) {
        self.end_text();
        let text = format!("{}{lines}", self.live.taken_back());
        self.last = Last::Line;
        self.board.write(&text);
    }

    fn end_text(&mut self) {
        if self.last == (Last::Text { ended: false }) {
            self.last = Last::Text { ended: true };
            self.board.write("\n");
        }
    }
}

/// One column is left free, so that no terminal breaks the line.
fn narrowed(manner: Manner) -> Manner {
    Manner { columns: manner.columns.saturating_sub(1), ..manner }
}

/// An event as one line of JSON. At a terminal, characters that act on it or hide are written as JSON escapes: it is
/// the same document.
fn json_line(event: &AgentEvent, manner: Manner) -> String {
    // Every event is made of texts, numbers and JSON; one that cannot be written says so itself.
    let line = serde_json::to_string(event).unwrap_or_else(|error| {
        serde_json::json!({ "type": "notice", "message": error.to_string() }).to_string()
    });
    if !manner.terminal || !line.contains(is_unseen) {
        return format!("{line}\n");
    }
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        if is_unseen(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    shown.push('\n');
    shown
}
