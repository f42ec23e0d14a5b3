//! `list_files`: what is there.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Effect, ExecutionPath, FsError, RelativePath, Target, ToolDefinition, ToolError};

use super::{Definition, tool_file};
use crate::files::is_listed;
use crate::memory::TOOLS_DIRECTORY;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct ListFiles(ToolDefinition);

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    dir: String,
}

impl ListFiles {
    pub(super) fn new() -> Result<Self, ToolError> {
        let definition = Definition {
            name: "list_files",
            aliases: &[],
            description: "Recursively list the files below a directory of the tool repository, sorted by path.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "dir": { "type": "string", "description": "Directory below the root, such as `tools`; empty for all." }
                },
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
impl Tool for ListFiles {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        tool_file(arguments, "dir", Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let directory = RelativePath::new(&arguments.dir)?;
        let entries = match invocation.visible_tools().await.list(&directory) {
            // A repository without tools may not have their directory yet.
            Err(FsError::NotFound(missing)) if missing.as_str() == TOOLS_DIRECTORY => Vec::new(),
            other => other?,
        };
        let files: Vec<String> =
            entries.into_iter().filter(is_listed).map(|entry| entry.path.to_string()).collect();
        Ok(json!(files).into())
    }
}
