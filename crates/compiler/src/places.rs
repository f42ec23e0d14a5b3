//! Byte offsets to lines and columns, on the terms people read: both count from 1, a column counts characters.

use oxc::span::Span;
use tgp_contract::{Finding, Severity, SourceLocation};
use tgp_text::{LineCol, LineEnds, LineIndex};

/// Where the lines of one source begin. A line ends where ECMAScript says it does, so that places agree with the
/// engine, with the source map and with TypeScript's own compiler.
pub(crate) struct LineTable<'s> {
    file: &'s str,
    source: &'s str,
    lines: LineIndex,
}

impl<'s> LineTable<'s> {
    pub(crate) fn new(file: &'s str, source: &'s str) -> Self {
        Self { file, source, lines: LineIndex::new(source, LineEnds::EcmaScript) }
    }

    fn location(&self, offset: u32) -> LineCol {
        self.lines.line_col(self.source, offset as usize)
    }

    pub(crate) fn place(&self, offset: u32) -> SourceLocation {
        self.location(offset).in_file(self.file)
    }

    /// Turns a column in UTF-16 units into one in characters, both from 0, on a line from 0.
    pub(crate) fn characters(&self, line: u32, units: u32) -> u32 {
        let start = self.lines.line_start(line as usize).unwrap_or(self.source.len());
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

/// True when columns in UTF-16 units and in characters are the same everywhere in `text`.
pub(crate) fn is_basic(text: &str) -> bool {
    // Only characters of four UTF-8 bytes take two UTF-16 units.
    text.bytes().all(|byte| byte < 0xf0)
}
