//! Paths that cannot name anything outside their root.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Code, ToolError};

const MAX_PATH_BYTES: usize = 4096;
const MAX_NAME_BYTES: usize = 255;

/// A normalised path below some root: no `..`, no leading `/`, no empty part, no NUL, `/` as separator.
///
/// The root itself is the empty path. Being lexical, it says nothing about symbolic links: the file system that
/// takes it must not follow one out of its root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelativePath(String);

/// Why a text is not a [`RelativePath`]. Every case is a violation of the jail (`ESECURITY`) or a name no file can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("path `{0}` leaves its root")]
    Escapes(String),
    #[error("path `{0}` is absolute; paths are relative to the root")]
    Absolute(String),
    #[error("path `{0}` contains a NUL or control character")]
    Control(String),
    #[error("path `{0}` uses a backslash; write `/` between names")]
    Backslash(String),
    #[error("path is too long: {0} bytes, at most {MAX_PATH_BYTES}, and {MAX_NAME_BYTES} for each name")]
    TooLong(usize),
}

impl PathError {
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Escapes(_) | Self::Absolute(_) | Self::Control(_) | Self::Backslash(_) => Code::Security,
            Self::TooLong(_) => Code::Validation,
        }
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        ToolError::new(error.code(), error.to_string())
            .help("name a path below the root, without `..` and without a leading `/`")
    }
}

impl JsonSchema for RelativePath {
    fn schema_name() -> Cow<'static, str> {
        "RelativePath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl RelativePath {
    /// The root itself.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Normalises `text`: `.` and doubled slashes vanish, `..` is resolved and may not pass the root.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn new(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong(text.len()));
        }
        let shown = || text.escape_debug().to_string();
        if text.chars().any(char::is_control) {
            return Err(PathError::Control(shown()));
        }
        if text.contains('\\') {
            return Err(PathError::Backslash(shown()));
        }
        if text.starts_with('/') {
            return Err(PathError::Absolute(shown()));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return Err(PathError::Escapes(shown()));
                    }
                }
                name if name.len() > MAX_NAME_BYTES => return Err(PathError::TooLong(name.len())),
                name => parts.push(name),
            }
        }
        Ok(Self(parts.join("/")))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The names from the root down.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// The last name, or nothing for the root.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.parts().next_back()
    }

    /// The directory this path is in; the root's is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned()))
    }

    /// Resolves `text` against this directory.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn join(&self, text: &str) -> Result<Self, PathError> {
        if text.starts_with('/') || self.is_root() {
            Self::new(text)
        } else {
            Self::new(&format!("{}/{text}", self.0))
        }
    }

    /// True when this path is `directory` or is below it. Whole names are compared: `/x/.tgp-evil` is not
    /// inside `/x/.tgp`.
    #[must_use]
    pub fn is_inside(&self, directory: &RelativePath) -> bool {
        directory.is_root()
            || self.0 == directory.0
            || self.0.strip_prefix(&directory.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// How deep the innermost of the directories that hold this path is; `None` when none of them does.
    #[must_use]
    pub fn nearest_depth(&self, directories: &[RelativePath]) -> Option<usize> {
        let holding = directories.iter().filter(|directory| self.is_inside(directory));
        holding.map(|directory| directory.parts().count()).max()
    }
}

impl TryFrom<String> for RelativePath {
    type Error = PathError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<RelativePath> for String {
    fn from(path: RelativePath) -> Self {
        path.0
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_root() { "." } else { &self.0 })
    }
}
