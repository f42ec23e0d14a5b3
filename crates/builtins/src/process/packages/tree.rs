//! A directory of installed packages: what an installation changed in it, and how it takes the place of the old one.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use tgp_contract::{Code, ToolError};
use tgp_fs::{exchange_directories, read_plain};
use tgp_jail::{LayerChange, LayerChangeKind};

use super::npm;

/// Files and directories of one tree of packages.
const MAX_ENTRIES: usize = 1_000_000;

/// Directories nest this deep at most.
const MAX_DEPTH: usize = 128;

/// Largest list of installed packages; a larger one is refused.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// The directory of packages, such as `web/node_modules`, with its changes.
pub(super) struct PackageTree {
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
pub(super) fn split(found: Vec<LayerChange>, directory: &Path) -> Result<Split, ToolError> {
    let place = directory.join(npm::PACKAGES);
    let is_manifest = |change: &LayerChange| {
        let name = change.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_there = change.path.parent().is_some_and(|parent| parent == directory);
        let is_file =
            !matches!(change.kind, LayerChangeKind::MakeDirectory | LayerChangeKind::RemoveDirectory);
        is_there && is_file && (name == npm::MANIFEST || npm::LOCK_FILES.contains(&name))
    };
    let (in_tree, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|change| change.path.starts_with(&place));
    if let Some(other) = others.iter().find(|change| !is_manifest(change)) {
        let path = other.path.display().to_string();
        return Err(ToolError::new(Code::Security, format!("npm changed `{path}`, which is not a file of this installation"))
            .detail("path", path)
            .help("nothing was installed; the members of a workspace and packages in other directories are installed by the user"));
    }
    let tree = (!in_tree.is_empty()).then_some(PackageTree { place, changes: in_tree });
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
    pub(super) fn lists(&self, project: &Path) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>), ToolError> {
        let path = self.place.join(npm::INSTALLED);
        let read = |place: &Path| match place.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => read_plain(place, MAX_LIST_BYTES)
                .map(Some)
                .ok_or_else(|| self.refused(&path, "cannot be read")),
        };
        let before = read(&project.join(&path))?;
        let change = self.changes.iter().rev().find(|change| change.path == path);
        let after = match change.map(|change| &change.kind) {
            Some(LayerChangeKind::Write { content, .. }) => read(content)?,
            Some(_) => None,
            None => before.clone(),
        };
        Ok((before, after))
    }

    /// Refuses what a package of an index does not have: special files, links out of the tree, and files of the project
    /// that would be taken for a published package. Runners of tests are among packages, and what they report is believed.
    ///
    /// # Errors
    /// `ESECURITY`.
    pub(super) fn check(&self, project: &Path) -> Result<(), ToolError> {
        for change in &self.changes {
            match &change.kind {
                LayerChangeKind::Special => {
                    return Err(self.refused(&change.path, "is neither a file nor a directory"));
                }
                LayerChangeKind::Link { target } if !self.stays_inside(&change.path, target) => {
                    return Err(self.refused(&change.path, "is a link to a place outside of the packages"));
                }
                _ => {}
            }
        }
        let (_, after) = self.lists(project)?;
        // npm writes it whenever it installs something; without it nobody could say what is there.
        let after = after.ok_or_else(|| self.refused(&self.place.join(npm::INSTALLED), "is missing"))?;
        npm::check_installed(&after).map_err(|(package, why)| self.refused(Path::new(&package), why))
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
