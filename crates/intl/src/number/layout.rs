//! Where a number goes among signs, symbols and words.

use icu_pattern::{PatternItem, SinglePlaceholderPattern};

use super::symbols::Symbols;
use crate::part::{Part, push};

/// The sign that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    None,
    Minus,
    Plus,
}

impl Sign {
    pub(crate) fn part(self, symbols: &Symbols) -> Part {
        match self {
            Self::None => Part::literal(""),
            Self::Minus => Part::new("minusSign", symbols.minus.0.clone()),
            Self::Plus => Part::new("plusSign", symbols.plus.0.clone()),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Number,
    Part(Part),
}

/// The slots of a formatted number, from first to last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout(Vec<Slot>);

impl Layout {
    pub(crate) fn number() -> Self {
        Self(vec![Slot::Number])
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        self.0.push(slot);
    }

    /// A layout from a pattern whose text, apart from the spaces around it, is of one kind.
    pub(crate) fn from_pattern(pattern: &SinglePlaceholderPattern, kind: &'static str) -> Self {
        let mut layout = Self::default();
        for item in pattern.iter() {
            match item {
                PatternItem::Placeholder(_) => layout.push(Slot::Number),
                PatternItem::Literal(text) => layout.push_words(text, kind),
            }
        }
        layout
    }

    /// Text of one kind, with the spaces around it as literals.
    pub(crate) fn push_words(&mut self, text: &str, kind: &'static str) {
        let words = text.trim();
        let Some(start) = text.find(words).filter(|_| !words.is_empty()) else {
            self.push(Slot::Part(Part::literal(text)));
            return;
        };
        self.push(Slot::Part(Part::literal(text.get(..start).unwrap_or_default())));
        self.push(Slot::Part(Part::new(kind, words)));
        self.push(Slot::Part(Part::literal(text.get(start + words.len()..).unwrap_or_default())));
    }

    /// Puts the sign around everything.
    pub(crate) fn with_sign(mut self, sign: Sign, symbols: &Symbols) -> Self {
        let (kind, (prefix, suffix)) = match sign {
            Sign::None => return self,
            Sign::Minus => ("minusSign", &symbols.minus),
            Sign::Plus => ("plusSign", &symbols.plus),
        };
        self.0.insert(0, Slot::Part(Part::new(kind, prefix.as_str())));
        self.0.push(Slot::Part(Part::new(kind, suffix.as_str())));
        self
    }

    /// Puts another layout where the number is.
    pub(crate) fn around(self, inner: &Self) -> Self {
        let mut slots = Vec::new();
        for slot in self.0 {
            match slot {
                Slot::Number => slots.extend(inner.0.iter().cloned()),
                part @ Slot::Part(_) => slots.push(part),
            }
        }
        Self(slots)
    }

    pub(crate) fn fill(self, number: &[Part]) -> Vec<Part> {
        let mut parts = Vec::new();
        for slot in self.0 {
            match slot {
                Slot::Number => number.iter().cloned().for_each(|part| push(&mut parts, part)),
                Slot::Part(part) => push(&mut parts, part),
            }
        }
        parts
    }
}
