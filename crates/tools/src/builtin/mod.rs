//! The kernel tools an agent works with.

mod check_tool;
mod exec_sql;
mod exec_tool;
mod fetch;
mod list_files;
mod log;
mod patch_file;
mod read_file;
mod search;
mod sync;
mod test_tool;
mod write_file;

use std::sync::Arc;

use serde_json::Value;
use tgp_contract::{
    Access, Code, Effect, ExecutionPath, FileEffect, FileSystem, FsError, RelativePath, Root, Target,
    ToolDefinition, ToolError, ToolName, canonical,
};

use tgp_sandbox::FetchClient;

use crate::files::difference;
use crate::forge::as_targets;
use crate::memory::RemoteName;
use crate::router::{Invocation, Outcome, Tool};
use crate::{Forge, Library};

/// All of them.
///
/// # Errors
/// Never in practice: the names are constants.
pub fn kernel_tools(
    forge: &Arc<Forge>,
    fetch: &Arc<FetchClient>,
    library: &Arc<Library>,
) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
    Ok(vec![
        Arc::new(list_files::ListFiles::new()?),
        Arc::new(read_file::ReadFile::new()?),
        Arc::new(write_file::WriteFile::new(Arc::clone(library))?),
        Arc::new(patch_file::PatchFile::new(Arc::clone(library))?),
        Arc::new(check_tool::CheckTool::new(Arc::clone(forge))?),
        Arc::new(exec_tool::ExecTool::new(Arc::clone(forge))?),
        Arc::new(test_tool::TestTool::new(Arc::clone(forge))?),
        Arc::new(search::Search::new(Arc::clone(library))?),
        Arc::new(sync::Sync::new(Arc::clone(library))?),
        Arc::new(log::Log::new(Arc::clone(library))?),
        Arc::new(exec_sql::ExecSql::new()?),
        Arc::new(fetch::Fetch::new(Arc::clone(fetch))?),
    ])
}

/// The parts of a definition that differ from tool to tool.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) description: &'static str,
    pub(crate) input_schema: Value,
    pub(crate) effect: Effect,
    pub(crate) path: ExecutionPath,
    pub(crate) dry_run: bool,
}

impl Definition {
    pub(crate) fn build(self) -> Result<ToolDefinition, ToolError> {
        let name =
            ToolName::new(self.name).map_err(|error| ToolError::new(Code::Internal, error.to_string()))?;
        Ok(ToolDefinition {
            name,
            aliases: self.aliases.iter().map(|&alias| alias.to_owned()).collect(),
            description: self.description.to_owned(),
            input_schema: self.input_schema,
            effect: self.effect,
            path: self.path,
            dry_run: self.dry_run,
        })
    }
}

/// The file of the tool repository that an argument names, and what happens to it; none where it is left out.
fn tool_file(arguments: &Value, name: &str, access: Access) -> Result<Vec<Target>, ToolError> {
    let Some(text) = arguments.get(name).and_then(Value::as_str) else { return Ok(Vec::new()) };
    Ok(vec![Target::File { root: Root::Tools, path: RelativePath::new(text)?, access }])
}

/// The sources that the tool of a call imports, from wherever in the tool repository.
async fn imported(forge: &Forge, invocation: Invocation<'_>) -> Vec<Target> {
    let path = invocation.call.arguments.get("path").and_then(Value::as_str).map(RelativePath::new);
    match path {
        Some(Ok(path)) => as_targets(forge.find_sources(&invocation.workspace.tools, &path).await),
        // It is refused before any gate is asked.
        Some(Err(_)) | None => Vec::new(),
    }
}

/// The file that a write names, and the host that it is sent to afterwards.
fn written_file(library: &Library, arguments: &Value) -> Result<Vec<Target>, ToolError> {
    let mut targets = tool_file(arguments, "path", Access::Write)?;
    targets.extend(library.remote_target());
    Ok(targets)
}

/// The difference that a new text would make, and where it would be sent.
fn preview(
    files: &dyn FileSystem,
    path: &RelativePath,
    content: &str,
    remote: Option<&RemoteName>,
) -> Result<Outcome, ToolError> {
    let before = match files.read(path) {
        Ok(bytes) => Some(bytes),
        Err(FsError::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let shown = difference(path.as_str(), before.as_deref(), Some(content.as_bytes()));
    let mut data = serde_json::json!({
        "dry_run": true,
        "path": path,
        "created": before.is_none(),
        "diff": shown.text,
    });
    if let Some(fields) = data.as_object_mut() {
        if let Some(remote) = remote {
            fields.insert("remote".to_owned(), remote.url.clone().into());
        }
        if !shown.complete {
            fields.insert("diffTruncated".to_owned(), true.into());
        }
    }
    let effect = FileEffect::new(
        Root::Tools,
        path.clone(),
        before.as_deref().map(canonical::sha256_hex),
        Some(canonical::sha256_hex(content.as_bytes())),
    );
    Ok(Outcome { data, files: vec![effect], ..Outcome::default() })
}
