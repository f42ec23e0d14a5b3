//! `read_file`: the text of one file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Access, Effect, ExecutionPath, RelativePath, Target, ToolError};

use super::tool_file;
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};
use tgp_tool_runtime::memory::{META_FILE, shown_index};

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFileArgs {
    /// Such as `tools/math/fib.ts`.
    #[schemars(length(min = 1))]
    path: String,
}

#[async_trait]
impl Tool for ReadFile {
    type Args = ReadFileArgs;
    type Output = String;

    const INFO: ToolSpec = ToolSpec {
        name: "read_file",
        aliases: &[],
        description: "Read a text file of the tool repository.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &ReadFileArgs) -> Result<Vec<Target>, ToolError> {
        tool_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: ReadFileArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<String>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        let tools = invocation.visible_tools().await;
        let text = tools.read_text(&path)?;
        // The index names every tool; a tool that may not be seen is not in it.
        if path.as_str() == META_FILE {
            let visible = invocation.visibility().await;
            return Ok(shown_index(text, &visible)?.into());
        }
        Ok(text.into())
    }
}
