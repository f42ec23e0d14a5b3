//! `graph_ingest`: a commit, or the files as they are, become part of the code graph.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{Actor, Effect, ExecutionPath, Graph, GraphQuery, IngestSummary, Target, ToolError};

use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

/// The files of a commit, and how many of them the parser met an error in.
const COUNTS: &str =
    "MATCH (f:File) RETURN count(f) AS files, sum(CASE WHEN f.broken THEN 1 ELSE 0 END) AS broken";

pub(super) struct GraphIngest(pub(super) Arc<dyn Graph>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphIngestArgs {
    /// Any revision, or WORKTREE.
    #[serde(default = "head")]
    #[schemars(length(min = 1))]
    commit: String,
}

fn head() -> String {
    "HEAD".to_owned()
}

/// What an ingest has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphIngestResult {
    pub commit: String,
    /// Commits that were new, ancestors included.
    pub commits: u64,
    /// Files of the commit that the caller may see.
    pub files: u64,
    /// Those in which the parser met an error.
    pub broken: u64,
    /// Files that had to be parsed, for a person only: how much was new to the parser is a matter of all files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parsed: Option<u64>,
}

#[async_trait]
impl Tool for GraphIngest {
    type Args = GraphIngestArgs;
    type Output = GraphIngestResult;

    const INFO: ToolSpec = ToolSpec {
        name: "graph_ingest",
        aliases: &["graph.ingest"],
        description: "Read a commit and its history into the code graph, or the files as they are with `WORKTREE`. Only what is new is read.",
        // The graph can be rebuilt from the repository at any time: nothing that a user owns is changed.
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: false,
    };

    fn targets(&self, _args: &GraphIngestArgs) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(
        &self,
        args: GraphIngestArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<GraphIngestResult>, ToolError> {
        let IngestSummary { commit, commits, parsed, .. } = self.0.ingest(&args.commit).await?;
        // The ingest reads every file; those that the caller may not see are not counted.
        let question = GraphQuery::new(COUNTS).at(args.commit).seen_by(&invocation.visibility().await);
        let counted = self.0.query(question).await?;
        let number = |column: usize| {
            let row = counted.rows.first().and_then(|row| row.get(column));
            row.and_then(Value::as_u64).unwrap_or_default()
        };
        let is_person = matches!(invocation.context.actor, Actor::Person(_));
        let parsed = is_person.then_some(parsed);
        Ok(GraphIngestResult { commit, commits, files: number(0), broken: number(1), parsed }.into())
    }
}
