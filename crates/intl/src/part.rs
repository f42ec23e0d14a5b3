//! Formatted text in parts, as `formatToParts` returns it.

use std::fmt::{self, Write};

use serde::Serialize;
use writeable::{Part as WriteablePart, PartsWrite, TryWriteable, Writeable};

/// A piece of formatted text and what it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Such as `integer`, `month` or `literal`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub value: String,
}

impl Part {
    pub(crate) fn new(kind: &'static str, value: impl Into<String>) -> Self {
        Self { kind, value: value.into() }
    }

    pub(crate) fn literal(value: impl Into<String>) -> Self {
        Self::new("literal", value)
    }
}

/// The text of all parts.
#[must_use]
pub fn join(parts: &[Part]) -> String {
    parts.iter().map(|part| part.value.as_str()).collect()
}

/// Marks of direction, which are literals beside a sign or a word.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Appends a part, without empty ones, with neighbouring literals in one and marks of direction apart.
pub(crate) fn push(parts: &mut Vec<Part>, part: Part) {
    if part.value.is_empty() {
        return;
    }
    if part.kind != "literal" && part.kind != "currency" && part.value.contains(is_direction_mark) {
        let bare = part.value.trim_matches(is_direction_mark);
        let start = part.value.find(bare).unwrap_or(0);
        let (before, rest) = part.value.split_at(start);
        let (bare, after) = rest.split_at(bare.len());
        append(parts, Part::literal(before));
        append(parts, Part::new(part.kind, bare));
        append(parts, Part::literal(after));
        return;
    }
    append(parts, part);
}

fn append(parts: &mut Vec<Part>, part: Part) {
    if part.value.is_empty() {
        return;
    }
    match parts.last_mut() {
        Some(last) if last.kind == "literal" && part.kind == "literal" => last.value.push_str(&part.value),
        _ => parts.push(part),
    }
}

/// Collects what ICU4X writes, each piece under the innermost part that `name` knows.
struct Collector<F> {
    name: F,
    open: Vec<&'static str>,
    parts: Vec<Part>,
}

impl<F: Fn(WriteablePart, &[&'static str]) -> Option<&'static str>> Write for Collector<F> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kind = self.open.last().copied().unwrap_or("literal");
        match self.parts.last_mut() {
            // ICU4X writes one field in several pieces.
            Some(last) if last.kind == kind => last.value.push_str(text),
            _ => push(&mut self.parts, Part::new(kind, text)),
        }
        Ok(())
    }
}

impl<F: Fn(WriteablePart, &[&'static str]) -> Option<&'static str>> PartsWrite for Collector<F> {
    type SubPartsWrite = Self;

    fn with_part(
        &mut self,
        part: WriteablePart,
        mut write: impl FnMut(&mut Self) -> fmt::Result,
    ) -> fmt::Result {
        let kind = (self.name)(part, &self.open);
        let pushed = kind.or(self.open.last().copied()).unwrap_or("literal");
        self.open.push(pushed);
        let result = write(self);
        self.open.pop();
        result
    }
}

/// The parts of a value; `name` maps ICU4X's parts, given those around them.
pub(crate) fn collect(
    value: &impl Writeable,
    name: impl Fn(WriteablePart, &[&'static str]) -> Option<&'static str>,
) -> Vec<Part> {
    let mut collector = Collector { name, open: Vec::new(), parts: Vec::new() };
    // Writing to memory does not fail.
    let _ = value.write_to_parts(&mut collector);
    collector.parts
}

/// Like [`collect`], for values that may lack data; `None` when they do.
pub(crate) fn try_collect(
    value: &impl TryWriteable,
    name: impl Fn(WriteablePart, &[&'static str]) -> Option<&'static str>,
) -> Option<Vec<Part>> {
    let mut collector = Collector { name, open: Vec::new(), parts: Vec::new() };
    match value.try_write_to_parts(&mut collector) {
        Ok(Ok(())) => Some(collector.parts),
        _ => None,
    }
}
