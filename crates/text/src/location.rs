//! Byte offsets to lines and columns that a person can find, and back.

use std::fmt;

use tgp_contract::SourceLocation;

/// How many bytes are counted again for a column at most. A line can be as long as a whole source, and every expression
/// of it can have a location.
const STRIDE: usize = 128;

/// A line and a column, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineCol {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
}

impl LineCol {
    /// The beginning of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// A location that a parser reported. Zero, which some report for "unknown", is taken for 1, and a number that is too
    /// large for the largest.
    pub fn from_parser(line: u64, column: u64) -> Self {
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).max(1);
        Self { line: narrow(line), column: narrow(column) }
    }

    /// The location of a byte offset where `\n` ends a line. An offset inside a character is that of the character, and
    /// one beyond the text that of its end.
    ///
    /// It reads the text up to the offset; use a [`LineIndex`] for many offsets of one text.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = crate::head(text, offset);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.get(line_start..).map_or(0, |start| start.chars().count()) + 1;
        Self { line: narrow(line), column: narrow(column) }
    }

    /// The byte offset of this location where `\n` ends a line. A column behind the line is the end of the line, and a line
    /// behind the text the end of the text.
    pub fn offset_in(self, text: &str) -> usize {
        let lines_before = usize::try_from(self.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let chars_before = usize::try_from(self.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let mut lines = text.split_inclusive('\n');
        let start: usize = lines.by_ref().take(lines_before).map(str::len).sum();
        let line = lines.next().unwrap_or_default();
        let line = line.strip_suffix('\n').unwrap_or(line);
        start + line.char_indices().nth(chars_before).map_or(line.len(), |(at, _)| at)
    }

    /// The location in a file.
    pub fn in_file(self, file: impl Into<String>) -> SourceLocation {
        SourceLocation { file: file.into(), line: self.line, column: self.column }
    }
}

impl fmt::Display for LineCol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    /// `\n`.
    Newline,
    /// What ECMAScript takes for the end of a line: `\n`, `\r`, `\r\n`, U+2028 and U+2029.
    EcmaScript,
}

/// The lines of one text, for the locations of many offsets in it.
#[derive(Clone, Debug)]
pub struct LineIndex {
    /// The byte at which each line begins.
    starts: Vec<usize>,
    /// The characters before every `STRIDE`th byte.
    chars_before: Vec<usize>,
}

impl LineIndex {
    /// Reads the whole text once.
    pub fn new(text: &str, ends: LineEnds) -> Self {
        let bytes = text.as_bytes();
        let is_line_start = |start: &usize| {
            let before = bytes.get(..*start).unwrap_or_default();
            match ends {
                LineEnds::Newline => before.ends_with(b"\n"),
                LineEnds::EcmaScript => {
                    before.ends_with(b"\n")
                        || (before.ends_with(b"\r") && bytes.get(*start) != Some(&b'\n'))
                        || before.ends_with("\u{2028}".as_bytes())
                        || before.ends_with("\u{2029}".as_bytes())
                }
            }
        };
        let starts = std::iter::once(0).chain((1..=text.len()).filter(is_line_start)).collect();
        let mut chars_before = Vec::with_capacity(text.len() / STRIDE + 1);
        let mut count = 0;
        for stride in bytes.chunks(STRIDE) {
            chars_before.push(count);
            count += chars(stride);
        }
        Self { starts, chars_before }
    }

    /// The number of the line, from 0, that the byte offset is in.
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The byte at which a line, counted from 0, begins.
    pub fn line_start(&self, line: usize) -> Option<usize> {
        self.starts.get(line).copied()
    }

    /// The location of a byte offset in `text`, which must be the text of this index. An offset inside a character is
    /// that of the character, and one beyond the text that of its end.
    pub fn line_col(&self, text: &str, offset: usize) -> LineCol {
        let offset = text.floor_char_boundary(offset);
        let line = self.line(offset);
        let start = self.line_start(line).unwrap_or(0);
        let column = self.count(text, offset).saturating_sub(self.count(text, start));
        LineCol { line: narrow(line + 1), column: narrow(column + 1) }
    }

    /// The characters before a byte offset.
    fn count(&self, text: &str, offset: usize) -> usize {
        let stride = (offset / STRIDE).min(self.chars_before.len().saturating_sub(1));
        let before = self.chars_before.get(stride).copied().unwrap_or(0);
        before + chars(text.as_bytes().get(stride * STRIDE..offset).unwrap_or_default())
    }
}

/// The characters that begin in these bytes of UTF-8.
fn chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
