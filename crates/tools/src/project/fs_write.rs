//! `fs_write`: a new file of the project, or a new content for an old one.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Effect, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError};

use super::change::{Expected, answer, change};
use super::{Desk, project_file};
use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct FsWrite {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
    expected_sha256: Option<String>,
}

impl FsWrite {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "fs_write",
            aliases: &["fs.write", "Write"],
            description: "Create a file of the project or replace its whole content. Missing directories are made; the write is atomic. Answers {path, created, bytes, sha256}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File below the project, such as `src/main.rs`." },
                    "content": { "type": "string", "description": "The whole new content." },
                    "expected_sha256": Expected::schema()
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
            effect: Effect::Write,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, desk })
    }
}

#[async_trait]
impl Tool for FsWrite {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        project_file(arguments, Access::Write)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        let expected = Expected::new(&path, arguments.expected_sha256);
        let changed = change(&self.desk, invocation, &path, move |before| {
            expected.check(before)?;
            Ok(Some(arguments.content.into_bytes()))
        })
        .await?;
        let created = changed.before().is_none();
        Ok(answer(invocation, &path, &changed, json!({ "created": created })))
    }
}
