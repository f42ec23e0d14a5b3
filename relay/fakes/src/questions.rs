//! The questions of `relay/fixtures/graph-questions`, recognised by their words.

use serde_json::{Map, Value};
use tgp_contract::{Code, ToolError};

/// One of the normative questions. [`Question::text`] is how it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Files,
    FileByPath,
    FileByName,
    Renames,
    RenameChain,
    KnownFiles,
    Importers,
}

impl Question {
    pub const ALL: [Self; 7] = [
        Self::Files,
        Self::FileByPath,
        Self::FileByName,
        Self::Renames,
        Self::RenameChain,
        Self::KnownFiles,
        Self::Importers,
    ];

    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Files => include_str!("../../fixtures/graph-questions/files.cypher"),
            Self::FileByPath => include_str!("../../fixtures/graph-questions/file-by-path.cypher"),
            Self::FileByName => include_str!("../../fixtures/graph-questions/file-by-name.cypher"),
            Self::Renames => include_str!("../../fixtures/graph-questions/renames.cypher"),
            Self::RenameChain => include_str!("../../fixtures/graph-questions/rename-chain.cypher"),
            Self::KnownFiles => include_str!("../../fixtures/graph-questions/known-files.cypher"),
            Self::Importers => include_str!("../../fixtures/graph-questions/importers.cypher"),
        }
        .trim_end()
    }

    #[must_use]
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Renames => &["path", "earlier"],
            Self::Importers => &["imported", "importer"],
            _ => &["path"],
        }
    }

    /// # Errors
    /// `EVALIDATION` for a query that is none of them.
    pub fn recognise(query: &str) -> Result<Self, ToolError> {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let asked = words(query);
        Self::ALL.into_iter().find(|question| words(question.text()) == asked).ok_or_else(|| {
            let message = format!("this graph knows no Cypher, and `{asked}` is none of its questions");
            ToolError::new(Code::Validation, message)
                .help("ask one of relay/fixtures/graph-questions, word for word")
        })
    }
}

/// A parameter that is one text.
pub(crate) fn text(params: &Map<String, Value>, name: &str) -> Result<String, ToolError> {
    let value = params.get(name).and_then(Value::as_str);
    value.map(str::to_owned).ok_or_else(|| missing(name, "a text"))
}

/// A parameter that is a list of texts.
pub(crate) fn texts(params: &Map<String, Value>, name: &str) -> Result<Vec<String>, ToolError> {
    let list = params.get(name).and_then(Value::as_array).ok_or_else(|| missing(name, "a list of texts"))?;
    list.iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| missing(name, "a list of texts")))
        .collect()
}

fn missing(name: &str, what: &str) -> ToolError {
    ToolError::new(Code::Validation, format!("the parameter `${name}` is not {what}"))
        .help("give every parameter that the question names")
}
