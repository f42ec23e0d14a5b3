//! What files import and no file of the tree is: packages of registries, and what is nowhere.

use std::fmt;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tables::facts::Fact;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;

/// How the text of what is nowhere begins; no ecosystem does.
const UNRESOLVED: &str = "?";

/// One node that is there as long as a file names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Outside {
    Package {
        ecosystem: String,
        name: String,
    },
    /// An import that leads to no file and no package.
    Unresolved {
        specifier: String,
        /// The path that it would have, where it is known.
        target: Option<String>,
        /// Whether it is only known when the code runs; then the specifier is the expression.
        computed: bool,
    },
}

/// By this text the store knows who names it.
impl fmt::Display for Outside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { ecosystem, name } => write!(formatter, "{ecosystem}:{name}"),
            Self::Unresolved { specifier, target, computed } => {
                write!(formatter, "{UNRESOLVED}{}", json!([specifier, target, computed]))
            }
        }
    }
}

impl Outside {
    /// From the text that [`fmt::Display`] writes.
    pub(crate) fn parse(text: &str) -> Self {
        let unresolved = text.strip_prefix(UNRESOLVED).and_then(|rest| serde_json::from_str(rest).ok());
        if let Some((specifier, target, computed)) = unresolved {
            return Self::Unresolved { specifier, target, computed };
        }
        let (ecosystem, name) = text.split_once(':').unwrap_or(("", text));
        Self::Package { ecosystem: ecosystem.to_owned(), name: name.to_owned() }
    }

    fn with_key<T>(&self, then: impl FnOnce(&'static str, &[&str]) -> T) -> T {
        match self {
            Self::Package { ecosystem, name } => then("Package", &["out", ecosystem, name]),
            Self::Unresolved { specifier, target, computed } => {
                let kind = if *computed { "computed" } else { "missing" };
                then("Unresolved", &[kind, specifier, target.as_deref().unwrap_or_default()])
            }
        }
    }

    pub(super) fn id(&self, ids: &Identities) -> i64 {
        self.with_key(|label, key| ids.id(label, key))
    }

    /// The node.
    pub(crate) fn node(&self, connection: &Connection, ids: &mut Identities) -> Result<Fact, GraphError> {
        let id = self.with_key(|label, key| ids.claim(connection, label, key))?;
        let props = match self {
            Self::Package { ecosystem, name } => {
                json!({ "name": name, "ecosystem": ecosystem, "external": true })
            }
            Self::Unresolved { specifier, target, computed } => {
                let mut props = Map::new();
                props.insert("specifier".to_owned(), specifier.as_str().into());
                if let Some(target) = target {
                    props.insert("target".to_owned(), target.as_str().into());
                }
                props.insert("computed".to_owned(), (*computed).into());
                Value::Object(props)
            }
        };
        Ok(Fact::node(id, props.to_string()))
    }
}
