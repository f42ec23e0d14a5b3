//! A directory of installed packages: what an installation changed in it, and how it takes the place of the old one.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use tgp_contract::{Code, FsError, RelativePath, ToolError};
use tgp_fs::{Directory, HardLinks, link_tree, read_plain};
use tgp_jail::{LayerChange, LayerChangeKind};

use super::npm;

/// Largest list of installed packages; a larger one is refused.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Largest manifest of a package.
const MAX_MANIFEST_BYTES: u64 = 4 << 20;

/// The new tree in its staging directory, and afterwards the old one.
const STAGED: &str = "tree";

/// The directory of packages, such as `web/node_modules`, with its changes.
pub(super) struct PackageTree {
    /// The directory that it is in.
    directory: RelativePath,
    /// Relative to the project.
    pub(super) place: PathBuf,
    changes: Vec<LayerChange>,
}

/// What an installation changed.
pub(super) struct Split {
    /// `package.json` and the lock file.
    pub(super) manifests: Vec<LayerChange>,
    pub(super) tree: Option<PackageTree>,
}

/// Sorts the changes of an installation in a directory of the project. npm changes its own files there, and nothing else.
/// What it may have written to directories of build output stays on its layer.
pub(super) fn split(
    found: Vec<LayerChange>,
    directory: &RelativePath,
    direct: &[PathBuf],
) -> Result<Split, ToolError> {
    let place = Path::new(directory.as_str()).join(npm::PACKAGES);
    let is_manifest = |change: &LayerChange| {
        let name = change.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_there = change.path.parent().is_some_and(|parent| parent == Path::new(directory.as_str()));
        let is_file =
            !matches!(change.kind, LayerChangeKind::MakeDirectory | LayerChangeKind::RemoveDirectory);
        is_there && is_file && (name == npm::MANIFEST || npm::LOCK_FILES.contains(&name))
    };
    let (in_tree, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|change| change.path.starts_with(&place));
    let is_output = |change: &LayerChange| direct.iter().any(|output| change.path.starts_with(output));
    let in_tree: Vec<_> = in_tree.into_iter().filter(|change| !is_output(change)).collect();
    if let Some(other) = others.iter().find(|change| !is_manifest(change)) {
        let path = other.path.display().to_string();
        return Err(ToolError::new(Code::Security, format!("npm changed `{path}`, which is not a file of this installation"))
            .detail("path", path)
            .help("nothing was installed; the members of a workspace and packages in other directories are installed by the user"));
    }
    let tree = PackageTree { directory: directory.clone(), place, changes: in_tree };
    let tree = Some(tree).filter(|tree| !tree.changes.is_empty());
    Ok(Split { manifests: others, tree })
}

impl PackageTree {
    /// Every path that was written or removed, relative to the project, with whether it is still there.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&Path, bool)> {
        let is_there = |change: &LayerChange| {
            !matches!(change.kind, LayerChangeKind::Remove | LayerChangeKind::RemoveDirectory)
        };
        self.changes.iter().map(move |change| (change.path.as_path(), is_there(change)))
    }

    /// Bytes that were written.
    pub(super) fn bytes(&self) -> u64 {
        let sizes = self.changes.iter().map(|change| match change.kind {
            LayerChangeKind::Write { bytes, .. } => bytes,
            _ => 0,
        });
        sizes.sum()
    }

    /// What is installed before and after, as npm lists it.
    ///
    /// # Errors
    /// For a list that cannot be read.
    #[expect(clippy::type_complexity, reason = "two contents of one file")]
    pub(super) fn lists(&self, project: &Directory) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>), ToolError> {
        let path = self.place.join(npm::INSTALLED);
        let before = self.now(project, &path, MAX_LIST_BYTES)?;
        let change = self.changes.iter().rev().find(|change| change.path == path);
        let after = match change {
            Some(change) => self.written(change, MAX_LIST_BYTES)?,
            None => before.clone(),
        };
        Ok((before, after))
    }

    /// What a file of the project holds; none where it is not there.
    fn now(&self, project: &Directory, path: &Path, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
        let unreadable = || self.refused(path, "cannot be read");
        let at = RelativePath::new(&path.to_string_lossy())?;
        let parent = match project.descend(&at.parent()) {
            Err(FsError::NotFound(_)) => return Ok(None),
            parent => parent.map_err(|_| unreadable())?,
        };
        let file = match parent.open_file(at.name().unwrap_or_default(), HardLinks::Read) {
            Err(FsError::NotFound(_)) => return Ok(None),
            file => file.map_err(|_| unreadable())?,
        };
        let mut content = Vec::new();
        let read = file.take(most + 1).read_to_end(&mut content);
        if read.is_ok() && content.len() as u64 <= most { Ok(Some(content)) } else { Err(unreadable()) }
    }

    /// What a change leaves in its file; none where it is gone.
    fn written(&self, change: &LayerChange, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
        let LayerChangeKind::Write { content, .. } = &change.kind else { return Ok(None) };
        let content = read_plain(content, most);
        content.map(Some).ok_or_else(|| self.refused(&change.path, "cannot be read"))
    }

    /// Refuses what a package of an index does not have: special files, links out of the tree, and files of the project
    /// that would be taken for a published package. Runners of tests are among packages, and what they report is believed.
    ///
    /// # Errors
    /// `ESECURITY`.
    pub(super) fn check(&self, project: &Directory) -> Result<(), ToolError> {
        for change in &self.changes {
            match &change.kind {
                LayerChangeKind::Special => {
                    return Err(self.refused(&change.path, "is neither a file nor a directory"));
                }
                LayerChangeKind::Link { target } if !self.stays_inside(&change.path, target) => {
                    return Err(self.refused(
                        &change.path,
                        "is a link out of the packages, as to a member of a workspace",
                    ));
                }
                _ => {}
            }
        }
        let (_, after) = self.lists(project)?;
        // npm writes it whenever it installs something; without it nobody could say what is there.
        let after = after.ok_or_else(|| self.refused(&self.place.join(npm::INSTALLED), "is missing"))?;
        let listed =
            npm::check_installed(&after).map_err(|(package, why)| self.refused(Path::new(&package), why))?;
        self.check_manifests(project, &listed)
    }

    /// Refuses a list that says something else than the packages themselves: a person decides by it.
    fn check_manifests(&self, project: &Directory, listed: &[npm::Listed]) -> Result<(), ToolError> {
        let changes: HashMap<&Path, &LayerChange> =
            self.changes.iter().map(|change| (change.path.as_path(), change)).collect();
        for package in listed {
            let folder = Path::new(self.directory.as_str()).join(&package.place);
            let path = folder.join(npm::MANIFEST);
            let text = match changes.get(path.as_path()) {
                Some(change) => self.written(change, MAX_MANIFEST_BYTES)?,
                None => self.now(project, &path, MAX_MANIFEST_BYTES)?,
            };
            let text = text.ok_or_else(|| self.refused(&path, "is missing"))?;
            package.check(&text).map_err(|why| self.refused(&folder, why))?;
        }
        Ok(())
    }

    fn stays_inside(&self, path: &Path, target: &Path) -> bool {
        resolved(path, target).is_some_and(|leads| leads.starts_with(&self.place))
    }

    fn refused(&self, path: &Path, why: &str) -> ToolError {
        let path = path.display().to_string();
        ToolError::new(Code::Security, format!("`{path}` {why}")).detail("path", path).help(
            "nothing was installed; depend on a package of an index, or ask the user to install this one",
        )
    }

    /// Makes the tree as it will be: a copy of the old one, whose files are linked and not copied, with the changes.
    /// Directories of build output are empty in it: commands write to them without being judged, also now.
    pub(super) fn prepare(
        &self,
        project: &Directory,
        staging: &Path,
        direct: &[PathBuf],
    ) -> io::Result<PreparedTree> {
        let parent = project.descend(&self.directory).map_err(io::Error::other)?;
        let replaced = parent.step(npm::PACKAGES).map_err(io::Error::other)?;
        let staged = Directory::open(staging)?;
        let fresh = staging.join(STAGED);
        match &replaced {
            Some(old) => {
                let is_output = |inside: &Path| direct.contains(&self.place.join(inside));
                link_tree(old, &staged, STAGED, &is_output)?;
            }
            None => fs::DirBuilder::new().mode(0o755).create(&fresh)?,
        }
        self.change(&fresh)?;
        Ok(PreparedTree { staged, parent, replaced })
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

/// A tree that waits to take its place. The directories are held open: what a command puts in the place of one of them
/// meanwhile is not touched.
pub(super) struct PreparedTree {
    staged: Directory,
    parent: Directory,
    replaced: Option<Directory>,
}

impl PreparedTree {
    /// Puts the tree in the place of the old one, in one step.
    pub(super) fn put(&self) -> io::Result<()> {
        let Some(replaced) = &self.replaced else {
            return self.staged.move_into(STAGED, &self.parent, npm::PACKAGES);
        };
        if !self.parent.is_at(npm::PACKAGES, replaced)? {
            return Err(io::Error::other(format!("`{}` was replaced meanwhile", npm::PACKAGES)));
        }
        self.staged.exchange(STAGED, &self.parent, npm::PACKAGES)
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
