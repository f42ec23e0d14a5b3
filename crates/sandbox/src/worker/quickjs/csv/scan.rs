//! The fields of a CSV text (RFC 4180), one after the other. Nothing here knows the engine.

use std::cell::Cell;

/// UTF-16 units that are passed between two questions whether the run must stop.
const SLICE_UNITS: usize = 64 * 1024;
/// What a field costs beside its length, in units: making a value takes longer than passing a character.
const FIELD_UNITS: usize = 32;

const QUOTE: u16 = b'"' as u16;
const FEED: u16 = b'\n' as u16;
const CARRIAGE: u16 = b'\r' as u16;

/// Why the next field could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanStop {
    /// A quoted field has no end.
    Unclosed,
    /// The run is over one of its limits.
    Limit,
}

/// Asks whether the run must stop, but not for every character.
pub(super) struct Watch<'a> {
    must_stop: &'a dyn Fn() -> bool,
    left: Cell<usize>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(must_stop: &'a dyn Fn() -> bool) -> Self {
        Self { must_stop, left: Cell::new(SLICE_UNITS) }
    }

    fn spend(&self, units: usize) -> Result<(), ScanStop> {
        match self.left.get().checked_sub(units) {
            Some(left) => self.left.set(left),
            None if (self.must_stop)() => return Err(ScanStop::Limit),
            None => self.left.set(SLICE_UNITS),
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'text> {
    /// The text, of a quoted field what is between the quotes.
    pub(super) inner: &'text [u16],
    /// Whether `inner` has pairs of quotes that stand for one.
    pub(super) has_doubled: bool,
    /// What follows the closing quote belongs to the field.
    pub(super) tail: &'text [u16],
    pub(super) ends_row: bool,
}

impl<'text> Field<'text> {
    pub(super) fn is_empty(&self) -> bool {
        self.inner.is_empty() && self.tail.is_empty()
    }

    /// The pieces that make up the text of the field.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &'text [u16]> {
        let has_doubled = self.has_doubled;
        let mut rest = Some(self.inner);
        let inner = std::iter::from_fn(move || {
            let text = rest?;
            let quote = if has_doubled { text.iter().position(|unit| *unit == QUOTE) } else { None };
            // The first of the two quotes is kept.
            let (piece, after) = match quote {
                Some(at) => (text.get(..=at)?, text.get(at + 2..)),
                None => (text, None),
            };
            rest = after;
            Some(piece)
        });
        inner.chain(std::iter::once(self.tail))
    }
}

pub(super) struct Scanner<'text> {
    units: &'text [u16],
    separator: Option<u16>,
    place: usize,
    /// Whether a separator came last, behind which there is a field even at the end of the text.
    in_row: bool,
    watch: Watch<'text>,
}

impl<'text> Scanner<'text> {
    /// Only a single unit separates; a line end never does, because it ends the row.
    pub(super) fn new(units: &'text [u16], separator: &[u16], watch: Watch<'text>) -> Self {
        let separator = match separator {
            [unit] if *unit != FEED && *unit != CARRIAGE => Some(*unit),
            _ => None,
        };
        Self { units, separator, place: 0, in_row: false, watch }
    }

    /// The next field; none at the end. What follows the last line end is a row only when there is something.
    pub(super) fn next_field(&mut self) -> Result<Option<Field<'text>>, ScanStop> {
        if self.place >= self.units.len() && !self.in_row {
            return Ok(None);
        }
        self.watch.spend(FIELD_UNITS)?;
        let start = self.place;
        // A quote opens only at the beginning of a field; elsewhere it is a character like others.
        let opens = self.units.get(start) == Some(&QUOTE) && self.separator != Some(QUOTE);
        let (inner, has_doubled, behind) =
            if opens { self.quoted(start + 1)? } else { (Default::default(), false, start) };
        let end = self.field_end(behind)?;
        let rest = self.units.get(behind..end).unwrap_or_default();
        let (inner, tail) = if opens { (inner, rest) } else { (rest, Default::default()) };
        self.in_row = self.separator.is_some() && self.units.get(end).copied() == self.separator;
        let is_pair = self.units.get(end) == Some(&CARRIAGE) && self.units.get(end + 1) == Some(&FEED);
        self.place = end + if is_pair { 2 } else { 1 };
        Ok(Some(Field { inner, has_doubled, tail, ends_row: !self.in_row }))
    }

    /// Counts work on what was found.
    pub(super) fn spend(&self, units: usize) -> Result<(), ScanStop> {
        self.watch.spend(units)
    }

    /// What is between the quotes, whether quotes are doubled there, and where the text behind the closing one begins.
    fn quoted(&self, from: usize) -> Result<(&'text [u16], bool, usize), ScanStop> {
        let mut has_doubled = false;
        let mut at = from;
        loop {
            let close = self.find(at, |unit| unit == QUOTE)?;
            if close >= self.units.len() {
                return Err(ScanStop::Unclosed);
            }
            if self.units.get(close + 1) != Some(&QUOTE) {
                return Ok((self.units.get(from..close).unwrap_or_default(), has_doubled, close + 1));
            }
            has_doubled = true;
            at = close + 2;
        }
    }

    fn field_end(&self, from: usize) -> Result<usize, ScanStop> {
        let separator = self.separator.unwrap_or(FEED);
        self.find(from, |unit| unit == separator || unit == FEED || unit == CARRIAGE)
    }

    /// Where the first unit is for which `is_it` holds; the end of the text when there is none.
    fn find(&self, from: usize, is_it: impl Fn(u16) -> bool) -> Result<usize, ScanStop> {
        let mut place = from;
        for slice in self.units.get(from..).unwrap_or_default().chunks(SLICE_UNITS) {
            let found = slice.iter().position(|unit| is_it(*unit));
            let passed = found.unwrap_or(slice.len());
            // One more, so that many places next to each other count too.
            self.watch.spend(passed + 1)?;
            place += passed;
            if found.is_some() {
                break;
            }
        }
        Ok(place)
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
