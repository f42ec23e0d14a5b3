//! `search`: find a tool by what it does, before another one is forged.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Effect, ExecutionPath, Target, ToolDefinition, ToolError};

use super::Definition;
use crate::Library;
use crate::memory::shown_score;
use crate::router::{Invocation, Outcome, Tool};

const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 50;

pub(super) struct Search {
    definition: ToolDefinition,
    library: Arc<Library>,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

impl Search {
    pub(super) fn new(library: Arc<Library>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "search",
            aliases: &["registry.search", "registry_search"],
            description: "Find tools by what they do, in your own words. Do this before you forge one: with the verdict `reuse` (score from 0.85) the tool does it, with `review` (from 0.30) read it first, with `forge` none does. Answers {results: [{path, score, verdict, description, signature, why}], verdict}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "minLength": 1, "maxLength": 10_000, "description": "What the tool should do, such as `convert a CSV file to JSON`." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT }
                },
                "required": ["query"],
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
impl Tool for Search {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// No argument names a tool: only those are compared that the caller may see.
    fn targets(&self, _arguments: &Value) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let files = &invocation.workspace.tools;
        let visible = invocation.visibility().await;
        let (found, warnings) =
            self.library.search(files, &arguments.query, arguments.limit, &visible).await?;
        let results: Vec<Value> = found
            .results
            .iter()
            .map(|hit| {
                json!({
                    "path": hit.path,
                    "score": shown_score(hit.score),
                    "verdict": hit.verdict,
                    "description": hit.description,
                    "signature": hit.signature,
                    "why": hit.why,
                })
            })
            .collect();
        let mut data = json!({ "results": results, "verdict": found.verdict });
        if !warnings.is_empty()
            && let Some(fields) = data.as_object_mut()
        {
            fields.insert("warnings".to_owned(), json!(warnings));
        }
        Ok(data.into())
    }
}
