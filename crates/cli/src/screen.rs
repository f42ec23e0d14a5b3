//! Error screens: the message, the offending line of TypeScript with a caret, the next step.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Message, Renderer, Snippet};
use serde_json::Value;
use tgp::aql::{QueryProblem, Source};
use tgp::contract::{Finding, Severity, SourceLocation, ToolError};
use tgp_text::LineCol;

use crate::conversation::was_answered;
use crate::text::{single_line, visible, wrap};

/// How a screen looks where it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub colour: bool,
    /// Columns of the terminal; nothing is wrapped where there is none.
    pub width: Option<usize>,
}

/// An error, with the line it points at when `source` is that file's text.
pub fn error(error: &ToolError, source: Option<&str>, look: Look) -> String {
    if let Some(screen) = refused_source(error, look) {
        return screen;
    }
    let problems = problems(error);
    let place = error.place_of();
    let mut group =
        Group::with_title(Level::ERROR.primary_title(title(error, &problems)).id(error.code.as_str()));
    if let Some(place) = &place {
        group = group.element(snippet(place, None, source));
    }
    // A single problem is in the message already.
    if problems.len() > 1 {
        group = group.elements(problems.iter().map(|problem| note(look, Level::NOTE, "note", problem)));
    }
    if let Some(help) = error.help_of().filter(|_| !was_answered(error)) {
        group = group.element(note(look, Level::HELP, "help", help));
    }
    let screen = renderer(look).render(&[group]);
    if source.is_some() && place.is_some() { screen } else { without_gutter(&screen) }
}

/// A source that was not written because it does not parse: all that is wrong with it, at lines that are on no disk.
fn refused_source(error: &ToolError, look: Look) -> Option<String> {
    let findings: Vec<Finding> = serde_json::from_value(error.details.get("findings")?.clone()).ok()?;
    let mut source = String::new();
    let mut lines = 1;
    for excerpt in error.details.get("excerpts")?.as_array()? {
        let (line, text) = (excerpt.get("line")?.as_u64()?, excerpt.get("text")?.as_str()?);
        // A file of the tool repository has no more lines than bytes.
        while lines < line.min(1 << 20) {
            source.push('\n');
            lines += 1;
        }
        source.push_str(text);
    }
    let mut screens: Vec<String> =
        findings.iter().map(|one| format!("{}\n", finding(one, Some(&source), look).trim_end())).collect();
    let group = Group::with_title(
        Level::ERROR.primary_title("the tool does not parse, so nothing was written").id(error.code.as_str()),
    );
    let help = note(look, Level::HELP, "help", "correct the source and write it again");
    screens.push(without_gutter(&renderer(look).render(&[group.element(help)])));
    Some(screens.join("\n"))
}

/// The message without what the rest of the screen says: the place, and the problems when they have their own lines.
fn title(error: &ToolError, problems: &[String]) -> String {
    let mut message = error.message.clone();
    if let Some(place) = error.place_of() {
        message = message.replacen(&format!("{place}: "), "", 1);
    }
    if problems.len() > 1
        && let Some(short) = message.strip_suffix(&format!(": {}", problems.join("; ")))
    {
        message = short.to_owned();
    }
    visible(&message)
}

/// The wrong fields, one line each.
fn problems(error: &ToolError) -> Vec<String> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let problems =
        error.details.get("problems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let place = |problem: &Value| {
        let place = problem
            .get("place")
            .and_then(|place| serde_json::from_value::<SourceLocation>(place.clone()).ok());
        place.map(|place| place.to_string()).unwrap_or_default()
    };
    let line =
        |problem: &Value| match [text(problem, "path"), text(problem, "field"), place(problem)].concat() {
            path if path.is_empty() => text(problem, "message"),
            path => format!("{path}: {}", text(problem, "message")),
        };
    problems.iter().map(line).map(|line| visible(&line)).collect()
}

/// Without a line of source there is nothing for the gutter to number.
fn without_gutter(screen: &str) -> String {
    let is_gutter = |line: &&str| console::strip_ansi_codes(line).trim() == "|";
    screen.lines().filter(|line| !is_gutter(line)).collect::<Vec<_>>().join("\n")
}

/// One finding of a check.
pub fn finding(finding: &Finding, source: Option<&str>, look: Look) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(visible(&finding.message)).id(visible(&finding.rule));
    let group = Group::with_title(title)
        .element(snippet(&finding.place, Some(&finding.end), source))
        .element(note(look, Level::NOTE, "why", &finding.reason))
        .element(note(look, Level::HELP, "help", &finding.fix));
    let screen = renderer(look).render(&[group]);
    if source.is_some() { screen } else { without_gutter(&screen) }
}

/// One problem of a query, at its line of one of the sources, with the places that belong to it.
pub fn problem(problem: &QueryProblem, sources: &[Source], look: Look) -> String {
    let text =
        |file: &str| sources.iter().find(|source| source.path == file).map(|source| source.text.as_str());
    let source = text(&problem.place.file);
    let mut group = Group::with_title(Level::ERROR.primary_title(visible(&problem.message)).id(problem.kind));
    let mut shown = snippet(&problem.place, Some(&end_of(&problem.place, problem.end_column)), source);
    for (place, end, label) in problem.labels.iter().filter(|(place, ..)| place.file == problem.place.file) {
        let Some(source) = source else { break };
        let span = offset(source, place)..offset(source, &end_of(place, *end));
        shown = shown.annotation(AnnotationKind::Context.span(span).label(label.clone()));
    }
    group = group.element(shown);
    for (place, end, label) in problem.labels.iter().filter(|(place, ..)| place.file != problem.place.file) {
        group = group.element(note(look, Level::NOTE, "note", label)).element(snippet(
            place,
            Some(&end_of(place, *end)),
            text(&place.file),
        ));
    }
    if let Some(help) = &problem.help {
        group = group.element(note(look, Level::HELP, "help", help));
    }
    let screen = renderer(look).render(&[group]);
    if source.is_some() { screen } else { without_gutter(&screen) }
}

fn end_of(place: &SourceLocation, column: u32) -> SourceLocation {
    SourceLocation { column, ..place.clone() }
}

/// A line below the source, broken so that it stays inside the terminal.
fn note(look: Look, level: Level<'static>, name: &'static str, text: &str) -> Message<'static> {
    // The gutter of up to four digits, ` = `, the name and `: ` precede the text.
    let width = look.width.map(|width| width.saturating_sub(4 + 3 + name.len() + 2));
    level.with_name(name).message(wrap(&visible(text), width))
}

fn renderer(look: Look) -> Renderer {
    let renderer = if look.colour { Renderer::styled() } else { Renderer::plain() };
    look.width.map_or(renderer.clone(), |width| renderer.term_width(width))
}

/// The place as lines of source, or as an empty snippet that names it when the source is not available.
fn snippet(
    place: &SourceLocation,
    end: Option<&SourceLocation>,
    source: Option<&str>,
) -> Snippet<'static, Annotation<'static>> {
    let Some(source) = source else {
        return Snippet::source(String::new())
            .path(single_line(&place.to_string()))
            .line_start(place.line as usize);
    };
    let start = offset(source, place);
    let end = end.map_or(start, |end| offset(source, end));
    // A caret needs something above it.
    let next =
        source.get(start..).and_then(|rest| rest.chars().next()).map_or(start, |one| start + one.len_utf8());
    Snippet::source(source.to_owned())
        .path(single_line(&place.file))
        .annotation(AnnotationKind::Primary.span(start..end.max(next)))
}

fn offset(source: &str, place: &SourceLocation) -> usize {
    LineCol { line: place.line, column: place.column }.offset_in(source)
}
