//! A piece of work that has a machine of its own.

use std::fmt;

use serde::{Deserialize, Serialize};
use tgp_contract::{RelativePath, Root};

/// What the project's scope is called.
const PROJECT: &str = "project";

/// A piece of work that has a machine of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Scope {
    /// The project that a person works on.
    Project,
    /// One forged tool, named by its source: `tools/math/fib.ts`, whose test is `tools/math/fib.test.ts`.
    Tool(RelativePath),
}

impl Scope {
    /// The tree in which the scope's paths stand.
    #[must_use]
    pub fn root(&self) -> Root {
        match self {
            Self::Project => Root::Project,
            Self::Tool(_) => Root::Tools,
        }
    }

    /// The scope that is written so: `project`, or the path of a tool.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == PROJECT {
            return Some(Self::Project);
        }
        RelativePath::new(text).ok().and_then(|path| Self::of_tool(&path))
    }

    /// The scope of a file of the tool repository. A tool and its test share one, whatever their extensions.
    pub(crate) fn of_tool(path: &RelativePath) -> Option<Self> {
        let (folder, name) = path.as_str().rsplit_once('/')?;
        if path.parts().next() != Some("tools") {
            return None;
        }
        let stem = stem(name);
        let stem = stem.strip_suffix(".test").filter(|stem| !stem.is_empty()).unwrap_or(stem);
        RelativePath::new(&format!("{folder}/{stem}.ts")).ok().map(Self::Tool)
    }
}

/// The name without its last extension. A name that only begins with a dot has none.
pub(crate) fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => formatter.write_str(PROJECT),
            Self::Tool(path) => path.fmt(formatter),
        }
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

impl TryFrom<String> for Scope {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
            .ok_or_else(|| format!("`{text}` is neither `project` nor a tool such as `tools/math/fib.ts`"))
    }
}
