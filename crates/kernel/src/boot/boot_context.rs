//! The ground of a kernel: where the project and the tools are, and what the configuration says.

use std::path::PathBuf;
use std::sync::Arc;

use tgp_compiler::Unit;
use tgp_sandbox::{Sandbox, WorkerCommand};
use tgp_tool_runtime::{BytecodeCache, ConfigValue, ToolRuntime};

use super::{BootError, BootOptions};
use crate::config::{self, Config, ConfigError, ConfigSource, GitConfig};
use crate::{project_place, records, settings, trust};

/// What is known before anything is opened.
pub(crate) struct BootContext {
    pub(crate) project: PathBuf,
    /// The agent's root on disk.
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
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
        let notice = trust::admit(&mut found.config, &found.project, &found.variables, options).await?;
        let Found { project, config, secrets, worker, cache, sandbox, .. } = found;
        trust::check_root(&config, &project)?;
        let root: PathBuf = project.join(&config.root_dir).components().collect();
        if options.host_files.is_some() {
            // Records and rules are on the disk all the same.
            let made = std::fs::create_dir_all(&root);
            made.map_err(|source| BootError::Directory { path: root.clone(), source })?;
        } else if !root.is_dir() && !config.git.as_ref().is_some_and(GitConfig::has_remote) {
            return Err(BootError::NotInitialised(root));
        }
        settings::check_state(&root)?;
        Ok(Self { project, root, config, notice, secrets, worker, cache, sandbox })
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

/// A configuration as its file gives it, before anything of it takes effect.
pub(crate) struct Found {
    pub(crate) project: PathBuf,
    pub(crate) config: Config,
    /// The variables of the environment that the file reads.
    pub(crate) variables: Vec<String>,
    /// The secrets that it holds or names.
    secrets: Vec<String>,
    worker: WorkerCommand,
    cache: Arc<BytecodeCache>,
    sandbox: Option<Arc<Sandbox>>,
}

impl Found {
    pub(crate) async fn read(options: &BootOptions) -> Result<Self, BootError> {
        let project = options
            .directory
            .canonicalize()
            .map_err(|source| BootError::Directory { path: options.directory.clone(), source })?;
        let worker = options.worker.as_ref().map_or_else(WorkerCommand::this_binary, |program| {
            WorkerCommand { program: program.clone(), arguments: Vec::new() }
        });
        let cache = settings::usable_cache(options.cache_directory.clone(), &project);
        let cache = BytecodeCache::new(cache, &worker.program).into();
        let mut found = Self {
            project,
            config: Config::default(),
            variables: Vec::new(),
            secrets: Vec::new(),
            worker,
            cache,
            sandbox: None,
        };
        match config::find(&found.project, options.config_file.as_deref())? {
            None => {}
            Some(ConfigSource::Json { file, value }) => found.config = Config::from_value(&file, &value)?,
            Some(ConfigSource::Script(unit)) => {
                let file = unit.id.clone();
                let ConfigValue { value, variables } =
                    match ToolRuntime::known_config(&found.cache, &unit, &*options.environment) {
                        Some(known) => known,
                        None => found.evaluate(unit, options).await?,
                    };
                found.variables = variables;
                found.config = Config::from_value(&file, &value)?;
            }
        }
        project_place::use_main_tree(&mut found.config, &found.project);
        found.secrets = records::learn_secrets(&mut found.config, &found.project, options)?;
        Ok(found)
    }

    /// What a file is worth that has to be compiled, and to be run unless it consists of literals.
    async fn evaluate(&mut self, unit: Unit, boot: &BootOptions) -> Result<ConfigValue, BootError> {
        let sandbox = Arc::new(Sandbox::new(self.config.sandbox.options(&self.worker))?);
        let project = &self.project;
        let options = settings::runtime_options(&self.config, project, Some(project), None);
        let forge = ToolRuntime::new(Arc::clone(&sandbox), Arc::clone(&self.cache), options);
        // The configuration is compiled meanwhile, by another worker.
        boot.first_worker.start(&sandbox).await;
        self.sandbox = Some(sandbox);
        let file = unit.id.clone();
        let value = forge.evaluate_config(unit, &*boot.environment).await;
        Ok(value.map_err(|error| ConfigError::Evaluate { file, error: Box::new(error) })?)
    }
}
