//! `patch_file`: one piece of text for another, literally.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Effect, ExecutionPath, RelativePath, Target, ToolError};

use super::{ToolWrite, preview, refuse_foreign_path, written_file};
use tgp_router::files::{Replacement, patch};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::ToolLibrary;
use tgp_tool_runtime::memory::refuse_derived;

pub(super) struct PatchFile(pub(super) Arc<ToolLibrary>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PatchFileArgs {
    /// Such as `tools/math/fib.ts`.
    #[schemars(length(min = 1))]
    path: String,
    /// Literal text that occurs exactly once. Add lines to make it unique.
    #[schemars(length(min = 1))]
    search: String,
    /// The replacement.
    replace: String,
}

#[async_trait]
impl Tool for PatchFile {
    type Args = PatchFileArgs;
    type Output = ToolWrite;

    const INFO: ToolSpec = ToolSpec {
        name: "patch_file",
        aliases: &[],
        description: "Replace one piece of text in a file of the tool repository, and commit the change.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &PatchFileArgs) -> Result<Vec<Target>, ToolError> {
        written_file(&self.0, &args.path)
    }

    async fn run(
        &self,
        args: PatchFileArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ToolWrite>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        refuse_derived(&path)?;
        refuse_foreign_path(&path)?;
        let files = &invocation.workspace.tools;
        // Whether a text occurs in a file is a matter of who may read it.
        invocation.visible_tools().await.read(&path)?;
        let replacement = Replacement { search: args.search, replace: args.replace, all: false };
        if invocation.context.dry_run {
            let (patched, _) = patch(&path, &files.read_text(&path)?, &replacement)?;
            self.0.check_content(&path, &patched).await?;
            return preview(files.as_ref(), &path, &patched, self.0.remote());
        }
        let meant = path.clone();
        let patch = move |text: &str| patch(&meant, text, &replacement).map(|(patched, _)| patched);
        let (agreement, point) = (invocation.agreement(), invocation.point_of_no_return());
        let (mut written, effect) = self.0.patch(files, &path, patch, agreement, point).await?;
        if written.errors.is_empty() {
            written.errors = self.0.unresolved_import(&invocation.visible_tools().await, &path).await;
        }
        Ok(ToolOutcome { files: vec![effect], ..ToolWrite::Done(written).into() })
    }
}
