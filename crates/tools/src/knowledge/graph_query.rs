//! `graph_query`: a question about the code at a commit.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tgp_contract::{
    Effect, ExecutionPath, Graph, GraphAnswer, GraphQuestion, Target, ToolDefinition, ToolError,
};

use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct GraphQuery {
    definition: ToolDefinition,
    graph: Arc<dyn Graph>,
}

impl GraphQuery {
    pub(super) fn new(graph: Arc<dyn Graph>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "graph_query",
            aliases: &["graph.query", "GraphQuery"],
            description: "Ask the code graph in read-only Cypher. Nodes: File {path, name, language, test, lines}, Symbol {name, qualifiedName, kind, path, line, exported}, Package {name}, Commit {sha, time, author, message}, Tool. Relationships: DEFINES, CONTAINS, IMPORTS, CALLS, CHANGED_IN, PARENT, WAS_RENAMED_FROM. `commit` is any revision, or WORKTREE for the files as they are; the latest ingested commit otherwise. Answers {results, columns, ref, commit, draft, behind, truncated}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "minLength": 1, "description": "Such as MATCH (f:File)-[:IMPORTS]->(:File {path: $path}) RETURN f.path" },
                    "params": { "type": "object", "description": "Values for $names in the query." },
                    "commit": { "type": "string", "minLength": 1, "description": "Such as HEAD~3, v1.0, a commit id, or WORKTREE." }
                },
                "required": ["query"],
                "additionalProperties": false
            }),
            effect: Effect::Read,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, graph })
    }
}

#[async_trait]
impl Tool for GraphQuery {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// The graph holds names and places of all files, so no argument names what is read: the question is asked with
    /// what the caller may see.
    fn targets(&self, _arguments: &Value) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let question: GraphQuestion = invocation.parse()?;
        let question = question.seen_by(&invocation.visibility().await);
        Ok(as_data(self.graph.query(question).await?).into())
    }
}

/// One object a row, by the names of the columns.
fn as_data(answer: GraphAnswer) -> Value {
    let GraphAnswer { columns, rows, truncated, standing } = answer;
    let row = |values: Vec<Value>| Value::Object(columns.iter().cloned().zip(values).collect::<Map<_, _>>());
    let results: Vec<Value> = rows.into_iter().map(row).collect();
    json!({
        "results": results,
        "columns": columns,
        "ref": standing.reference,
        "commit": standing.commit,
        "draft": standing.draft,
        "behind": standing.behind,
        "truncated": truncated,
    })
}
