//! `package_install`: packages of an index, installed in a jail whose only network is a proxy of the kernel. Nothing of a
//! package is executed, and a person sees the change of the manifest before anything is put in place.

mod cargo_registry;
mod install;
mod manager;
mod network;
mod staging;
mod tree;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Code, Effect, EntryKind, ExecutionPath, RelativePath, Root, Target, ToolError};
use tgp_router::files::ProjectFiles;
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec, Workspace};

use super::apply::CommandChange;
use super::command_runner::CommandRunner;
use super::shell_exec::CommandOutput;
use manager::Manager;

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
    /// Directory with the manifest.
    #[serde(default)]
    directory: String,
    /// Default: by the files in the directory.
    manager: Option<ManagerName>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ManagerName {
    Npm,
    Pip,
    Uv,
    Cargo,
}

/// What was installed, or would be in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageInstallResult {
    #[serde(flatten)]
    pub output: CommandOutput,
    /// `npm`, `pip`, `uv` or `cargo`.
    pub manager: String,
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

/// What a call comes to: the manager, where it runs, and the command line.
#[derive(Clone)]
struct Plan {
    manager: Manager,
    directory: RelativePath,
    packages: Vec<String>,
    dev: bool,
}

impl Plan {
    fn new(args: &PackageInstallArgs, files: Option<&ProjectFiles>) -> Result<Option<Self>, ToolError> {
        let directory = RelativePath::new(&args.directory)?;
        let named = args.manager.map(|name| match name {
            ManagerName::Npm => Manager::Npm,
            ManagerName::Pip => Manager::Pip,
            ManagerName::Uv => Manager::Uv,
            ManagerName::Cargo => Manager::Cargo,
        });
        let manager = match (named, files) {
            (named, Some(files)) => {
                let has = |name: &str| {
                    let entry = directory.join(name).ok().and_then(|path| files.entry(&path).ok().flatten());
                    entry.is_some_and(|entry| entry.kind == EntryKind::File)
                };
                match named {
                    Some(named) => {
                        named.require_manifest(&directory, has)?;
                        named
                    }
                    None => Manager::detect(&directory, has)?,
                }
            }
            (Some(named), None) => named,
            (None, None) => return Ok(None),
        };
        for package in &args.packages {
            manager.check(package)?;
        }
        if args.dev && manager == Manager::Pip {
            return Err(ToolError::new(
                Code::Validation,
                "requirements.txt has no packages for development only",
            )
            .detail("field", "dev")
            .help("leave out `dev`"));
        }
        Ok(Some(Self { manager, directory, packages: args.packages.clone(), dev: args.dev }))
    }

    fn shown_command(&self) -> String {
        self.manager.shown_command(&self.packages, self.dev)
    }

    fn targets(&self) -> Result<Vec<Target>, ToolError> {
        let mut targets = vec![Target::Command { command: self.shown_command() }];
        if !self.directory.is_root() {
            let path = self.directory.clone();
            targets.push(Target::File { root: Root::Project, path, access: Access::Read });
        }
        Ok(targets)
    }

    /// Files of the project that decide what a program runs, and must not decide it here.
    fn hidden(&self) -> Vec<PathBuf> {
        if self.manager != Manager::Cargo {
            return Vec::new();
        }
        let mut hidden = Vec::new();
        let mut directory = self.directory.clone();
        loop {
            hidden.extend(
                [".cargo/config.toml", ".cargo/config"]
                    .map(|name| PathBuf::from(directory.as_str()).join(name)),
            );
            if directory.is_root() {
                return hidden;
            }
            directory = directory.parent();
        }
    }
}

#[async_trait]
impl Tool for PackageInstall {
    type Args = PackageInstallArgs;
    type Output = PackageInstallResult;

    const INFO: ToolSpec = ToolSpec {
        name: "package_install",
        aliases: &["package.install"],
        description: "Add packages of an index with npm, pip, uv or cargo, or install what the manifest lists. Install scripts do not run. Manifest and lock file are changed with them.",
        effect: Effect::Execute,
        path: ExecutionPath::Sandbox,
        dry_run: true,
    };

    fn targets(&self, args: &PackageInstallArgs) -> Result<Vec<Target>, ToolError> {
        match Plan::new(args, None)? {
            Some(plan) => plan.targets(),
            None => {
                Ok(vec![Target::Command { command: format!("package_install {}", args.packages.join(" ")) }])
            }
        }
    }

    /// The files of the directory tell the manager.
    async fn targets_in(
        &self,
        args: &PackageInstallArgs,
        workspace: &Workspace,
    ) -> Result<Vec<Target>, ToolError> {
        // A file that the caller may not see must not make a difference for it, so what is missing is reported by the run.
        match Plan::new(args, Some(&workspace.project_files())) {
            Ok(Some(plan)) => plan.targets(),
            _ => self.targets(args),
        }
    }

    async fn run(
        &self,
        args: PackageInstallArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<PackageInstallResult>, ToolError> {
        let files = invocation.filtered_workspace().await.project_files();
        let plan = Plan::new(&args, Some(&files))?;
        let no_manager = || ToolError::new(Code::Internal, "the manager of packages is not known");
        let plan = plan.ok_or_else(no_manager)?;
        let command = plan.shown_command();
        let is_judged =
            |target: &Target| matches!(target, Target::Command { command: judged } if *judged == command);
        if !invocation.targets.iter().any(is_judged) {
            return Err(ToolError::new(
                Code::Conflict,
                "the manifests have changed since the rules judged the call",
            )
            .help("nothing was installed; repeat the call"));
        }
        self.install(plan, &files, invocation).await
    }
}
