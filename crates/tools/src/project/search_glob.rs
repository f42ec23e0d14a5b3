//! `search_glob`: files of the project by the shape of their paths.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Effect, Entry, EntryKind, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError,
};

use super::glob::Glob;
use super::page::{DEFAULT_LIMIT, MAX_LIMIT, Page};
use super::{Desk, project_file};
use crate::builtin::Definition;
use crate::files::{Flow, Ignored, Walk};
use crate::router::{Invocation, Outcome, Tool};

/// A search that takes longer shows what it has found, and says so.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct SearchGlob {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: String,
    #[serde(default = "limit")]
    limit: usize,
    #[serde(default)]
    offset: usize,
}

fn limit() -> usize {
    DEFAULT_LIMIT
}

impl SearchGlob {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "search_glob",
            aliases: &["search.glob", "Glob"],
            description: "Find files of the project by a glob, such as `src/**/*.rs` or `*.{ts,tsx}`; a pattern without a slash fits a name at any depth. Sorted, without what .gitignore and .ignore name. Answers {paths, total, complete, truncated, nextOffset?}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": Glob::schema("Glob for the paths below `path`."),
                    "path": { "type": "string", "description": "Directory below the project to search in; the project itself when it is left out." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT },
                    "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "Paths to skip." }
                },
                "required": ["pattern"],
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
impl Tool for SearchGlob {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        project_file(arguments, Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let start = RelativePath::new(&arguments.path)?;
        let glob = Glob::new(&arguments.pattern)?;
        let files = invocation.filtered_workspace().await.project_files();
        let search = move |stop: &super::Stop| {
            let walk = Walk {
                files: &files,
                ignored: Ignored::Skipped,
                depth: usize::MAX,
                is_due: &|| stop.is_due(),
            };
            let mut found = Vec::new();
            let complete = walk.each(&start, &mut |entry: &Entry| {
                if entry.kind == EntryKind::File && glob.fits(&start, &entry.path) {
                    found.push(entry.path.clone());
                }
                Flow::On
            })?;
            let complete = complete.is_whole();
            let total = found.len();
            let rows = found.into_iter().map(|path| (json!(path), path.as_str().len()));
            let page = Page::of(rows, arguments.offset, arguments.limit);
            let mut data = json!({ "total": total, "complete": complete });
            page.fill(&mut data, "paths", complete);
            Ok(data)
        };
        Ok(self.desk.search(PATIENCE, search).await?.into())
    }
}
