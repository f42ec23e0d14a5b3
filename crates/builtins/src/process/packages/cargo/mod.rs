//! cargo: packages of the default index, fetched in the jail and put into the user's registry by the kernel.
//!
//! `cargo add` and `cargo fetch` execute nothing of a package. They start in a directory of the download directory, so that no
//! configuration and no toolchain of the project is read, and with a home of their own.

mod archive;
mod index_file;
mod lock;
mod manifest;
mod metadata;
mod registry;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tgp_contract::{Code, RelativePath, ToolError, background};
use tgp_fs::{Directory, read_plain};
use tgp_jail::{CACHE_PLACE, CacheAccess, CacheMount, Exit, LayerChange, LayerChangeKind, Template};
use tgp_router::Invocation;
use tgp_router::files::ProjectFiles;

use self::lock::LockFile;
use self::metadata::Metadata;
use self::registry::Registry;
pub(super) use self::registry::RegistryUpdate;
use super::managers::{Installation, PackageManager, Run, Site};
use super::tree::{open_project, read_project_file, unusable};
use super::{Plan, programs};
use crate::process::command_runner::{CommandRequest, Network};
use crate::process::installed::Installed;
use crate::process::shell_exec::{CommandOutput, command_output};

const MANIFEST: &str = "Cargo.toml";
const LOCK: &str = "Cargo.lock";

/// The list of packages as a person sees it, in the directory of the workspace. It is not written.
const LIST: &str = "target/packages.txt";

/// Largest lock file.
const MAX_LOCK_BYTES: u64 = 16 << 20;

/// Time to read the manifests of the project, without the network.
const MANIFESTS_MS: u64 = 30_000;

/// Longest line of cargo that an error repeats.
const MAX_SHOWN: usize = 300;

/// Where the kernel keeps what it has learned before the run, out of reach of the jail.
const ROOT_FILE: &str = "root";

pub(super) struct Cargo;

#[async_trait]
impl PackageManager for Cargo {
    fn name(&self) -> &'static str {
        "cargo"
    }

    fn tree_name(&self) -> Option<&'static str> {
        None
    }

    fn check(&self, plan: &Plan) -> Result<(), ToolError> {
        plan.packages.iter().try_for_each(|package| check_package(package))?;
        plan.features.iter().try_for_each(|feature| check_feature(feature, plan))
    }

    fn command(&self, plan: &Plan) -> String {
        let manifest = Path::new(plan.directory.as_str()).join(MANIFEST);
        lines("cargo", &manifest, plan)
    }

    fn require(&self, plan: &Plan, files: &ProjectFiles) -> Result<(), ToolError> {
        manifest::require(plan, files)
    }

    async fn prepare(&self, plan: &Plan, site: &Site, invocation: Invocation<'_>) -> Result<Run, ToolError> {
        let options = site.options();
        let project = real_project(site)?;
        let program = programs::find("cargo", &options.environment, &options.project)?;
        let registry = Registry::of(options)?;
        let downloads = site.downloads.clone();
        background::run_bounded(move || {
            let made = std::fs::create_dir(downloads.join("work"))
                .and_then(|()| std::fs::create_dir(downloads.join("cargo")))
                .and_then(|()| registry.share(&downloads.join("cargo")));
            made.map_err(|error| {
                ToolError::new(Code::Internal, format!("the registry cannot be shared: {error}"))
                    .help("nothing was installed")
            })
        })
        .await?;
        let cargo = quoted(&program.named.to_string_lossy());
        let manifest = project.join(plan.directory.as_str()).join(MANIFEST);
        let root = self.look(plan, site, &cargo, &manifest, invocation).await?;
        let (workshop, files) = (site.workshop.clone(), site.files.clone());
        background::run(move || {
            manifest::require_plain(&root, &files)?;
            manifest::require_workspace_inside(&project, &root, &files)?;
            std::fs::write(workshop.join(ROOT_FILE), root.as_str()).map_err(|error| {
                ToolError::new(Code::Internal, format!("the workspace cannot be noted: {error}"))
            })
        })
        .await?;
        let report = format!(
            "{cargo} metadata --offline --format-version 1 --manifest-path {}",
            shell_path(&manifest)
        );
        let line = format!(
            "cd {CACHE_PLACE}/work && {} && {report} > {CACHE_PLACE}/metadata.json",
            lines(&cargo, &manifest, plan)
        );
        Ok(Run { line, environment: environment() })
    }

    fn failure(&self, _plan: &Plan, output: &CommandOutput) -> Option<ToolError> {
        Some(failure(output))
    }

    fn read(&self, plan: &Plan, site: &Site, found: Vec<LayerChange>) -> Result<Installation, ToolError> {
        let root = std::fs::read_to_string(site.workshop.join(ROOT_FILE)).map_err(|error| {
            ToolError::new(Code::Internal, format!("the workspace is not known: {error}"))
        })?;
        let root = RelativePath::new(&root)?;
        let lock_path = root.join(LOCK)?;
        let (manifests, written) = split(plan, site, found, &lock_path)?;
        let old = read_project_file(&open_project(site.options())?, &lock_path, MAX_LOCK_BYTES)?;
        let new = written.or_else(|| old.clone());
        let place = Path::new(lock_path.as_str());
        let new = new.ok_or_else(|| unusable(place, "is missing"))?;
        let parse = |text: &[u8]| LockFile::parse(text).map_err(|why| unusable(place, why));
        let (old, new) = (old.as_deref().map(parse).transpose()?.unwrap_or_default(), parse(&new)?);
        new.check_new(&old).map_err(|(name, why)| unusable(Path::new(&name), &why))?;
        let report = read_plain(&site.downloads.join("metadata.json"), metadata::MAX_BYTES);
        let report = Metadata::parse(&report.unwrap_or_default())?;
        report.check_places(&real_project(site)?)?;
        let mut installation =
            Installation { manifests, tree: None, registry: None, lists: None, installed: Vec::new() };
        let Some(index) = report.index_directory() else {
            return Ok(installation);
        };
        let registry = Registry::of(site.options())?;
        let jail = Directory::open(&site.downloads)
            .ok()
            .and_then(|downloads| downloads.step("cargo").ok().flatten())
            .ok_or_else(|| unusable(Path::new("cargo"), "was replaced in the download directory"))?;
        let update = registry.prepare(&jail, index, &new, &site.workshop)?;
        let lists = Lists::new(&registry, index, &old, &new, &update);
        installation.installed = lists.installed;
        if !update.is_empty() || lists.before != lists.after {
            installation.lists = Some(Installed {
                manifest: plan.directory.join(MANIFEST)?,
                list: root.join(LIST)?,
                before: (!lists.before.is_empty()).then(|| lists.before.into_bytes()),
                after: Some(lists.after.into_bytes()),
            });
            installation.registry = Some(update);
        }
        Ok(installation)
    }
}

impl Cargo {
    /// Has cargo read the manifests without the network, and refuses what they may not name. Returns the directory of the
    /// workspace.
    async fn look(
        &self,
        plan: &Plan,
        site: &Site,
        cargo: &str,
        manifest: &Path,
        invocation: Invocation<'_>,
    ) -> Result<RelativePath, ToolError> {
        let options = site.options();
        let mut variables = vec![programs::variable(&options.environment, &options.project)];
        variables.extend(environment());
        let line = format!(
            "cd {CACHE_PLACE}/work && {cargo} metadata --no-deps --offline --format-version 1 --manifest-path {} > {CACHE_PLACE}/manifests.json",
            shell_path(manifest)
        );
        let request = CommandRequest {
            template: Template::Shell,
            command: line,
            directory: plan.directory.clone(),
            network: Network::OfTemplate,
            stdin: Vec::new(),
            deadline_ms: Some(MANIFESTS_MS),
            direct: Vec::new(),
            environment: variables,
            cache: Some(CacheMount { source: site.downloads.clone(), access: CacheAccess::Write }),
            filter: invocation.router.file_filter(invocation).await,
        };
        let finished = site.runner.run(request).await?;
        let output = command_output(&finished);
        match finished.exit {
            Exit::Code(0) => {}
            Exit::Deadline => {
                let message = "cargo could not read the manifests of the project in 30 s";
                return Err(ToolError::new(Code::Runtime, message).help(
                    "nothing was installed; look for manifests that are pipes, and for very large workspaces",
                ));
            }
            _ => return Err(crate::process::shell_exec::with_output(failure(&output), &output)),
        }
        let (site, project) = (site.clone(), real_project(site)?);
        background::run(move || {
            drop(finished);
            let report = read_plain(&site.downloads.join("manifests.json"), metadata::MAX_BYTES);
            let report = Metadata::parse(&report.unwrap_or_default())?;
            let root = report.root(&project)?;
            manifest::require_plain(&root, &site.files)?;
            report.check_places(&project)?;
            let lock = read_project_file(&open_project(site.options())?, &root.join(LOCK)?, MAX_LOCK_BYTES)?;
            let place = root.join(LOCK)?;
            let lock = LockFile::parse(&lock.unwrap_or_default())
                .map_err(|why| unusable(Path::new(place.as_str()), why))?;
            report.check_dependencies(|name, source| lock.has(name, source))?;
            Ok(root)
        })
        .await
    }
}

/// The lists of packages before and after.
struct Lists {
    before: String,
    after: String,
    installed: Vec<String>,
}

impl Lists {
    fn new(
        registry: &Registry,
        index: &str,
        old: &LockFile,
        new: &LockFile,
        update: &RegistryUpdate,
    ) -> Self {
        let fresh = update.stems();
        let mut lists = Self { before: String::new(), after: String::new(), installed: Vec::new() };
        let line = |package: lock::Published<'_>| {
            format!("{} {} sha256:{}\n", package.name, package.version, package.checksum)
        };
        let was_there: Vec<_> = old
            .published()
            .filter(|package| {
                registry.has_archive(index, *package) && !fresh.contains(package.file_stem().as_str())
            })
            .collect();
        was_there.iter().for_each(|package| lists.before.push_str(&line(*package)));
        for package in new.published() {
            let is_there =
                fresh.contains(package.file_stem().as_str()) || registry.has_archive(index, package);
            if is_there {
                lists.after.push_str(&line(package));
            }
            if is_there && !was_there.contains(&package) {
                lists.installed.push(format!("{}@{}", package.name, package.version));
            }
        }
        lists
    }
}

/// The manifest and the lock file among the changes, and what the lock file holds now. cargo changes nothing else.
fn split(
    plan: &Plan,
    site: &Site,
    found: Vec<LayerChange>,
    lock: &RelativePath,
) -> Result<(Vec<LayerChange>, Option<Vec<u8>>), ToolError> {
    let manifest = plan.directory.join(MANIFEST)?;
    let direct = &site.options().direct;
    let mut written = None;
    let mut manifests = Vec::new();
    for change in found {
        if direct.iter().any(|output| change.path.starts_with(output)) {
            continue;
        }
        let is_lock = change.path == Path::new(lock.as_str());
        let is_manifest = change.path == Path::new(manifest.as_str()) && !plan.packages.is_empty();
        let LayerChangeKind::Write { content, .. } = &change.kind else {
            return Err(foreign_change(&change.path));
        };
        if is_lock {
            let text = read_plain(content, MAX_LOCK_BYTES);
            written = Some(text.ok_or_else(|| unusable(&change.path, "is larger than 16 MB"))?);
        } else if !is_manifest {
            return Err(foreign_change(&change.path));
        }
        manifests.push(change);
    }
    Ok((manifests, written))
}

fn foreign_change(path: &Path) -> ToolError {
    unusable(path, "was changed by cargo, and is not a file of this installation")
}

/// The project by the name that it has in the jail.
fn real_project(site: &Site) -> Result<PathBuf, ToolError> {
    let project =
        site.options().project.canonicalize().map_err(|error| {
            ToolError::new(Code::Internal, format!("the project cannot be found: {error}"))
        })?;
    // Configuration of the project would be found above the directory that cargo starts in.
    if Path::new(CACHE_PLACE).starts_with(&project) || project.starts_with(CACHE_PLACE) {
        return Err(ToolError::new(
            Code::Capability,
            format!("a project in `{CACHE_PLACE}` cannot install packages of cargo"),
        )
        .help("move the project to another directory"));
    }
    Ok(project)
}

/// What is run, by the path of the program and of the manifest.
fn lines(cargo: &str, manifest: &Path, plan: &Plan) -> String {
    let manifest = shell_path(manifest);
    let fetch = format!("{cargo} fetch --manifest-path {manifest}");
    if plan.packages.is_empty() {
        return fetch;
    }
    let mut add = format!("{cargo} add --manifest-path {manifest}");
    if plan.dev {
        add.push_str(" --dev");
    }
    if !plan.features.is_empty() {
        add.push_str(&format!(" --features {}", quoted(&plan.features.join(","))));
    }
    add.push_str(" --");
    plan.packages.iter().for_each(|package| add.push_str(&format!(" {}", quoted(package))));
    format!("{add} && {fetch}")
}

fn shell_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
    if is_plain && !text.starts_with('-') { text.into_owned() } else { quoted(&text) }
}

/// One word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn environment() -> Vec<(String, String)> {
    let fixed = [
        ("CARGO_TERM_COLOR", "never"),
        ("CARGO_TERM_PROGRESS_WHEN", "never"),
        // One retry: a host that cannot be reached is reported soon.
        ("CARGO_NET_RETRY", "1"),
        // Repositories are fetched by git, and git may use no protocol: what is not there already is refused by its name.
        ("CARGO_NET_GIT_FETCH_WITH_CLI", "true"),
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // The user's default toolchain, and none that is downloaded for it.
        ("RUSTUP_AUTO_INSTALL", "0"),
    ];
    let mut variables: Vec<(String, String)> =
        fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    variables.push(("CARGO_HOME".to_owned(), format!("{CACHE_PLACE}/cargo")));
    variables.push(("CARGO_TARGET_DIR".to_owned(), format!("{CACHE_PLACE}/target")));
    variables
}

/// The error for a run of cargo that has failed.
fn failure(output: &CommandOutput) -> ToolError {
    let text = &output.stderr;
    let after = |start: &str| {
        let (_, rest) = text.split_once(start)?;
        rest.split('`').next().filter(|name| !name.is_empty())
    };
    let is_git = text.contains("Updating git repository") || text.contains("git fetch");
    if let Some(name) = after("failed to load source for dependency `").filter(|_| is_git) {
        return metadata::foreign(&shown(name), true);
    }
    if let Some(name) = after("registry index was not found in any configuration: `") {
        return unusable(Path::new(&shown(name)), "is another registry than the default index");
    }
    let first = text.lines().find(|line| line.starts_with("error")).unwrap_or_default();
    let why = first.split_once(": ").map_or(first, |(_, why)| why);
    let why = if why.is_empty() { String::new() } else { format!(": {}", shown(why)) };
    let ended = output.exit_code.map_or_else(
        || format!("did not run to its end ({})", output.ended.as_str()),
        |code| format!("failed with exit code {code}"),
    );
    ToolError::new(Code::Runtime, format!("cargo {ended}{why}"))
        .help("nothing was installed; `stderr` is what cargo reported")
}

/// A piece of what cargo printed, for a message.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(MAX_SHOWN).collect()
}

fn check_package(package: &str) -> Result<(), ToolError> {
    let (name, version) =
        package.split_once('@').map_or((package, None), |(name, version)| (name, Some(version)));
    // No letter has a meaning for a shell or begins an option, a path or an address.
    let is_version = |version: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || ".-+*^~<>=, ".contains(letter);
        !version.trim().is_empty() && version.len() <= 128 && version.chars().all(is_letter)
    };
    if lock::is_name(name) && version.is_none_or(is_version) {
        return Ok(());
    }
    Err(ToolError::new(Code::Validation, format!("`{}` is not a package of an index", package.escape_default()))
        .detail("package", package)
        .help("name a package as `serde`, `serde@1` or `serde@1.0.219`; paths, addresses and repositories are not installed"))
}

fn check_feature(feature: &str, plan: &Plan) -> Result<(), ToolError> {
    let is_word = |word: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_+.".contains(letter);
        word.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
            && word.len() <= 128
            && word.chars().all(is_letter)
    };
    let refused = |message: String, help: &str| {
        Err(ToolError::new(Code::Validation, message).detail("feature", feature).help(help.to_owned()))
    };
    let shown = feature.escape_default();
    let (package, name) =
        feature.split_once('/').map_or((None, feature), |(package, name)| (Some(package), name));
    if !is_word(name) || !package.is_none_or(lock::is_name) {
        return refused(
            format!("`{shown}` is not a feature"),
            "name a feature as `derive` or `serde/derive`",
        );
    }
    if plan.packages.is_empty() {
        return refused(format!("feature `{shown}` is of no package"), "name its package in `packages`");
    }
    if plan.packages.len() > 1 && package.is_none() {
        return refused(
            format!("feature `{shown}` could be one of several packages"),
            "write the package before it, as `serde/derive`",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
