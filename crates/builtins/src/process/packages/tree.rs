//! A directory of installed packages: what an installation changed in it, and how it takes the place of the old one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use tgp_contract::{Code, ToolError};
use tgp_fs::{exchange_directories, read_plain};
use tgp_jail::{LayerChange, LayerChangeKind};

use super::manager::Manager;

/// Files and directories of one tree of packages.
const MAX_ENTRIES: usize = 1_000_000;

/// Directories nest this deep at most.
const MAX_DEPTH: usize = 128;

/// A manifest of a package that is larger is not read for the list of what was installed.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Largest lock file that is checked; a larger one is refused.
const MAX_LOCK_BYTES: u64 = 64 << 20;

/// One tree of packages, such as `web/node_modules`, with its changes.
pub(super) struct PackageTree {
    /// Relative to the project.
    pub(super) place: PathBuf,
    changes: Vec<LayerChange>,
}

/// What an installation changed: the manifests, and the trees of packages.
pub(super) struct Split {
    pub(super) manifests: Vec<LayerChange>,
    pub(super) trees: Vec<PackageTree>,
}

/// Sorts the changes of an installation. A manager changes its own files and nothing else.
pub(super) fn split(found: Vec<LayerChange>, manager: Manager) -> Result<Split, ToolError> {
    let (lists, locks) = manager.manifests();
    let mut trees: BTreeMap<PathBuf, Vec<LayerChange>> = BTreeMap::new();
    let mut manifests = Vec::new();
    for change in found {
        if let Some(place) = manager.directory().and_then(|name| tree_of(&change.path, name)) {
            trees.entry(place).or_default().push(change);
            continue;
        }
        let name = change.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_manifest = lists.contains(&name) || locks.contains(&name);
        if !is_manifest
            || matches!(change.kind, LayerChangeKind::MakeDirectory | LayerChangeKind::RemoveDirectory)
        {
            let path = change.path.display().to_string();
            let message = format!("{} changed `{path}`, which is none of its files", manager.name());
            return Err(ToolError::new(Code::Security, message)
                .detail("path", path)
                .help("nothing was installed; ask the user to look at the packages and the configuration"));
        }
        manifests.push(change);
    }
    let trees = trees.into_iter().map(|(place, changes)| PackageTree { place, changes }).collect();
    Ok(Split { manifests, trees })
}

/// The path up to the first directory of packages in it.
fn tree_of(path: &Path, name: &str) -> Option<PathBuf> {
    let at = path.components().position(|part| part.as_os_str() == name)?;
    Some(path.components().take(at + 1).collect())
}

impl PackageTree {
    /// Packages that are there now and were not, or in another version, as `name@version`; sorted.
    pub(super) fn installed(&self, manager: Manager) -> Vec<String> {
        let mut found: Vec<String> = self
            .changes
            .iter()
            .filter_map(|change| match &change.kind {
                LayerChangeKind::Write { content, .. } => self.package(&change.path, content, manager),
                _ => None,
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// The package that a file of the tree is the manifest of.
    fn package(&self, path: &Path, content: &Path, manager: Manager) -> Option<String> {
        if manager != Manager::Npm {
            let directory = path.parent()?.file_name()?.to_str()?.strip_suffix(".dist-info")?;
            let (name, version) = directory.split_once('-')?;
            return (path.file_name()? == "METADATA").then(|| format!("{name}@{version}"));
        }
        if path.file_name()? != "package.json" {
            return None;
        }
        let place: Vec<&str> =
            path.parent()?.components().filter_map(|part| part.as_os_str().to_str()).collect();
        let after = place.iter().rposition(|part| *part == "node_modules")? + 1;
        let own = place.get(after..)?;
        let is_package = matches!(own, [name] if !name.starts_with('@'))
            || matches!(own, [scope, _] if scope.starts_with('@'));
        if !is_package {
            return None;
        }
        let text = read_plain(content, MAX_MANIFEST_BYTES)?;
        let manifest: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let version = manifest.get("version").and_then(serde_json::Value::as_str)?;
        Some(format!("{}@{version}", own.join("/")))
    }

    /// Every path that was written or removed, relative to the project, with whether it is still there.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&Path, bool)> {
        let is_there = |change: &LayerChange| {
            !matches!(change.kind, LayerChangeKind::Remove | LayerChangeKind::RemoveDirectory)
        };
        self.changes.iter().map(move |change| (change.path.as_path(), is_there(change)))
    }

    /// Files and bytes that were written.
    pub(super) fn written(&self) -> (u64, u64) {
        let sizes = self.changes.iter().filter_map(|change| match change.kind {
            LayerChangeKind::Write { bytes, .. } => Some(bytes),
            _ => None,
        });
        sizes.fold((0, 0), |(files, sum), bytes| (files + 1, sum + bytes))
    }

    /// Refuses what a package of an index does not have: special files, links out of the tree, and files of the project
    /// that would be taken for a published package. Runners of tests are among packages, and what they report is believed.
    pub(super) fn check(
        &self,
        manager: Manager,
        project: &Path,
        programs: &[PathBuf],
    ) -> Result<(), ToolError> {
        for change in &self.changes {
            match &change.kind {
                LayerChangeKind::Special => {
                    return Err(self.refused(&change.path, "is neither a file nor a directory"));
                }
                LayerChangeKind::Link { target }
                    if !self.may_link(&change.path, target, manager, project, programs) =>
                {
                    return Err(self.refused(&change.path, "is a link to a place outside of the packages"));
                }
                _ => {}
            }
        }
        if manager == Manager::Npm {
            self.refuse_packed_files(project)?;
        }
        Ok(())
    }

    fn may_link(
        &self,
        path: &Path,
        target: &Path,
        manager: Manager,
        project: &Path,
        programs: &[PathBuf],
    ) -> bool {
        let Ok(inside) = path.strip_prefix(&self.place) else { return false };
        if target.is_absolute() {
            // The interpreter of an environment, in a directory of programs.
            let is_python = |path: &Path| {
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python"))
            };
            let real = target.canonicalize().unwrap_or_default();
            let is_program = real.starts_with("/usr") || programs.iter().any(|place| real.starts_with(place));
            return manager != Manager::Npm
                && inside.parent() == Some(Path::new("bin"))
                && is_python(path)
                && is_python(target)
                && is_program
                && !real.starts_with(project);
        }
        let Some(leads) = resolved(path, target) else { return false };
        if leads.starts_with(&self.place) {
            return true;
        }
        // A member of a workspace. Runners are not found behind links.
        let name: Option<Vec<&str>> = inside.components().map(|part| part.as_os_str().to_str()).collect();
        let name = name.map(|parts| parts.join("/")).unwrap_or_default();
        let manifest =
            read_plain(&project.join(&leads).join("package.json"), MAX_MANIFEST_BYTES).unwrap_or_default();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
        manager == Manager::Npm
            && manifest.get("name").and_then(serde_json::Value::as_str) == Some(name.as_str())
    }

    /// A dependency such as `file:./x.tgz` is a copy of files of the project.
    fn refuse_packed_files(&self, project: &Path) -> Result<(), ToolError> {
        let path = self.place.join(".package-lock.json");
        let written = self.changes.iter().find_map(|change| match &change.kind {
            LayerChangeKind::Write { content, .. } if change.path == path => Some(content.clone()),
            _ => None,
        });
        let place = written.unwrap_or_else(|| project.join(&path));
        if !place.exists() {
            return Ok(());
        }
        let unreadable = || self.refused(&path, "cannot be read");
        let text = read_plain(&place, MAX_LOCK_BYTES).ok_or_else(unreadable)?;
        let lock: serde_json::Value = serde_json::from_slice(&text).map_err(|_| unreadable())?;
        let packages = lock.get("packages").and_then(serde_json::Value::as_object);
        for (name, package) in packages.into_iter().flatten() {
            let is_link = package.get("link").and_then(serde_json::Value::as_bool) == Some(true);
            let resolved = package.get("resolved").and_then(serde_json::Value::as_str).unwrap_or("https:");
            if !is_link && !resolved.starts_with("https:") {
                return Err(self.refused(Path::new(name), "is not from an index of packages"));
            }
        }
        Ok(())
    }

    fn refused(&self, path: &Path, why: &str) -> ToolError {
        let path = path.display().to_string();
        ToolError::new(Code::Security, format!("`{path}` {why}")).detail("path", path).help(
            "nothing was installed; depend on a package of an index, or ask the user to install this one",
        )
    }

    /// Makes the tree as it will be: a copy of the old one, whose files are linked and not copied, with the changes.
    pub(super) fn prepare(&self, project: &Path, staging: &Path) -> io::Result<PreparedTree> {
        let place = project.join(&self.place);
        let fresh = staging.join("tree");
        let replaces = match place.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => true,
            Ok(_) => {
                let problem = format!("`{}` is a link or a file", self.place.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        refuse_links(project, &self.place)?;
        if replaces {
            copy_tree(&place, &fresh)?;
        } else {
            fs::DirBuilder::new().mode(0o755).create(&fresh)?;
        }
        self.change(&fresh)?;
        Ok(PreparedTree { fresh, place, replaces })
    }

    fn change(&self, fresh: &Path) -> io::Result<()> {
        let inside = |path: &Path| path.strip_prefix(&self.place).map(Path::to_owned).unwrap_or_default();
        for change in self.changes.iter().rev() {
            let path = inside(&change.path);
            let is_directory = match change.kind {
                LayerChangeKind::Remove => false,
                LayerChangeKind::RemoveDirectory => true,
                _ => continue,
            };
            // The tree itself stays, and gets what is new.
            if path.as_os_str().is_empty() {
                continue;
            }
            refuse_links(fresh, &path)?;
            let gone = fresh.join(path);
            if is_directory { fs::remove_dir(gone)? } else { fs::remove_file(gone)? }
        }
        for change in &self.changes {
            let path = inside(&change.path);
            if path.as_os_str().is_empty() {
                continue;
            }
            let target = fresh.join(&path);
            match &change.kind {
                LayerChangeKind::Remove | LayerChangeKind::RemoveDirectory => continue,
                LayerChangeKind::Special => return Err(io::ErrorKind::InvalidInput.into()),
                LayerChangeKind::MakeDirectory => {
                    refuse_links(fresh, &path)?;
                    fs::DirBuilder::new().mode(0o755).create(&target)?;
                }
                LayerChangeKind::Link { target: leads } => {
                    refuse_links(fresh, &path)?;
                    remove_old(&target)?;
                    symlink(leads, &target)?;
                }
                LayerChangeKind::Write { content, executable, .. } => {
                    refuse_links(fresh, &path)?;
                    // The old file is linked to the old tree, so it is not written into.
                    remove_old(&target)?;
                    fs::copy(content, &target)?;
                    fs::set_permissions(
                        &target,
                        fs::Permissions::from_mode(if *executable { 0o755 } else { 0o644 }),
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// A tree that waits to take its place.
pub(super) struct PreparedTree {
    fresh: PathBuf,
    place: PathBuf,
    replaces: bool,
}

impl PreparedTree {
    /// Puts the tree in the place of the old one, in one step.
    pub(super) fn put(&self) -> io::Result<()> {
        if self.replaces {
            exchange_directories(&self.fresh, &self.place)
        } else {
            fs::rename(&self.fresh, &self.place)
        }
    }
}

/// Where a relative link of the project leads, by names alone; none when it leaves the project.
fn resolved(path: &Path, target: &Path) -> Option<PathBuf> {
    let mut leads = path.parent()?.to_owned();
    for part in target.components() {
        match part {
            Component::Normal(name) => leads.push(name),
            Component::ParentDir => {
                if !leads.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(leads)
}

/// Fails when a directory on the way to a path is a link.
fn refuse_links(root: &Path, path: &Path) -> io::Result<()> {
    let mut whole = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        whole.push(part);
        if !whole.symlink_metadata()?.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{}` is not a directory", whole.display()),
            ));
        }
    }
    Ok(())
}

fn remove_old(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a tree: directories and links are made again, files are linked.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let mut entries = 0_usize;
    let mut waiting = vec![(from.to_owned(), to.to_owned(), 0_usize)];
    while let Some((from, to, depth)) = waiting.pop() {
        let mode = from.symlink_metadata()?.mode() & 0o777 | 0o700;
        fs::DirBuilder::new().mode(mode).create(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            entries += 1;
            if entries > MAX_ENTRIES || depth > MAX_DEPTH {
                return Err(io::Error::other(format!(
                    "more than {MAX_ENTRIES} entries or {MAX_DEPTH} levels"
                )));
            }
            let (old, new, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                waiting.push((old, new, depth + 1));
            } else if kind.is_symlink() {
                symlink(fs::read_link(&old)?, &new)?;
            } else if kind.is_file() {
                fs::hard_link(&old, &new)?;
            } else {
                return Err(io::Error::other(format!(
                    "`{}` is neither a file nor a directory",
                    old.display()
                )));
            }
        }
    }
    Ok(())
}
