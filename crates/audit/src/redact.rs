//! Taking secrets out of a record before it is hashed, so that not even a hash of one is kept.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::{Map, Value};
use tgp_contract::{Code, ToolError};

use crate::secret_patterns::{
    ASSIGNED, NAMES, SHAPES, TOKEN_BEGINNINGS, VARIABLES, WHOLE_NAMES, assignments, compile,
};

/// A longer text is not a name; looking for each beginning of a token in it would take longer than the patterns.
const MAX_WORD_BYTES: usize = 256;
/// What replaces a secret.
const REDACTED: &str = "[redacted]";
/// A shorter value is an ordinary word sooner or later.
const MIN_VALUE_CHARS: usize = 6;
/// The patterns are built at every start, so they must not grow without end.
const MAX_VALUES_BYTES: usize = 64 << 10;
/// A name this short is compared with whole words only: `pwd` hides a `db_pwd`, and must not hide a `cpwd`.
const MIN_SUFFIX_BYTES: usize = 5;
/// serde_json reads back at most 128 levels, of which the entry around the arguments takes some.
const MAX_DEPTH: usize = 100;
const TOO_DEEP: &str = "[nested too deeply to be kept]";

/// Knows secrets by the name of their argument, by their value and by their shape.
pub struct Redaction {
    names: Vec<String>,
    /// All patterns at once. Whether one matches is known after one pass, and mostly none does. Making it takes longer
    /// than many a call, so it waits for the first text that could hide anything.
    any: OnceLock<Option<Regex>>,
    /// Looked for as they are before any pattern is made.
    values: Vec<String>,
    /// Each by itself, with what takes its place; made when the first secret is found, which most processes never see.
    single: OnceLock<Vec<(Regex, &'static str)>>,
    patterns: Vec<(String, &'static str)>,
}

impl fmt::Debug for Redaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redaction").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Redaction {
    /// Whether a text shows that something was taken out of it.
    pub(crate) fn is_mark(text: &str) -> bool {
        text.contains(REDACTED) || text.contains(TOO_DEEP)
    }

    /// Whether there are few enough secrets for one pattern, without making it.
    ///
    /// # Errors
    /// `ECONFIG` when there are not.
    pub(crate) fn check(names: &[String], values: &[String]) -> Result<(), ToolError> {
        let bytes: usize = names.iter().chain(values).map(String::len).sum();
        if bytes > MAX_VALUES_BYTES { Err(too_much()) } else { Ok(()) }
    }

    /// Knows `names` beside the built-in ones, and `values`, of which those that are too short are ignored.
    ///
    /// # Errors
    /// `ECONFIG` when they are too many or too long for one pattern.
    pub fn new(names: &[String], values: &[String]) -> Result<Self, ToolError> {
        let mut all: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        all.extend(names.iter().map(|name| plain(name)).filter(|name| !name.is_empty()));
        let mut values: Vec<&str> = values
            .iter()
            .map(|value| value.trim())
            .filter(|value| value.chars().count() >= MIN_VALUE_CHARS)
            .collect();
        // The first alternative wins, and a value can be the beginning of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        if values.iter().map(|value| value.len()).sum::<usize>() > MAX_VALUES_BYTES {
            return Err(too_much());
        }
        let known: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let values: Vec<String> = values.into_iter().map(value_pattern).collect();
        let values = (!values.is_empty()).then(|| values.join("|"));
        let assigned = assignments(&all);
        all.extend(WHOLE_NAMES.iter().map(|name| (*name).to_owned()));
        let values = values.map(|values| (values, REDACTED));
        let shapes = SHAPES.iter().map(|(pattern, instead)| ((*pattern).to_owned(), *instead));
        let patterns: Vec<(String, &'static str)> =
            values.into_iter().chain(shapes).chain([(assigned, ASSIGNED)]).collect();
        Ok(Self { any: OnceLock::new(), values: known, single: OnceLock::new(), patterns, names: all })
    }

    /// Whether no pattern can match: a shape without a blank, a colon or an equals sign begins with one of a few words.
    /// Making the patterns takes longer than a whole command, and most never need them.
    fn is_harmless(&self, text: &str) -> bool {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.');
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'.');
        if self.values.iter().any(|value| text.contains(value.as_str())) {
            return false;
        }
        if text.len() > MAX_WORD_BYTES {
            return text.bytes().all(is_plain);
        }
        text.bytes().all(is_word) && !TOKEN_BEGINNINGS.iter().any(|beginning| text.contains(beginning))
    }

    /// Whether some pattern matches. Patterns that cannot be made hide everything.
    fn may_hide(&self, text: &str) -> bool {
        let any = self.any.get_or_init(|| {
            let all: Vec<String> =
                self.patterns.iter().map(|(pattern, _)| format!("(?:{pattern})")).collect();
            compile(&all.join("|")).ok()
        });
        any.as_ref().is_none_or(|any| any.is_match(text))
    }

    /// The text without secrets.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_harmless(text) || !self.may_hide(text) {
            return Cow::Borrowed(text);
        }
        let mut clean = Cow::Borrowed(text);
        let mut replace = |regex: &Regex, instead: &str| {
            if let Cow::Owned(replaced) = regex.replace_all(&clean, instead) {
                clean = Cow::Owned(replaced);
            }
        };
        let single = self.single.get_or_init(|| {
            // A part of a pattern that compiles as a whole compiles as well.
            let compiled =
                |(pattern, instead): &(String, &'static str)| Some((compile(pattern).ok()?, *instead));
            self.patterns.iter().filter_map(compiled).collect()
        });
        if single.len() != self.patterns.len() {
            return Cow::Borrowed(REDACTED);
        }
        for (regex, instead) in single {
            replace(regex, instead);
        }
        clean
    }

    /// The same for every text in a value, keys included; a value under the name of a secret is removed as a
    /// whole.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        self.below(value, 0)
    }

    fn below(&self, value: Value, depth: usize) -> Value {
        if depth > MAX_DEPTH && (value.is_array() || value.is_object()) {
            return Value::String(TOO_DEEP.to_owned());
        }
        match value {
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(clean) => Value::String(clean),
            },
            Value::Array(items) => self.array(items, depth),
            Value::Object(fields) => self.object(fields, depth),
            other => other,
        }
    }

    fn array(&self, items: Vec<Value>, depth: usize) -> Value {
        // A header is often a pair of name and value, and a command a list of an option and its value.
        let mut is_secret = false;
        let items = items.into_iter().map(|item| {
            let names_secret =
                item.as_str().is_some_and(|text| self.names_next(text.trim_start_matches('-')));
            let kept = if is_secret { hidden(item) } else { self.below(item, depth + 1) };
            is_secret = names_secret;
            kept
        });
        Value::Array(items.collect())
    }

    fn object(&self, fields: Map<String, Value>, depth: usize) -> Value {
        let named = ["name", "key", "header"].iter().find_map(|key| fields.get(*key)?.as_str());
        let is_pair = named.is_some_and(|name| self.is_secret(name));
        let mut clean = Map::new();
        for (key, value) in fields {
            let hide = self.is_secret(&key) || (is_pair && plain(&key) == "value");
            let value = if hide { hidden(value) } else { self.below(value, depth + 1) };
            let mut key = self.text(&key).into_owned();
            // Two keys can lose what made them differ; both values stay.
            while clean.contains_key(&key) {
                key.push('+');
            }
            clean.insert(key, value);
        }
        Value::Object(clean)
    }

    /// Whether an item of a list is the name of a secret that comes after it. A sentence or a statement that ends with
    /// such a name is not.
    fn names_next(&self, text: &str) -> bool {
        if text.trim().contains(char::is_whitespace) {
            return self.names.contains(&plain(text));
        }
        self.is_secret(text)
    }

    fn is_secret(&self, name: &str) -> bool {
        let (whole, last) = (plain(name), plain(last_word(name)));
        let is_variable = || {
            VARIABLES.iter().any(|end| name.ends_with(end))
                && !name.contains(|letter: char| letter.is_lowercase())
        };
        self.names.iter().any(|secret| {
            whole == *secret
                || last == *secret
                || (secret.len() >= MIN_SUFFIX_BYTES && whole.ends_with(secret.as_str()))
        }) || is_variable()
    }
}

/// `pass` in `db_pass` and in `dbPass`.
fn last_word(name: &str) -> &str {
    let mut start = 0;
    let mut was_lowercase = false;
    for (place, letter) in name.char_indices() {
        if !letter.is_alphanumeric() {
            start = place + letter.len_utf8();
        } else if was_lowercase && letter.is_uppercase() {
            start = place;
        }
        was_lowercase = letter.is_lowercase();
    }
    name.get(start..).unwrap_or_default()
}

/// The error of a pattern itself would show the secrets in it.
/// A pattern for a secret as it is. The digits of percent-encoded letters are compared without case: programs mix them.
fn value_pattern(value: &str) -> String {
    let mut parts = value.split('%');
    let mut pattern = regex::escape(parts.next().unwrap_or_default());
    for part in parts {
        match part.split_at_checked(2) {
            Some((digits, rest)) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                pattern.push_str(&format!("%(?i:{digits}){}", regex::escape(rest)));
            }
            _ => pattern.push_str(&format!("%{}", regex::escape(part))),
        }
    }
    pattern
}

fn too_much() -> ToolError {
    ToolError::new(Code::Config, "the secrets to redact are too many or too long to be searched for")
        .help("name fewer or shorter ones in `audit.redact`")
}

/// An empty value is not a secret, and whether something was there may matter.
fn hidden(value: Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value,
        _ => Value::String(REDACTED.to_owned()),
    }
}

/// A name as it is compared: without case, `-`, `_` and similar characters.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
