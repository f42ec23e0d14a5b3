//! Markers of requirements, such as `python_version >= "3.9" and extra == "test"`: checked and printed again, never
//! evaluated. pip evaluates them.

use std::fmt;

use crate::RequirementError;

/// Comparisons of one marker.
const MAX_COMPARISONS: usize = 64;
/// Parentheses inside parentheses.
const MAX_DEPTH: usize = 16;

const VARIABLES: [&str; 12] = [
    "python_version",
    "python_full_version",
    "os_name",
    "sys_platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
    "implementation_version",
    "extra",
];

const OPERATORS: [&str; 8] = ["===", "==", "!=", "<=", ">=", "~=", "<", ">"];

/// A marker as the words that it is printed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker(Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Open,
    Close,
    And,
    Or,
    Operator(&'static str),
    Variable(&'static str),
    Text(String),
}

impl Marker {
    pub(crate) fn parse(text: &str) -> Result<Self, RequirementError> {
        let words = words(text)?;
        let mut grammar = Grammar { rest: &words, comparisons: 0 };
        grammar.either(0)?;
        match grammar.rest {
            [] => Ok(Self(words)),
            [word, ..] => Err(refused(&format!("unexpected `{word}`"))),
        }
    }

    /// Holds where both hold.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut words = vec![Word::Open];
        words.extend(self.0.iter().cloned());
        words.extend([Word::Close, Word::And, Word::Open]);
        words.extend(other.0.iter().cloned());
        words.push(Word::Close);
        Self(words)
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&words.join(" "))
    }
}

impl fmt::Display for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => out.write_str("("),
            Self::Close => out.write_str(")"),
            Self::And => out.write_str("and"),
            Self::Or => out.write_str("or"),
            Self::Operator(word) | Self::Variable(word) => out.write_str(word),
            Self::Text(text) => write!(out, "\"{text}\""),
        }
    }
}

fn refused(why: &str) -> RequirementError {
    RequirementError::Marker(why.to_owned())
}

fn words(text: &str) -> Result<Vec<Word>, RequirementError> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn word(text: &str) -> Result<(Word, &str), RequirementError> {
    if let Some(rest) = text.strip_prefix('(') {
        return Ok((Word::Open, rest));
    }
    if let Some(rest) = text.strip_prefix(')') {
        return Ok((Word::Close, rest));
    }
    for quote in ['"', '\''] {
        let Some(rest) = text.strip_prefix(quote) else { continue };
        let (value, rest) = rest.split_once(quote).ok_or_else(|| refused("a text does not end"))?;
        return Ok((Word::Text(value_of(value)?), rest));
    }
    if let Some(operator) = OPERATORS.iter().find(|operator| text.starts_with(**operator)) {
        return Ok((Word::Operator(operator), text.get(operator.len()..).unwrap_or_default()));
    }
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    let end = text.find(|letter| !is_of_word(letter)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let word = match name {
        "and" => Word::And,
        "or" => Word::Or,
        "in" => Word::Operator("in"),
        "not" => {
            let rest = rest.trim_start().strip_prefix("in").filter(|rest| !rest.starts_with(is_of_word));
            let rest = rest.ok_or_else(|| refused("expected `in` after `not`"))?;
            return Ok((Word::Operator("not in"), rest));
        }
        // As old metadata writes them.
        "os.name" => Word::Variable("os_name"),
        "sys.platform" => Word::Variable("sys_platform"),
        "platform.version" => Word::Variable("platform_version"),
        "platform.machine" => Word::Variable("platform_machine"),
        "platform.python_implementation" | "python_implementation" => {
            Word::Variable("platform_python_implementation")
        }
        _ => {
            let known = VARIABLES.iter().find(|variable| **variable == name);
            Word::Variable(known.ok_or_else(|| refused(&format!("unknown word at `{text}`")))?)
        }
    };
    Ok((word, rest))
}

/// A text of a marker. pip reads requirements as lines: a quote, a comment, a variable or what looks like an option ends or
/// changes a line, whatever is around it.
fn value_of(text: &str) -> Result<String, RequirementError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ._-+*!/".contains(letter);
    if !text.chars().all(is_plain) || text.contains(" -") || text.starts_with('-') {
        return Err(refused(&format!("the text `{text}` cannot be used")));
    }
    Ok(text.to_owned())
}

/// The grammar of markers, over words that are left.
struct Grammar<'a> {
    rest: &'a [Word],
    comparisons: usize,
}

impl<'a> Grammar<'a> {
    fn next(&mut self) -> Option<&'a Word> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn takes(&mut self, word: &Word) -> bool {
        let is_next = self.rest.first() == Some(word);
        if is_next {
            self.next();
        }
        is_next
    }

    fn either(&mut self, depth: usize) -> Result<(), RequirementError> {
        self.both(depth)?;
        while self.takes(&Word::Or) {
            self.both(depth)?;
        }
        Ok(())
    }

    fn both(&mut self, depth: usize) -> Result<(), RequirementError> {
        self.one(depth)?;
        while self.takes(&Word::And) {
            self.one(depth)?;
        }
        Ok(())
    }

    fn one(&mut self, depth: usize) -> Result<(), RequirementError> {
        if depth > MAX_DEPTH {
            return Err(refused("too many parentheses"));
        }
        if self.takes(&Word::Open) {
            self.either(depth + 1)?;
            return if self.takes(&Word::Close) { Ok(()) } else { Err(refused("expected `)`")) };
        }
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            return Err(refused("too many comparisons"));
        }
        self.value()?;
        match self.next() {
            Some(Word::Operator(_)) => self.value(),
            _ => Err(refused("expected a comparison")),
        }
    }

    fn value(&mut self) -> Result<(), RequirementError> {
        match self.next() {
            Some(Word::Variable(_) | Word::Text(_)) => Ok(()),
            _ => Err(refused("expected a variable or a text")),
        }
    }
}
