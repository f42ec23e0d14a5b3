//! Error screens: the message, the offending line of TypeScript with a caret, the next step.

use annotate_snippets::{AnnotationKind, Group, Level, Message, Renderer, Snippet};
use serde_json::Value;
use tgp::contract::{Finding, Place, Severity, ToolError};

/// An error, with the line it points at when `source` is that file's text.
pub fn error(error: &ToolError, source: Option<&str>, colour: bool) -> String {
    let title = Level::ERROR.primary_title(error.message.as_str()).id(error.code.as_str());
    let mut group = Group::with_title(title);
    let place = error.place_of();
    if let Some(place) = &place {
        group = group.element(snippet(place, None, source));
    }
    for line in notes(error) {
        group = group.element(line);
    }
    let screen = renderer(colour).render(&[group]);
    if place.is_some() { screen } else { without_gutter(&screen) }
}

/// What else the error carries: the wrong fields, the tool's logs, the next step.
fn notes(error: &ToolError) -> Vec<Message<'_>> {
    let list = |name: &str| error.details.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut notes = Vec::new();
    let problems = list("problems");
    // A single problem is in the message already.
    if problems.len() > 1 {
        for problem in problems {
            let path = [text(problem, "path"), text(problem, "field")].concat();
            notes.push(Level::NOTE.message(format!("{path}: {}", text(problem, "message"))));
        }
    }
    for log in list("logs") {
        notes.push(Level::NOTE.with_name("log").message(format!("[{}] {}", text(log, "level"), text(log, "text"))));
    }
    if let Some(help) = error.help_of() {
        notes.push(Level::HELP.message(help));
    }
    notes
}

/// Without a line of source there is nothing for the gutter to number.
fn without_gutter(screen: &str) -> String {
    let is_gutter = |line: &&str| console::strip_ansi_codes(line).trim() == "|";
    screen.lines().filter(|line| !is_gutter(line)).collect::<Vec<_>>().join("\n")
}

/// One finding of a check.
pub fn finding(finding: &Finding, source: Option<&str>, colour: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let group = Group::with_title(level.primary_title(finding.message.as_str()).id(finding.rule.as_str()))
        .element(snippet(&finding.place, Some(&finding.end), source))
        .element(Level::NOTE.with_name("why").message(finding.reason.clone()))
        .element(Level::HELP.message(finding.fix.clone()));
    renderer(colour).render(&[group])
}

fn renderer(colour: bool) -> Renderer {
    if colour { Renderer::styled() } else { Renderer::plain() }
}

/// The place as lines of source, or as an empty snippet that names it when the source is not at hand.
fn snippet(place: &Place, end: Option<&Place>, source: Option<&str>) -> Snippet<'static, annotate_snippets::Annotation<'static>> {
    let Some(source) = source else {
        return Snippet::source(String::new()).path(place.to_string()).line_start(place.line as usize);
    };
    let start = offset(source, place.line, place.column);
    let end = end.map_or(start, |end| offset(source, end.line, end.column));
    // A caret needs something to stand under.
    let end = if end > start { end } else { source.get(start..).and_then(|rest| rest.chars().next()).map_or(start, |character| start + character.len_utf8()) };
    Snippet::source(source.to_owned())
        .path(place.file.clone())
        .annotation(AnnotationKind::Primary.span(start..end))
}

/// The byte at which a line and column (from 1, in characters) begin; the end of the text when they are beyond it.
fn offset(source: &str, line: u32, column: u32) -> usize {
    let mut start = 0;
    for text in source.split_inclusive('\n').take(line.saturating_sub(1) as usize) {
        start += text.len();
    }
    let rest = source.get(start..).unwrap_or_default();
    let rest = rest.split('\n').next().unwrap_or_default();
    let within = rest.char_indices().nth(column.saturating_sub(1) as usize).map_or(rest.len(), |(at, _)| at);
    start + within
}
