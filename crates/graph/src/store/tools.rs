//! Forged tools as nodes beside the code.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tgp_contract::{Code, ToolError};

use super::graph_store::{GraphStore, Inner};
use crate::ingest::commits;
use crate::tables::failure::GraphError;
use crate::tables::forged;

/// A registry with more tools is none.
const MAX_TOOLS: usize = 100_000;

/// A forged tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFact {
    pub path: String,
    pub name: String,
    pub description: String,
}

impl GraphStore {
    /// Makes these the tools that the graph knows, from the latest commit on. Earlier commits keep what they had.
    ///
    /// # Errors
    /// `EVALIDATION` when there are too many, and when the store cannot be written.
    pub async fn set_tools(&self, tools: Vec<ToolFact>) -> Result<(), ToolError> {
        self.with(move |inner| inner.set_tools(&tools)).await
    }
}

impl Inner {
    fn set_tools(&self, tools: &[ToolFact]) -> Result<(), GraphError> {
        if tools.len() > MAX_TOOLS {
            return Err(ToolError::new(Code::Validation, format!("more than {MAX_TOOLS} tools")).into());
        }
        self.writing().transact(|connection, _, _| {
            let mut seen = std::collections::HashSet::new();
            let tools = tools.iter().filter(|tool| seen.insert(tool.path.as_str()));
            let tools: Vec<(String, String)> = tools
                .map(|tool| {
                    let props =
                        json!({ "path": tool.path, "name": tool.name, "description": tool.description });
                    (tool.path.clone(), props.to_string())
                })
                .collect();
            forged::hold(connection, commits::last(connection)?.number, &tools)
        })
    }
}
