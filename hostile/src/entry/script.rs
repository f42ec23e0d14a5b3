//! A scripted model: a file with one turn per call.

use anyhow::Result;
use serde_json::{Value, json};

use crate::case::Step;
use crate::project::Project;

/// Turns that a model needs in addition to its calls.
const CLOSING_TURNS: usize = 2;

/// Writes the model's turns beside the project and gives what `--provider` and `model` take.
pub(super) fn write(project: &Project, steps: &[Step]) -> Result<String> {
    let mut turns: Vec<Value> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let (tool, arguments) = step.as_call().unwrap_or_default();
        turns.push(json!([
            { "type": "tool_call", "toolName": tool, "callId": call_id(at), "arguments": arguments }
        ]));
    }
    for _ in 0..CLOSING_TURNS {
        turns.push(json!([{ "type": "text", "value": "That is all." }]));
    }
    let path = project.aside("model.json");
    std::fs::write(&path, Value::Array(turns).to_string())?;
    Ok(format!("script:{}", path.display()))
}

/// The turns of the model of so many steps.
pub(super) fn turns(steps: &[Step]) -> usize {
    steps.len() + CLOSING_TURNS
}

/// The name of the call of the step at this place.
pub(super) fn call_id(at: usize) -> String {
    format!("step-{at}")
}
