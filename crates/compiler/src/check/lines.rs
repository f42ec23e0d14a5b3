//! From byte offsets in a source to lines and columns that a person can find.

use tgp_contract::Place;

/// The line starts of one source.
pub(super) struct LineIndex<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> LineIndex<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        // A line ends where ECMAScript says it does, so that places agree with the engine and with the source map.
        let mut starts = vec![0];
        let mut characters = source.char_indices().peekable();
        while let Some((_, character)) = characters.next() {
            let ends_line = match character {
                '\r' => !matches!(characters.peek(), Some((_, '\n'))),
                '\n' | '\u{2028}' | '\u{2029}' => true,
                _ => false,
            };
            if ends_line {
                starts.push(characters.peek().map_or(source.len(), |&(next, _)| next));
            }
        }
        Self { source, starts }
    }

    /// The place of a byte offset; lines and columns count from 1, columns in characters.
    pub(super) fn place(&self, file: &str, offset: u32) -> Place {
        let offset = (offset as usize).min(self.source.len());
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.source.get(start..offset).map_or(offset - start, |text| text.chars().count());
        Place { file: file.to_owned(), line: clamp(line.max(1)), column: clamp(column + 1) }
    }
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
