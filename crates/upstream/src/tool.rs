//! A tool as its server describes it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tgp_contract::canonical;

/// What a server says of one of its tools. None of it is trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl UpstreamTool {
    /// SHA-256 of everything that decides what a caller writes and what a model reads.
    #[must_use]
    pub fn hash(&self) -> String {
        canonical::hash_exact(json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
        }))
    }
}
