//! `sync`: exchange tools with the remote repository.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Effect, ExecutionPath, Target, ToolError};
use tgp_tool_runtime::memory::SyncResult;

use tgp_router::{Invocation, Preview, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::ToolLibrary;

pub(super) struct Sync(pub(super) Arc<ToolLibrary>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SyncArgs {}

#[async_trait]
impl Tool for Sync {
    type Args = SyncArgs;
    type Output = SyncResult;

    const INFO: ToolSpec = ToolSpec {
        name: "sync",
        aliases: &["git.sync", "git_sync"],
        description: "Commit uncommitted files of the tool repository, pull from its remote, and push to it.",
        effect: Effect::Network,
        path: ExecutionPath::Fast,
        dry_run: false,
    };

    fn targets(&self, _args: &SyncArgs) -> Result<Vec<Target>, ToolError> {
        Ok(self.0.remote_target().into_iter().collect())
    }

    /// What would be sent, as far as it is known without asking the remote.
    async fn preview(&self, _args: SyncArgs, _invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        Ok(Preview { data: self.0.outgoing().await?, ..Preview::default() })
    }

    async fn run(
        &self,
        _args: SyncArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<SyncResult>, ToolError> {
        invocation.testify()?;
        Ok(self.0.sync(&invocation.visibility().await).await?.into())
    }
}
