//! Numbers that say what is done: "adds two" is another job than "adds one".

use std::collections::BTreeMap;

use crate::lexicon::Contradiction;
use crate::words;

/// How the numbers are said. Ordinals and multiples count as the number they are made of.
const NAMES: [(&str, &str); 62] = [
    ("zero", "0"),
    ("half", "1/2"),
    ("halve", "1/2"),
    ("halves", "1/2"),
    ("one", "1"),
    ("first", "1"),
    ("single", "1"),
    ("two", "2"),
    ("second", "2"),
    ("double", "2"),
    ("doubles", "2"),
    ("twice", "2"),
    ("three", "3"),
    ("third", "3"),
    ("triple", "3"),
    ("triples", "3"),
    ("thrice", "3"),
    ("four", "4"),
    ("fourth", "4"),
    ("quadruple", "4"),
    ("five", "5"),
    ("fifth", "5"),
    ("six", "6"),
    ("sixth", "6"),
    ("seven", "7"),
    ("seventh", "7"),
    ("eight", "8"),
    ("eighth", "8"),
    ("nine", "9"),
    ("ninth", "9"),
    ("ten", "10"),
    ("tenth", "10"),
    ("eleven", "11"),
    ("eleventh", "11"),
    ("twelve", "12"),
    ("twelfth", "12"),
    ("dozen", "12"),
    ("thirteen", "13"),
    ("thirteenth", "13"),
    ("fourteen", "14"),
    ("fourteenth", "14"),
    ("fifteen", "15"),
    ("fifteenth", "15"),
    ("sixteen", "16"),
    ("sixteenth", "16"),
    ("seventeen", "17"),
    ("seventeenth", "17"),
    ("eighteen", "18"),
    ("eighteenth", "18"),
    ("nineteen", "19"),
    ("nineteenth", "19"),
    ("twenty", "20"),
    ("twentieth", "20"),
    ("thirty", "30"),
    ("forty", "40"),
    ("fifty", "50"),
    ("hundred", "100"),
    ("hundredth", "100"),
    ("thousand", "1000"),
    ("thousandth", "1000"),
    ("million", "1000000"),
    ("millionth", "1000000"),
];
/// Before one of these "one" is a pronoun and "second" is a time: "each one", "a second".
const NO_NUMBER_AFTER: [&str; 14] = [
    "a", "the", "this", "that", "these", "those", "which", "each", "every", "per", "any", "no", "some",
    "another",
];
/// After "one" these make it a pronoun: "one of", "one by one", "one that".
const NO_NUMBER_BEFORE: [&str; 8] = ["of", "by", "another", "that", "which", "who", "at", "or"];
/// What only says by how much or to what stays part of what is done: "increase by two", "round to two digits".
const GOES_ON: [&str; 2] = ["by", "to"];

/// The numbers of a text, each with the word that said it. Years are separate: they are dates, not amounts.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    amounts: BTreeMap<String, String>,
    years: BTreeMap<String, String>,
}

impl Numbers {
    /// The numbers among the words that say what is done: those before the first preposition that begins "of what".
    pub(crate) fn of(words: &[String]) -> Self {
        let mut numbers = Self::default();
        let mut begun = false;
        let mut previous = "";
        let mut rest = words.iter().map(String::as_str).peekable();
        while let Some(word) = rest.next() {
            if words::is_preposition(word) && begun && !GOES_ON.contains(&word) {
                break;
            }
            let next = rest.peek().copied().unwrap_or_default();
            let number = value(word).filter(|_| !is_no_number(previous, word, next));
            begun |= number.is_some() || words::has_content(word) && !words::is_preposition(word);
            if let Some(number) = number {
                let table = if is_year(word) { &mut numbers.years } else { &mut numbers.amounts };
                table.entry(number).or_insert_with(|| word.to_owned());
            }
            previous = word;
            // "One by one" is not an amount, at either end.
            if word == "one" && rest.next_if_eq(&"by").is_some() {
                rest.next_if_eq(&"one");
            }
        }
        numbers
    }

    /// The numbers of a tool's name and of its description.
    pub(crate) fn also(mut self, other: Self) -> Self {
        self.amounts.extend(other.amounts);
        self.years.extend(other.years);
        self
    }

    /// When both name numbers and none in common. Several values in a question agree with a tool that says how many
    /// it takes: "add 5 and 7" and "adds two numbers".
    pub(crate) fn contradiction(&self, tool: &Self) -> Option<Contradiction> {
        let counted = self.amounts.len() > 1 && tool.amounts.contains_key(&self.amounts.len().to_string());
        let amounts = if counted { None } else { differ(&self.amounts, &tool.amounts) };
        amounts.or_else(|| differ(&self.years, &tool.years))
    }
}

fn differ(asked: &BTreeMap<String, String>, offered: &BTreeMap<String, String>) -> Option<Contradiction> {
    if asked.keys().any(|number| offered.contains_key(number)) {
        return None;
    }
    let (asked, offered) = (asked.values().next()?, offered.values().next()?);
    Some(Contradiction { asked: asked.clone(), offered: offered.clone() })
}

fn value(word: &str) -> Option<String> {
    if !word.is_empty() && word.chars().all(|character| character.is_ascii_digit()) {
        let plain = word.trim_start_matches('0');
        return Some(if plain.is_empty() { "0" } else { plain }.to_owned());
    }
    NAMES.iter().find(|(name, _)| *name == word).map(|(_, number)| (*number).to_owned())
}

fn is_no_number(previous: &str, word: &str, next: &str) -> bool {
    match word {
        "one" => NO_NUMBER_AFTER.contains(&previous) || NO_NUMBER_BEFORE.contains(&next),
        // "The second" is a rank, "a second" is a time.
        "second" => previous != "the" && NO_NUMBER_AFTER.contains(&previous),
        _ => false,
    }
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && (word.starts_with("19") || word.starts_with("20"))
}
