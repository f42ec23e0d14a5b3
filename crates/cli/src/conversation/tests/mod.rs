//! The conversation as it is read: recorded sessions and questions against golden files, and whatever a hostile model
//! can put into them.

mod call_lines;
mod flow;
mod hostile;
mod interrupts;
mod patterns;
mod questions;
mod screens;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use serde_json::{Value, json};
use tgp::agent::AgentEvent;
use tgp::contract::{
    ApprovalOrigin, ApprovalReason, CallVerdict, Effect, Target, TddMode, TddState, ToolResult, Usage,
};

use super::output::Charset;
use super::screen::{Form, Screen};
use super::{ApprovalQuestion, Output, TextStyle, Verbosity};

/// A board that remembers everything that was ever written to it.
#[derive(Clone)]
struct Paper {
    text: Rc<RefCell<String>>,
    manner: Rc<Cell<TextStyle>>,
}

impl Paper {
    fn new(manner: TextStyle) -> Self {
        Self { text: Rc::default(), manner: Rc::new(Cell::new(manner)) }
    }

    fn text(&self) -> String {
        self.text.borrow().clone()
    }

    fn resize(&self, columns: usize, rows: usize) {
        self.manner.set(TextStyle { columns, rows, ..self.manner.get() });
    }

    /// What a terminal shows after all of it.
    fn screen(&self, rows: u16, columns: u16) -> String {
        let mut terminal = vt100::Parser::new(rows, columns, 0);
        terminal.process(self.text().replace('\n', "\r\n").as_bytes());
        let lines: Vec<String> =
            terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        format!("{}\n", lines.join("\n").trim_end())
    }
}

impl Output for Paper {
    fn write(&self, text: &str) {
        self.text.borrow_mut().push_str(text);
    }

    fn manner(&self) -> TextStyle {
        self.manner.get()
    }
}

/// A pipe in a locale with all signs.
const PIPE: TextStyle = TextStyle {
    terminal: false,
    movable: false,
    colour: false,
    columns: 120,
    rows: 24,
    charset: Charset::Unicode,
};
const TERMINAL: TextStyle = TextStyle { terminal: true, movable: true, columns: 80, rows: 40, ..PIPE };

/// Compares with a file of `golden/`, which `UPDATE_GOLDEN=1` regenerates.
#[track_caller]
fn golden(name: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conversation/tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let difference = similar::TextDiff::from_lines(expected.as_str(), actual);
    let difference = difference.unified_diff().header("expected", "actual").to_string();
    assert!(difference.is_empty(), "{name}: look at it, then UPDATE_GOLDEN=1 if it is right\n{difference}");
}

fn screen(manner: TextStyle, verbosity: Verbosity) -> (Screen<Paper>, Paper) {
    let paper = Paper::new(manner);
    (Screen::new(paper.clone(), Form::Words(verbosity)), paper)
}

fn session() -> AgentEvent {
    AgentEvent::Session {
        id: "s-7f3a".to_owned(),
        task: "Add a slug function".to_owned(),
        provider: "script".to_owned(),
        model: "story".to_owned(),
        mode: TddMode::Strict,
        state: TddState::Idle,
        resumed: false,
    }
}

fn step(step: u64, tokens: u64) -> AgentEvent {
    AgentEvent::Step { step, tokens }
}

fn text(value: &str) -> AgentEvent {
    AgentEvent::Text { value: value.to_owned() }
}

fn usage(input_tokens: u64, output_tokens: u64) -> AgentEvent {
    AgentEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() })
}

fn call(id: &str, tool: &str, arguments: Value) -> AgentEvent {
    AgentEvent::ToolCall {
        step: 1,
        id: id.to_owned(),
        tool_name: tool.to_owned(),
        call_id: format!("call_{id}"),
        arguments,
    }
}

fn result(id: &str, tool: &str, result: ToolResult, verdict: &str, duration_ms: f64) -> AgentEvent {
    AgentEvent::ToolResult {
        step: 1,
        id: id.to_owned(),
        tool_name: tool.to_owned(),
        call_id: format!("call_{id}"),
        result,
        // Any other text cannot reach the screen as a verdict.
        verdict: serde_json::from_value(json!(verdict)).unwrap_or(CallVerdict::Allowed),
        duration_ms,
        files: Vec::new(),
        state: TddState::Red,
    }
}

fn done(data: Value) -> ToolResult {
    ToolResult::Done(data)
}

/// An agent's question that no rule covers.
fn asked(tool: &str, effect: Effect, arguments: Value, targets: Vec<Target>) -> ApprovalQuestion {
    let reason = match effect {
        Effect::Read | Effect::Write => "writes are asked for unless a rule allows them",
        Effect::Execute => "running something is asked for unless a rule allows it",
        Effect::Network => "the network is asked for unless a rule allows it",
    };
    ApprovalQuestion {
        session: "s-7f3a".to_owned(),
        actor: "agent".to_owned(),
        tool: tool.to_owned(),
        effect,
        arguments,
        targets,
        reasons: vec![by_default(reason)],
        preview: None,
        no_preview: None,
        reach: None,
        dry_run: false,
    }
}

/// A built-in default that asks.
fn by_default(reason: &str) -> ApprovalReason {
    ApprovalReason { origin: ApprovalOrigin::Default("default/test".to_owned()), reason: reason.to_owned() }
}

/// A rule of a person that asks.
fn by_rule(reason: &str) -> ApprovalReason {
    ApprovalReason { origin: ApprovalOrigin::Rule("team".to_owned()), reason: reason.to_owned() }
}

fn file(path: &str, access: &str) -> Target {
    target(json!({ "kind": "file", "root": "project", "path": path, "access": access }))
}

fn target(value: Value) -> Target {
    serde_json::from_value(value).unwrap()
}
