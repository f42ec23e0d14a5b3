//! `check_tool`: may this tool run?

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Code, Effect, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError};

use super::{Definition, imported, tool_file};
use crate::Forge;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct CheckTool {
    definition: ToolDefinition,
    forge: Arc<Forge>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

impl CheckTool {
    pub(super) fn new(forge: Arc<Forge>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "check_tool",
            aliases: &[],
            description: "Compile a tool and check it: syntax, forbidden globals, imports, the eight standards, and types where the project has TypeScript 7. Answers {valid, errors, findings}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "The tool, such as `tools/math/fib.ts`." }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            effect: Effect::Read,
            path: ExecutionPath::Sandbox,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, forge })
    }
}

#[async_trait]
impl Tool for CheckTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        tool_file(arguments, "path", Access::Read)
    }

    /// What it imports is compiled too, and a finding may quote it.
    async fn found_targets(&self, invocation: Invocation<'_>) -> Vec<Target> {
        imported(&self.forge, invocation).await
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        let report = self.forge.check(invocation, &path).await?;
        let data = serde_json::to_value(report)
            .map_err(|error| ToolError::new(Code::Internal, error.to_string()))?;
        Ok(data.into())
    }
}
