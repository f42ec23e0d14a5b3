//! YAML as a tree in which every value and every key knows its place.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::Spanned;
use tgp_text::LineCol;
use tgp_text::yaml::{self, YamlError, YamlErrorKind, YamlLimits};

/// Rules nest about eight deep, arguments of examples a few more. A file of the largest size holds fewer values unless it
/// is made of brackets.
const LIMITS: YamlLimits = YamlLimits { depth: 32, nodes: 100_000 };

/// The largest integer below which every integer is a double.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

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

impl Node {
    /// Reads one document.
    pub(crate) fn read(text: &str) -> Result<Self, YamlError> {
        let node = Self::from(yaml::read::<Spanned<Yaml>>(text, LIMITS)?);
        match node.odd_key() {
            None => Ok(node),
            Some(location) => Err(YamlError {
                location,
                kind: YamlErrorKind::Refused,
                message: "a key has to be text".to_owned(),
                help: "put the key in quotes".to_owned(),
            }),
        }
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
        Self { spot: yaml::location(&spanned), value: spanned.value }
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
            let spot = yaml::location(&key);
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
