//! `sync`: exchange tools with the remote repository.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Effect, ExecutionPath, RelativePath, Target, ToolError};
use tgp_git::{Conflict, RequestLink};

use crate::Library;
use crate::router::{Invocation, Outcome, Preview, Tool, ToolInfo};

pub(super) struct Sync(pub(super) Arc<Library>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SyncArgs {}

/// What a synchronisation of the tool repository did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncResult {
    /// Files that lay uncommitted in the working tree and are committed now.
    pub committed: Vec<RelativePath>,
    /// Files whose removal is committed now.
    pub removed: Vec<RelativePath>,
    /// Commits that came from the remote.
    pub pulled: usize,
    /// Commits that the remote has got.
    pub pushed: usize,
    /// Files that were changed on both sides.
    pub conflicts: Vec<Conflict>,
    pub requests: Vec<RequestLink>,
    pub head: Option<String>,
    pub branch: String,
    pub remote: Option<String>,
    pub warnings: Vec<String>,
    /// Why something was not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[async_trait]
impl Tool for Sync {
    type Args = SyncArgs;
    type Output = SyncResult;

    const INFO: ToolInfo = ToolInfo {
        name: "sync",
        aliases: &["git.sync", "git_sync"],
        description: "Commit what lies uncommitted in the tool repository, take what the remote has, and deliver what it lacks. Answers {committed, pulled, pushed, conflicts, why}.",
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
    ) -> Result<Outcome<SyncResult>, ToolError> {
        invocation.testify()?;
        Ok(self.0.sync(&invocation.visibility().await).await?.into())
    }
}
