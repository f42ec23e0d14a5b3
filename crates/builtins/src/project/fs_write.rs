//! `fs_write`: a new file of the project, or a new content for an old one.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Access, Effect, ExecutionPath, RelativePath, Target, ToolError};

use super::change::{ExpectedContent, FileChangeResult, answer, change};
use super::{BlockingPool, project_file};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub(super) struct FsWrite(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FsWriteArgs {
    /// Such as `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole new content.
    content: String,
    /// Refuse with ECONFLICT unless the file has this SHA-256.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    expected_sha256: Option<String>,
}

#[async_trait]
impl Tool for FsWrite {
    type Args = FsWriteArgs;
    type Output = FileChangeResult;

    const INFO: ToolSpec = ToolSpec {
        name: "fs_write",
        aliases: &["fs.write", "Write"],
        description: "Create a file of the project, or replace its whole content. Missing directories are created.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &FsWriteArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Write)
    }

    async fn run(
        &self,
        args: FsWriteArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<FileChangeResult>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        let expected = ExpectedContent::new(&path, args.expected_sha256);
        let changed = change(&self.0, invocation, &path, move |before| {
            expected.check(before)?;
            Ok(Some(args.content.into_bytes()))
        })
        .await?;
        let created = Some(changed.before().is_none());
        let result = FileChangeResult { created, ..FileChangeResult::of(&path) };
        Ok(answer(invocation, &changed, result))
    }
}
