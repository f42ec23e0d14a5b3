//! One installation: run on a layer, checked, judged, and put in place together.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tgp_contract::{Access, Code, FileEffect, RelativePath, Root, Target, ToolError, background};
use tgp_jail::{CacheAccess, CacheMount, CommandExit, Exit, Template};
use tgp_router::files::ProjectFiles;
use tgp_router::{Invocation, ToolOutcome};

use super::cargo::RegistryUpdate;
use super::managers::{Run, Site};
use super::network::{self, PROXY_PORT, Unreached};
use super::staging::{self, Staging};
use super::tree::{OriginalTree, PackageTree, PreparedTree, open_project};
use super::{PackageInstall, PackageInstallResult, Plan, programs};
use crate::process::apply::Changes;
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
    registry: Option<RegistryUpdate>,
    installed: Vec<String>,
    finished: CommandExit,
}

impl Outcome {
    fn bytes(&self) -> u64 {
        let tree = self.tree.as_ref().map_or(0, PackageTree::bytes);
        tree.saturating_add(self.registry.as_ref().map_or(0, RegistryUpdate::bytes))
    }
}

impl PackageInstall {
    pub(super) async fn install(
        &self,
        plan: Plan,
        files: ProjectFiles,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<PackageInstallResult>, ToolError> {
        let downloads = self.0.options.package_downloads.as_ref().ok_or_else(no_downloads)?.clone();
        let private = background::run_bounded(move || {
            let private = Staging::create(&downloads)?;
            for name in ["data", "workshop"] {
                std::fs::create_dir(private.path().join(name)).map_err(|error| unwritable(&error))?;
            }
            Ok(private)
        })
        .await?;
        let site = Site {
            runner: Arc::clone(&self.0),
            files,
            downloads: private.path().join("data"),
            workshop: private.path().join("workshop"),
        };
        let done = self.install_with(&plan, &site, invocation).await;
        // Many files, which take a while.
        background::run(move || {
            drop(private);
            Ok(())
        })
        .await?;
        done
    }

    async fn install_with(
        &self,
        plan: &Plan,
        site: &Site,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<PackageInstallResult>, ToolError> {
        let started = SystemTime::now();
        let original = self.original(plan).await?;
        let run = plan.manager().prepare(plan, site, invocation).await?;
        // What a host is asked for was asked for, whatever becomes of the files.
        invocation.reach_outside();
        let unreached = Unreached::default();
        let manager = plan.manager().name();
        let request = self.request(plan, run, site, invocation).await;
        let serve =
            |listener| network::serve(listener, invocation, &unreached, site.downloads.clone(), manager);
        let finished = self.0.run_served(request, PROXY_PORT, serve).await?;
        let output = command_output(&finished);
        let read = if matches!(finished.exit, Exit::Code(0)) {
            self.read(plan, site, finished, invocation).await.map_err(|error| with_output(error, &output))
        } else {
            Err(failed(plan, &output, unreached.first()))
        };
        let outcome = match read {
            Err(error) => return Err(self.or_conflict(error, plan, original).await),
            Ok(outcome) => outcome,
        };
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
        let prepared = match self.prepare(outcome.tree.as_ref(), original.clone()).await {
            Err(error) => return Err(self.or_conflict(error, plan, original).await),
            Ok(prepared) => prepared,
        };
        let files = self.put_in_place(outcome, prepared, started, invocation).await?;
        result.applied = true;
        Ok(ToolOutcome { files, exit_code, ..result.into() })
    }

    /// The directory of packages as it is before anything runs.
    async fn original(&self, plan: &Plan) -> Result<Option<Arc<OriginalTree>>, ToolError> {
        let Some(name) = plan.manager().tree_name() else { return Ok(None) };
        let (runner, directory) = (Arc::clone(&self.0), plan.directory.clone());
        background::run(move || {
            let project = open_project(&runner.options)?;
            OriginalTree::open(&project, &directory, name).map(Arc::new).map(Some)
        })
        .await
    }

    async fn request(
        &self,
        plan: &Plan,
        run: Run,
        site: &Site,
        invocation: Invocation<'_>,
    ) -> CommandRequest {
        let options = &self.0.options;
        let mut environment = options.certificates.clone();
        environment.push(programs::variable(&options.environment, &options.project));
        environment.extend(run.environment);
        CommandRequest {
            template: Template::Build,
            command: run.line,
            directory: plan.directory.clone(),
            network: Network::Proxy(PROXY_PORT),
            stdin: Vec::new(),
            deadline_ms: None,
            direct: Vec::new(),
            environment,
            cache: Some(CacheMount { source: site.downloads.clone(), access: CacheAccess::Write }),
            filter: invocation.router.file_filter(invocation).await,
        }
    }

    /// Reads what the installation has changed, and refuses what no package of an index brings.
    async fn read(
        &self,
        plan: &Plan,
        site: &Site,
        finished: CommandExit,
        invocation: Invocation<'_>,
    ) -> Result<Outcome, ToolError> {
        let (plan, site) = (plan.clone(), site.clone());
        let files = invocation.workspace.project_files();
        background::run_bounded(move || {
            let found = finished.layer.changes(MAX_CHANGES).map_err(|error| {
                ToolError::new(
                    Code::Runtime,
                    format!("what the installation changed cannot be read: {error}"),
                )
            })?;
            let read = plan.manager().read(&plan, &site, found)?;
            let mut changes = Changes::of(read.manifests, &site.runner, &files)?;
            if let Some(lists) = read.lists {
                changes.install(lists);
            }
            let (tree, registry, installed) = (read.tree, read.registry, read.installed);
            Ok(Outcome { changes, tree, registry, installed, finished })
        })
        .await
    }

    /// The gates judge the directory of packages. Of the files in it they judge what a person's rules say of such paths: a
    /// published file is not a secret, whatever its name is, and it was judged with its package.
    async fn judge_tree(
        &self,
        tree: Option<&PackageTree>,
        invocation: Invocation<'_>,
    ) -> Result<(), ToolError> {
        let Some(tree) = tree else { return Ok(()) };
        let place = RelativePath::new(&tree.place().to_string_lossy())?;
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
        router.judge_packages(invocation, &targets?).await
    }

    /// A run or a copy of the packages can fail in many ways while another installation replaces and removes them: the error is
    /// then that they were replaced.
    async fn or_conflict(
        &self,
        error: ToolError,
        plan: &Plan,
        original: Option<Arc<OriginalTree>>,
    ) -> ToolError {
        let (Some(original), Some(name)) = (original, plan.manager().tree_name()) else { return error };
        let (runner, directory) = (Arc::clone(&self.0), plan.directory.clone());
        let require =
            background::run(move || original.require(&open_project(&runner.options)?, &directory, name));
        match require.await {
            Err(conflict) if conflict.code == Code::Conflict => conflict,
            _ => error,
        }
    }

    /// The tree as it will be, before anybody is asked.
    async fn prepare(
        &self,
        tree: Option<&PackageTree>,
        original: Option<Arc<OriginalTree>>,
    ) -> Result<Option<Prepared>, ToolError> {
        let (Some(tree), Some(original)) = (tree, original) else { return Ok(None) };
        let (runner, tree) = (Arc::clone(&self.0), tree.clone());
        background::run_bounded(move || Prepared::new(&runner, &tree, original).map(Some)).await
    }

    /// Everything is ready: the manifests are written, and the trees change places.
    async fn put_in_place(
        &self,
        outcome: Outcome,
        prepared: Option<Prepared>,
        started: SystemTime,
        invocation: Invocation<'_>,
    ) -> Result<Vec<FileEffect>, ToolError> {
        let Outcome { changes, registry, finished, .. } = outcome;
        // The layer is not needed any more, and has many files.
        background::run_bounded(move || {
            drop(finished);
            Ok(())
        })
        .await?;
        let prepared = Arc::new(prepared);
        let applied = if changes.is_empty() {
            invocation.point_of_no_return().commit().map(|()| Vec::new())
        } else {
            let prepared = Arc::clone(&prepared);
            // Under the lock that is held until the trees have changed places, so that no other installation comes between.
            let last_look = move || (*prepared).as_ref().map_or(Ok(()), Prepared::lock);
            changes.apply(invocation, &self.0, started, last_look).await
        };
        let is_applied = applied.is_ok();
        let put = move || {
            let put = if is_applied { put(prepared.as_ref().as_ref(), registry) } else { Ok(()) };
            drop(prepared);
            put
        };
        let put = background::run_bounded(put).await;
        let files = applied?;
        put.map_err(ToolError::of_unknown_outcome)?;
        Ok(files)
    }
}

fn put(prepared: Option<&Prepared>, registry: Option<RegistryUpdate>) -> Result<(), ToolError> {
    if let Some(prepared) = prepared {
        prepared.tree.put(&prepared.original).map_err(|error| not_put(&error.to_string()))?;
    }
    registry.map_or(Ok(()), |registry| registry.put().map_err(|error| not_put(&error.to_string())))
}

/// The tree as it will be, in a directory of its own.
struct Prepared {
    tree: PreparedTree,
    original: Arc<OriginalTree>,
    /// Where installations of this project are locked.
    parent: std::path::PathBuf,
    lock: Mutex<Option<File>>,
    _staging: Staging,
}

impl Prepared {
    fn new(
        runner: &CommandRunner,
        tree: &PackageTree,
        original: Arc<OriginalTree>,
    ) -> Result<Self, ToolError> {
        let options = &runner.options;
        let staging = Staging::for_trees(&options.tool_root, &options.project)?;
        let prepared = tree.prepare(&open_project(options)?, staging.path(), &options.direct, &original);
        let tree = prepared.map_err(|error| {
            ToolError::new(Code::Runtime, format!("the packages cannot be put in place: {error}")).help(
                "nothing was installed; see that the project can be written and that the disk is not full",
            )
        })?;
        // Before anybody is asked; it is looked at once more under the lock.
        tree.require(&original)?;
        let parent = staging::trees(&options.tool_root);
        Ok(Self { tree, original, parent, lock: Mutex::new(None), _staging: staging })
    }

    /// Keeps other installations from replacing the tree, and refuses when one has done so.
    fn lock(&self) -> Result<(), ToolError> {
        let lock = staging::lock(&self.parent)?;
        self.tree.require(&self.original)?;
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(())
    }
}

fn result(plan: &Plan, output: CommandOutput, outcome: &Outcome) -> PackageInstallResult {
    let mut installed = outcome.installed.clone();
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
        bytes: outcome.bytes(),
    }
}

fn failed(plan: &Plan, output: &CommandOutput, unreached: Option<String>) -> ToolError {
    let ended = match output.exit_code {
        Some(code) => format!("failed with exit code {code}"),
        None => format!("did not run to its end ({})", output.ended.as_str()),
    };
    let (code, why) = match (output.exit_code, unreached) {
        (Some(127), _) => {
            (Code::Capability, "; is it installed where commands can see it (`jail.readable`)?".to_owned())
        }
        (_, Some(unreached)) => (Code::Runtime, format!("; {unreached}")),
        (_, None) => {
            if let Some(error) = plan.manager().failure(plan, output) {
                return with_output(error, output);
            }
            (Code::Runtime, String::new())
        }
    };
    let name = plan.manager().name();
    let error = ToolError::new(code, format!("{name} {ended}{why}"))
        .help(format!("nothing was installed; `stderr` is what {name} reported"));
    with_output(error, output)
}

fn not_put(error: &str) -> ToolError {
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
