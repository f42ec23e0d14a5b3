//! What npm has left on its layer: its own files, and packages that an index has published.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use tgp_contract::{RelativePath, ToolError};
use tgp_fs::{Directory, read_plain};
use tgp_jail::{LayerChange, LayerChangeKind};

use super::lock::{self, Listed};
use super::{INSTALLED, LOCK_FILES, MANIFEST, PACKAGES};
use crate::process::installed::Installed;
use crate::process::packages::Plan;
use crate::process::packages::managers::{Installation, Site};
use crate::process::packages::tree::{PackageTree, open_project, read_project_file, unusable};

/// Largest list of installed packages; a larger one is refused.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Largest manifest of a package.
const MAX_MANIFEST_BYTES: u64 = 4 << 20;

/// Reads a layer. npm changes its own files, and nothing else. What it may have written to directories of build output stays
/// on the layer.
pub(super) fn read(plan: &Plan, site: &Site, found: Vec<LayerChange>) -> Result<Installation, ToolError> {
    let directory = &plan.directory;
    let place = Path::new(directory.as_str()).join(PACKAGES);
    let (in_tree, manifests): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|change| change.path.starts_with(&place));
    let direct = &site.options().direct;
    let is_output = |change: &LayerChange| direct.iter().any(|output| change.path.starts_with(output));
    let in_tree: Vec<_> = in_tree.into_iter().filter(|change| !is_output(change)).collect();
    if let Some(other) = manifests.iter().find(|change| !is_manifest(change, directory)) {
        return Err(unusable(&other.path, "was changed by npm, and is not a file of this installation").help(
            "nothing was installed; the members of a workspace and packages in other directories are installed by the user",
        ));
    }
    let tree = PackageTree::new(directory, PACKAGES, in_tree);
    let mut installation =
        Installation { manifests, tree: None, registry: None, lists: None, installed: Vec::new() };
    if let Some(tree) = tree {
        let project = open_project(site.options())?;
        let packages = Packages { directory, tree: &tree, project: &project };
        packages.check()?;
        let (before, after) = packages.lists()?;
        installation.installed = new_versions(before.as_deref(), after.as_deref());
        installation.lists = Some(Installed {
            manifest: directory.join(MANIFEST)?,
            list: directory.join(PACKAGES)?.join(INSTALLED)?,
            before,
            after,
        });
        installation.tree = Some(tree);
    }
    Ok(installation)
}

fn is_manifest(change: &LayerChange, directory: &RelativePath) -> bool {
    let name = change.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_there = change.path.parent().is_some_and(|parent| parent == Path::new(directory.as_str()));
    let is_file = !matches!(change.kind, LayerChangeKind::MakeDirectory | LayerChangeKind::RemoveDirectory);
    is_there && is_file && (name == MANIFEST || LOCK_FILES.contains(&name))
}

/// The packages that were not there before in this version.
fn new_versions(before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<String> {
    let before = lock::versions(before.unwrap_or_default());
    let mut new = lock::versions(after.unwrap_or_default());
    new.retain(|package| !before.contains(package));
    new.sort();
    new.dedup();
    new
}

/// The directory of packages as it will be.
struct Packages<'a> {
    directory: &'a RelativePath,
    tree: &'a PackageTree,
    project: &'a Directory,
}

impl Packages<'_> {
    /// What is installed before and after, as npm lists it.
    #[expect(clippy::type_complexity, reason = "two contents of one file")]
    fn lists(&self) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>), ToolError> {
        let path = self.tree.place().join(INSTALLED);
        let before = self.now(&path, MAX_LIST_BYTES)?;
        let change = self.tree.changes().iter().rev().find(|change| change.path == path);
        let after = match change {
            Some(change) => written(change, MAX_LIST_BYTES)?,
            None => before.clone(),
        };
        Ok((before, after))
    }

    fn now(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
        read_project_file(self.project, &RelativePath::new(&path.to_string_lossy())?, most)
    }

    /// Refuses what a package of an index does not have: special files, links out of the tree, and files of the project
    /// that would be taken for a published package. Runners of tests are among packages, and what they report is believed.
    ///
    /// # Errors
    /// `ESECURITY`.
    fn check(&self) -> Result<(), ToolError> {
        for change in self.tree.changes() {
            match &change.kind {
                LayerChangeKind::Special => {
                    return Err(unusable(&change.path, "is neither a file nor a directory"));
                }
                LayerChangeKind::Link { target } if !self.stays_inside(&change.path, target) => {
                    return Err(unusable(
                        &change.path,
                        "is a link out of the packages, as to a member of a workspace",
                    ));
                }
                _ => {}
            }
        }
        let (_, after) = self.lists()?;
        // npm writes it whenever it installs something; without it, what is there is not known.
        let after = after.ok_or_else(|| unusable(&self.tree.place().join(INSTALLED), "is missing"))?;
        let listed =
            lock::check_installed(&after).map_err(|(package, why)| unusable(Path::new(&package), why))?;
        self.check_manifests(&listed)
    }

    /// Refuses a list that says something else than the packages themselves: a person decides by it.
    fn check_manifests(&self, listed: &[Listed]) -> Result<(), ToolError> {
        let changes: HashMap<&Path, &LayerChange> =
            self.tree.changes().iter().map(|change| (change.path.as_path(), change)).collect();
        for package in listed {
            let folder = Path::new(self.directory.as_str()).join(&package.place);
            let path = folder.join(MANIFEST);
            let text = match changes.get(path.as_path()) {
                Some(change) => written(change, MAX_MANIFEST_BYTES)?,
                None => self.now(&path, MAX_MANIFEST_BYTES)?,
            };
            let text = text.ok_or_else(|| unusable(&path, "is missing"))?;
            package.check(&text).map_err(|why| unusable(&folder, why))?;
        }
        Ok(())
    }

    fn stays_inside(&self, path: &Path, target: &Path) -> bool {
        resolved(path, target).is_some_and(|leads| leads.starts_with(self.tree.place()))
    }
}

/// What a change leaves in its file; none where it is gone.
fn written(change: &LayerChange, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
    let LayerChangeKind::Write { content, .. } = &change.kind else { return Ok(None) };
    let content = read_plain(content, most);
    content.map(Some).ok_or_else(|| unusable(&change.path, "cannot be read"))
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
