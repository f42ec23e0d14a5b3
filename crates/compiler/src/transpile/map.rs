//! The compact source map of one emitted module.

use oxc_sourcemap::Token;
use serde::{Deserialize, Serialize};

use crate::places::{LineTable, is_basic};

/// From emitted places back to places in the TypeScript.
///
/// It holds the `mappings` of a version 3 source map with a single source and no names; columns count characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMap {
    mappings: String,
}

impl SourceMap {
    /// The TypeScript line and column (from 1) of an emitted line and column (from 1).
    ///
    /// An engine may point between two mapped places: the nearest one before it on its line counts, or else the
    /// first one of the line.
    #[must_use]
    pub fn original(&self, line: u32, column: u32) -> Option<(u32, u32)> {
        let (wanted_line, wanted_column) = (line.checked_sub(1)?, i64::from(column.checked_sub(1)?));
        let (mut source_line, mut source_column) = (0_i64, 0_i64);
        let mut best = None;
        for (index, mapped) in self.mappings.split(';').enumerate() {
            let on_line = index == wanted_line as usize;
            let mut emitted_column = 0_i64;
            for segment in mapped.split(',').filter(|segment| !segment.is_empty()) {
                let mut digits = segment.bytes();
                emitted_column += decode(&mut digits)?;
                decode(&mut digits)?;
                source_line += decode(&mut digits)?;
                source_column += decode(&mut digits)?;
                if on_line && (best.is_none() || emitted_column <= wanted_column) {
                    best = Some((source_line, source_column));
                }
            }
            if on_line {
                break;
            }
        }
        let (line, column) = best?;
        Some((u32::try_from(line + 1).ok()?, u32::try_from(column + 1).ok()?))
    }

    /// Packs what the code generator recorded; `lines_before` lines of ours stand before its first one.
    pub(super) fn pack(
        tokens: impl Iterator<Item = Token>,
        original: &LineTable<'_>,
        source: &str,
        emitted: &str,
        lines_before: u32,
    ) -> Self {
        let (original_is_basic, emitted_is_basic) = (is_basic(source), is_basic(emitted));
        let emitted_lines = LineTable::new("", emitted);
        let mut mappings = ";".repeat(lines_before as usize);
        let mut previous = [0_i64; 3];
        let mut line = 0;
        let mut first_of_line = true;
        for token in tokens {
            while line < token.get_dst_line() {
                mappings.push(';');
                line += 1;
                first_of_line = true;
                previous[0] = 0;
            }
            if !first_of_line {
                mappings.push(',');
            }
            first_of_line = false;
            let emitted_column =
                column(token.get_dst_line(), token.get_dst_col(), &emitted_lines, emitted_is_basic);
            let source_column =
                column(token.get_src_line(), token.get_src_col(), original, original_is_basic);
            let current = [emitted_column, i64::from(token.get_src_line()), source_column];
            let [was_emitted, was_line, was_column] = previous;
            let [now_emitted, now_line, now_column] = current;
            for delta in [now_emitted - was_emitted, 0, now_line - was_line, now_column - was_column] {
                encode(delta, &mut mappings);
            }
            previous = current;
        }
        Self { mappings }
    }
}

fn column(line: u32, units: u32, table: &LineTable<'_>, is_basic: bool) -> i64 {
    i64::from(if is_basic { units } else { table.characters(line, units) })
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(value: i64, out: &mut String) {
    let mut rest = (value.unsigned_abs() << 1) | u64::from(value < 0);
    loop {
        let mut digit = (rest & 31) as usize;
        rest >>= 5;
        if rest > 0 {
            digit |= 32;
        }
        out.push(char::from(DIGITS.get(digit).copied().unwrap_or(b'A')));
        if rest == 0 {
            return;
        }
    }
}

fn decode(digits: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let (mut value, mut shift) = (0_i64, 0_u32);
    loop {
        let digit = match digits.next()? {
            upper @ b'A'..=b'Z' => upper - b'A',
            lower @ b'a'..=b'z' => lower - b'a' + 26,
            number @ b'0'..=b'9' => number - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        value |= i64::from(digit & 31).checked_shl(shift)?;
        if digit & 32 == 0 {
            let magnitude = value >> 1;
            return Some(if value & 1 == 1 { -magnitude } else { magnitude });
        }
        shift = shift.checked_add(5).filter(|shift| *shift < 60)?;
    }
}
