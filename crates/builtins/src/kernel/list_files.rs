//! `list_files`: the files of the tool repository.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Access, Effect, ExecutionPath, FsError, RelativePath, Target, ToolError};

use super::tool_file;
use tgp_router::files::is_listed;
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::memory::TOOLS_DIRECTORY;

pub(super) struct ListFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFilesArgs {
    /// Such as `tools`; default: all.
    dir: Option<String>,
}

#[async_trait]
impl Tool for ListFiles {
    type Args = ListFilesArgs;
    type Output = Vec<RelativePath>;

    const INFO: ToolSpec = ToolSpec {
        name: "list_files",
        aliases: &[],
        description: "List the files below a directory of the tool repository.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &ListFilesArgs) -> Result<Vec<Target>, ToolError> {
        args.dir.as_deref().map_or_else(|| Ok(Vec::new()), |dir| tool_file(dir, Access::Read))
    }

    async fn run(
        &self,
        args: ListFilesArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<Vec<RelativePath>>, ToolError> {
        let directory = RelativePath::new(&args.dir.unwrap_or_default())?;
        let entries = match invocation.visible_tools().await.list(&directory) {
            // A repository without tools may not have their directory yet.
            Err(FsError::NotFound(missing)) if missing.as_str() == TOOLS_DIRECTORY => Vec::new(),
            other => other?,
        };
        let files: Vec<RelativePath> =
            entries.into_iter().filter(is_listed).map(|entry| entry.path).collect();
        Ok(files.into())
    }
}
