//! `log`: the versions of the tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Effect, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError};

use super::{Definition, tool_file};
use crate::Library;
use crate::router::{Invocation, Outcome, Tool};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 1000;

pub(super) struct Log {
    definition: ToolDefinition,
    library: Arc<Library>,
}

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

impl Log {
    pub(super) fn new(library: Arc<Library>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "log",
            aliases: &["git.log", "git_log"],
            description: "The versions of the tool repository or of one of its files, newest first. Answers {versions: [{commit, author, time, subject, paths, pushed}], complete}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "Only the versions of this file." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT }
                },
                "additionalProperties": false
            }),
            effect: Effect::Read,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, library })
    }
}

#[async_trait]
impl Tool for Log {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        tool_file(arguments, "path", Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = arguments.path.as_deref().map(RelativePath::new).transpose()?;
        let visible = invocation.visibility().await;
        Ok(self.library.log(path.as_ref(), arguments.limit, &visible).await?.into())
    }
}
