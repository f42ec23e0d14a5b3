//! A piece of work that has its own state machine.

use std::fmt;

use serde::{Deserialize, Serialize};
use tgp_contract::{RelativePath, Root};

/// What the project's scope is called.
const PROJECT: &str = "project";

/// The folder of the tool repository in which every file belongs to a tool.
const TOOLS: &str = "tools";

/// What the compiler takes as a module with code in it: it can be executed or imported wherever it is.
const MODULE_EXTENSIONS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

/// Types alone; nothing can execute or import them.
const DECLARATION_ENDINGS: [&str; 3] = [".d.ts", ".d.mts", ".d.cts"];

/// A piece of work that has its own state machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Scope {
    /// The project that a person works on.
    Project,
    /// One forged tool, named by its source: `tools/math/fib.ts`, whose test is `tools/math/fib.test.ts`.
    Tool(RelativePath),
}

impl Scope {
    /// The tree that contains the scope's paths.
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

    /// The scope of a file of the tool repository: of all below `tools/`, and of code wherever it is. A tool and its
    /// test share one, whatever their extensions.
    pub(crate) fn of_tool(path: &RelativePath) -> Option<Self> {
        let name = path.name()?;
        let folder = path.parent();
        let is_below_tools = !folder.is_root() && path.parts().next() == Some(TOOLS);
        if !is_below_tools && !is_module(name) {
            return None;
        }
        let stem = stem(name);
        let stem = stem.strip_suffix(".test").filter(|stem| !stem.is_empty()).unwrap_or(stem);
        folder.join(&format!("{stem}.ts")).ok().map(Self::Tool)
    }
}

/// Whether a file of this name can be executed or imported as code.
fn is_module(name: &str) -> bool {
    let is_declaration = DECLARATION_ENDINGS.iter().any(|ending| name.ends_with(ending));
    !is_declaration
        && name.rsplit_once('.').is_some_and(|(_, extension)| MODULE_EXTENSIONS.contains(&extension))
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
