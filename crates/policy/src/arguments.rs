//! Matchers for single arguments, named by a dotted path.

use std::fmt;

use globset::GlobSet;
use regex::Regex;
use serde_json::{Number, Value};
use tgp_contract::canonical;

use crate::pattern::{MAX_TEXT_BYTES, MatchBias};

/// Deeper than the schema of any tool.
pub(crate) const MAX_SEGMENTS: usize = 16;

/// What an argument has to be.
#[derive(Clone, Debug)]
pub(crate) enum ArgumentTest {
    /// One of these.
    Equal(Vec<Value>),
    Regex(Regex),
    Glob(GlobSet),
    Range {
        min: Option<f64>,
        max: Option<f64>,
    },
}

/// A test of the value at a path. A part `*` means every element of a list and every field of an object.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentMatcher {
    path: Vec<String>,
    test: ArgumentTest,
}

impl ArgumentMatcher {
    /// `None` when the path has an empty part or too many of them.
    pub(crate) fn new(path: &str, test: ArgumentTest) -> Option<Self> {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let fits = path.len() <= MAX_SEGMENTS && !path.iter().any(String::is_empty);
        fits.then_some(Self { path, test })
    }

    /// Whether the argument fits; `None` when a text is too long or a number too large to be tested. A restricting rule
    /// needs one value that fits, a permitting one needs at least one value and all of them.
    pub(crate) fn test(&self, arguments: &Value, leaning: MatchBias) -> Option<bool> {
        let mut found = vec![arguments];
        for part in &self.path {
            found = found.into_iter().flat_map(|value| children(value, part)).collect();
        }
        let results: Option<Vec<bool>> =
            found.into_iter().map(|value| self.test.fits(value, leaning)).collect();
        let results = results?;
        Some(match leaning {
            MatchBias::Restricting => results.contains(&true),
            MatchBias::Permitting => !results.is_empty() && !results.contains(&false),
        })
    }
}

impl fmt::Display for ArgumentMatcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path.join("."))
    }
}

fn children<'a>(value: &'a Value, part: &str) -> Vec<&'a Value> {
    match value {
        Value::Object(fields) if part == "*" => fields.values().collect(),
        Value::Array(items) if part == "*" => items.iter().collect(),
        Value::Object(fields) => fields.get(part).into_iter().collect(),
        Value::Array(items) => {
            part.parse::<usize>().ok().and_then(|index| items.get(index)).into_iter().collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

impl ArgumentTest {
    /// A value of another kind than the test is made for fits a restricting rule and no permitting one.
    fn fits(&self, value: &Value, leaning: MatchBias) -> Option<bool> {
        match self {
            Self::Equal(wanted) => Some(wanted.iter().any(|one| same(one, value))),
            Self::Range { min, max } => Some(match value.as_f64() {
                Some(number) => min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max),
                None => leaning.restricts(),
            }),
            Self::Regex(regex) => on_text(value, leaning, |text| regex.is_match(text)),
            Self::Glob(globs) => on_text(value, leaning, |text| globs.is_match(text)),
        }
    }
}

/// Tests a text, or the canonical text of another value where the rule restricts.
fn on_text(value: &Value, leaning: MatchBias, test: impl Fn(&str) -> bool) -> Option<bool> {
    let measured = |text: &str| (text.len() <= MAX_TEXT_BYTES).then(|| test(text));
    match value {
        Value::String(text) => measured(text),
        _ if !leaning.restricts() => Some(false),
        Value::Number(number) => Some(test(&number.to_string())),
        other => measured(&canonical::to_string(other).ok()?),
    }
}

/// Equality by value: `1` is `1.0`, and the order of fields does not count.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

fn same_number(one: &Number, other: &Number) -> bool {
    if one.is_f64() || other.is_f64() { one.as_f64() == other.as_f64() } else { one == other }
}
