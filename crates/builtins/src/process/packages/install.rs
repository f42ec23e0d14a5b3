//! One installation: run on a layer, checked, judged, and put in place together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tgp_contract::{Access, Code, FileEffect, RelativePath, Root, Target, ToolError, background};
use tgp_fs::Directory;
use tgp_jail::{CacheAccess, CacheMount, CommandExit, Exit, Template};
use tgp_router::{Invocation, ToolOutcome};

use super::network::{self, PROXY_PORT, Unreached};
use super::staging::Staging;
use super::tree::{self, PackageTree, PreparedTree};
use super::{PackageInstall, PackageInstallResult, Plan, npm};
use crate::process::apply::{Changes, Installed};
use crate::process::command_runner::{CommandRequest, CommandRunner, Network};
use crate::process::shell_exec::{CommandOutput, command_output, exit_code, with_output};

/// Files and directories that one installation changes.
const MAX_CHANGES: usize = 500_000;
/// Packages that a result names.
const MAX_NAMED: usize = 200;

/// What a finished installation has left on its layer.
struct Outcome {
    changes: Changes,
    tree: Option<PackageTree>,
    finished: CommandExit,
}

impl PackageInstall {
    pub(super) async fn install(
        &self,
        plan: Plan,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<PackageInstallResult>, ToolError> {
        let downloads = self.0.options.package_downloads.as_ref().ok_or_else(no_downloads)?.clone();
        let downloads = background::run(move || {
            let downloads = Staging::create(&downloads)?;
            std::fs::create_dir(downloads.path().join("data")).map_err(|error| unwritable(&error))?;
            Ok(downloads)
        })
        .await?;
        let done = self.install_with(&plan, &downloads, invocation).await;
        // Many files, which take a while.
        background::run(move || {
            drop(downloads);
            Ok(())
        })
        .await?;
        done
    }

    async fn install_with(
        &self,
        plan: &Plan,
        downloads: &Staging,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<PackageInstallResult>, ToolError> {
        let started = SystemTime::now();
        // What a host is asked for was asked for, whatever becomes of the files.
        invocation.reach_outside();
        let unreached = Unreached::default();
        let data = downloads.path().join("data");
        let request = self.request(plan, data.clone(), invocation).await;
        let serve = |listener| network::serve(listener, invocation, &unreached, data);
        let finished = self.0.run_served(request, PROXY_PORT, serve).await?;
        let output = command_output(&finished);
        if !matches!(finished.exit, Exit::Code(0)) {
            return Err(failed(&output, unreached.first()));
        }
        let outcome =
            self.read(plan, finished, invocation).await.map_err(|error| with_output(error, &output))?;
        let mut result = result(plan, output, &outcome);
        self.judge_tree(outcome.tree.as_ref(), invocation).await?;
        if invocation.context.dry_run {
            outcome.changes.judge(invocation).await?;
            result.dry_run = true;
            result.changes = outcome.changes.previews();
            return Ok(result.into());
        }
        result.changes = outcome.changes.summary();
        let exit_code = exit_code(&outcome.finished);
        let files = self.put_in_place(outcome, started, invocation).await?;
        result.applied = true;
        Ok(ToolOutcome { files, exit_code, ..result.into() })
    }

    async fn request(&self, plan: &Plan, downloads: PathBuf, invocation: Invocation<'_>) -> CommandRequest {
        let mut environment = self.0.options.certificates.clone();
        environment.extend(npm::environment());
        CommandRequest {
            template: Template::Build,
            command: plan.command(),
            directory: plan.directory.clone(),
            network: Network::Proxy(PROXY_PORT),
            stdin: Vec::new(),
            deadline_ms: None,
            direct: Vec::new(),
            environment,
            cache: Some(CacheMount { source: downloads, access: CacheAccess::Write }),
            filter: invocation.router.file_filter(invocation).await,
        }
    }

    /// Reads what the installation has changed, and refuses what no package of an index brings.
    async fn read(
        &self,
        plan: &Plan,
        finished: CommandExit,
        invocation: Invocation<'_>,
    ) -> Result<Outcome, ToolError> {
        let (runner, files, plan) = (Arc::clone(&self.0), invocation.workspace.project_files(), plan.clone());
        background::run(move || {
            let found = finished.layer.changes(MAX_CHANGES).map_err(|error| {
                ToolError::new(
                    Code::Runtime,
                    format!("what the installation changed cannot be read: {error}"),
                )
            })?;
            let split = tree::split(found, &plan.directory, &runner.options.direct)?;
            let mut changes = Changes::of(split.manifests, &runner, &files)?;
            if let Some(tree) = &split.tree {
                let project = open_project(&runner)?;
                tree.check(&project)?;
                let (before, after) = tree.lists(&project)?;
                changes.install(Installed {
                    manifest: plan.directory.join(npm::MANIFEST)?,
                    list: plan.directory.join(npm::PACKAGES)?.join(npm::INSTALLED)?,
                    before,
                    after,
                });
            }
            Ok(Outcome { changes, tree: split.tree, finished })
        })
        .await
    }

    /// The gates judge the directory of packages; where one of them may have something against a file in it, every file.
    async fn judge_tree(
        &self,
        tree: Option<&PackageTree>,
        invocation: Invocation<'_>,
    ) -> Result<(), ToolError> {
        let Some(tree) = tree else { return Ok(()) };
        let place = RelativePath::new(&tree.place.to_string_lossy())?;
        let router = invocation.router;
        let target = |path: RelativePath, access| Target::File { root: Root::Project, path, access };
        router.judge_directories(invocation, &[target(place.clone(), Access::Write)]).await?;
        if !router.may_restrict_below(invocation, Root::Project, &place).await {
            return Ok(());
        }
        let each = |(path, is_there): (&Path, bool)| {
            let access = if is_there { Access::Write } else { Access::Delete };
            Ok(target(RelativePath::new(&path.to_string_lossy())?, access))
        };
        let targets: Result<Vec<Target>, ToolError> = tree.paths().map(each).collect();
        router.judge_directories(invocation, &targets?).await
    }

    /// Everything is made ready first; then the manifests are written, and the trees change places.
    async fn put_in_place(
        &self,
        outcome: Outcome,
        started: SystemTime,
        invocation: Invocation<'_>,
    ) -> Result<Vec<FileEffect>, ToolError> {
        let Outcome { changes, tree, finished } = outcome;
        let runner = Arc::clone(&self.0);
        let prepared = background::run_bounded(move || {
            let prepared = tree.map(|tree| prepare(&runner, &tree)).transpose();
            // The layer is not needed any more.
            drop(finished);
            prepared
        })
        .await?;
        let applied = if changes.is_empty() {
            invocation.point_of_no_return().commit().map(|()| Vec::new())
        } else {
            changes.apply(invocation, &self.0, started).await
        };
        let is_applied = applied.is_ok();
        let put = move || {
            if let Some((staging, tree)) = prepared {
                if is_applied {
                    tree.put().map_err(|error| not_put(&error))?;
                }
                drop(staging);
            }
            Ok(())
        };
        let put = background::run_bounded(put).await;
        let files = applied?;
        put.map_err(ToolError::of_unknown_outcome)?;
        Ok(files)
    }
}

fn open_project(runner: &CommandRunner) -> Result<Directory, ToolError> {
    Directory::open(&runner.options.project)
        .map_err(|error| ToolError::new(Code::Internal, format!("the project cannot be opened: {error}")))
}

/// The tree as it will be, in a directory of its own.
fn prepare(runner: &CommandRunner, tree: &PackageTree) -> Result<(Staging, PreparedTree), ToolError> {
    let options = &runner.options;
    let staging = Staging::for_trees(&options.tool_root, &options.project)?;
    let prepared = tree.prepare(&open_project(runner)?, staging.path(), &options.direct);
    let prepared = prepared.map_err(|error| {
        ToolError::new(Code::Runtime, format!("the packages cannot be put in place: {error}"))
            .help("nothing was installed; see that the project can be written and that the disk is not full")
    })?;
    Ok((staging, prepared))
}

fn result(plan: &Plan, output: CommandOutput, outcome: &Outcome) -> PackageInstallResult {
    let mut installed = outcome.changes.installed().map(Installed::new_versions).unwrap_or_default();
    let installed_count = installed.len() as u64;
    installed.truncate(MAX_NAMED);
    PackageInstallResult {
        output,
        command: plan.command(),
        dry_run: false,
        applied: false,
        changes: Vec::new(),
        installed,
        installed_count,
        bytes: outcome.tree.as_ref().map_or(0, PackageTree::bytes),
    }
}

impl Installed {
    /// The packages that were not there before in this version.
    fn new_versions(&self) -> Vec<String> {
        let before = npm::versions(self.before.as_deref().unwrap_or_default());
        let mut new = npm::versions(self.after.as_deref().unwrap_or_default());
        new.retain(|package| !before.contains(package));
        new.sort();
        new.dedup();
        new
    }
}

fn failed(output: &CommandOutput, unreached: Option<String>) -> ToolError {
    let ended = match output.exit_code {
        Some(code) => format!("failed with exit code {code}"),
        None => format!("did not run to its end ({})", output.ended.as_str()),
    };
    let (code, why) = match (output.exit_code, unreached) {
        (Some(127), _) => {
            (Code::Capability, "; is it installed where commands can see it (`jail.readable`)?".to_owned())
        }
        (_, Some(unreached)) => (Code::Runtime, format!("; {unreached}")),
        (_, None) => (Code::Runtime, String::new()),
    };
    let error = ToolError::new(code, format!("npm {ended}{why}"))
        .help("nothing was installed; `stderr` is what npm reported");
    with_output(error, output)
}

fn not_put(error: &std::io::Error) -> ToolError {
    ToolError::new(
        Code::Runtime,
        format!("the manifest is written, and the packages are not in place: {error}"),
    )
    .help("call package_install again without packages")
}

fn no_downloads() -> ToolError {
    ToolError::new(Code::Capability, "there is no usable directory for downloads outside the project")
        .help("set TGP_CACHE_DIR to a directory of your own that can be written, outside the project")
}

fn unwritable(error: &std::io::Error) -> ToolError {
    ToolError::new(Code::Internal, format!("the directory for downloads cannot be written: {error}"))
}
