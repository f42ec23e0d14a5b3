//! `graph_query`: a question about the code at a commit.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_contract::{Effect, ExecutionPath, Graph, GraphQuery, GraphRows, Target, ToolError, UnreadHistory};

use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub(super) struct GraphQueryTool(pub(super) Arc<dyn Graph>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphQueryArgs {
    /// Such as MATCH (f:File)-[:IMPORTS]->(:File {path: $path}) RETURN f.path
    #[schemars(length(min = 1))]
    query: String,
    /// Values for $names in the query.
    #[serde(default)]
    params: Map<String, Value>,
    /// Any revision, or WORKTREE for the files as they are; default: the latest ingested commit.
    #[schemars(length(min = 1))]
    commit: Option<String>,
}

/// Rows of the code graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphQueryResult {
    /// One object a row, by the names of the columns.
    pub results: Vec<Map<String, Value>>,
    pub columns: Vec<String>,
    /// The name that was asked for, or the branch whose commit was taken.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit that the answer is about; empty where there is no commit yet.
    pub commit: String,
    /// Whether the answer is about changed files on top of that commit.
    pub draft: bool,
    /// Whether the repository has newer commits that were not ingested yet.
    pub stale: bool,
    /// The older name of `stale`.
    pub behind: bool,
    /// Whether there were more rows than the cap.
    pub truncated: bool,
    /// What of the history is not in the graph yet, so that the answer may miss it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<GraphUnread>,
    /// Files that the answer does not know: their names are not UTF-8, or they cannot be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}

/// History that is not in the graph yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphUnread {
    /// Whether an ingest is reading now.
    pub running: bool,
    /// Commits that were read, newest first.
    pub read: u64,
    /// Commits of the history; 0 where they were not counted yet.
    pub total: u64,
    /// The oldest commit that can be asked about; empty before the first one.
    pub oldest: String,
}

impl From<UnreadHistory> for GraphUnread {
    fn from(unread: UnreadHistory) -> Self {
        let UnreadHistory { running, read, total, oldest } = unread;
        Self { running, read, total, oldest }
    }
}

#[async_trait]
impl Tool for GraphQueryTool {
    type Args = GraphQueryArgs;
    type Output = GraphQueryResult;

    const INFO: ToolSpec = ToolSpec {
        name: "graph_query",
        aliases: &["graph.query", "GraphQuery"],
        description: "Ask the code graph in read-only Cypher. Nodes: File {path, name, language, test, lines}, Symbol {name, qualifiedName, kind, path, line, exported}, Package {name}, Commit {sha, time, author, message}, Tool. Relationships: DEFINES, EXPORTS, CONTAINS, IMPORTS, CALLS, REFERENCES, EXTENDS, IMPLEMENTS, CHANGED_IN, PARENT, WAS_RENAMED_FROM.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    /// The graph holds names and places of all files, so no argument names what is read: the question is asked with
    /// what the caller may see.
    fn targets(&self, _args: &GraphQueryArgs) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(
        &self,
        args: GraphQueryArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<GraphQueryResult>, ToolError> {
        let GraphQueryArgs { query, params, commit } = args;
        let question = GraphQuery { params, commit, ..GraphQuery::new(query) };
        let question = question.seen_by(&invocation.visibility().await);
        let GraphRows { columns, rows, truncated, standing } = self.0.query(question).await?;
        let row = |values: Vec<Value>| columns.iter().cloned().zip(values).collect::<Map<_, _>>();
        let results = rows.into_iter().map(row).collect();
        Ok(GraphQueryResult {
            results,
            columns,
            reference: standing.reference,
            commit: standing.commit,
            draft: standing.draft,
            stale: standing.behind,
            behind: standing.behind,
            truncated,
            unread: standing.unread.map(GraphUnread::from),
            left_out: Some(standing.left_out.count).filter(|count| *count > 0),
        }
        .into())
    }
}
