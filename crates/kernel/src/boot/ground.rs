//! The ground of a kernel: where the project and the tools are, and what the configuration says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_sandbox::{Sandbox, SandboxOptions, WorkerCommand};
use tgp_tools::{BytecodeCache, Forge, ForgeOptions};

use super::{BootError, BootOptions};
use crate::config::{self, Config, ConfigError, ConfigSource, GitConfig};

/// What is known before anything is opened.
pub(crate) struct Ground {
    pub(crate) project: PathBuf,
    /// The agent's root on disk.
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
    worker: WorkerCommand,
    cache: Arc<BytecodeCache>,
    /// The sandbox that had to be started to evaluate the configuration, if one was.
    sandbox: Option<Arc<Sandbox>>,
}

impl Ground {
    pub(crate) async fn find(options: &BootOptions) -> Result<Self, BootError> {
        let project = options
            .directory
            .canonicalize()
            .map_err(|source| BootError::Directory { path: options.directory.clone(), source })?;
        let worker = options.worker.as_ref().map_or_else(WorkerCommand::this_binary, |program| {
            WorkerCommand { program: program.clone(), arguments: Vec::new() }
        });
        let cache = Arc::new(BytecodeCache::new(options.cache_directory.clone(), &worker.program));
        let (config, sandbox) = configure(options, &project, &worker, &cache).await?;
        let root: PathBuf = project.join(&config.root_dir).components().collect();
        if !root.is_dir() && !config.git.as_ref().is_some_and(GitConfig::has_remote) {
            return Err(BootError::NotInitialised(root));
        }
        Ok(Self { project, root, config, worker, cache, sandbox })
    }

    pub(crate) async fn forge(&mut self) -> Result<Arc<Forge>, BootError> {
        let wanted = sandbox_options(&self.worker, &self.config);
        let sandbox = match self.sandbox.take() {
            // Most configurations leave the sandbox as it is; its workers are warm already.
            Some(sandbox) if *sandbox.options() == wanted => sandbox,
            _ => Arc::new(Sandbox::new(wanted)?),
        };
        let forge = start_forge(sandbox, &self.cache, &self.project, &self.root, &self.config).await?;
        Ok(Arc::new(forge))
    }
}

/// The configuration, and the sandbox that had to be started to evaluate it, if one was.
async fn configure(
    options: &BootOptions,
    project: &Path,
    worker: &WorkerCommand,
    cache: &Arc<BytecodeCache>,
) -> Result<(Config, Option<Arc<Sandbox>>), BootError> {
    match config::find(project, options.config_file.as_deref())? {
        None => Ok((Config::default(), None)),
        Some(ConfigSource::Json { file, value }) => Ok((Config::from_value(&file, &value)?, None)),
        Some(ConfigSource::Script(unit)) => {
            let defaults = Config::default();
            let sandbox = Arc::new(Sandbox::new(sandbox_options(worker, &defaults))?);
            let forge = start_forge(Arc::clone(&sandbox), cache, project, project, &defaults).await?;
            let file = unit.id.clone();
            let value = forge
                .evaluate_config(unit, |name| (options.environment)(name))
                .await
                .map_err(|error| ConfigError::Evaluate { file: file.clone(), error: Box::new(error) })?;
            Ok((Config::from_value(&file, &value)?, Some(sandbox)))
        }
    }
}

fn sandbox_options(worker: &WorkerCommand, config: &Config) -> SandboxOptions {
    SandboxOptions {
        worker: worker.clone(),
        pool_size: config.sandbox.pool,
        limits: Forge::test_limits(config.sandbox.limits),
    }
}

async fn start_forge(
    sandbox: Arc<Sandbox>,
    cache: &Arc<BytecodeCache>,
    project: &Path,
    root: &Path,
    config: &Config,
) -> Result<Forge, BootError> {
    let options = ForgeOptions {
        project: project.to_owned(),
        tool_root: root.to_owned(),
        allowed_imports: config.allowed_imports.clone(),
        limits: config.sandbox.limits,
        seed: config.sandbox.seed,
        frozen_clock_ms: config.sandbox.clock_ms,
    };
    Ok(Forge::start(sandbox, Arc::clone(cache), options).await?)
}
