//! The outcomes that a step may have.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use tgp_contract::Code;

use crate::entry::Entry;

/// The outcome of a call that was carried out.
pub const OK: &str = "ok";

/// The key of a map of outcomes that is for all entry points without their own.
const OTHERWISE: &str = "otherwise";

/// What a step may come to: the same through every entry point, or different ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    everywhere: Vec<String>,
    by_entry: BTreeMap<Entry, Vec<String>>,
}

impl Expected {
    /// The outcomes that hold through this entry point; empty when the file names none for it.
    #[must_use]
    pub fn at(&self, entry: Entry) -> &[String] {
        self.by_entry.get(&entry).unwrap_or(&self.everywhere)
    }

    fn of(value: &Value) -> Result<Self, String> {
        let Value::Object(fields) = value else {
            return Ok(Self { everywhere: outcomes(value)?, by_entry: BTreeMap::new() });
        };
        let mut expected = Self::default();
        for (name, value) in fields {
            let outcomes = outcomes(value)?;
            if name == OTHERWISE {
                expected.everywhere = outcomes;
                continue;
            }
            let entry = Entry::named(name).ok_or_else(|| {
                format!(
                    "`{name}` is neither an entry point nor `{OTHERWISE}`, which `expect` may have as keys"
                )
            })?;
            expected.by_entry.insert(entry, outcomes);
        }
        Ok(expected)
    }
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::of(&value).map_err(D::Error::custom)
    }
}

/// One outcome or a list of them, each `ok` or a code that exists.
fn outcomes(value: &Value) -> Result<Vec<String>, String> {
    let listed = match value {
        Value::String(_) => std::slice::from_ref(value),
        Value::Array(values) if !values.is_empty() => values.as_slice(),
        other => return Err(format!("`expect` takes `ok`, a code or a list of them, not {other}")),
    };
    listed.iter().map(outcome).collect()
}

fn outcome(value: &Value) -> Result<String, String> {
    match value.as_str() {
        Some(text) if text == OK || Code::ALL.iter().any(|code| code.as_str() == text) => Ok(text.to_owned()),
        _ => Err(format!("{value} is neither `ok` nor an error code of docs/errors.md")),
    }
}
