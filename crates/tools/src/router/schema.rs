//! Arguments against a tool's JSON Schema.

use jsonschema::Validator;
use serde_json::Value;
use tgp_contract::{Code, ToolError};

/// More errors than this tell nobody more.
const MAX_REPORTED: usize = 8;

pub(super) struct Schema(Validator);

impl Schema {
    pub(super) fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    pub(super) fn check(&self, tool: &str, arguments: &Value) -> Result<(), ToolError> {
        if self.0.is_valid(arguments) {
            return Ok(());
        }
        let problems: Vec<(String, String)> = self
            .0
            .iter_errors(arguments)
            .take(MAX_REPORTED)
            .map(|error| (error.instance_path().to_string(), error.to_string()))
            .collect();
        let (field, message) = problems.first().cloned().unwrap_or_default();
        let place = if field.is_empty() { String::new() } else { format!(" at `{field}`") };
        let all: Vec<Value> = problems
            .into_iter()
            .map(|(field, message)| serde_json::json!({ "field": field, "message": message }))
            .collect();
        Err(ToolError::new(
            Code::Validation,
            format!("the arguments of `{tool}` do not fit{place}: {message}"),
        )
        .detail("field", field)
        .detail("problems", all)
        .help(format!("`tgp tools --format json` shows the schema of `{tool}`")))
    }
}
