//! Plans an agent proposes and what the Guardian decides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step; what a type of step adds is kept in `fields`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "One step, with the fields of its type.")]
pub struct PlanStep {
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_path: Option<String>,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A plan of an agent: the steps that it wants to take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    #[schemars(length(min = 1))]
    pub id: String,
    pub steps: Vec<PlanStep>,
}

/// What a reviewer decided about a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    Approve { justification: String },
    Deny { reason: String },
}
