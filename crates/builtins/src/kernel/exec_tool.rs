//! `exec_tool`: run a tool in the sandbox.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tgp_compiler::is_test_file;
use tgp_contract::{
    Access, Change, Code, Effect, ExecutionPath, FileEffect, LimitRequest, RelativePath, Root, Target,
    ToolError, canonical,
};
use tgp_sandbox::{LogLine, RunStats};

use super::{imported, tool_file};
use tgp_router::database::SqlNotes;
use tgp_router::files::difference;
use tgp_router::{FileSnapshot, Invocation, Preview, Tool, ToolOutcome, ToolSpec, Workspace};
use tgp_tool_runtime::ToolRuntime;
use tgp_tool_runtime::forge::RunChange;

/// Bytes of a tool's source that are shown before it runs; its hash is that of the whole.
const MAX_SHOWN_BYTES: usize = 256 * 1024;

pub(super) struct ExecTool(pub(super) Arc<ToolRuntime>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecToolArgs {
    /// Such as `tools/math/fib.ts`.
    #[schemars(length(min = 1))]
    path: String,
    /// The tool's argument: an object, or any JSON value it takes.
    #[serde(default = "no_arguments")]
    #[schemars(schema_with = "any_value")]
    args: Value,
    limits: Option<LimitRequest>,
}

fn no_arguments() -> Value {
    json!({})
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "description": "The tool's argument: an object, or any JSON value it takes." })
}

/// What a forged tool returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecToolResult {
    /// What its function returned.
    pub result: Value,
    /// What it wrote with `console`.
    pub logs: Vec<LogLine>,
    pub stats: RunStats,
    /// What the caller should know: fields that the tool does not declare, errors that the checker finds in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// True when everything was undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// In a dry run, the files that would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<DryRunChange>>,
    /// In a dry run, the statements that were undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlNotes>,
}

/// A file that a run would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DryRunChange {
    pub path: RelativePath,
    /// A unified diff of a file that would be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// True when the file would be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

#[async_trait]
impl Tool for ExecTool {
    type Args = ExecToolArgs;
    type Output = ExecToolResult;

    const INFO: ToolSpec = ToolSpec {
        name: "exec_tool",
        aliases: &[],
        description: "Execute a tool in its own locked process. Its file writes and SQL are committed together when it returns, and undone when it fails.",
        effect: Effect::Execute,
        path: ExecutionPath::Sandbox,
        dry_run: true,
    };

    fn targets(&self, args: &ExecToolArgs) -> Result<Vec<Target>, ToolError> {
        self.targets_within(args, None)
    }

    async fn targets_in(&self, args: &ExecToolArgs, workspace: &Workspace) -> Result<Vec<Target>, ToolError> {
        self.targets_within(args, workspace.outer_limits.as_ref())
    }

    /// Everything that it imports runs with it.
    async fn found_targets(&self, args: &ExecToolArgs, invocation: Invocation<'_>) -> Vec<Target> {
        imported(&self.0, &args.path, invocation).await
    }

    /// The source that would run. It is compiled with everything it imports, and no line of it is executed.
    async fn preview(&self, args: ExecToolArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let path = RelativePath::new(&args.path)?;
        refuse_tests(&path)?;
        let tools = &invocation.workspace.tools;
        let sources = self.0.sources(invocation, &path).await?;
        let source = tools.read_text(&path)?;
        let shown = tgp_text::head(&source, MAX_SHOWN_BYTES);
        let hash = canonical::sha256_hex(source.as_bytes());
        let mut data = json!({ "path": path, "sha256": hash, "source": shown });
        if shown.len() < source.len()
            && let Some(fields) = data.as_object_mut()
        {
            fields.insert("sourceTruncated".to_owned(), json!(true));
        }
        let found = |(path, hash)| FileSnapshot { root: Root::Tools, path, sha256: Some(hash) };
        let found = sources.into_iter().map(found).collect();
        Ok(Preview { data: Some(data), found, missing: None })
    }

    async fn run(
        &self,
        args: ExecToolArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ExecToolResult>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        refuse_tests(&path)?;
        run_program(&self.0, &path, args.args, args.limits.as_ref(), invocation).await
    }
}

/// Runs a program of the tool repository and says what it did, or would do in a dry run.
pub(super) async fn run_program(
    forge: &ToolRuntime,
    path: &RelativePath,
    args: Value,
    limits: Option<&LimitRequest>,
    invocation: Invocation<'_>,
) -> Result<ToolOutcome<ExecToolResult>, ToolError> {
    let dry_run = invocation.context.dry_run;
    let host = invocation.workspace.host.as_ref();
    let seen = invocation.filtered_workspace().await;
    let outer = invocation.workspace.outer_limits.as_ref();
    let granted = forge.grant(limits, outer)?;
    let execution = forge.execute(invocation, path, args, granted.limits).await?;
    let mut files = Vec::new();
    let mut previews = Vec::new();
    for RunChange { change, before, diff, .. } in execution.changes {
        let path = change.path().clone();
        match (&change, dry_run) {
            (Change::Write { content, .. }, true) => {
                let old = before.filter(|_| seen.shows(&path)).and_then(|_| host.read(&path).ok());
                let shown = difference(path.as_str(), old.as_deref(), Some(content));
                previews.push(DryRunChange { path, diff: Some(shown.text), removed: false });
            }
            (Change::Remove { .. }, true) => {
                previews.push(DryRunChange { path, diff: None, removed: true });
            }
            (_, false) => {
                let effect = invocation.workspace.effect(&path, before, change.content());
                files.push(FileEffect { diff: Some(diff), ..effect });
            }
        }
    }
    let statements = execution.statements;
    let rows_changed = (statements.count > 0 && !dry_run).then_some(statements.changed);
    let result = ExecToolResult {
        result: execution.result,
        logs: execution.logs,
        stats: execution.stats,
        warnings: execution.warnings,
        dry_run,
        changes: dry_run.then_some(previews),
        sql: dry_run.then_some(statements),
    };
    Ok(ToolOutcome { files, rows_changed, ..result.into() })
}

impl ExecTool {
    /// The tool's file, and the limits that are above what every run has.
    fn targets_within(
        &self,
        args: &ExecToolArgs,
        outer: Option<&LimitRequest>,
    ) -> Result<Vec<Target>, ToolError> {
        let mut targets = tool_file(&args.path, Access::Read)?;
        targets.extend(raised_limits(&self.0, args.limits.as_ref(), outer)?);
        Ok(targets)
    }
}

/// The limits of a run that are above what every run has.
pub(super) fn raised_limits(
    forge: &ToolRuntime,
    limits: Option<&LimitRequest>,
    outer: Option<&LimitRequest>,
) -> Result<Option<Target>, ToolError> {
    let above = forge.grant(limits, outer)?.above;
    Ok((!above.is_empty()).then_some(Target::Limits(above)))
}

fn refuse_tests(path: &RelativePath) -> Result<(), ToolError> {
    if !is_test_file(path.as_str()) {
        return Ok(());
    }
    Err(ToolError::new(Code::Validation, format!("`{path}` holds tests, and is not a tool"))
        .help("run it with `test_tool`, or `tgp test` at the command line"))
}
