//! "A to B" against "B to A": the same words, the opposite job.

use std::collections::BTreeSet;

use crate::lexicon::Lexicon;
use crate::words;

/// Words on either side of the "to" that can name what is converted.
const REACH: usize = 3;
/// A text that says more is not a description of one conversion.
const MAX_CONVERSIONS: usize = 8;
/// They are beside the names of what is converted and name nothing themselves.
const CONVERTING: [&str; 14] = [
    "convert",
    "transform",
    "turn",
    "change",
    "parse",
    "encode",
    "decode",
    "format",
    "translate",
    "render",
    "build",
    "create",
    "generate",
    "value",
];

/// From what to what.
#[derive(Debug)]
pub(crate) struct Conversion {
    source: BTreeSet<String>,
    target: BTreeSet<String>,
}

impl Conversion {
    /// The conversions that `words` speak of: "A to B", "A into B", "A as B", and "B from A".
    pub(crate) fn all(words: &[String]) -> Vec<Self> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let (before, after) = words.split_at(at);
            let left = named(before.iter().rev());
            let right = named(after.iter().skip(1));
            if left.is_empty() || right.is_empty() {
                continue;
            }
            match word.as_str() {
                "to" | "into" | "as" | "in" => found.push(Self { source: left, target: right }),
                "from" => found.push(Self { source: right, target: left }),
                _ => continue,
            }
            if found.len() >= MAX_CONVERSIONS {
                break;
            }
        }
        found
    }

    /// Whether this goes where `other` comes from, and nothing speaks for the same direction.
    pub(crate) fn reverses(&self, other: &Self) -> bool {
        !self.source.is_disjoint(&other.target)
            && !self.target.is_disjoint(&other.source)
            && self.source.is_disjoint(&other.source)
            && self.target.is_disjoint(&other.target)
    }
}

fn named<'a>(words: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let lexicon = Lexicon::get();
    words
        .take(REACH)
        .filter(|word| words::has_content(word) && !CONVERTING.contains(&word.as_str()))
        .map(|word| lexicon.canonical(&words::stem(word)))
        .collect()
}
