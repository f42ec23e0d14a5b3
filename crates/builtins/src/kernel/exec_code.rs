//! `exec_code`: run a program that is not stored.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Effect, ExecutionPath, LimitRequest, RelativePath, Root, Target, ToolError, canonical,
};

use super::exec_tool::{ExecToolResult, raised_limits, run_program};
use super::imported;
use tgp_router::{FileSnapshot, Invocation, Preview, Tool, ToolOutcome, ToolSpec, Workspace};
use tgp_tool_runtime::ToolRuntime;
use tgp_tool_runtime::memory::TOOLS_DIRECTORY;

/// Bytes of a program. What is longer is worth storing.
const MAX_CODE_BYTES: usize = 256 * 1024;
/// Characters of a hash that keep two programs apart in records.
const HASH_CHARS: usize = 16;

pub(super) struct ExecCode(pub(super) Arc<ToolRuntime>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecCodeArgs {
    /// A script that returns its result, or a module with a default function.
    #[schemars(length(min = 1, max = MAX_CODE_BYTES))]
    code: String,
    /// What the program sees as `args`.
    #[serde(default)]
    #[schemars(schema_with = "any_value")]
    args: Value,
    limits: Option<LimitRequest>,
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "description": "What the program sees as `args`." })
}

impl ExecCodeArgs {
    /// Where the program would be stored. Relative imports begin there, and equal programs have equal names.
    fn path(&self) -> Result<RelativePath, ToolError> {
        let hash = canonical::sha256_hex(self.code.as_bytes());
        let name = hash.get(..HASH_CHARS).unwrap_or(&hash);
        Ok(RelativePath::new(&format!("{TOOLS_DIRECTORY}/code-{name}.ts"))?)
    }

    /// The tool repository with the program in it.
    fn view(&self, workspace: &Workspace) -> Result<(RelativePath, Workspace), ToolError> {
        let path = self.path()?;
        let view = workspace.with_tool_file(&path, &self.code)?;
        Ok((path, view))
    }

    fn targets(&self, forge: &ToolRuntime, outer: Option<&LimitRequest>) -> Result<Vec<Target>, ToolError> {
        let file = Target::File { root: Root::Tools, path: self.path()?, access: Access::Read };
        let limits = raised_limits(forge, self.limits.as_ref(), outer)?;
        Ok([file].into_iter().chain(limits).collect())
    }
}

#[async_trait]
impl Tool for ExecCode {
    type Args = ExecCodeArgs;
    type Output = ExecToolResult;

    const INFO: ToolSpec = ToolSpec {
        name: "exec_code",
        aliases: &[],
        description: "Run a TypeScript program once, without storing it. It can import tools (`./math/fib`) and runs as `exec_tool` does.",
        effect: Effect::Execute,
        path: ExecutionPath::Sandbox,
        dry_run: true,
    };

    fn targets(&self, args: &ExecCodeArgs) -> Result<Vec<Target>, ToolError> {
        args.targets(&self.0, None)
    }

    async fn targets_in(&self, args: &ExecCodeArgs, workspace: &Workspace) -> Result<Vec<Target>, ToolError> {
        args.targets(&self.0, workspace.outer_limits.as_ref())
    }

    /// Everything that it imports runs with it.
    async fn found_targets(&self, args: &ExecCodeArgs, invocation: Invocation<'_>) -> Vec<Target> {
        match args.view(invocation.workspace) {
            Ok((path, view)) => imported(&self.0, path.as_str(), invocation.on(&view)).await,
            // The call itself reports it.
            Err(_) => Vec::new(),
        }
    }

    /// The program, and the sources it consists of. No line of it is executed.
    async fn preview(&self, args: ExecCodeArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let (path, view) = args.view(invocation.workspace)?;
        let sources = self.0.sources(invocation.on(&view), &path).await?;
        let hash = canonical::sha256_hex(args.code.as_bytes());
        let data = json!({ "path": path, "sha256": hash, "source": args.code });
        let found = |(path, hash)| FileSnapshot { root: Root::Tools, path, sha256: Some(hash) };
        Ok(Preview { data: Some(data), found: sources.into_iter().map(found).collect(), missing: None })
    }

    async fn run(
        &self,
        args: ExecCodeArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ExecToolResult>, ToolError> {
        let (path, view) = args.view(invocation.workspace)?;
        let arguments = if args.args.is_null() { json!({}) } else { args.args };
        run_program(&self.0, &path, arguments, args.limits.as_ref(), invocation.on(&view)).await
    }
}
