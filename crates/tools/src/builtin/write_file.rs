//! `write_file`: a new file, or a new content for an old one.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tgp_contract::{Effect, ExecutionPath, RelativePath, ToolDefinition, ToolError};

use super::{Definition, replace_text};
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct WriteFile(ToolDefinition);

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl WriteFile {
    pub(super) fn new() -> Result<Self, ToolError> {
        let definition = Definition {
            name: "write_file",
            aliases: &["fs.write", "fs_write", "Write"],
            description: "Create a file of the tool repository or replace its content. Missing directories are made; the write is atomic.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File below the root, such as `tools/math/fib.ts`." },
                    "content": { "type": "string", "description": "The whole new content." }
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
            effect: Effect::Write,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self(definition.build()?))
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        replace_text(
            invocation.workspace.tools.as_ref(),
            &path,
            &arguments.content,
            invocation.context.dry_run,
        )
    }
}
