//! The kernel tools an agent works with.

mod call_host;
mod call_upstream;
mod check_tool;
mod exec_code;
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

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{
    Access, Code, FileEffect, FileSystem, FsError, RelativePath, Root, Target, ToolError, canonical,
};
use tgp_fetch::FetchClient;
use tgp_tool_runtime::memory::ToolWriteResult;

pub use call_host::HostResult;
pub use call_upstream::UpstreamResult;
pub use exec_sql::SqlResult;
pub use exec_tool::{DryRunChange, ExecToolResult};
pub use search::{SearchResult, ToolHit};
pub use test_tool::{TestFile, TestNotRun, TestToolResult};

use tgp_router::files::difference;
use tgp_router::{DynTool, Invocation, ToolOutcome, typed};
use tgp_tool_runtime::forge::as_targets;
use tgp_tool_runtime::memory::RemoteName;
use tgp_tool_runtime::{ToolLibrary, ToolRuntime};
use tgp_upstream::{HostModules, Upstreams};

/// All of them.
///
/// # Errors
/// `EVALIDATION` when the schema of a function of the embedding program is none.
pub fn kernel_tools(
    forge: &Arc<ToolRuntime>,
    fetch: &Arc<FetchClient>,
    library: &Arc<ToolLibrary>,
    upstream: &Arc<Upstreams>,
    host: Option<&Arc<HostModules>>,
) -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
    Ok(vec![
        typed(list_files::ListFiles)?,
        typed(read_file::ReadFile)?,
        typed(write_file::WriteFile(Arc::clone(library)))?,
        typed(patch_file::PatchFile(Arc::clone(library)))?,
        typed(check_tool::CheckTool(Arc::clone(forge)))?,
        typed(exec_tool::ExecTool(Arc::clone(forge)))?,
        typed(exec_code::ExecCode(Arc::clone(forge)))?,
        typed(test_tool::TestTool(Arc::clone(forge)))?,
        typed(search::Search(Arc::clone(library)))?,
        typed(sync::Sync(Arc::clone(library)))?,
        typed(log::Log(Arc::clone(library)))?,
        typed(exec_sql::ExecSql)?,
        typed(fetch::Fetch(Arc::clone(fetch)))?,
        typed(call_upstream::CallUpstream(Arc::clone(upstream)))?,
        typed(call_host::CallHost::new(host)?)?,
    ])
}

/// What a write of a file of the tool repository did, or would do in a dry run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ToolWrite {
    DryRun(ToolWritePreview),
    Done(ToolWriteResult),
}

/// What a write of a file of the tool repository would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolWritePreview {
    /// Always true.
    #[serde(rename = "dry_run")]
    pub dry_run: bool,
    pub path: RelativePath,
    pub created: bool,
    /// A unified diff.
    pub diff: String,
    /// Where it would be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// True when the diff is longer than what is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff_truncated: bool,
}

/// The file of the tool repository that an argument names, and what happens to it.
fn tool_file(path: &str, access: Access) -> Result<Vec<Target>, ToolError> {
    Ok(vec![Target::File { root: Root::Tools, path: RelativePath::new(path)?, access }])
}

/// The sources that the tool of a call imports, from wherever in the tool repository.
async fn imported(forge: &ToolRuntime, path: &str, invocation: Invocation<'_>) -> Vec<Target> {
    match RelativePath::new(path) {
        Ok(path) => as_targets(forge.find_sources(&invocation.workspace.tools, &path).await),
        // It is refused before any gate is asked.
        Err(_) => Vec::new(),
    }
}

/// The folders of a tool repository that people and agents write to.
const TOOL_FOLDERS: [&str; 7] = ["tools", "bin", "lib", "policy", "types", "data", "docs"];

/// Files of a tool repository that the kernel writes: they say what tools have, and another text would not change that.
const GENERATED_FILES: [&str; 4] = ["tgp.d.ts", "tsconfig.json", "upstream.d.ts", "host.d.ts"];

/// Refuses a path that looks like one of the project's files, where in the tool repository it would be another file, and
/// what the kernel generates. The gates have judged it by then, so that a protected path is refused as such.
fn refuse_foreign_path(path: &RelativePath) -> Result<(), ToolError> {
    if GENERATED_FILES.iter().any(|name| path.as_str().eq_ignore_ascii_case(name)) {
        let message = format!("`{path}` is made by the kernel: it describes what tools can use");
        return Err(ToolError::new(Code::Validation, message)
            .help("declare types of your own in the tools, or in a file below `types/`"));
    }
    let mut parts = path.parts();
    let (first, has_folder) = (parts.next().unwrap_or_default(), parts.next().is_some());
    if !has_folder || first.starts_with('.') || TOOL_FOLDERS.contains(&first) {
        return Ok(());
    }
    let message = format!(
        "`{path}` is not in a folder of the tool repository: expected {}",
        TOOL_FOLDERS.map(|folder| format!("`{folder}/`")).join(", ")
    );
    Err(ToolError::new(Code::Validation, message)
        .help(format!("to write a file of the project, call `fs_write` (or `fs_edit`) with `{path}`")))
}

/// The file that a write names, and the host that it is sent to afterwards.
fn written_file(library: &ToolLibrary, path: &str) -> Result<Vec<Target>, ToolError> {
    let mut targets = tool_file(path, Access::Write)?;
    targets.extend(library.remote_target());
    Ok(targets)
}

/// The difference that a new text would make, and where it would be sent.
fn preview(
    files: &dyn FileSystem,
    path: &RelativePath,
    content: &str,
    remote: Option<&RemoteName>,
) -> Result<ToolOutcome<ToolWrite>, ToolError> {
    let before = match files.read(path) {
        Ok(bytes) => Some(bytes),
        Err(FsError::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let shown = difference(path.as_str(), before.as_deref(), Some(content.as_bytes()));
    let preview = ToolWritePreview {
        dry_run: true,
        path: path.clone(),
        created: before.is_none(),
        diff: shown.text,
        remote: remote.map(|remote| remote.url.clone()),
        diff_truncated: !shown.complete,
    };
    let effect = FileEffect::new(
        Root::Tools,
        path.clone(),
        before.as_deref().map(canonical::sha256_hex),
        Some(canonical::sha256_hex(content.as_bytes())),
    );
    Ok(ToolOutcome { files: vec![effect], ..ToolWrite::DryRun(preview).into() })
}
