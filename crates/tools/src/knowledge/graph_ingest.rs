//! `graph_ingest`: a commit, or the files as they are, become part of the code graph.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Effect, ExecutionPath, Graph, Target, ToolDefinition, ToolError};

use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct GraphIngest {
    definition: ToolDefinition,
    graph: Arc<dyn Graph>,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default = "head")]
    commit: String,
}

fn head() -> String {
    "HEAD".to_owned()
}

impl GraphIngest {
    pub(super) fn new(graph: Arc<dyn Graph>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "graph_ingest",
            aliases: &["graph.ingest"],
            description: "Read a commit with its history into the code graph, or the files as they are with `WORKTREE`. Only what is new is read; no file of the project changes. Answers {commit, commits, parsed, files, broken}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "commit": { "type": "string", "minLength": 1, "default": "HEAD", "description": "Any revision, or WORKTREE." }
                },
                "additionalProperties": false
            }),
            // The graph can be made again from the repository at any time: nothing that anybody owns is changed.
            effect: Effect::Read,
            path: ExecutionPath::Fast,
            dry_run: false,
        };
        Ok(Self { definition: definition.build()?, graph })
    }
}

#[async_trait]
impl Tool for GraphIngest {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, _arguments: &Value) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let ingested = self.graph.ingest(&arguments.commit).await?;
        Ok(serde_json::to_value(ingested).unwrap_or_default().into())
    }
}
