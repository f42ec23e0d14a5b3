//! `search`: find a tool by what it does, before another one is forged.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Effect, ExecutionPath, RelativePath, Target, ToolError};
use tgp_registry::{Hit, ReuseVerdict};

use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::ToolLibrary;
use tgp_tool_runtime::memory::shown_score;

const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 50;
const MAX_QUERY: usize = 10_000;

pub(super) struct Search(pub(super) Arc<ToolLibrary>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArgs {
    /// What the tool should do, such as `convert a CSV file to JSON`.
    #[schemars(length(min = 1, max = MAX_QUERY))]
    query: String,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

/// The tools that fit a description, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    pub results: Vec<ToolHit>,
    /// What to do: use the best of them, read it first, or forge a new tool.
    pub verdict: ReuseVerdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolHit {
    pub path: RelativePath,
    /// From 0 to 1.
    pub score: f64,
    pub verdict: ReuseVerdict,
    pub description: String,
    /// How it is called, as TypeScript.
    pub signature: String,
    /// What it was found by.
    pub why: String,
}

impl From<&Hit> for ToolHit {
    fn from(hit: &Hit) -> Self {
        Self {
            path: hit.path.clone(),
            score: shown_score(hit.score),
            verdict: hit.verdict,
            description: hit.description.clone(),
            signature: hit.signature.clone(),
            why: hit.why.clone(),
        }
    }
}

#[async_trait]
impl Tool for Search {
    type Args = SearchArgs;
    type Output = SearchResult;

    const INFO: ToolSpec = ToolSpec {
        name: "search",
        aliases: &["registry.search", "registry_search"],
        description: "Find forged tools by what they do. Call it before you write a tool. Verdict `reuse` (score 0.85 or more): run the tool. `review` (0.30 or more): read it, then decide. `forge`: write a new one.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    /// No argument names a tool: only those are compared that the caller may see.
    fn targets(&self, _args: &SearchArgs) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(
        &self,
        args: SearchArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<SearchResult>, ToolError> {
        let files = &invocation.workspace.tools;
        let visible = invocation.visibility().await;
        let (found, warnings) = self.0.search(files, &args.query, args.limit, &visible).await?;
        let results = found.results.iter().map(ToolHit::from).collect();
        Ok(SearchResult { results, verdict: found.verdict, warnings }.into())
    }
}
