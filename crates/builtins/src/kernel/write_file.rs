//! `write_file`: a new file, or a new content for an old one.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Effect, ExecutionPath, RelativePath, Root, Target, ToolError};

use super::{ToolWrite, preview, refuse_foreign_path, written_file};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::ToolLibrary;
use tgp_tool_runtime::memory::{WriteOptions, refuse_derived};

/// Tools that a write may name as such that do not do the job. More are never reported at once.
const MAX_OVERRIDDEN: usize = 50;

pub(super) struct WriteFile(pub(super) Arc<ToolLibrary>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFileArgs {
    /// Such as `tools/math/fib.ts`.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole new content.
    content: String,
    /// The `similar` tools of a refusal, which do something else.
    #[serde(default)]
    #[schemars(length(max = MAX_OVERRIDDEN), inner(length(min = 1)))]
    override_similar: Vec<String>,
}

#[async_trait]
impl Tool for WriteFile {
    type Args = WriteFileArgs;
    type Output = ToolWrite;

    const INFO: ToolSpec = ToolSpec {
        name: "write_file",
        aliases: &[],
        description: "Create a file of the tool repository, or replace its content, and commit it. A new tool that duplicates others is refused with EPOLICY, which lists them as `similar`: use one of them, or list them all in `override_similar`.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &WriteFileArgs) -> Result<Vec<Target>, ToolError> {
        written_file(&self.0, &args.path)
    }

    async fn run(
        &self,
        args: WriteFileArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ToolWrite>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        refuse_derived(&path)?;
        refuse_foreign_path(&path)?;
        let files = &invocation.workspace.tools;
        let override_similar: Vec<RelativePath> =
            args.override_similar.iter().map(|path| RelativePath::new(path)).collect::<Result<_, _>>()?;
        let terms = WriteOptions {
            actor: &invocation.context.actor,
            override_similar: &override_similar,
            agreement: invocation.agreement(),
            point: invocation.point_of_no_return(),
            visible: invocation.visibility().await,
        };
        if invocation.context.dry_run {
            self.0.check_write(files, &path, &args.content, &terms).await?;
            let seen = invocation.visible_tools().await;
            return preview(seen.as_ref(), &path, &args.content, self.0.remote());
        }
        let is_seen = terms.visible.shows(Root::Tools, &path);
        let (mut written, effect) = self.0.write(files, &path, args.content, terms).await?;
        // A tool that the caller may only write is as if it had not been there.
        written.created |= !is_seen;
        if is_seen && written.errors.is_empty() {
            written.errors = self.0.unresolved_import(&invocation.visible_tools().await, &path).await;
        }
        Ok(ToolOutcome { files: vec![effect], ..ToolWrite::Done(written).into() })
    }
}
