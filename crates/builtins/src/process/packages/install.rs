//! One installation: run on a layer, checked, judged, and put in place together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tgp_contract::{Access, Code, EntryKind, RelativePath, Root, Target, ToolError, background};
use tgp_jail::{CacheAccess, CacheMount, CommandExit, Exit, Template};
use tgp_router::files::ProjectFiles;
use tgp_router::{Invocation, ToolOutcome};

use super::manager::Manager;
use super::network::{self, PROXY_PORT, Unreached};
use super::staging::Staging;
use super::tree::{self, PackageTree, PreparedTree};
use super::{PackageInstall, PackageInstallResult, Plan, cargo_registry};
use crate::process::apply::Changes;
use crate::process::command_runner::{CommandRequest, CommandRunner, Network};
use crate::process::shell_exec::{CommandOutput, command_output, exit_code, with_output};

/// Files and directories that one installation changes.
const MAX_CHANGES: usize = 500_000;
/// Packages that a result names.
const MAX_NAMED: usize = 200;
/// Largest list of packages that is read.
const MAX_LIST_BYTES: u64 = 8 << 20;

/// What a finished installation has left on its layer.
struct Outcome {
    changes: Changes,
    trees: Vec<PackageTree>,
    finished: CommandExit,
}

impl PackageInstall {
    pub(super) async fn install(
        &self,
        plan: Plan,
        seen: &ProjectFiles,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<PackageInstallResult>, ToolError> {
        let downloads = self.0.options.package_downloads.as_ref().ok_or_else(no_downloads)?.clone();
        refuse_unsafe(&plan, seen)?;
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
        let runner = &self.0;
        let started = SystemTime::now();
        // What a host is asked for was asked for, whatever becomes of the files.
        invocation.reach_outside();
        let unreached = Unreached::default();
        let request = self.request(plan, downloads.path().join("data"), invocation).await;
        let finished = runner
            .run_served(request, PROXY_PORT, |listener| network::serve(listener, invocation, &unreached))
            .await?;
        let output = command_output(&finished);
        if !matches!(finished.exit, Exit::Code(0)) {
            return Err(failed(plan, &output, unreached.first()));
        }
        let outcome =
            self.read(plan, finished, invocation).await.map_err(|error| with_output(error, &output))?;
        let mut result = result(plan, output, &outcome);
        self.judge_trees(&outcome.trees, invocation).await?;
        if invocation.context.dry_run {
            outcome.changes.judge(invocation).await?;
            result.dry_run = true;
            result.changes = outcome.changes.previews();
            return Ok(result.into());
        }
        result.changes = outcome.changes.summary();
        let exit_code = exit_code(&outcome.finished);
        let files = self.put_in_place(plan, outcome, downloads, &mut result, started, invocation).await?;
        result.applied = true;
        Ok(ToolOutcome { files, exit_code, ..result.into() })
    }

    async fn request(&self, plan: &Plan, downloads: PathBuf, invocation: Invocation<'_>) -> CommandRequest {
        let mut environment = self.0.options.certificates.clone();
        environment.extend(plan.manager.environment());
        CommandRequest {
            template: Template::Build,
            command: plan.manager.command(&plan.packages, plan.dev),
            directory: plan.directory.clone(),
            network: Network::Proxy(PROXY_PORT),
            stdin: Vec::new(),
            deadline_ms: None,
            direct: Vec::new(),
            environment,
            cache: Some(CacheMount { source: downloads, access: CacheAccess::Write }),
            filter: invocation.router.file_filter(invocation).await,
            hidden: plan.hidden(),
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
            let split = tree::split(found, plan.manager)?;
            let options = &runner.options;
            for tree in &split.trees {
                tree.check(plan.manager, &options.project, &options.readable)?;
            }
            let mut changes = Changes::of(split.manifests, &runner, &files)?;
            let (lists, _) = plan.manager.manifests();
            let is_list = |path: &RelativePath| path.name().is_some_and(|name| lists.contains(&name));
            // Without a change of the list, the versions are what is new.
            let has_list = changes.paths().any(is_list);
            changes.insist_on(|path| !has_list || is_list(path));
            if plan.manager == Manager::Uv {
                changes.contents().try_for_each(|(_, content)| refuse_other_sources(content))?;
            }
            Ok(Outcome { changes, trees: split.trees, finished })
        })
        .await
    }

    /// Where a gate may have something against a file of a tree, every one is judged by its name.
    async fn judge_trees(&self, trees: &[PackageTree], invocation: Invocation<'_>) -> Result<(), ToolError> {
        for tree in trees {
            let place = RelativePath::new(&tree.place.to_string_lossy())?;
            let router = invocation.router;
            let whole = Target::File { root: Root::Project, path: place.clone(), access: Access::Write };
            router.judge_directories(invocation, &[whole]).await?;
            if !router.may_restrict_below(invocation, Root::Project, &place).await {
                continue;
            }
            let target = |(path, is_there): (&Path, bool)| {
                let access = if is_there { Access::Write } else { Access::Delete };
                Ok(Target::File {
                    root: Root::Project,
                    path: RelativePath::new(&path.to_string_lossy())?,
                    access,
                })
            };
            let targets: Result<Vec<Target>, ToolError> = tree.paths().map(target).collect();
            router.judge_directories(invocation, &targets?).await?;
        }
        Ok(())
    }

    /// Everything is made ready first; then the manifests are written, and the trees change places.
    async fn put_in_place(
        &self,
        plan: &Plan,
        outcome: Outcome,
        downloads: &Staging,
        result: &mut PackageInstallResult,
        started: SystemTime,
        invocation: Invocation<'_>,
    ) -> Result<Vec<tgp_contract::FileEffect>, ToolError> {
        let Outcome { changes, trees, finished } = outcome;
        let runner = Arc::clone(&self.0);
        let prepared = background::run_bounded(move || prepare(&runner, &trees, finished)).await?;
        let lock = self.lock_file(plan, &changes, invocation);
        let applied = if changes.is_empty() {
            invocation.point_of_no_return().commit().map(|()| Vec::new())
        } else {
            changes.apply(invocation, &self.0, started).await
        };
        let files = match applied {
            Ok(files) => files,
            Err(error) => {
                background::run(move || {
                    drop(prepared);
                    Ok(())
                })
                .await?;
                return Err(error);
            }
        };
        let (registry, data) = (self.registry(), downloads.path().join("data"));
        let is_cargo = plan.manager == Manager::Cargo;
        let put = move || {
            let (staging, trees) = prepared;
            for tree in &trees {
                tree.put().map_err(|error| not_put(&error))?;
            }
            drop(staging);
            if !is_cargo {
                return Ok(None);
            }
            let checksums = cargo_registry::checksums(&lock);
            let added = cargo_registry::add(&data.join("cargo/registry"), &registry?, &checksums);
            added.map(Some).map_err(|error| not_put(&error))
        };
        let added = background::run_bounded(put).await.map_err(ToolError::of_unknown_outcome)?;
        if let Some(added) = added {
            result.installed_count = added.len() as u64;
            result.installed = added.into_iter().take(MAX_NAMED).collect();
        }
        Ok(files)
    }

    /// The lock file of cargo, as it will be.
    fn lock_file(&self, plan: &Plan, changes: &Changes, invocation: Invocation<'_>) -> String {
        if plan.manager != Manager::Cargo {
            return String::new();
        }
        let is_lock = |(path, _): &(&RelativePath, &[u8])| path.name() == Some("Cargo.lock");
        if let Some((_, content)) = changes.contents().find(is_lock) {
            return String::from_utf8_lossy(content).into_owned();
        }
        // A workspace has its lock file in its root.
        let files = invocation.workspace.project_files();
        let mut directory = plan.directory.clone();
        loop {
            let found = directory.join("Cargo.lock").ok().and_then(|path| files.read(&path).ok());
            if let Some(content) = found {
                return String::from_utf8_lossy(&content).into_owned();
            }
            if directory.is_root() {
                return String::new();
            }
            directory = directory.parent();
        }
    }

    /// The registry of the user's cargo.
    fn registry(&self) -> Result<PathBuf, ToolError> {
        let home = self.0.options.environment.iter().find(|(name, _)| name == "CARGO_HOME");
        home.map(|(_, home)| Path::new(home).join("registry")).ok_or_else(|| {
            ToolError::new(Code::Capability, "the directory of the user's cargo is not known")
                .help("set CARGO_HOME, or create ~/.cargo")
        })
    }
}

/// Trees as they will be, in a directory of their own.
fn prepare(
    runner: &CommandRunner,
    trees: &[PackageTree],
    finished: CommandExit,
) -> Result<(Option<Staging>, Vec<PreparedTree>), ToolError> {
    if trees.is_empty() {
        return Ok((None, Vec::new()));
    }
    let options = &runner.options;
    let staging = Staging::for_trees(&options.tool_root, &options.project)?;
    let mut prepared = Vec::with_capacity(trees.len());
    for (number, tree) in trees.iter().enumerate() {
        let fresh = staging.next(number).and_then(|place| tree.prepare(&options.project, &place));
        prepared.push(fresh.map_err(|error| {
            ToolError::new(Code::Runtime, format!("the packages cannot be put in place: {error}"))
                .help("nothing was installed; install the packages yourself if it happens again")
        })?);
    }
    // The layer is not needed any more.
    drop(finished);
    Ok((Some(staging), prepared))
}

/// Lists of packages may name what is not a package of an index, and configuration may name programs.
fn refuse_unsafe(plan: &Plan, files: &ProjectFiles) -> Result<(), ToolError> {
    let read = |name: &str| -> Result<Option<String>, ToolError> {
        let path = plan.directory.join(name)?;
        match files.entry(&path)? {
            Some(entry) if entry.kind == EntryKind::File && entry.size <= MAX_LIST_BYTES => {
                Ok(Some(String::from_utf8_lossy(&files.read(&path)?).into_owned()))
            }
            Some(_) => Err(ToolError::new(
                Code::Validation,
                format!("`{path}` is not a file of at most {MAX_LIST_BYTES} bytes"),
            )),
            None => Ok(None),
        }
    };
    match plan.manager {
        Manager::Pip => {
            let lines = read("requirements.txt")?.unwrap_or_default();
            for line in lines.lines().map(str::trim) {
                let requirement = line.split(" #").next().unwrap_or_default().trim();
                if requirement.is_empty() || requirement.starts_with('#') {
                    continue;
                }
                // What follows a semicolon is a condition, and hashes only narrow what fits.
                let plain = requirement.split([';', '\\']).next().unwrap_or_default();
                let plain = plain.split(" --hash=").next().unwrap_or_default().trim();
                if requirement.starts_with("--hash=") && !requirement.contains("://") {
                    continue;
                }
                Manager::Pip.check(plain).map_err(|error| error.detail("line", line))?;
            }
        }
        Manager::Cargo => {
            for name in ["rust-toolchain", "rust-toolchain.toml"] {
                if read(name)?.is_some_and(|text| text.contains("path")) {
                    let message = format!("`{name}` names a toolchain by its path");
                    return Err(ToolError::new(Code::Security, message).help(
                        "such a toolchain is not run with the network; ask the user to install the packages",
                    ));
                }
            }
        }
        Manager::Npm | Manager::Uv => {}
    }
    Ok(())
}

/// A package of `uv.lock` that is not from an index is a copy of files of the project, or of any address.
fn refuse_other_sources(content: &[u8]) -> Result<(), ToolError> {
    let text = String::from_utf8_lossy(content);
    let is_other = |line: &&str| {
        let source = line.strip_prefix("source = {").unwrap_or_default();
        ["path =", "directory =", "url =", "git ="].iter().any(|kind| source.contains(kind))
    };
    match text.lines().find(is_other) {
        Some(line) => Err(ToolError::new(
            Code::Security,
            format!("`uv.lock` has a package that is not from an index: {line}"),
        )
        .help("nothing was installed; depend on a package of an index, or ask the user to install this one")),
        None => Ok(()),
    }
}

fn result(plan: &Plan, output: CommandOutput, outcome: &Outcome) -> PackageInstallResult {
    let mut installed: Vec<String> =
        outcome.trees.iter().flat_map(|tree| tree.installed(plan.manager)).collect();
    let installed_count = installed.len() as u64;
    installed.truncate(MAX_NAMED);
    PackageInstallResult {
        output,
        manager: plan.manager.name().to_owned(),
        command: plan.shown_command(),
        dry_run: false,
        applied: false,
        changes: Vec::new(),
        installed,
        installed_count,
        bytes: outcome.trees.iter().map(|tree| tree.written().1).sum(),
    }
}

fn failed(plan: &Plan, output: &CommandOutput, unreached: Option<String>) -> ToolError {
    let ended = match output.exit_code {
        Some(code) => format!("failed with exit code {code}"),
        None => format!("did not run to its end ({})", output.ended.as_str()),
    };
    let name = plan.manager.name();
    let (code, why) = match (output.exit_code, unreached) {
        (Some(127), _) => {
            (Code::Capability, format!("; is {name} installed, where commands can see it (jail.readable)?"))
        }
        (_, Some(unreached)) => (Code::Runtime, format!("; {unreached}")),
        (_, None) => (Code::Runtime, String::new()),
    };
    let error = ToolError::new(code, format!("{name} {ended}{why}"))
        .help("nothing was installed; `stderr` is what the package manager reported");
    with_output(error, output)
}

fn not_put(error: &std::io::Error) -> ToolError {
    ToolError::new(
        Code::Runtime,
        format!("the manifest is written, and the packages are not all in place: {error}"),
    )
    .help("call package_install again without packages")
}

fn no_downloads() -> ToolError {
    ToolError::new(Code::Capability, "there is no directory for downloads outside the project")
        .help("set TGP_CACHE_DIR to a directory that can be written, outside the project")
}

fn unwritable(error: &std::io::Error) -> ToolError {
    ToolError::new(Code::Internal, format!("the directory for downloads cannot be written: {error}"))
}
