//! A source with its lines: from byte offsets to places that a person can find.

use tgp_contract::Place;

use crate::{Problem, Source};

/// How many bytes are counted anew for a column at most. A line may be as long as a whole source, and every
/// expression of it has a place.
const STRIDE: usize = 128;

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
    /// Where each line begins.
    lines: Vec<usize>,
    /// The characters before every `STRIDE`th byte.
    counted: Vec<usize>,
}

impl Text {
    pub fn new(path: &str, text: &str) -> Self {
        let lines = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1))
            .collect();
        let mut counted = Vec::with_capacity(text.len() / STRIDE + 1);
        let mut before = 0;
        for stretch in text.as_bytes().chunks(STRIDE) {
            counted.push(before);
            before += characters(stretch);
        }
        Self { path: path.to_owned(), text: text.to_owned(), lines, counted }
    }

    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The number of the line, from 0.
    pub fn line_of(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    pub fn place(&self, offset: usize) -> Place {
        let line = self.line_of(offset);
        let start = self.lines.get(line).copied().unwrap_or(0);
        let column = self.characters_before(offset).saturating_sub(self.characters_before(start));
        Place { file: self.path.clone(), line: number(line + 1), column: number(column + 1) }
    }

    /// The place of a span, and the column behind it or behind its line, whichever comes first.
    pub fn range(&self, span: Span) -> (Place, u32) {
        let place = self.place(span.start);
        let slice = self.slice(span);
        let first = slice.lines().next().unwrap_or_default();
        let width = number(characters(first.as_bytes())).max(1);
        let end = place.column.saturating_add(width);
        (place, end)
    }

    pub fn problem(&self, span: Span, kind: &'static str, message: impl Into<String>) -> Problem {
        let (place, end_column) = self.range(span);
        Problem { kind, message: message.into(), place, end_column, help: None, labels: Vec::new() }
    }

    pub fn to_source(&self) -> Source {
        Source { path: self.path.clone(), text: self.text.clone() }
    }

    fn characters_before(&self, offset: usize) -> usize {
        let stride = offset / STRIDE;
        let Some(before) = self.counted.get(stride) else {
            return self.counted.last().map_or(0, |before| {
                let rest = self.text.as_bytes().get((self.counted.len() - 1) * STRIDE..);
                before + characters(rest.unwrap_or_default())
            });
        };
        before + characters(self.text.as_bytes().get(stride * STRIDE..offset).unwrap_or_default())
    }
}

/// Characters begin with every byte that does not go on with one.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
