//! Byte offsets to lines and columns, on the terms people read: both count from 1, a column counts characters.

use oxc::span::Span;
use tgp_contract::{Finding, Place, Severity};

/// Where the lines of one source begin. A line ends where ECMAScript says it does, so that places agree with the
/// engine, with the source map and with TypeScript's own compiler.
pub(crate) struct LineTable<'s> {
    file: &'s str,
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> LineTable<'s> {
    pub(crate) fn new(file: &'s str, source: &'s str) -> Self {
        let mut starts = vec![0];
        let mut characters = source.char_indices().peekable();
        while let Some((_, character)) = characters.next() {
            let ends_line = match character {
                '\r' => !matches!(characters.peek(), Some((_, '\n'))),
                '\n' | '\u{2028}' | '\u{2029}' => true,
                _ => false,
            };
            if ends_line {
                starts.push(characters.peek().map_or(source.len(), |(next, _)| *next));
            }
        }
        Self { file, source, starts }
    }

    /// The line and column (from 1) of a byte offset.
    pub(crate) fn position(&self, offset: u32) -> (u32, u32) {
        let offset = (offset as usize).min(self.source.len());
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let column = self.source.get(start..offset).map_or(0, |text| text.chars().count()) + 1;
        (count(line), count(column))
    }

    pub(crate) fn place(&self, offset: u32) -> Place {
        let (line, column) = self.position(offset);
        Place { file: self.file.to_owned(), line, column }
    }

    /// Turns a column in UTF-16 units into one in characters, both from 0, on a line from 0.
    pub(crate) fn characters(&self, line: u32, units: u32) -> u32 {
        let start = self.starts.get(line as usize).copied().unwrap_or(self.source.len());
        let mut left = units as usize;
        let mut characters = 0;
        for character in self.source.get(start..).unwrap_or_default().chars() {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(character.len_utf16());
            characters += 1;
        }
        characters
    }

    pub(crate) fn text(&self, span: Span) -> &'s str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// A finding of the rule `syntax`: what keeps a source from being compiled.
    pub(crate) fn refusal(&self, span: Span, message: String, reason: &str, fix: String) -> Finding {
        Finding {
            place: self.place(span.start),
            end: self.place(span.end),
            rule: "syntax".to_owned(),
            severity: Severity::Error,
            message,
            reason: reason.to_owned(),
            fix,
        }
    }
}

fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// True when columns in UTF-16 units and in characters are the same everywhere in `text`.
pub(crate) fn is_basic(text: &str) -> bool {
    // Only characters of four UTF-8 bytes take two UTF-16 units.
    text.bytes().all(|byte| byte < 0xf0)
}
