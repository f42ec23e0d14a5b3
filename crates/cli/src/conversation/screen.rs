//! The events of a session as a person reads them, or as lines of JSON.

use std::time::Duration;

use console::Style;
use serde_json::Value;
use tgp::agent::AgentEvent;
use tgp::contract::{TddMode, TddState, ToolError, Usage};

use super::call_line::{Ended, INDENT, duration, error_text, folded, note, running};
use super::details::details;
use super::live::Live;
use super::summary::{ending_error, milliseconds, number, summary_text};
use super::{InterruptState, Output, TextStyle, Verbosity};
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
/// Columns of what is waited for, in the status.
const MAX_WAITING: usize = 60;

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
pub struct Screen<B: Output> {
    board: B,
    form: Form,
    last: Last,
    phase: Phase,
    /// What was said while the model is waited for, such as that it is asked again.
    waiting: Option<String>,
    running: Vec<Running>,
    /// An error that the summary may report, so that it is not said twice.
    held: Option<ToolError>,
    heard: InterruptState,
    live: Live,
    step: u64,
    /// Of the turns before this one.
    tokens: u64,
    /// Of this turn.
    usage: Usage,
    mode: Option<TddMode>,
    state: Option<TddState>,
}

impl<B: Output> Screen<B> {
    pub fn new(board: B, form: Form) -> Self {
        Self {
            board,
            form,
            last: Last::Nothing,
            phase: Phase::Idle,
            waiting: None,
            running: Vec::new(),
            held: None,
            heard: InterruptState::Nothing,
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

    /// Whether a call runs, as far as the events say.
    pub fn has_call(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether streamed text has not come to the end of its line.
    pub fn is_within_line(&self) -> bool {
        self.last == (Last::Text { ended: false })
    }

    /// What the signals have come to: the summary says who has stopped the session.
    pub fn hear(&mut self, heard: InterruptState) {
        self.heard = heard;
    }

    /// Shows one event, at once.
    pub fn show(&mut self, event: &AgentEvent) {
        let ended = self.keep(event);
        match self.form {
            Form::JsonLines => self.board.write(&json_line(event, self.board.manner())),
            Form::Words(verbosity) => self.say(event, ended.as_ref(), verbosity),
        }
    }

    /// There will be no more events.
    pub fn finish(&mut self) {
        self.release();
        self.make_room();
    }

    /// Makes room for other output: the status is gone and the cursor is at the beginning of a line.
    pub fn make_room(&mut self) {
        let mut text = self.live.taken_back().to_owned();
        if self.board.manner().terminal && self.is_within_line() {
            text.push('\n');
            self.last = Last::Line;
        }
        if !text.is_empty() {
            self.board.write(&text);
        }
    }

    /// Shows the status, when the session waits for something and the terminal can erase it.
    pub fn tick(&mut self, elapsed: Duration) {
        let waits = matches!(self.phase, Phase::Model | Phase::Calls);
        if !waits || !self.has_status() || self.is_within_line() {
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
    fn status(&self, elapsed: Duration, manner: TextStyle) -> String {
        let time = format!("{} s", elapsed.as_secs());
        let time =
            if elapsed.as_secs() < 60 { time } else { duration(milliseconds(elapsed.as_millis() as u64)) };
        let mut parts = vec![format!("step {}", self.step), time];
        if let Some(waiting) = &self.waiting {
            parts.push(short_line(waiting, MAX_WAITING, manner.charset.dots()));
        }
        if manner.rows < ROWS_FOR_CALLS {
            // Their lines are not shown.
            let tools = self.running.first().map(|call| short_line(&call.tool, MAX_WAITING, "..."));
            parts.extend(tools.map(|tool| format!("{tool} runs")));
        }
        if let (Some(mode), Some(state)) = (self.mode, self.state) {
            parts.push(format!("{}, {}", mode.as_str(), state.as_str().replace('_', " ")));
        }
        let turn = self.usage.input_tokens.saturating_add(self.usage.output_tokens);
        let tokens = self.tokens.saturating_add(turn);
        parts.push(format!("{} tokens", number(tokens)));
        if self.phase == Phase::Model && self.waiting.is_none() {
            parts.push("the model thinks".to_owned());
        }
        let dot = format!(" {} ", manner.charset.dot());
        let room = manner.columns.saturating_sub(3);
        while parts.len() > 1 && console::measure_text_width(&parts.join(&dot)) > room {
            parts.pop();
        }
        format!("  {}", parts.join(&dot))
    }

    /// Remembers what an event says of the session; answers the call that has ended with it.
    fn keep(&mut self, event: &AgentEvent) -> Option<Running> {
        // A notice while the model is waited for says why; anything else that happens ends the wait.
        self.waiting = match event {
            AgentEvent::Notice { message } if self.phase == Phase::Model => Some(message.clone()),
            AgentEvent::Discarded { message, .. } => Some(message.clone()),
            AgentEvent::Usage(_) => self.waiting.take(),
            _ => None,
        };
        match event {
            AgentEvent::Session { mode, state, .. } => {
                (self.mode, self.state) = (Some(*mode), Some(*state));
            }
            AgentEvent::Step { step, tokens } => {
                (self.step, self.tokens, self.usage) = (*step, *tokens, Usage::default());
                self.phase = Phase::Model;
                self.running.clear();
            }
            AgentEvent::Text { value } if !value.is_empty() => self.phase = Phase::Speaking,
            AgentEvent::ToolCall { id, tool_name, arguments, .. } => {
                self.phase = Phase::Calls;
                if self.running.len() >= MAX_RUNNING {
                    self.running.remove(0);
                }
                let (id, tool, arguments) = (id.clone(), tool_name.clone(), arguments.clone());
                self.running.push(Running { id, tool, arguments });
            }
            AgentEvent::ToolResult { id, state, .. } => {
                self.state = Some(*state);
                let place = self.running.iter().position(|call| call.id == *id);
                let ended = place.map(|place| self.running.remove(place));
                if self.running.is_empty() {
                    self.phase = Phase::Model;
                }
                return ended;
            }
            AgentEvent::Usage(usage) => self.usage = *usage,
            AgentEvent::Discarded { .. } => self.phase = Phase::Model,
            AgentEvent::Error { .. } | AgentEvent::End { .. } => self.phase = Phase::Idle,
            AgentEvent::Text { .. } | AgentEvent::Notice { .. } => {}
        }
        None
    }

    fn say(&mut self, event: &AgentEvent, call: Option<&Running>, verbosity: Verbosity) {
        let manner = self.board.manner();
        match event {
            AgentEvent::Notice { .. } | AgentEvent::Usage(_) => {}
            // The summary reports it, with what to do about it.
            AgentEvent::End { summary } if ending_error(summary).is_some_and(|error| self.is_held(error)) => {
                self.held = None;
            }
            _ => self.release(),
        }
        match event {
            AgentEvent::Session { id, provider, model, mode, state, resumed, .. } => {
                let name = |text: &str| short_line(text, MAX_NAME, manner.charset.dots());
                let again = if *resumed { " resumed" } else { "" };
                let from = match model == provider {
                    true => name(model),
                    false => format!("{} of {}", name(model), name(provider)),
                };
                let parts = [
                    format!("session {}{again}", name(id)),
                    from,
                    format!("{}, {}", mode.as_str(), state.as_str().replace('_', " ")),
                ];
                let line = folded(&parts.join(&format!(" {} ", manner.charset.dot())), manner);
                self.lines(&format!("{}\n", manner.paint(&Style::new().dim(), &line)));
            }
            AgentEvent::Step { .. } | AgentEvent::ToolCall { .. } => self.end_text(),
            AgentEvent::Text { value } => self.text(value),
            AgentEvent::ToolResult { tool_name, result, verdict, duration_ms, .. } => {
                let arguments = call.map(|call| &call.arguments);
                let (verdict, duration_ms) = (*verdict, *duration_ms);
                let ended = Ended { tool: tool_name, arguments, result, verdict, duration_ms };
                let more = details(arguments, result, verbosity, manner);
                self.lines(&format!("{}{more}", ended.text(manner)));
            }
            AgentEvent::Usage(_) => {}
            AgentEvent::Notice { message } | AgentEvent::Discarded { message, .. } => {
                self.lines(&note("note: ", message, manner).replacen(INDENT, "  ", 1))
            }
            AgentEvent::Error { error } => self.held = Some(error.clone()),
            AgentEvent::End { summary } => {
                self.lines(&summary_text(summary, self.heard, verbosity, manner));
            }
        }
    }

    fn is_held(&self, error: &ToolError) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| (held.code, &held.message) == (error.code, &error.message))
    }

    /// Prints an error that nothing else reports.
    fn release(&mut self) {
        if let Some(error) = self.held.take() {
            self.lines(&error_text(&error, self.board.manner()));
        }
    }

    /// What the model says, as it comes.
    fn text(&mut self, value: &str) {
        if value.is_empty() {
            return;
        }
        let mut text = self.live.taken_back().to_owned();
        // A separate paragraph after calls.
        if self.last == Last::Line {
            text.push('\n');
        }
        text.push_str(&spoken(value));
        self.last = Last::Text { ended: value.ends_with('\n') };
        self.board.write(&text);
    }

    /// Whole lines of our own text.
    fn lines(&mut self, lines: &str) {
        self.end_text();
        let text = format!("{}{lines}", self.live.taken_back());
        self.last = Last::Line;
        self.board.write(&text);
    }

    fn end_text(&mut self) {
        if self.is_within_line() {
            self.last = Last::Text { ended: true };
            self.board.write("\n");
        }
    }
}

/// One column is left free, so that no terminal breaks the line.
fn narrowed(manner: TextStyle) -> TextStyle {
    TextStyle { columns: manner.columns.saturating_sub(1), ..manner }
}

/// An event as one line of JSON. At a terminal, characters that act on it or hide are written as JSON escapes: it is
/// the same document.
fn json_line(event: &AgentEvent, manner: TextStyle) -> String {
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
