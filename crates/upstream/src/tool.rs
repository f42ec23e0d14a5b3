//! A tool as its server describes it.

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tgp_contract::canonical;

/// What a server says of one of its tools. None of it is trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpstreamTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What it says about its effects. People are shown it; nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Value>,
}

impl UpstreamTool {
    /// SHA-256 of everything that decides what a caller writes, what a model reads and what a person is shown.
    #[must_use]
    pub fn hash(&self) -> String {
        canonical::hash_exact(json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "hints": self.hints,
        }))
    }

    /// The effects that the server claims, as words: `reads only`, `may destroy`.
    #[must_use]
    pub fn claims(&self) -> Vec<&'static str> {
        let is = |name: &str| self.hints.as_ref().and_then(|hints| hints.get(name)).and_then(Value::as_bool);
        let mut claims = Vec::new();
        match (is("readOnlyHint"), is("destructiveHint")) {
            (Some(true), _) => claims.push("reads only"),
            (_, Some(true)) => claims.push("may destroy"),
            (_, Some(false)) => claims.push("adds only"),
            _ => {}
        }
        if is("idempotentHint") == Some(true) {
            claims.push("can be repeated");
        }
        claims
    }
}

impl From<&Tool> for UpstreamTool {
    fn from(tool: &Tool) -> Self {
        Self {
            name: tool.name.to_string(),
            description: tool.description.as_ref().map(ToString::to_string),
            input_schema: Value::Object((*tool.input_schema).clone()),
            output_schema: tool.output_schema.as_ref().map(|schema| Value::Object((**schema).clone())),
            hints: tool.annotations.as_ref().and_then(|hints| serde_json::to_value(hints).ok()),
        }
    }
}
