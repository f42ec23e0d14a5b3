//! `fs_exists`: is it there, and what is it?

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Effect, EntryKind, ExecutionPath, FsError, RelativePath, Target, ToolError};

use super::{BlockingPool, project_file};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub(super) struct FsExists(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FsExistsArgs {
    /// Such as `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
}

/// Whether a path of the project exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExistsResult {
    pub exists: bool,
    /// What it is, if it exists.
    pub kind: Option<EntryKind>,
}

#[async_trait]
impl Tool for FsExists {
    type Args = FsExistsArgs;
    type Output = ExistsResult;

    const INFO: ToolSpec = ToolSpec {
        name: "fs_exists",
        aliases: &["fs.exists"],
        description: "Check whether a path of the project exists, and of what kind it is.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &FsExistsArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: FsExistsArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ExistsResult>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        // What the caller may not read is as if it were not there, whichever tool a rule names.
        let files = invocation.filtered_workspace().await.project_files();
        let kind = self
            .0
            .work(move || match files.entry(&path) {
                Ok(entry) => Ok(entry.map(|entry| entry.kind)),
                // Below a file there is nothing.
                Err(FsError::NotFound(_) | FsError::NotDirectory(_)) => Ok(None),
                Err(error) => Err(error.into()),
            })
            .await?;
        Ok(ExistsResult { exists: kind.is_some(), kind }.into())
    }
}
