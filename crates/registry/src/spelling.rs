//! Repairs slips of the keyboard in a question, against the words that the registry's tools use.

use std::collections::HashMap;

/// Words of one question that are repaired; a text with more unknown words is no question with a slip.
const MAX_REPAIRS: usize = 16;
/// A slip in a shorter word could mean too many things.
const MIN_CHARACTERS: usize = 3;
/// From this length on a word may have two slips.
const LONG_CHARACTERS: usize = 6;
/// Letters that a slip adds. A word that is longer by more is another word: "readme" is no "read".
const MAX_ADDED: usize = 1;

/// One repaired word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    pub(crate) written: String,
    pub(crate) read: String,
}

/// Whether a word is one of the language, as far as this build can tell.
fn is_common(word: &str) -> bool {
    #[cfg(feature = "embedded-model")]
    return crate::model::Model::get().is_some_and(|model| model.knows_word(word));
    #[cfg(not(feature = "embedded-model"))]
    return word.len() < LONG_CHARACTERS;
}

/// Replaces each word that neither the language nor the registry knows by the nearest one of the registry.
pub(crate) fn repair(words: &mut [String], dictionary: &HashMap<String, usize>) -> Vec<Repair> {
    let mut repairs = Vec::new();
    for word in words {
        let length = word.chars().count();
        let readable = length >= MIN_CHARACTERS && word.chars().all(char::is_alphabetic);
        if !readable || dictionary.contains_key(word.as_str()) || is_common(word) {
            continue;
        }
        let allowed = if length >= LONG_CHARACTERS { 2 } else { 1 };
        if let Some(read) = nearest(word, allowed, dictionary) {
            let written = std::mem::replace(word, read.clone());
            repairs.push(Repair { written, read });
            if repairs.len() >= MAX_REPAIRS {
                break;
            }
        }
    }
    repairs
}

/// The word with the fewest slips; of equals the one that more tools use, then the first in the alphabet.
fn nearest(word: &str, allowed: usize, dictionary: &HashMap<String, usize>) -> Option<String> {
    let letters: Vec<char> = word.chars().collect();
    let candidates = dictionary.iter().filter(|(known, _)| known.len().abs_diff(word.len()) <= allowed);
    let near = candidates.filter_map(|(known, uses)| {
        let other: Vec<char> = known.chars().collect();
        let is_other = letters.len() > other.len() + MAX_ADDED;
        if other.len() < MIN_CHARACTERS || is_other || other.first() != letters.first() {
            return None;
        }
        let slips = distance(&letters, &other);
        (slips <= allowed).then_some((slips, std::cmp::Reverse(*uses), known))
    });
    near.min().map(|(_, _, known)| known.clone())
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous_letter = None;
    for (row, letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        let mut left_cost = row + 1;
        let mut previous_other = None;
        for (column, other) in right.iter().enumerate() {
            let at = |costs: &[usize], index: usize| costs.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(letter != other);
            let mut cost = replaced.min(at(&last, column + 1) + 1).min(left_cost + 1);
            if previous_letter == Some(other) && previous_other == Some(letter) && column > 0 {
                cost = cost.min(at(&before, column - 1) + 1);
            }
            current.push(cost);
            left_cost = cost;
            previous_other = Some(other);
        }
        before = std::mem::replace(&mut last, current);
        previous_letter = Some(letter);
    }
    last.last().copied().unwrap_or(0)
}
