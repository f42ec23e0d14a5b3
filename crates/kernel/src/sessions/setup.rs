//! What a session of this kernel would work with, for a person who asks before beginning one.

use std::path::PathBuf;

use tgp_builtins::testing::{Manifests, VisiblePrograms, discover};
use tgp_contract::{EntryKind, FileSystem, RelativePath, ToolError};
use tgp_fs::DiskFs;

use super::provider::{ModelChoice, ResolvedModel};
use crate::Kernel;
use crate::boot::Environment;
use crate::config::{Config, UserConfig};
use crate::settings::readable_paths;

/// Manifests larger than this are not read to find the test command, as in `test_run`.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// What a session would work with, where nothing else is named for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSetup {
    /// `openai`, `openai-chat`, `anthropic`, a base URL or `script:FILE`.
    pub provider: String,
    /// Another address than the provider's own.
    pub base_url: Option<String>,
    pub key: KeySetup,
    pub model: Option<String>,
}

/// Whether a key would be sent. Its value is not looked at, except to see that there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySetup {
    /// A script is sent none.
    NotNeeded,
    /// None is set up for the address.
    NotSent,
    /// The variable of this name is not set.
    Missing(String),
    /// The variable of this name is set.
    Set(String),
}

/// How the tests of a project would be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSetup {
    /// The commands of all runners; empty when they cannot be found.
    pub command: String,
    /// Why no run of it could count, and what to do about it, as `test_run` reports it.
    pub problem: Option<String>,
}

impl ModelSetup {
    /// The setup outside of a project: by the configuration of the user, and the environment.
    ///
    /// # Errors
    /// `ECONFIG` when no provider is named, or one that does not exist; and when the configuration cannot be used.
    pub fn of_user(environment: &Environment) -> Result<Self, ToolError> {
        let config = Config { user: UserConfig::read(environment)?, ..Config::default() };
        Self::of(&config, environment)
    }

    fn of(config: &Config, environment: &Environment) -> Result<Self, ToolError> {
        let resolved = ResolvedModel::new(&ModelChoice::default(), config, environment)?;
        let is_script = resolved.script().is_some();
        if !is_script {
            resolved.wire()?;
        }
        let key = match &resolved.key_variable {
            _ if is_script => KeySetup::NotNeeded,
            None => KeySetup::NotSent,
            Some(variable) if resolved.has_key(environment) => KeySetup::Set(variable.clone()),
            Some(variable) => KeySetup::Missing(variable.clone()),
        };
        // Some servers take a key in their address.
        let shown = |url: &String| url.split('?').next().unwrap_or_default().to_owned();
        Ok(Self {
            provider: shown(&resolved.name),
            base_url: resolved.base_url.as_ref().filter(|_| !is_script).map(shown),
            key,
            model: resolved.model,
        })
    }
}

impl Kernel {
    /// The model that a session would work with. Nothing is sent.
    ///
    /// # Errors
    /// `ECONFIG` when no provider is named, or one that does not exist or is not confirmed.
    pub fn model_setup(&self) -> Result<ModelSetup, ToolError> {
        self.check_provider_confirmed(&ModelChoice::default())?;
        ModelSetup::of(self.config(), self.environment())
    }

    /// How `test_run` would run the tests of the project, if it is configured or found. Nothing is run.
    #[must_use]
    pub fn test_setup(&self) -> Option<TestSetup> {
        let files = ProjectManifests(DiskFs::open(self.project()).ok()?);
        let runners = match discover(self.config().tdd.command.as_deref(), &files) {
            Ok(runners) => runners,
            Err(error) => {
                let problem = format!("{error}; set tdd.command to the command that runs the tests");
                return Some(TestSetup { command: String::new(), problem: Some(problem) });
            }
        };
        let home = (self.environment())("HOME").map(PathBuf::from);
        let readable = readable_paths(&self.config().jail.readable, self.project(), home.as_deref());
        let visible = VisiblePrograms { project: self.project(), readable: &readable };
        let search = (self.environment())("PATH");
        let problems: Vec<String> = runners
            .iter()
            .filter_map(|runner| visible.problem(runner, search.as_deref()))
            .map(|problem| problem.to_string())
            .collect();
        let commands: Vec<String> = runners.iter().map(|runner| runner.shown_command(None)).collect();
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        (!commands.is_empty()).then(|| TestSetup { command: commands.join("; "), problem })
    }
}

struct ProjectManifests(DiskFs);

impl Manifests for ProjectManifests {
    fn read(&self, path: &str) -> Option<String> {
        let path = RelativePath::new(path).ok()?;
        let entry = self.0.entry(&path).ok().flatten()?;
        if entry.kind != EntryKind::File || entry.size > MAX_MANIFEST_BYTES {
            return None;
        }
        self.0.read_text(&path).ok()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = RelativePath::new(folder).ok().and_then(|folder| self.0.list(&folder).ok());
        let entries = entries.unwrap_or_default();
        entries.iter().filter_map(|entry| entry.path.name().map(str::to_owned)).collect()
    }
}
