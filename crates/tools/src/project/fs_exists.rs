//! `fs_exists`: is it there, and what is it?

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Effect, ExecutionPath, FsError, RelativePath, Target, ToolDefinition, ToolError};

use super::{Desk, project_file};
use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct FsExists {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

impl FsExists {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "fs_exists",
            aliases: &["fs.exists"],
            description: "Say whether a path of the project exists. Answers {exists, kind}, where kind is `file`, `directory`, `other` (a link or a special file) or null.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File or directory below the project, such as `src/main.rs`." }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            effect: Effect::Read,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, desk })
    }
}

#[async_trait]
impl Tool for FsExists {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        project_file(arguments, Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        // What the caller may not read is as if it were not there, whichever tool a rule names.
        let files = invocation.filtered_workspace().await.project_files();
        let kind = self
            .desk
            .work(move || match files.entry(&path) {
                Ok(entry) => Ok(entry.map(|entry| entry.kind)),
                // Below a file there is nothing.
                Err(FsError::NotFound(_) | FsError::NotDirectory(_)) => Ok(None),
                Err(error) => Err(error.into()),
            })
            .await?;
        Ok(json!({ "exists": kind.is_some(), "kind": kind }).into())
    }
}
