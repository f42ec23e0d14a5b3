//! `fs_delete`: a file of the project is gone, or a directory that is empty.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{
    Access, Code, Effect, EntryKind, ExecutionPath, FsError, RelativePath, Root, Target, ToolError,
};

use super::change::{ExpectedContent, FileChangeResult, answer, change};
use super::{BlockingPool, project_file};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub(super) struct FsDelete(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FsDeleteArgs {
    /// Such as `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// Refuse with ECONFLICT unless the file has this SHA-256.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    expected_sha256: Option<String>,
}

impl FsDelete {
    /// Removes a directory, or says what would come of it.
    async fn directory(
        &self,
        invocation: Invocation<'_>,
        path: &RelativePath,
    ) -> Result<ToolOutcome<FileChangeResult>, ToolError> {
        let files = invocation.filtered_workspace().await.project_files();
        let (meant, dry_run) = (path.clone(), invocation.context.dry_run);
        if let Some(agreement) = invocation.agreement() {
            agreement.check_no_file(path)?;
        }
        if invocation.router.may_hide_below(invocation, Root::Project, path).await {
            // Whether it is empty would reveal what is hidden in it.
            let message =
                format!("a rule may hide files in `{path}`, so whether it is empty is not disclosed");
            return Err(ToolError::new(Code::Policy, message)
                .detail("path", path.as_str())
                .help("leave the directory, or ask a person to delete it"));
        }
        let point = invocation.point_of_no_return();
        let work = move || {
            // What is out of reach is in there all the same, so the disk decides what is empty.
            let removed = if dry_run {
                files.is_empty_directory(&meant)?
            } else {
                point.commit()?;
                files.remove_empty_directory(&meant)?
            };
            if removed {
                return Ok(());
            }
            Err(ToolError::new(Code::Validation, format!("`{meant}` is not empty"))
                .help("delete what is in it first"))
        };
        self.0.work(work).await?;
        let kind = Some(EntryKind::Directory);
        Ok(FileChangeResult { kind, dry_run, ..FileChangeResult::of(path) }.into())
    }
}

#[async_trait]
impl Tool for FsDelete {
    type Args = FsDeleteArgs;
    type Output = FileChangeResult;

    const INFO: ToolSpec = ToolSpec {
        name: "fs_delete",
        aliases: &["fs.delete"],
        description: "Delete a file or an empty directory of the project.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &FsDeleteArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Delete)
    }

    async fn run(
        &self,
        args: FsDeleteArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<FileChangeResult>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let looked_at = path.clone();
        let entry = self.0.work(move || Ok(files.entry(&looked_at)?)).await?;
        if entry.is_some_and(|entry| entry.kind == EntryKind::Directory) {
            return self.directory(invocation, &path).await;
        }
        let expected = ExpectedContent::new(&path, args.expected_sha256);
        let meant = path.clone();
        let changed = change(&self.0, invocation, &path, move |before| {
            expected.check(before)?;
            if before.is_none() {
                return Err(FsError::NotFound(meant.clone()).into());
            }
            Ok(None)
        })
        .await?;
        let result = FileChangeResult { kind: Some(EntryKind::File), ..FileChangeResult::of(&path) };
        Ok(answer(invocation, &changed, result))
    }
}
