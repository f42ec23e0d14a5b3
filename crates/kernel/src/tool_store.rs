//! Where the tools are: in the repository of the project, or with the embedding program. With the latter the tools that
//! need git, the jail or the graph answer `ECAPABILITY`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tgp_contract::{Code, FileSystem, Target, ToolDefinition, ToolError};
use tgp_router::{DynTool, Invocation, Preview, ToolOutcome};
use tgp_tool_runtime::memory::HostStore;
use tgp_tool_runtime::{StartupNotices, ToolLibrary, ToolRuntime};
use tgp_upstream::HostModules;

use crate::boot::{BootContext, BootError, BootOptions};
use crate::{scaffold, settings};

/// What needs the files of a project on the disk.
const NEED_A_DISK: [&str; 13] = [
    "git_commit",
    "git_diff",
    "git_log",
    "git_status",
    "graph_ingest",
    "graph_query",
    "log",
    "package_install",
    "reconcile",
    "review_plan",
    "shell_exec",
    "sync",
    "test_run",
];

/// The tools of a kernel.
pub(crate) struct OpenedTools {
    pub(crate) library: Arc<ToolLibrary>,
    /// What a person should know.
    pub(crate) opening: StartupNotices,
    /// The files, where they are not those of the disk.
    pub(crate) kept: Option<Arc<dyn FileSystem>>,
}

impl OpenedTools {
    pub(crate) async fn open(
        ground: &BootContext,
        options: &BootOptions,
        forge: &Arc<ToolRuntime>,
        modules: Option<&HostModules>,
    ) -> Result<Self, BootError> {
        let BootContext { project, root, config, access, .. } = ground;
        let state = access.state();
        let searcher = settings::searcher(config, state)?;
        let on_duplicate = config.registry.on_duplicate.into();
        let forge = Arc::clone(forge);
        if let Some(host) = &options.host_files {
            let store = Arc::new(HostStore::load(Arc::clone(host)).await?);
            for (name, text) in scaffold::declarations(modules) {
                store.show(name, &text)?;
            }
            let kept = Some(store.files());
            let library = ToolLibrary::of_host(forge, searcher, on_duplicate, store, state.path())?;
            return Ok(Self { library: Arc::new(library), opening: StartupNotices::default(), kept });
        }
        let git = |derived| {
            settings::git_options(config.git.as_ref(), project, root, &options.environment, derived)
        };
        let read_only = access.check_kernel_files().err();
        let (library, opening) =
            ToolLibrary::open(forge, searcher, on_duplicate, git, state.path(), read_only).await?;
        Ok(Self { library: Arc::new(library), opening, kept: None })
    }

    /// All tools of the kernel, with those that cannot work here saying why.
    pub(crate) fn usable(&self, tools: Vec<Arc<dyn DynTool>>) -> Vec<Arc<dyn DynTool>> {
        if self.kept.is_none() {
            return tools;
        }
        let needs_a_disk = |tool: &Arc<dyn DynTool>| NEED_A_DISK.contains(&tool.definition().name.as_str());
        let refusing = |tool: Arc<dyn DynTool>| -> Arc<dyn DynTool> {
            if needs_a_disk(&tool) { Arc::new(WithoutDisk(tool)) } else { tool }
        };
        tools.into_iter().map(refusing).collect()
    }
}

/// A tool that refuses every call. It is listed, so that a caller is told why.
struct WithoutDisk(Arc<dyn DynTool>);

#[async_trait]
impl DynTool for WithoutDisk {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    fn has_derived_schema(&self) -> bool {
        self.0.has_derived_schema()
    }

    fn output_schema(&self) -> Option<Value> {
        self.0.output_schema()
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        self.0.targets(arguments)
    }

    async fn preview(&self, _invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        Err(self.refusal())
    }

    async fn run(&self, _invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        Err(self.refusal())
    }
}

impl WithoutDisk {
    fn refusal(&self) -> ToolError {
        let name = &self.0.definition().name;
        let message =
            format!("`{name}` needs a project on the disk, and the host keeps the files of this one");
        ToolError::new(Code::Capability, message)
            .help("boot without files of the host (`files`, in Node `vfs`) to have git, commands and the code graph")
    }
}
