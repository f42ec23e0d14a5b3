//! The configuration of a project as its file gives it, before anything of it takes effect.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tgp_compiler::Unit;
use tgp_contract::ToolError;
use tgp_sandbox::{Sandbox, WorkerCommand};
use tgp_tool_runtime::{BytecodeCache, ConfigValue, ToolRuntime};

use super::{Config, ConfigError, ConfigSource, UserConfig, find};
use crate::boot::{BootError, BootOptions};
use crate::{project_place, records, settings, trust};

/// What is known of a project before a person is asked.
pub(crate) struct Found {
    pub(crate) project: PathBuf,
    pub(crate) config: Config,
    /// The variables of the environment that the file reads.
    pub(crate) variables: Vec<String>,
    /// Why the file cannot be used with the variables that it reads; then `config` is the default. The error may hold their
    /// values, so it is told to those only who have confirmed them.
    pub(crate) failed: Option<BootError>,
    /// The secrets that it holds or names.
    pub(crate) secrets: Vec<String>,
    pub(crate) worker: WorkerCommand,
    pub(crate) cache: Arc<BytecodeCache>,
    /// The sandbox that had to be started to evaluate the configuration, if one was.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    script: Option<Unit>,
}

impl Found {
    /// Reads the file with the variables of the environment that it names.
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
            failed: None,
            secrets: Vec::new(),
            worker,
            cache,
            sandbox: None,
            script: None,
        };
        match find(&found.project, options.config_file.as_deref())? {
            None => found.take(Config::default(), options)?,
            Some(ConfigSource::Json { file, value }) => {
                found.take(Config::from_value(&file, &value)?, options)?;
            }
            Some(ConfigSource::Script(unit)) => {
                found.script = Some(unit.clone());
                let read = Mutex::new(Vec::new());
                let environment = |name: &str| {
                    read.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
                    (options.environment)(name)
                };
                let taken = found.use_script(unit, &environment, options).await;
                if let Err(error) = taken {
                    let mut variables = read.into_inner().unwrap_or_else(PoisonError::into_inner);
                    if variables.is_empty() {
                        return Err(error);
                    }
                    // Before it fails it may have asked for some of them only.
                    if found.variables.is_empty() {
                        variables.sort();
                        variables.dedup();
                        found.variables = variables;
                    }
                    found.failed = Some(error);
                }
            }
        }
        Ok(found)
    }

    /// Reads the file again as if no variable were set. What it gives then needs its own confirmations.
    ///
    /// # Errors
    /// When the file cannot be used without its variables.
    pub(crate) async fn forget_environment(&mut self, options: &BootOptions) -> Result<(), BootError> {
        self.failed = None;
        let Some(unit) = self.script.clone() else { return Ok(()) };
        let used = self.use_script(unit, &|_: &str| None, options).await;
        let variables = std::mem::take(&mut self.variables);
        used.map_err(|error| {
            // What is wrong with the user's own settings has nothing to do with the variables of a project.
            if UserConfig::read(&options.environment).is_err() {
                return error;
            }
            let error = ToolError::from(error);
            let without = format!(
                "it was read without the variables that are not confirmed ({}); `tgp trust` shows and confirms them",
                variables.join(", ")
            );
            let help = match error.details.get("help").and_then(Value::as_str) {
                Some(help) => format!("{help}; {without}"),
                None => without,
            };
            error.help(help).into()
        })
    }

    async fn use_script(
        &mut self,
        unit: Unit,
        environment: &(dyn Fn(&str) -> Option<String> + Sync),
        options: &BootOptions,
    ) -> Result<(), BootError> {
        let file = unit.id.clone();
        let known = ToolRuntime::known_config(&self.cache, &unit, environment);
        let ConfigValue { value, variables } = match known {
            Some(known) => known,
            None => self.evaluate(unit, environment, options).await?,
        };
        self.variables = variables;
        self.take(Config::from_value(&file, &value)?, options)
    }

    fn take(&mut self, mut config: Config, options: &BootOptions) -> Result<(), BootError> {
        project_place::use_main_tree(&mut config, &self.project);
        trust::find_repository(&mut config, &self.project);
        // Those of an earlier reading stay secrets.
        self.secrets.extend(records::learn_secrets(&mut config, &self.project, options)?);
        self.secrets.sort();
        self.secrets.dedup();
        trust::check_addresses(&config)?;
        self.config = config;
        Ok(())
    }

    /// What a file is worth that has to be compiled, and to be run unless it consists of literals.
    async fn evaluate(
        &mut self,
        unit: Unit,
        environment: &(dyn Fn(&str) -> Option<String> + Sync),
        boot: &BootOptions,
    ) -> Result<ConfigValue, BootError> {
        let defaults = Config::default();
        let sandbox = match &self.sandbox {
            Some(sandbox) => Arc::clone(sandbox),
            None => Arc::new(Sandbox::new(defaults.sandbox.options(&self.worker))?),
        };
        let project = &self.project;
        let options = settings::runtime_options(&defaults, project, Some(project), None);
        let forge = ToolRuntime::new(Arc::clone(&sandbox), Arc::clone(&self.cache), options);
        // The configuration is compiled meanwhile, by another worker.
        boot.first_worker.start(&sandbox).await;
        self.sandbox = Some(sandbox);
        let file = unit.id.clone();
        let value = forge.evaluate_config(unit, environment).await;
        Ok(value.map_err(|error| ConfigError::Evaluate { file, error: Box::new(error) })?)
    }
}
