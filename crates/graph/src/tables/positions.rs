//! Where facts are in their files, apart from the facts themselves.
//!
//! A line that is inserted moves everything below it. If a symbol had its line among its properties, all of them had
//! another row from then on. So the rows of a file's facts have only their *place*: the number of the file and a slot in it. What
//! is in the slots at a moment is one row of `position` for each stretch in which nothing of the file moves.

use serde::Serialize;

/// Bits of a place that are the slot; the others are the file's number.
const SLOT_BITS: u32 = 24;

/// Slots of one file. A file of which so much is read has gigabytes.
const MAX_SLOTS: usize = 1 << SLOT_BITS;

/// Properties that are kept as positions.
pub(crate) const PROPERTIES: [&str; 3] = ["line", "column", "endLine"];

/// Where something is in its file. Lines and columns begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Position {
    /// Where a relationship is written.
    Line(u32),
    /// Where a symbol begins, and the last line of it.
    Span { line: u32, column: u32, end_line: u32 },
}

impl Position {
    /// A property of this name.
    pub(crate) fn property(self, name: &str) -> Option<u32> {
        self.properties().into_iter().flatten().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All that are known, by name.
    pub(crate) fn properties(self) -> [Option<(&'static str, u32)>; 3] {
        let [first, second, third] = PROPERTIES;
        match self {
            Self::Line(line) => [Some((first, line)), None, None],
            Self::Span { line, column, end_line } => {
                [Some((first, line)), Some((second, column)), Some((third, end_line))]
            }
        }
    }
}

/// The positions of a file's facts, by slot.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    slots: Vec<Option<Position>>,
    /// Slots below this one are taken.
    taken: usize,
}

impl Positions {
    /// Puts a position into the slot that a fact has already.
    pub(crate) fn keep(&mut self, slot: u32, position: Position) {
        let at = slot as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        if let Some(place) = self.slots.get_mut(at) {
            *place = Some(position);
        }
    }

    /// Puts a position into a free slot. None where there is no more of them.
    pub(crate) fn add(&mut self, position: Position) -> Option<u32> {
        while self.slots.get(self.taken).is_some_and(Option::is_some) {
            self.taken += 1;
        }
        let slot = u32::try_from(self.taken).ok().filter(|_| self.taken < MAX_SLOTS)?;
        self.keep(slot, position);
        Some(slot)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// As it is stored: for each slot 0 where nothing is in it, else what kind of position it is and how far its line is from
    /// the one before it of this kind, and for a symbol the column and how many lines follow.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        let mut bytes = Vec::new();
        let mut lines = [0u32; 2];
        for slot in &self.slots {
            match slot {
                None => put(&mut bytes, 0u64)?,
                Some(Position::Line(line)) => step(&mut bytes, &mut lines, 0, *line)?,
                Some(Position::Span { line, column, end_line }) => {
                    step(&mut bytes, &mut lines, 1, *line)?;
                    put(&mut bytes, column)?;
                    put(&mut bytes, i64::from(*end_line) - i64::from(*line))?;
                }
            }
        }
        Ok(bytes)
    }
}

fn put(bytes: &mut Vec<u8>, value: impl Serialize) -> Result<(), postcard::Error> {
    let all = std::mem::take(bytes);
    *bytes = postcard::to_extend(&value, all)?;
    Ok(())
}

/// Writes how far a line is from the one before it of its kind.
fn step(bytes: &mut Vec<u8>, lines: &mut [u32; 2], kind: usize, line: u32) -> Result<(), postcard::Error> {
    let Some(before) = lines.get_mut(kind) else { return Ok(()) };
    let step = i64::from(line) - i64::from(*before);
    *before = line;
    // The sign and the kind are the last bits.
    let zigzag = step.unsigned_abs() * 2 + u64::from(step < 0);
    put(bytes, zigzag * 2 + kind as u64 + 1)
}

/// The place of a slot in a file.
pub(crate) fn place(file: i64, slot: u32) -> i64 {
    (file << SLOT_BITS) | i64::from(slot)
}

/// The SQL of the file's number in a place.
pub(crate) fn file_of(place: &str) -> String {
    format!("({place} >> {SLOT_BITS})")
}

/// What is in the slot of a place, in the row of its file.
pub(crate) fn find(data: &[u8], place: i64) -> Option<Position> {
    let slot = place & ((1 << SLOT_BITS) - 1);
    let mut rest = data;
    let mut lines = [0i64; 2];
    for at in 0..=slot {
        let (head, after) = postcard::take_from_bytes::<u64>(rest).ok()?;
        rest = after;
        let Some(head) = head.checked_sub(1) else {
            if at == slot {
                return None;
            }
            continue;
        };
        let is_span = head & 1 == 1;
        let far = i64::try_from(head >> 2).ok()?;
        let before = lines.get_mut(usize::from(is_span))?;
        *before = if head & 2 == 2 { before.checked_sub(far)? } else { before.checked_add(far)? };
        let line = *before;
        let mut span = None;
        if is_span {
            let (column, after) = postcard::take_from_bytes::<u32>(rest).ok()?;
            let (more, after) = postcard::take_from_bytes::<i64>(after).ok()?;
            rest = after;
            span = Some((column, more));
        }
        if at == slot {
            let start = u32::try_from(line).ok()?;
            return Some(match span {
                None => Position::Line(start),
                Some((column, more)) => Position::Span {
                    line: start,
                    column,
                    end_line: u32::try_from(line.checked_add(more)?).ok()?,
                },
            });
        }
    }
    None
}

#[cfg(test)]
#[path = "positions_tests.rs"]
mod tests;
