//! `check_tool`: may this tool run?

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Access, CheckReport, Effect, ExecutionPath, RelativePath, Target, ToolError};

use super::{imported, tool_file};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::ToolRuntime;

pub(super) struct CheckTool(pub(super) Arc<ToolRuntime>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckToolArgs {
    /// Such as `tools/math/fib.ts`.
    #[schemars(length(min = 1))]
    path: String,
}

#[async_trait]
impl Tool for CheckTool {
    type Args = CheckToolArgs;
    type Output = CheckReport;

    const INFO: ToolSpec = ToolSpec {
        name: "check_tool",
        aliases: &[],
        description: "Compile a tool and check it: syntax, forbidden globals, imports, the eight standards, and types where the project has TypeScript 7.",
        effect: Effect::Read,
        path: ExecutionPath::Sandbox,
        dry_run: true,
    };

    fn targets(&self, args: &CheckToolArgs) -> Result<Vec<Target>, ToolError> {
        tool_file(&args.path, Access::Read)
    }

    /// What it imports is compiled too, and a finding may quote it.
    async fn found_targets(&self, args: &CheckToolArgs, invocation: Invocation<'_>) -> Vec<Target> {
        imported(&self.0, &args.path, invocation).await
    }

    async fn run(
        &self,
        args: CheckToolArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<CheckReport>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        Ok(self.0.check(invocation, &path).await?.into())
    }
}
