//! `log`: the versions of the tools.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Access, Effect, ExecutionPath, RelativePath, Target, ToolError};
use tgp_tool_runtime::memory::ToolLog;

use super::tool_file;
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::ToolLibrary;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 1000;

pub(super) struct Log(pub(super) Arc<ToolLibrary>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogArgs {
    /// Only the versions of this file.
    #[schemars(length(min = 1))]
    path: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

#[async_trait]
impl Tool for Log {
    type Args = LogArgs;
    type Output = ToolLog;

    const INFO: ToolSpec = ToolSpec {
        name: "log",
        aliases: &[],
        description: "List the versions of the tool repository, or of one of its files, newest first.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &LogArgs) -> Result<Vec<Target>, ToolError> {
        args.path.as_deref().map_or_else(|| Ok(Vec::new()), |path| tool_file(path, Access::Read))
    }

    async fn run(
        &self,
        args: LogArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ToolLog>, ToolError> {
        let path = args.path.as_deref().map(RelativePath::new).transpose()?;
        let visible = invocation.visibility().await;
        Ok(self.0.log(path.as_ref(), args.limit, &visible).await?.into())
    }
}
