//! A directory of installed packages in the project: what an installation changes in it, and how it takes the place of the old
//! one. It knows no manager.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_contract::{Code, FsError, RelativePath, ToolError};
use tgp_fs::{Directory, HardLinks, link_tree};
use tgp_jail::{LayerChange, LayerChangeKind};

use crate::process::ProcessOptions;

/// The new tree in its staging directory, and afterwards the old one.
const STAGED: &str = "tree";

/// The directory of packages, such as `web/node_modules`, with its changes.
#[derive(Clone)]
pub(super) struct PackageTree {
    /// The directory that it is in.
    directory: RelativePath,
    /// Its name in there.
    name: &'static str,
    /// Relative to the project.
    place: PathBuf,
    /// Paths are relative to the project, as those of a layer are, and come in the same order: sorted, a removal before what
    /// takes its place.
    changes: Arc<[LayerChange]>,
}

pub(super) fn open_project(options: &ProcessOptions) -> Result<Directory, ToolError> {
    Directory::open(&options.project)
        .map_err(|error| ToolError::new(Code::Internal, format!("the project cannot be opened: {error}")))
}

/// What a file of the project holds; none where it is not there.
///
/// # Errors
/// `ESECURITY` for what is not a plain file, and for one that is larger.
pub(super) fn read_project_file(
    project: &Directory,
    path: &RelativePath,
    most: u64,
) -> Result<Option<Vec<u8>>, ToolError> {
    let unreadable = || unusable(Path::new(path.as_str()), "cannot be read as a plain file");
    let parent = match project.descend(&path.parent()) {
        Err(FsError::NotFound(_)) => return Ok(None),
        parent => parent.map_err(|_| unreadable())?,
    };
    let file = match parent.open_file(path.name().unwrap_or_default(), HardLinks::Read) {
        Err(FsError::NotFound(_)) => return Ok(None),
        file => file.map_err(|_| unreadable())?,
    };
    let mut content = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut content);
    if read.is_ok() && content.len() as u64 <= most { Ok(Some(content)) } else { Err(unreadable()) }
}

/// The error for something that no package of an index brings.
pub(super) fn unusable(path: &Path, why: &str) -> ToolError {
    let path = path.display().to_string();
    ToolError::new(Code::Security, format!("`{path}` {why}"))
        .detail("path", path)
        .help("nothing was installed; depend on a package of an index, or ask the user to install this one")
}

impl PackageTree {
    /// A tree with changes; none when there are none.
    pub(super) fn new(
        directory: &RelativePath,
        name: &'static str,
        changes: Vec<LayerChange>,
    ) -> Option<Self> {
        let place = Path::new(directory.as_str()).join(name);
        let changes = Arc::from(changes);
        let tree = Self { directory: directory.clone(), name, place, changes };
        (!tree.changes.is_empty()).then_some(tree)
    }

    /// Relative to the project.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    pub(super) fn changes(&self) -> &[LayerChange] {
        &self.changes
    }

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

    /// Makes the tree as it will be: a copy of the old one, whose files are linked and not copied, with the changes.
    /// Directories of build output are empty in it: commands write to them without being judged, also now.
    pub(super) fn prepare(
        &self,
        project: &Directory,
        staging: &Path,
        direct: &[PathBuf],
        original: &OriginalTree,
    ) -> io::Result<PreparedTree> {
        let parent = project.descend(&self.directory).map_err(io::Error::other)?;
        let staged = Directory::open(staging)?;
        let fresh = staging.join(STAGED);
        match &original.0 {
            Some(old) => {
                let is_output = |inside: &Path| direct.contains(&self.place.join(inside));
                link_tree(old, &staged, STAGED, &is_output)?;
            }
            None => fs::DirBuilder::new().mode(0o755).create(&fresh)?,
        }
        self.change(&fresh)?;
        Ok(PreparedTree { staged, parent, name: self.name, place: self.place.clone() })
    }

    fn change(&self, fresh: &Path) -> io::Result<()> {
        let inside = |path: &Path| path.strip_prefix(&self.place).map(Path::to_owned);
        for change in self.changes.iter().rev() {
            let path = inside(&change.path).map_err(io::Error::other)?;
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
        for change in self.changes.iter() {
            let path = inside(&change.path).map_err(io::Error::other)?;
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

/// The directory of packages as an installation has found it, held open. What another installation puts in its place
/// meanwhile has another identity.
pub(super) struct OriginalTree(Option<Directory>);

impl OriginalTree {
    /// # Errors
    /// `ESECURITY` for a link or a file in its place.
    pub(super) fn open(project: &Directory, directory: &RelativePath, name: &str) -> Result<Self, ToolError> {
        let parent = project.descend(directory)?;
        let found = parent.step(name).map_err(|error| {
            ToolError::from(error)
                .help(format!("nothing was installed; remove `{name}`, which is not a directory"))
        })?;
        Ok(Self(found))
    }

    /// Refuses to go on when something else is in its place now.
    ///
    /// # Errors
    /// `ECONFLICT`.
    pub(super) fn require(
        &self,
        project: &Directory,
        directory: &RelativePath,
        name: &str,
    ) -> Result<(), ToolError> {
        self.require_in(&project.descend(directory)?, name, &Path::new(directory.as_str()).join(name))
    }

    fn require_in(&self, parent: &Directory, name: &str, place: &Path) -> Result<(), ToolError> {
        let is_same = match &self.0 {
            Some(old) => parent.is_at(name, old),
            None => parent.entry(name).map(|entry| entry.is_none()).map_err(io::Error::other),
        };
        if is_same.is_ok_and(|is_same| is_same) {
            return Ok(());
        }
        let place = place.display().to_string();
        Err(ToolError::new(
            Code::Conflict,
            format!("`{place}` was replaced while the packages were installed"),
        )
        .detail("path", place)
        .help("nothing was installed; call package_install again"))
    }
}

/// A tree that waits to take its place. The directories are held open: what a command puts in the place of one of them
/// meanwhile is not touched.
pub(super) struct PreparedTree {
    staged: Directory,
    parent: Directory,
    name: &'static str,
    place: PathBuf,
}

impl PreparedTree {
    /// Refuses to go on when the place has another directory than the one the tree was made from.
    ///
    /// # Errors
    /// `ECONFLICT`.
    pub(super) fn require(&self, original: &OriginalTree) -> Result<(), ToolError> {
        original.require_in(&self.parent, self.name, &self.place)
    }

    /// Puts the tree in the place of the original, in one step. Whoever calls it holds the lock of installations and has
    /// called [`Self::require`] under it.
    pub(super) fn put(&self, original: &OriginalTree) -> io::Result<()> {
        match &original.0 {
            None => self.staged.move_into(STAGED, &self.parent, self.name),
            Some(old) if self.parent.is_at(self.name, old)? => {
                self.staged.exchange(STAGED, &self.parent, self.name)
            }
            Some(_) => Err(io::Error::other(format!("`{}` was replaced meanwhile", self.place.display()))),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        root: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            for folder in ["project/web", "one", "two", "three", "four"] {
                fs::create_dir_all(root.path().join(folder)).unwrap();
            }
            Self { root }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn project(&self) -> Directory {
            Directory::open(&self.path("project")).unwrap()
        }

        fn original(&self) -> OriginalTree {
            let web = RelativePath::new("web").unwrap();
            OriginalTree::open(&self.project(), &web, "packages").unwrap()
        }

        /// A tree with one more file, made in a directory of its own.
        fn prepared(&self, name: &str, original: &OriginalTree) -> PreparedTree {
            fs::write(self.path(name).join("content"), name).unwrap();
            let kind = LayerChangeKind::Write {
                content: self.path(name).join("content"),
                bytes: name.len() as u64,
                executable: false,
            };
            let path = PathBuf::from(format!("web/packages/{name}"));
            let change = LayerChange { path, kind, before: tgp_jail::Before::Nothing };
            let web = RelativePath::new("web").unwrap();
            let tree = PackageTree::new(&web, "packages", vec![change]).unwrap();
            tree.prepare(&self.project(), &self.path(name), &[], original).unwrap()
        }

        fn installed(&self) -> Vec<String> {
            let entries = fs::read_dir(self.path("project/web/packages")).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn bug_two_installations_at_a_time_lost_the_packages_of_one() {
        let fixture = Fixture::new();
        // Both find no packages.
        let (first, second) = (fixture.original(), fixture.original());
        let one = fixture.prepared("one", &first);
        let two = fixture.prepared("two", &second);
        one.require(&first).unwrap();
        one.put(&first).unwrap();
        assert_eq!(two.require(&second).unwrap_err().code, Code::Conflict);
        assert!(two.put(&second).is_err());
        assert_eq!(fixture.installed(), ["one"]);
        // Both find the packages of the first.
        let (first, second) = (fixture.original(), fixture.original());
        let four = fixture.prepared("four", &first);
        let three = fixture.prepared("three", &second);
        three.require(&second).unwrap();
        three.put(&second).unwrap();
        assert_eq!(four.require(&first).unwrap_err().code, Code::Conflict);
        assert!(four.put(&first).is_err());
        assert_eq!(fixture.installed(), ["one", "three"]);
    }

    #[test]
    fn a_link_in_the_place_of_the_packages_is_refused() {
        let fixture = Fixture::new();
        symlink("/", fixture.path("project/web/packages")).unwrap();
        let web = RelativePath::new("web").unwrap();
        let refused = OriginalTree::open(&fixture.project(), &web, "packages").err().unwrap();
        assert_eq!(refused.code, Code::Security);
    }
}
