//! `fs_list`: what stands in a directory of the project.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Effect, Entry, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError};

use super::page::{DEFAULT_LIMIT, MAX_LIMIT, Page};
use super::{Desk, project_file};
use crate::builtin::Definition;
use crate::files::{Flow, Ignored, Walk};
use crate::router::{Invocation, Outcome, Tool};

const MAX_DEPTH: usize = 64;
/// A listing that takes longer shows what it has seen, and says so.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct FsList {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    path: String,
    #[serde(default = "own_entries")]
    depth: usize,
    #[serde(default = "limit")]
    limit: usize,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    ignored: bool,
}

fn own_entries() -> usize {
    1
}

fn limit() -> usize {
    DEFAULT_LIMIT
}

impl FsList {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "fs_list",
            aliases: &["fs.list"],
            description: "List a directory of the project, sorted by path, without what .gitignore and .ignore name. Hidden files are shown. Answers {path, entries: [{path, kind, size}], total, complete, truncated, nextOffset?}; kind is `file`, `directory` or `other` (a link or a special file).",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Directory below the project; the project itself when it is left out." },
                    "depth": { "type": "integer", "minimum": 1, "maximum": MAX_DEPTH, "default": 1, "description": "Levels to show." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT },
                    "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "Entries to skip." },
                    "ignored": { "type": "boolean", "default": false, "description": "Show what ignore files name, too." }
                },
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
impl Tool for FsList {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        project_file(arguments, Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let list = move |stop: &super::Stop| {
            let ignored = if arguments.ignored { Ignored::Shown } else { Ignored::Skipped };
            let walk = Walk { files: &files, ignored, depth: arguments.depth, is_due: &|| stop.is_due() };
            let mut entries = Vec::new();
            let complete = walk.each(&path, &mut |entry: &Entry| {
                entries.push(entry.clone());
                Flow::On
            })?;
            let complete = complete.is_whole();
            entries.sort();
            let total = entries.len();
            let rows = entries.into_iter().map(|entry| {
                let size = entry.path.as_str().len();
                (json!({ "path": entry.path, "kind": entry.kind, "size": entry.size }), size)
            });
            let page = Page::of(rows, arguments.offset, arguments.limit);
            let mut data = json!({ "path": path, "total": total, "complete": complete });
            page.fill(&mut data, "entries", complete);
            Ok(data)
        };
        Ok(self.desk.search(PATIENCE, list).await?.into())
    }
}
