//! What a package manager is: how it is called, what it may be asked, how it is run, and how what it left is read.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{EntryKind, RelativePath, ToolError};
use tgp_jail::LayerChange;
use tgp_router::Invocation;
use tgp_router::files::ProjectFiles;

use super::Plan;
use super::cargo::{Cargo, RegistryUpdate};
use super::npm::Npm;
use super::pip::Pip;
use super::tree::PackageTree;
use crate::process::ProcessOptions;
use crate::process::command_runner::CommandRunner;
use crate::process::installed::Installed;
use crate::process::shell_exec::CommandOutput;

/// A manager of packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Manager {
    #[default]
    Npm,
    Pip,
    Cargo,
}

impl Manager {
    pub(super) fn get(self) -> &'static dyn PackageManager {
        match self {
            Self::Npm => &Npm,
            Self::Pip => &Pip,
            Self::Cargo => &Cargo,
        }
    }
}

/// One installation is taken through these steps in their order.
#[async_trait]
pub(super) trait PackageManager: Send + Sync {
    /// How errors name it.
    fn name(&self) -> &'static str;

    /// The directory of packages below the directory of the manifest, for a manager that has one in the project.
    fn tree_name(&self) -> Option<&'static str>;

    /// Refuses arguments. Reads no file.
    ///
    /// # Errors
    /// `EVALIDATION`.
    fn check(&self, plan: &Plan) -> Result<(), ToolError>;

    /// The command line that rules, a person and the record see. Reads no file.
    fn command(&self, plan: &Plan) -> String;

    /// Refuses a directory that is not one of this manager. `files` are those that the caller may see.
    ///
    /// # Errors
    /// `ENOTFOUND`, `ECAPABILITY`, `ESECURITY`.
    fn require(&self, plan: &Plan, files: &ProjectFiles) -> Result<(), ToolError>;

    /// Makes ready what the manager needs in the download directory, and gives what is run.
    ///
    /// # Errors
    /// Why it cannot be run; nothing has left the machine then.
    async fn prepare(&self, plan: &Plan, site: &Site, invocation: Invocation<'_>) -> Result<Run, ToolError>;

    /// The error for a run that failed, where it can be said better than with an exit code.
    fn failure(&self, _plan: &Plan, _output: &CommandOutput) -> Option<ToolError> {
        None
    }

    /// Reads what a run has left in its layer and in the download directory, and refuses what no package of an index brings.
    /// Blocks its thread.
    ///
    /// # Errors
    /// `ESECURITY`, and why it cannot be read.
    fn read(&self, plan: &Plan, site: &Site, found: Vec<LayerChange>) -> Result<Installation, ToolError>;
}

/// Where one installation works.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) runner: Arc<CommandRunner>,
    /// The project as the caller may see it.
    pub(super) files: ProjectFiles,
    /// The private directory of this installation that the jail sees at [`tgp_jail::CACHE_PLACE`], writable.
    pub(super) downloads: PathBuf,
    /// Another private directory, which the jail never sees: for what the kernel makes itself.
    pub(super) workshop: PathBuf,
}

impl Site {
    pub(super) fn options(&self) -> &ProcessOptions {
        &self.runner.options
    }
}

/// What is run in the jail.
pub(super) struct Run {
    /// For `sh -c`, which starts in the directory of the plan.
    pub(super) line: String,
    /// Variables in addition to those of every command. `PATH` is set already.
    pub(super) environment: Vec<(String, String)>,
}

/// What a finished run comes to. Nothing of it is in place.
pub(super) struct Installation {
    /// Manifests and lock files: of the layer, or made by the kernel, with their contents in [`Site::workshop`].
    pub(super) manifests: Vec<LayerChange>,
    /// The new directory of packages, when it changes.
    pub(super) tree: Option<PackageTree>,
    /// What is put into the user's registry, when something is.
    pub(super) registry: Option<RegistryUpdate>,
    /// The lists of packages that a person sees; none when nothing is installed.
    pub(super) lists: Option<Installed>,
    /// New packages and new versions, as `name@version`.
    pub(super) installed: Vec<String>,
}

/// What is at `name` in the directory of a plan, itself and not what it may lead to.
pub(super) fn kind(directory: &RelativePath, name: &str, files: &ProjectFiles) -> Option<EntryKind> {
    let path = directory.join(name).ok()?;
    files.entry(&path).ok().flatten().map(|entry| entry.kind)
}

/// Whether a plain file is there.
pub(super) fn has_file(directory: &RelativePath, name: &str, files: &ProjectFiles) -> bool {
    kind(directory, name, files) == Some(EntryKind::File)
}

/// How messages name a directory of the project.
pub(super) fn shown(directory: &RelativePath) -> String {
    if directory.is_root() { "the project".to_owned() } else { format!("`{directory}`") }
}
