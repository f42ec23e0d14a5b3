//! `exec_tool`: run a tool in the sandbox.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_compiler::is_test_file;
use tgp_contract::{
    Access, Change, Code, Effect, ExecutionPath, FileEffect, RelativePath, Root, Target, ToolDefinition,
    ToolError, canonical,
};

use super::{Definition, imported, tool_file};
use crate::Forge;
use crate::files::difference;
use crate::forge::RunChange;
use crate::router::{FoundFile, Invocation, Outcome, Preview, Tool};

/// Bytes of a tool's source that are shown before it runs; its hash is that of the whole.
const MAX_SHOWN_BYTES: usize = 256 * 1024;

pub(super) struct ExecTool {
    definition: ToolDefinition,
    forge: Arc<Forge>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(default = "no_arguments")]
    args: Value,
}

fn no_arguments() -> Value {
    json!({})
}

impl ExecTool {
    pub(super) fn new(forge: Arc<Forge>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "exec_tool",
            aliases: &[],
            description: "Execute a tool in a locked worker process of its own. Answers {result, logs, stats}. File writes and SQL are committed together when it returns, and undone when it fails.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "The tool, such as `tools/math/fib.ts`." },
                    "args": { "description": "What the tool is given: an object, or any JSON value a tool takes." }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            effect: Effect::Execute,
            path: ExecutionPath::Sandbox,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, forge })
    }
}

#[async_trait]
impl Tool for ExecTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        tool_file(arguments, "path", Access::Read)
    }

    /// Everything that it imports runs with it.
    async fn found_targets(&self, invocation: Invocation<'_>) -> Vec<Target> {
        imported(&self.forge, invocation).await
    }

    /// The source that would run. It is compiled with everything it imports, and no line of it is executed.
    async fn preview(&self, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        refuse_tests(&path)?;
        let tools = &invocation.workspace.tools;
        let sources = self.forge.sources(invocation, &path).await?;
        let source = tools.read_text(&path)?;
        let shown = source.get(..source.floor_char_boundary(MAX_SHOWN_BYTES)).unwrap_or_default();
        let hash = canonical::sha256_hex(source.as_bytes());
        let mut data = json!({ "path": path, "sha256": hash, "source": shown });
        if shown.len() < source.len()
            && let Some(fields) = data.as_object_mut()
        {
            fields.insert("sourceTruncated".to_owned(), json!(true));
        }
        let found = |(path, hash)| FoundFile { root: Root::Tools, path, sha256: Some(hash) };
        let found = sources.into_iter().map(found).collect();
        Ok(Preview { data: Some(data), found, missing: None })
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        refuse_tests(&path)?;
        let host = invocation.workspace.host.as_ref();
        let seen = invocation.filtered_workspace().await;
        let execution = self.forge.execute(invocation, &path, arguments.args).await?;
        let mut data = execution.data;
        let mut files = Vec::new();
        let mut previews = Vec::new();
        for RunChange { change, before, diff, .. } in execution.changes {
            let path = change.path().clone();
            match (&change, invocation.context.dry_run) {
                (Change::Write { content, .. }, true) => {
                    let old = before.filter(|_| seen.shows(&path)).and_then(|_| host.read(&path).ok());
                    let shown = difference(path.as_str(), old.as_deref(), Some(content));
                    previews.push(json!({ "path": path, "diff": shown.text }));
                }
                (Change::Remove { .. }, true) => previews.push(json!({ "path": path, "removed": true })),
                (_, false) => {
                    let effect = invocation.workspace.effect(&path, before, change.content());
                    files.push(FileEffect { diff: Some(diff), ..effect });
                }
            }
        }
        if invocation.context.dry_run
            && let Some(fields) = data.as_object_mut()
        {
            fields.insert("dry_run".to_owned(), json!(true));
            fields.insert("changes".to_owned(), json!(previews));
            fields.insert("sql".to_owned(), json!(&execution.statements));
        }
        let changed = Some(execution.statements)
            .filter(|notes| notes.count > 0 && !invocation.context.dry_run)
            .map(|notes| notes.changed);
        Ok(Outcome { data, files, rows_changed: changed, ..Outcome::default() })
    }
}

fn refuse_tests(path: &RelativePath) -> Result<(), ToolError> {
    if !is_test_file(path.as_str()) {
        return Ok(());
    }
    Err(ToolError::new(Code::Validation, format!("`{path}` holds tests, and is no tool"))
        .help("run it with `test_tool`, or `tgp test` at the command line"))
}
