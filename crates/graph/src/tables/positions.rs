//! Where facts are in their files, apart from the facts themselves.
//!
//! A line that is inserted moves everything below it. If a symbol had its line among its properties, all of them had
//! another row from then on. So the rows of a file's facts have only their *place*: the number of the file and a slot in it. What
//! is in the slots at a moment is one row of `position` for each stretch in which nothing of the file moves.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;

use super::failure::GraphError;

/// Bits of a place that are the slot; the others are the file's number.
const SLOT_BITS: u32 = 24;

/// Slots of one file. The parser reads less of a file; only patterns of imports lead to more, and those beyond have no line.
const MAX_SLOTS: usize = 1 << 19;
const SLOTS: i64 = (1 << SLOT_BITS) - 1;

/// The first byte of a row: what follows is as it is, or packed.
const PLAIN: u8 = 0;
const PACKED: u8 = 1;
/// From here on a row is packed. What a machine wrote becomes very small, as its lines are all alike.
const LARGE: usize = 512;
/// Bytes of a row that is unpacked: of all slots.
const MAX_BYTES: u64 = 20 * MAX_SLOTS as u64;
/// Slots of the rows that are kept unpacked.
const MAX_RECENT: usize = 1 << 20;

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

    /// Puts a position into a free slot. Returns `None` when all slots are taken.
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
    pub(crate) fn encode(&self) -> Result<Vec<u8>, GraphError> {
        let mut bytes = vec![PLAIN];
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
        if bytes.len() < LARGE {
            return Ok(bytes);
        }
        let mut packed = DeflateEncoder::new(vec![PACKED], Compression::default());
        let written = packed.write_all(bytes.get(1..).unwrap_or_default()).and_then(|()| packed.finish());
        written.map_err(|source| GraphError::File { path: "positions of a file".to_owned(), source })
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
    if data.first() == Some(&PACKED) {
        return RECENT.with_borrow_mut(|recent| recent.find(data, place));
    }
    let slot = usize::try_from(place & SLOTS).ok()?;
    Slots::new(data.get(1..)?).nth(slot)?
}

/// Walks over the slots of a row; ends where the bytes do, or are none that were written here.
struct Slots<'d> {
    rest: &'d [u8],
    /// The line of the slot before, of each kind.
    lines: [i64; 2],
}

impl<'d> Slots<'d> {
    fn new(rest: &'d [u8]) -> Self {
        Self { rest, lines: [0; 2] }
    }

    fn take<T: serde::Deserialize<'d>>(&mut self) -> Option<T> {
        let (value, rest) = postcard::take_from_bytes(self.rest).ok()?;
        self.rest = rest;
        Some(value)
    }
}

impl Iterator for Slots<'_> {
    type Item = Option<Position>;

    fn next(&mut self) -> Option<Option<Position>> {
        let Some(head) = self.take::<u64>()?.checked_sub(1) else { return Some(None) };
        let is_span = head & 1 == 1;
        let far = i64::try_from(head >> 2).ok()?;
        let before = self.lines.get_mut(usize::from(is_span))?;
        *before = if head & 2 == 2 { before.checked_sub(far)? } else { before.checked_add(far)? };
        let first = *before;
        let line = u32::try_from(first).ok()?;
        if !is_span {
            return Some(Some(Position::Line(line)));
        }
        let (column, more): (u32, i64) = (self.take()?, self.take()?);
        let end_line = u32::try_from(first.checked_add(more)?).ok()?;
        Some(Some(Position::Span { line, column, end_line }))
    }
}

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

/// Rows with many slots that were read last: who asks for one symbol of a file asks for all of them.
#[derive(Default)]
struct Recent {
    files: HashMap<i64, (Vec<u8>, Vec<Option<Position>>)>,
    slots: usize,
}

impl Recent {
    fn find(&mut self, data: &[u8], place: i64) -> Option<Position> {
        let (file, slot) = (place >> SLOT_BITS, usize::try_from(place & SLOTS).ok()?);
        if let Some((of, slots)) = self.files.get(&file)
            && of == data
        {
            return slots.get(slot).copied().flatten();
        }
        let mut plain = Vec::new();
        let packed = data.get(1..)?;
        DeflateDecoder::new(packed).take(MAX_BYTES).read_to_end(&mut plain).ok()?;
        let slots: Vec<Option<Position>> = Slots::new(&plain).collect();
        if self.slots + slots.len() > MAX_RECENT {
            *self = Self::default();
        }
        let found = slots.get(slot).copied().flatten();
        self.slots += slots.len();
        if let Some((_, old)) = self.files.insert(file, (data.to_vec(), slots)) {
            self.slots = self.slots.saturating_sub(old.len());
        }
        found
    }
}

/// Forgets the rows that were read last.
pub(crate) fn forget() {
    RECENT.set(Recent::default());
}

#[cfg(test)]
#[path = "positions_tests.rs"]
mod tests;
