//! A source with its lines: from byte offsets to places that a person can find.

use tgp_contract::SourceLocation;
use tgp_text::{LineEnds, LineIndex};

use crate::{QueryProblem, Source};

/// A stretch of a source, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// From the beginning of this one to the end of the other.
    pub fn to(self, other: Span) -> Self {
        Self { start: self.start, end: other.end.max(self.end) }
    }

    pub fn holds(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }
}

/// A source that is being worked on.
#[derive(Debug)]
pub(crate) struct Text {
    pub path: String,
    pub text: String,
    lines: LineIndex,
}

impl Text {
    pub fn new(path: &str, text: &str) -> Self {
        let lines = LineIndex::new(text, LineEnds::Newline);
        Self { path: path.to_owned(), text: text.to_owned(), lines }
    }

    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    pub fn place(&self, offset: usize) -> SourceLocation {
        self.lines.line_col(&self.text, offset).in_file(self.path.clone())
    }

    /// The place of a span, and the column behind it or behind its line, whichever comes first.
    pub fn range(&self, span: Span) -> (SourceLocation, u32) {
        let place = self.place(span.start);
        let slice = self.slice(span);
        let first = slice.lines().next().unwrap_or_default();
        let width = u32::try_from(first.chars().count()).unwrap_or(u32::MAX).max(1);
        let end = place.column.saturating_add(width);
        (place, end)
    }

    pub fn problem(&self, span: Span, kind: &'static str, message: impl Into<String>) -> QueryProblem {
        let (place, end_column) = self.range(span);
        QueryProblem { kind, message: message.into(), place, end_column, help: None, labels: Vec::new() }
    }

    pub fn to_source(&self) -> Source {
        Source { path: self.path.clone(), text: self.text.clone() }
    }
}
