//! Reads values out of a YAML tree and notes what is wrong with them.

use tgp_contract::SourceLocation;
use tgp_text::{LineCol, did_you_mean, truncate};

use crate::pattern::{PatternError, PatternErrors};
use crate::problem::Problems;
use crate::yaml::{Entry, Node, Yaml};

/// More alternatives than a person reads; a longer list belongs in a glob.
const MAX_LIST: usize = 256;

/// Reads one file. What is wrong is noted, and the reading continues, so that everything is reported at once.
pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) problems: &'a mut Problems,
}

/// The fields of a mapping, all of them known.
#[derive(Clone, Copy)]
pub(super) struct Fields<'n> {
    entries: &'n [Entry],
    pub(super) spot: LineCol,
}

impl<'n> Fields<'n> {
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Words of a list with their places.
pub(super) type Words<'n> = Vec<(&'n Node, &'n str)>;

impl Reader<'_> {
    pub(super) fn place(&self, spot: LineCol) -> SourceLocation {
        spot.in_file(self.file)
    }

    pub(super) fn wrong(&mut self, spot: LineCol, message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(spot);
        self.problems.add(place, message, help);
    }

    fn unexpected<T>(&mut self, node: &Node, what: &str, wanted: &str) -> Option<T> {
        let help = match &node.value {
            Yaml::Number(_) | Yaml::Bool(_) if wanted.starts_with("text") => "put it in quotes",
            _ => "see the page on policies for the shape of every field",
        };
        self.wrong(node.spot, format!("{what} has to be {wanted}, not {}", node.kind()), help);
        None
    }

    /// The fields of a mapping; one that is not among `known` is wrong.
    pub(super) fn fields<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Fields<'n>> {
        let entries = self.entries(node, what)?;
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let key = entry.key.escape_debug();
            let help = did_you_mean(&entry.key, known.iter().copied())
                .unwrap_or_else(|| format!("the fields are {}", quoted(known)));
            self.wrong(entry.spot, format!("`{key}` is not a field of {what}"), help);
        }
        Some(Fields { entries, spot: node.spot })
    }

    pub(super) fn entries<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Yaml::Map(entries) => Some(entries),
            _ => self.unexpected(node, what, "a mapping"),
        }
    }

    pub(super) fn items<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.value {
            Yaml::List(items) => Some(items),
            _ => self.unexpected(node, what, "a list"),
        }
    }

    /// The node itself, or the items of a list that is neither empty nor endless.
    pub(super) fn one_or_more<'n>(&mut self, node: &'n Node, what: &str) -> Option<Vec<&'n Node>> {
        let Yaml::List(items) = &node.value else { return Some(vec![node]) };
        if items.is_empty() {
            self.wrong(node.spot, format!("{what} is empty"), "name at least one, or leave the field out");
            return None;
        }
        if items.len() > MAX_LIST {
            let message = format!("{what} has {} values, at most {MAX_LIST}", items.len());
            self.wrong(node.spot, message, "write a glob, or split the rule");
            return None;
        }
        Some(items.iter().collect())
    }

    pub(super) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.value {
            Yaml::Text(text) => Some(text),
            _ => self.unexpected(node, what, "text"),
        }
    }

    /// One text or a list of them.
    pub(super) fn words<'n>(&mut self, node: &'n Node, what: &str) -> Option<Words<'n>> {
        let nodes = self.one_or_more(node, what)?;
        let words: Words<'n> =
            nodes.iter().filter_map(|node| self.text(node, what).map(|text| (*node, text))).collect();
        (words.len() == nodes.len()).then_some(words)
    }

    /// One word out of a few, or a list of them.
    pub(super) fn choices<T>(
        &mut self,
        node: &Node,
        what: &str,
        known: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let words = self.words(node, what)?;
        let count = words.len();
        let choices: Vec<T> = words
            .into_iter()
            .filter_map(|(node, word)| self.parsed(node, word, what, known, &parse))
            .collect();
        (choices.len() == count).then_some(choices)
    }

    pub(super) fn choice<T>(
        &mut self,
        node: &Node,
        what: &str,
        known: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let word = self.text(node, what)?;
        self.parsed(node, word, what, known, &parse)
    }

    fn parsed<T>(
        &mut self,
        node: &Node,
        word: &str,
        what: &str,
        known: &[&str],
        parse: &impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let value = parse(word);
        if value.is_none() {
            let message = format!("unknown {what} `{}`", word.escape_debug());
            let help = did_you_mean(word, known.iter().copied())
                .unwrap_or_else(|| format!("there are {}", quoted(known)));
            self.wrong(node.spot, message, help);
        }
        value
    }

    /// A whole number that is not negative.
    pub(super) fn count(&mut self, node: &Node, what: &str) -> Option<u64> {
        match &node.value {
            Yaml::Number(number) if number.as_u64().is_some() => number.as_u64(),
            _ => self.unexpected(node, what, "a whole number from 0"),
        }
    }

    pub(super) fn number(&mut self, node: &Node, what: &str) -> Option<f64> {
        match &node.value {
            Yaml::Number(number) => number.as_f64(),
            _ => self.unexpected(node, what, "a number"),
        }
    }

    /// What a list of patterns compiled to, or the bad ones noted at their own places.
    pub(super) fn compiled<T>(&mut self, words: &Words<'_>, result: Result<T, PatternErrors>) -> Option<T> {
        for (index, error) in result.as_ref().err().into_iter().flatten() {
            if let Some((node, word)) = words.get(*index) {
                self.bad_pattern(node, word, error);
            }
        }
        result.ok()
    }

    pub(super) fn bad_pattern(&mut self, node: &Node, word: &str, error: &PatternError) {
        let message = format!("pattern `{}` {error}", shortened(word));
        self.wrong(node.spot, message, "correct the pattern; the page on policies shows each kind");
    }
}

/// How much of a bad pattern is shown.
const SHOWN: usize = 80;

fn shortened(word: &str) -> String {
    truncate(word, SHOWN).escape_debug().to_string()
}

pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
