//! Repairs slips of the keyboard in a question, against the words that the registry's tools use.

use std::collections::HashMap;

/// Words of one question that are repaired; a text with more unknown words is not a question with a slip.
const MAX_REPAIRS: usize = 16;
/// A slip in a shorter word could mean too many things.
const MIN_CHARACTERS: usize = 3;
/// From this length on a word may have two slips.
const LONG_CHARACTERS: usize = 6;
/// Letters that a slip adds. A word that is longer by more is another word: "readme" is not "read".
const MAX_ADDED: usize = 1;

/// One repaired word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    pub(crate) written: String,
    pub(crate) read: String,
}

/// Whether a word is one of the language, as far as this build knows.
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
    let length = word.chars().count();
    let candidates = dictionary.iter().filter(|(known, _)| known.len().abs_diff(word.len()) <= allowed);
    let near = candidates.filter_map(|(known, uses)| {
        let known_length = known.chars().count();
        let is_other = length > known_length + MAX_ADDED;
        if known_length < MIN_CHARACTERS || is_other || known.chars().next() != word.chars().next() {
            return None;
        }
        let slips = tgp_text::edit_distance(word, known);
        (slips <= allowed).then_some((slips, std::cmp::Reverse(*uses), known))
    });
    near.min().map(|(_, _, known)| known.clone())
}
