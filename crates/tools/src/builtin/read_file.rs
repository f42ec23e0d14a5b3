//! `read_file`: the text of one file.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Effect, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError};

use super::{Definition, tool_file};
use crate::memory::{META_FILE, shown_index};
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct ReadFile(ToolDefinition);

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

impl ReadFile {
    pub(super) fn new() -> Result<Self, ToolError> {
        let definition = Definition {
            name: "read_file",
            aliases: &[],
            description: "Read the whole text of a file of the tool repository.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File below the root, such as `tools/math/fib.ts`." }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            effect: Effect::Read,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self(definition.build()?))
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        tool_file(arguments, "path", Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        let tools = invocation.visible_tools().await;
        let text = tools.read_text(&path)?;
        // The index names every tool; a tool that may not be seen is not in it.
        if path.as_str() == META_FILE {
            let visible = invocation.visibility().await;
            return Ok(json!(shown_index(text, &visible)?).into());
        }
        Ok(json!(text).into())
    }
}
