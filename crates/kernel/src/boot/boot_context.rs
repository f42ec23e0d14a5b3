//! The ground of a kernel: where the project and the tools are, and what the configuration says.

use std::path::PathBuf;
use std::sync::Arc;

use tgp_sandbox::{Sandbox, WorkerCommand};
use tgp_tool_runtime::{BytecodeCache, ToolRuntime};

use super::{BootError, BootOptions};
use crate::config::{Config, Found, GitConfig};
use crate::project_access::ProjectAccess;
use crate::{settings, trust};

/// What is known before anything is opened.
pub(crate) struct BootContext {
    pub(crate) project: PathBuf,
    /// The agent's root on disk.
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
    /// What this process may do in the project, and where its state is.
    pub(crate) access: ProjectAccess,
    /// What a person should know of the configuration.
    pub(crate) notice: Option<String>,
    /// The secrets that the configuration holds or names, also those of fields that do not take effect.
    pub(crate) secrets: Vec<String>,
    worker: WorkerCommand,
    cache: Arc<BytecodeCache>,
    /// The sandbox that had to be started to evaluate the configuration, if one was.
    sandbox: Option<Arc<Sandbox>>,
}

impl BootContext {
    pub(crate) async fn find(options: &BootOptions) -> Result<Self, BootError> {
        let mut found = Found::read(options).await?;
        // Before anything that the file names is opened, started or asked.
        let notice = trust::admit(&mut found, options).await?;
        let Found { project, config, secrets, worker, cache, sandbox, .. } = found;
        trust::check_root(&config, &project)?;
        let root: PathBuf = project.join(&config.root_dir).components().collect();
        let is_confirmed = trust::is_owner_confirmed(&config);
        let access = ProjectAccess::decide(&project, &root, is_confirmed, &options.environment)?;
        if options.host_files.is_some() && access.is_own() {
            // Records and rules are on the disk all the same.
            let made = std::fs::create_dir_all(&root);
            made.map_err(|source| BootError::Directory { path: root.clone(), source })?;
        } else if !root.is_dir() && !config.git.as_ref().is_some_and(GitConfig::has_remote) {
            return Err(BootError::NotInitialised(root));
        }
        settings::check_state(access.state().path())?;
        Ok(Self { project, root, config, access, notice, secrets, worker, cache, sandbox })
    }

    pub(crate) async fn forge(
        &mut self,
        others: &settings::OtherPrograms,
        options: &BootOptions,
    ) -> Result<Arc<ToolRuntime>, BootError> {
        let wanted = self.config.sandbox.options(&self.worker);
        let sandbox = match self.sandbox.take() {
            // Most configurations leave the sandbox as it is; its workers are warm already.
            Some(sandbox) if *sandbox.options() == wanted => sandbox,
            _ => Arc::new(Sandbox::new(wanted)?),
        };
        options.first_worker.start(&sandbox).await;
        let root = options.host_files.is_none().then_some(self.root.as_path());
        let options = settings::runtime_options(&self.config, &self.project, root, Some(others));
        Ok(Arc::new(ToolRuntime::new(sandbox, Arc::clone(&self.cache), options)))
    }
}
