//! `package_install`: packages of an index, installed by a manager in a jail whose only network is a proxy of the kernel. Nothing
//! of a package is executed, and a person sees what changes before anything is put in place.
//!
//! What is the same for all managers is here; what one of them needs is in its folder ([`npm`], [`pip`], [`cargo`]).

mod cargo;
mod install;
mod managers;
mod network;
mod npm;
mod pip;
mod programs;
mod staging;
mod tree;

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Code, Effect, ExecutionPath, RelativePath, Root, Target, ToolError};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub use staging::PACKAGE_STAGING;

use self::managers::{Manager, PackageManager};
use super::apply::CommandChange;
use super::command_runner::CommandRunner;
use super::protected_paths;
use super::shell_exec::CommandOutput;

/// Packages that one call names.
const MAX_PACKAGES: usize = 50;

/// Features that one call names.
const MAX_FEATURES: usize = 50;

pub(super) struct PackageInstall(pub(super) Arc<CommandRunner>);

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageInstallArgs {
    /// Default: npm.
    #[serde(default)]
    manager: Manager,
    /// Such as `zod@4.1.0` (npm), `httpx>=0.27` (pip), `serde@1` (cargo). Without them, what the manifest lists.
    #[serde(default)]
    #[schemars(length(max = MAX_PACKAGES))]
    packages: Vec<String>,
    /// For development only.
    #[serde(default)]
    dev: bool,
    /// Cargo only.
    #[serde(default)]
    #[schemars(length(max = MAX_FEATURES))]
    features: Vec<String>,
    /// Directory with the manifest.
    #[serde(default)]
    directory: String,
}

/// What was installed, or would be in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageInstallResult {
    #[serde(flatten)]
    pub output: CommandOutput,
    /// The command line that was run.
    pub command: String,
    /// True when nothing was installed.
    #[serde(rename = "dry_run", default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Whether the packages are in place now.
    pub applied: bool,
    /// The changed manifests and lock files. In a dry run also the list of installed packages.
    pub changes: Vec<CommandChange>,
    /// New packages and new versions of packages, as `name@version`; the first of them.
    pub installed: Vec<String>,
    /// How many there are.
    pub installed_count: u64,
    /// Bytes of the packages that are put in place.
    pub bytes: u64,
}

/// What a call comes to.
#[derive(Clone, Debug)]
struct Plan {
    manager: Manager,
    directory: RelativePath,
    packages: Vec<String>,
    features: Vec<String>,
    dev: bool,
}

impl Plan {
    fn new(args: &PackageInstallArgs) -> Result<Self, ToolError> {
        if !args.features.is_empty() && args.manager != Manager::Cargo {
            return Err(ToolError::new(Code::Validation, "only packages of cargo have `features`")
                .detail("field", "features")
                .help("leave `features` out; extras of Python are named as `uvicorn[standard]`"));
        }
        let plan = Self {
            manager: args.manager,
            directory: RelativePath::new(&args.directory)?,
            packages: args.packages.clone(),
            features: args.features.clone(),
            dev: args.dev,
        };
        plan.manager().check(&plan)?;
        Ok(plan)
    }

    fn manager(&self) -> &'static dyn PackageManager {
        self.manager.get()
    }

    fn command(&self) -> String {
        self.manager().command(self)
    }
}

impl PackageInstall {
    /// Refuses a directory of build output: commands write there without being judged, so what a manager reads there, and what
    /// is in the place of the directory by the time the packages are put there, may be anything.
    fn require_own_directory(&self, plan: &Plan) -> Result<(), ToolError> {
        let directory = &plan.directory;
        let path = std::path::Path::new(directory.as_str());
        let packages = plan.manager().tree_name().map_or_else(|| path.to_owned(), |name| path.join(name));
        let direct = &self.0.options.direct;
        let is_output = direct.iter().any(|output| packages.starts_with(output))
            || path.components().any(|part| protected_paths::is_skipped(part.as_os_str()));
        if !is_output {
            return Ok(());
        }
        Err(ToolError::new(Code::Security, format!("`{directory}` is a directory of build output"))
            .detail("directory", directory.as_str())
            .help(
                "packages are installed for the sources of the project; name the directory of their manifest",
            ))
    }
}

#[async_trait]
impl Tool for PackageInstall {
    type Args = PackageInstallArgs;
    type Output = PackageInstallResult;

    const INFO: ToolSpec = ToolSpec {
        name: "package_install",
        aliases: &["package.install"],
        description: "Add packages with npm, pip or cargo, or install what the manifest lists. Scripts of packages do not run. A person sees what changes.",
        effect: Effect::Execute,
        path: ExecutionPath::Sandbox,
        dry_run: true,
    };

    fn targets(&self, args: &PackageInstallArgs) -> Result<Vec<Target>, ToolError> {
        let plan = Plan::new(args)?;
        let mut targets = vec![Target::Command { command: plan.command() }];
        if !plan.directory.is_root() {
            targets.push(Target::File { root: Root::Project, path: plan.directory, access: Access::Read });
        }
        Ok(targets)
    }

    async fn run(
        &self,
        args: PackageInstallArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<PackageInstallResult>, ToolError> {
        let plan = Plan::new(&args)?;
        self.require_own_directory(&plan)?;
        // A file that the caller may not see is as if it were not there.
        let files = invocation.filtered_workspace().await.project_files();
        plan.manager().require(&plan, &files)?;
        self.install(plan, files, invocation).await
    }
}
