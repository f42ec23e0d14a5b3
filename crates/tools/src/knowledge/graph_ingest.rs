//! `graph_ingest`: a commit, or the files as they are, become part of the code graph.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Actor, Effect, ExecutionPath, Graph, GraphQuestion, Ingested, Target, ToolDefinition, ToolError,
};

use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

/// The files of a commit, and how many of them the parser met an error in.
const COUNTS: &str =
    "MATCH (f:File) RETURN count(f) AS files, sum(CASE WHEN f.broken THEN 1 ELSE 0 END) AS broken";

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
            description: "Read a commit with its history into the code graph, or the files as they are with `WORKTREE`. Only what is new is read; no file of the project changes. Answers {commit, commits, files, broken}.",
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
        // The ingest reads every file; what it tells of them is counted without those that the caller may not see.
        let question =
            GraphQuestion::new(COUNTS).at(arguments.commit).seen_by(&invocation.visibility().await);
        let counted = self.graph.query(question).await?;
        let number = |column: usize| {
            let row = counted.rows.first().and_then(|row| row.get(column));
            row.and_then(Value::as_u64).unwrap_or_default()
        };
        let Ingested { commit, commits, .. } = ingested;
        let mut data =
            json!({ "commit": commit, "commits": commits, "files": number(0), "broken": number(1) });
        // How much was new to the parser is a matter of all files.
        if let (Actor::Person(_), Some(fields)) = (&invocation.context.actor, data.as_object_mut()) {
            fields.insert("parsed".to_owned(), json!(ingested.parsed));
        }
        Ok(data.into())
    }
}
