//! `read_file`: the text of one file.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tgp_contract::{Effect, ExecutionPath, RelativePath, ToolDefinition, ToolError};

use super::Definition;
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
            aliases: &["fs.read", "fs_read", "Read"],
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

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        Ok(json!(invocation.workspace.tools.read_text(&path)?).into())
    }
}
