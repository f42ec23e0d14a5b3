//! Words of names and sentences: how they are cut, which of them carry meaning, and what their stems are.

use std::collections::{BTreeSet, HashSet};
use std::sync::OnceLock;

/// Words of one text that are read. A question or a description has a few dozen; a hostile one has no end.
const MAX_WORDS: usize = 400;
/// Characters of one word that are kept; no word of a language is longer.
const MAX_WORD_CHARACTERS: usize = 40;
/// Characters of a text that are read, so that one without any letter is given up too.
const MAX_CHARACTERS: usize = 16 * 1024;

/// Words without meaning for a search.
const EMPTY_WORDS: &str = "a an the of for to in on at by from with and or is are was were be been it its this that \
     these those do does did how what which who whom whose when where why i we our us you your my me he she his her \
     they them their can could should would will may might must has have had each per as into out up down than then \
     there here not no any some all every both between among if so such only just also about s t please need want get \
     give make find show list compute calculate given using use tool many much let via nth th";

/// Words that end the head of a phrase: what follows only says of what, from where, for whom.
const PREPOSITIONS: &str = "of for per by in on from between with at to into among against within after before above \
     below over under as than when where that which who whose using while until since via without";

/// Lower-case words of `text`: cut at everything that is not a letter or digit, and where camelCase turns.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous_is_lower = false;
    for character in text.chars().take(MAX_CHARACTERS).chain([' ']) {
        let turns = previous_is_lower && character.is_uppercase();
        if (turns || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
            if words.len() >= MAX_WORDS {
                break;
            }
        }
        if character.is_alphanumeric() && word.chars().count() < MAX_WORD_CHARACTERS {
            word.extend(character.to_lowercase());
        }
        previous_is_lower = character.is_lowercase() || character.is_numeric();
    }
    words
}

/// Whether a word carries meaning: neither a number nor one of the empty words.
pub(crate) fn has_content(word: &str) -> bool {
    !is_number(word) && !empty_words().contains(word)
}

pub(crate) fn is_preposition(word: &str) -> bool {
    prepositions().contains(word)
}

pub(crate) fn is_number(word: &str) -> bool {
    word.chars().all(char::is_numeric)
}

/// The words that say what is wanted: those before the first preposition, "bounce rate" of "bounce rate of a campaign".
pub(crate) fn head(words: &[String]) -> Vec<&str> {
    let mut head = Vec::new();
    for word in words {
        if is_preposition(word) && !head.is_empty() {
            break;
        }
        if has_content(word) && !is_preposition(word) {
            head.push(word.as_str());
        }
    }
    head
}

/// What is left of a word without its endings, so that "dates", "date" and "dating" are one. Only to compare. The
/// ending of "yearly" stays: "each month of a year" is not yearly.
pub(crate) fn stem(word: &str) -> String {
    let word = respelled(word);
    let singular = without_plural(&word);
    let endings = ["isation", "ization", "ation", "ing", "ed", "ise", "ize", "er"];
    let shortened = endings.iter().find_map(|ending| {
        let rest = singular.strip_suffix(ending)?;
        let enough = if ending.len() > 2 && ending.starts_with('i') && *ending != "ing" { 4 } else { 3 };
        (rest.chars().count() >= enough).then(|| rest.to_owned())
    });
    let mut stem = shortened.unwrap_or(singular);
    if stem.chars().count() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    let mut ends = stem.chars().rev();
    if let (Some(last), Some(before)) = (ends.next(), ends.next())
        && last == before
        && last.is_ascii_alphabetic()
        && stem.len() > 3
    {
        stem.pop();
    }
    stem
}

/// British and American spelling as one.
fn respelled(word: &str) -> String {
    match (word.strip_suffix("tre"), word.replace("colour", "color")) {
        (Some(rest), _) if rest.len() > 1 => format!("{rest}ter"),
        (_, replaced) => replaced,
    }
}

fn without_plural(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| rest.len() > 1) {
        return format!("{rest}y");
    }
    let doubled = ["sses", "xes", "ches", "shes", "zes"].iter().any(|ending| word.ends_with(ending));
    if let Some(rest) = word.strip_suffix("es").filter(|_| doubled) {
        return rest.to_owned();
    }
    let kept = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    match word.strip_suffix('s').filter(|rest| !kept && rest.len() > 2) {
        Some(rest) => rest.to_owned(),
        None => word.to_owned(),
    }
}

/// Three letters in a row, at the borders of words too.
pub(crate) fn trigrams(words: &[String]) -> BTreeSet<[char; 3]> {
    let text: Vec<char> = format!(" {} ", words.join(" ")).chars().collect();
    text.windows(3).filter_map(|window| window.try_into().ok()).collect()
}

/// Dice's coefficient: 1 when both have the same trigrams, 0 when they share none.
pub(crate) fn dice(left: &BTreeSet<[char; 3]>, right: &BTreeSet<[char; 3]>) -> f32 {
    let all = left.len() + right.len();
    let shared = left.intersection(right).count();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred trigrams")]
    if all == 0 { 0.0 } else { 2.0 * shared as f32 / all as f32 }
}

fn empty_words() -> &'static HashSet<&'static str> {
    static WORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| EMPTY_WORDS.split_ascii_whitespace().collect())
}

fn prepositions() -> &'static HashSet<&'static str> {
    static WORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| PREPOSITIONS.split_ascii_whitespace().collect())
}
