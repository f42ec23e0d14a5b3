//! Commands on the project: each in its own jail, on a private layer whose changes are judged before they count.

mod apply;
mod command_files;
mod command_runner;
mod installed;
mod packages;
mod protected_paths;
mod shell_exec;
mod test_cache;
mod test_run;
mod test_runners;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tgp_contract::ToolError;
use tgp_policy::Protections;

pub use apply::CommandChange;
pub use packages::{PACKAGE_STAGING, PackageInstallResult};
pub use shell_exec::{CommandEnd, CommandOutput, CommandResult, StreamBytes};
pub use test_run::TestRunResult;
pub use test_runners::RunnerResult;
use tgp_router::gates::StateGate;

use command_runner::CommandRunner;
use tgp_router::{DynTool, typed};

/// What commands get, and what is kept from them.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    pub project: PathBuf,
    /// The agent's root on disk.
    pub tool_root: PathBuf,
    /// Where layers are made, outside the project.
    pub scratch: PathBuf,
    pub protections: Protections,
    /// Directories of the project that are written without a layer, relative to it: build output.
    pub direct: Vec<PathBuf>,
    /// Absolute paths outside the project to read and run: toolchains.
    pub readable: Vec<PathBuf>,
    /// Absolute paths outside the project that no command sees, though they lie in what is readable: credentials.
    pub secrets: Vec<PathBuf>,
    /// The whole environment of a command.
    pub environment: Vec<(String, String)>,
    pub caps: ProcessCaps,
    /// Files and directories of the project that are searched for what commands must not see; in a larger project no
    /// command runs.
    pub entries: u64,
    /// Where test runs keep caches, outside the project; without it they keep none.
    pub test_caches: Option<PathBuf>,
    /// Where an installation of packages keeps what it downloads until it ends, outside the project; without it none is made.
    pub package_downloads: Option<PathBuf>,
    /// Where the user's cargo keeps its registry, whether or not it is there yet.
    pub cargo_home: Option<PathBuf>,
    /// Variables that name the certificates of this machine's own authorities, for programs with the network.
    pub certificates: Vec<(String, String)>,
    /// Variables that name the index of Python packages that the user has chosen.
    pub package_index: Vec<(String, Option<String>)>,
    /// How the project's tests are run, instead of what its manifests say.
    pub test_command: Option<String>,
}

/// Caps instead of those of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCaps {
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    pub file_bytes: Option<u64>,
    pub layer_bytes: Option<u64>,
    pub deadline: Option<Duration>,
    pub output_bytes: Option<usize>,
}

/// `shell_exec`, `test_run` and `package_install`.
///
/// # Errors
/// Never in practice: the names are constants.
pub fn process_tools(
    options: ProcessOptions,
    state: &Arc<StateGate>,
) -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
    let yard = Arc::new(CommandRunner::new(options));
    Ok(vec![
        typed(shell_exec::ShellExec(Arc::clone(&yard)))?,
        typed(packages::PackageInstall(Arc::clone(&yard)))?,
        typed(test_run::TestRunTool { yard, state: Arc::clone(state) })?,
    ])
}

/// Options for a test that runs no command.
#[cfg(test)]
fn test_options(
    project: &std::path::Path,
    cargo_home: &std::path::Path,
    readable: Vec<PathBuf>,
) -> ProcessOptions {
    ProcessOptions {
        project: project.to_owned(),
        tool_root: project.join(".tgp"),
        scratch: project.with_extension("scratch"),
        protections: Protections::new(&tgp_policy::PolicySettings::default()),
        direct: Vec::new(),
        readable,
        secrets: Vec::new(),
        environment: Vec::new(),
        caps: ProcessCaps::default(),
        entries: 1_000,
        test_caches: None,
        package_downloads: None,
        cargo_home: Some(cargo_home.to_owned()),
        certificates: Vec::new(),
        package_index: Vec::new(),
        test_command: None,
    }
}
