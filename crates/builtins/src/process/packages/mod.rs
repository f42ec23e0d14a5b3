//! `package_install`: packages of the npm index, installed in a jail whose only network is a proxy of the kernel. Nothing of a
//! package is executed, and a person sees what changes before anything is put in place.

mod install;
mod network;
mod npm;
mod staging;
mod tree;

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Code, Effect, EntryKind, ExecutionPath, RelativePath, Root, Target, ToolError};
use tgp_router::files::ProjectFiles;
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub use staging::PACKAGE_STAGING;

use super::apply::CommandChange;
use super::command_runner::CommandRunner;
use super::protected_paths;
use super::shell_exec::CommandOutput;

/// Packages that one call names.
const MAX_PACKAGES: usize = 50;

pub(super) struct PackageInstall(pub(super) Arc<CommandRunner>);

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageInstallArgs {
    /// Such as `zod` or `zod@4.1.0`. Without them, what the manifest lists.
    #[serde(default)]
    #[schemars(length(max = MAX_PACKAGES))]
    packages: Vec<String>,
    /// For development only.
    #[serde(default)]
    dev: bool,
    /// Directory with package.json.
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
    /// The changed manifests and lock files.
    pub changes: Vec<CommandChange>,
    /// New packages and new versions of packages, as `name@version`; the first of them.
    pub installed: Vec<String>,
    /// How many there are.
    pub installed_count: u64,
    /// Bytes that were written to the directory of packages.
    pub bytes: u64,
}

/// What a call comes to.
#[derive(Clone)]
struct Plan {
    directory: RelativePath,
    packages: Vec<String>,
    dev: bool,
}

impl Plan {
    fn new(args: &PackageInstallArgs) -> Result<Self, ToolError> {
        args.packages.iter().try_for_each(|package| npm::check(package))?;
        let directory = RelativePath::new(&args.directory)?;
        Ok(Self { directory, packages: args.packages.clone(), dev: args.dev })
    }

    fn require_npm(&self, files: &ProjectFiles) -> Result<(), ToolError> {
        npm::require(&self.directory, |name| {
            let entry = self.directory.join(name).ok().and_then(|path| files.entry(&path).ok().flatten());
            entry.is_some_and(|entry| entry.kind == EntryKind::File)
        })
    }

    fn command(&self) -> String {
        npm::command(&self.packages, self.dev)
    }
}

impl PackageInstall {
    /// Refuses a directory of build output: commands write there without being judged, so what npm reads there, and what
    /// stands in for the directory by the time the packages are put in place, may be anything.
    fn require_own_directory(&self, directory: &RelativePath) -> Result<(), ToolError> {
        let path = std::path::Path::new(directory.as_str());
        let packages = path.join(npm::PACKAGES);
        let direct = &self.0.options.direct;
        let is_output = direct.iter().any(|output| packages.starts_with(output))
            || path.components().any(|part| protected_paths::is_skipped(part.as_os_str()));
        if !is_output {
            return Ok(());
        }
        Err(ToolError::new(Code::Security, format!("`{directory}` is a directory of build output"))
            .detail("directory", directory.as_str())
            .help("packages are installed for the sources of the project; name the directory of their package.json"))
    }
}

#[async_trait]
impl Tool for PackageInstall {
    type Args = PackageInstallArgs;
    type Output = PackageInstallResult;

    const INFO: ToolSpec = ToolSpec {
        name: "package_install",
        aliases: &["package.install"],
        description: "Add packages with npm, or install what package.json lists. Install scripts do not run. A person sees what changes.",
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
        self.require_own_directory(&plan.directory)?;
        // A file that the caller may not see is as if it were not there.
        plan.require_npm(&invocation.filtered_workspace().await.project_files())?;
        self.install(plan, invocation).await
    }
}
