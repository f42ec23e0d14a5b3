//! What there is outside of a query, as far as checking it needs to know.

use serde_json::Value;
use tgp_contract::{ToolDefinition, ToolError};

/// Provides what a query may use. It is asked while a query is checked, and never afterwards.
pub trait QueryCatalogue {
    /// Every built-in tool.
    fn tools(&self) -> &[ToolDefinition];

    /// A forged tool; `None` when there is none at this path.
    fn forged(&self, path: &str) -> Option<ForgedToolSchema>;

    /// The paths of all forged tools, for suggestions.
    fn forged_paths(&self) -> Vec<String>;

    /// Whether a Cypher query can be used, and which columns it answers with, where that is known.
    ///
    /// # Errors
    /// What is wrong with it; its place counts within the query.
    fn cypher(&self, _query: &str) -> Result<Option<Vec<String>>, ToolError> {
        Ok(None)
    }

    /// The text of another file, by its path relative to the project, for `import`.
    ///
    /// # Errors
    /// When it cannot be read.
    fn source(&self, path: &str) -> Result<String, ToolError>;
}

/// What is known of a forged tool, as JSON Schemas; `true` where nothing is.
#[derive(Clone, Debug, PartialEq)]
pub struct ForgedToolSchema {
    pub parameters: Value,
    pub result: Value,
}
