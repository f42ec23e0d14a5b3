//! YAML as a tree in which every value and every key knows its place.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, MergeKeyPolicy, MessageFormatter, Spanned};
use tgp_text::LineCol;

/// Rules nest about eight deep, arguments of examples a few more; deeper text is an attack on the stack.
const MAX_DEPTH: usize = 32;
/// A file of the largest size holds fewer values than this unless it is made of brackets.
const MAX_NODES: usize = 100_000;

/// The largest integer below which every integer is a double.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

fn spot(location: Location) -> LineCol {
    LineCol::from_parser(location.line(), location.column())
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) spot: LineCol,
    pub(crate) value: Yaml,
}

#[derive(Clone, Debug)]
pub(crate) enum Yaml {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// False while the tree is read, for a key that will be refused.
    is_text: bool,
    pub(crate) spot: LineCol,
    pub(crate) node: Node,
}

/// Why a text is no tree.
#[derive(Clone, Debug)]
pub(crate) struct YamlFault {
    pub(crate) spot: LineCol,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl Node {
    /// Reads one document. Anchors, aliases, merge keys, foreign tags, doubled keys and further documents are refused:
    /// a rule says what it says at the place where it stands.
    pub(crate) fn read(text: &str) -> Result<Self, YamlFault> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_aliases: 0,
                max_anchors: 0,
                max_merge_keys: 0,
                max_depth: MAX_DEPTH,
                max_nodes: MAX_NODES,
                max_documents: 1,
            },
            duplicate_keys: DuplicateKeyPolicy::Error,
            merge_keys: MergeKeyPolicy::Error,
            strict_booleans: true,
            reject_unsupported_tags: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options::<Spanned<Yaml>>(text, options)
            .map(Node::from)
            .map_err(|error| YamlFault::from(&error))
            .and_then(|node| match node.odd_key() {
                None => Ok(node),
                Some(spot) => {
                    let message = "a key has to be text".to_owned();
                    Err(YamlFault { spot, message, help: "put the key in quotes" })
                }
            })
    }

    /// The first key that is not text. The parser would report it at the mapping's own place.
    fn odd_key(&self) -> Option<LineCol> {
        match &self.value {
            Yaml::List(items) => items.iter().find_map(Node::odd_key),
            Yaml::Map(entries) => entries
                .iter()
                .find_map(|entry| if entry.is_text { entry.node.odd_key() } else { Some(entry.spot) }),
            Yaml::Null | Yaml::Bool(_) | Yaml::Number(_) | Yaml::Text(_) => None,
        }
    }

    /// The same as JSON, for arguments of examples.
    pub(crate) fn to_json(&self) -> Value {
        match &self.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(value) => Value::Bool(*value),
            Yaml::Number(number) => Value::Number(number.clone()),
            Yaml::Text(text) => Value::String(text.clone()),
            Yaml::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Yaml::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect())
            }
        }
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Yaml::Null => "nothing",
            Yaml::Bool(_) => "a boolean",
            Yaml::Number(_) => "a number",
            Yaml::Text(_) => "text",
            Yaml::List(_) => "a list",
            Yaml::Map(_) => "a mapping",
        }
    }
}

impl From<Spanned<Yaml>> for Node {
    fn from(spanned: Spanned<Yaml>) -> Self {
        Self { spot: spot(spanned.referenced), value: spanned.value }
    }
}

impl From<&Error> for YamlFault {
    fn from(error: &Error) -> Self {
        let error = error.without_snippet();
        let spot = error.location().map_or(LineCol::START, spot);
        let said = |message: &str, help| Self { spot, message: message.to_owned(), help };
        match error {
            Error::Budget { breach: BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. }, .. } => {
                said("anchors and aliases are not part of a policy", "write the value out where it is needed")
            }
            Error::Budget { breach: BudgetBreach::MergeKeys { .. }, .. }
            | Error::MergeKeyNotAllowed { .. } => {
                said("merge keys are not part of a policy", "write the fields out where they are needed")
            }
            Error::Budget { breach: BudgetBreach::Documents { .. }, .. }
            | Error::MultipleDocuments { .. } => {
                said("a policy file has one document", "put each document in a file of its own")
            }
            Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
                said("the values are nested too deeply", "no rule needs more than a few levels")
            }
            Error::DuplicateMappingKey { key: Some(key), .. } => Self {
                spot,
                message: format!("`{}` is given twice", key.escape_debug()),
                help: "keep one of them",
            },
            Error::Budget { .. } => said("the file has too many values", "split it into several files"),
            other => Self {
                spot,
                // The parser quotes the file, so its control characters must not reach a terminal.
                message: serde_saphyr::UserMessageFormatter
                    .format_message(other)
                    .chars()
                    .map(|letter| if letter.is_control() { ' ' } else { letter })
                    .collect(),
                help: "correct the YAML at this place",
            },
        }
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Yaml;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Yaml, E> {
        // An integer that did not fit has been rounded already, and would be compared with something it is not.
        if value.fract() == 0.0 && value.abs() > LARGEST_EXACT {
            return Err(E::custom("the number is too large to be exact; write it as text"));
        }
        Number::from_f64(value).map(Yaml::Number).ok_or_else(|| E::custom("a number has to be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Yaml, E> {
        Ok(Yaml::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Yaml, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Yaml>>()? {
            list.push(Node::from(item));
        }
        Ok(Yaml::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<Yaml>>()? {
            let spot = spot(key.referenced);
            let (is_text, key) = match key.value {
                Yaml::Text(text) => (true, text),
                _ => (false, String::new()),
            };
            let node = Node::from(entries.next_value::<Spanned<Yaml>>()?);
            map.push(Entry { key, is_text, spot, node });
        }
        Ok(Yaml::Map(map))
    }
}
