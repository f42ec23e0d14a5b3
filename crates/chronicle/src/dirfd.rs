//! The files of chronicles: opened name by name from the project's root, through no link.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tgp_contract::{
    CHRONICLE_DIRECTORY, ChronicleLayout, EntryKind, FsError, RelativePath, is_in_chronicle_tree,
};
use tgp_fs::{HardLinks, Replace};

use crate::failure::{Doing, Failure};
use crate::scope::{Scope, is_git};

/// Entries that a search for chronicles visits; a scope that holds more than a large project does is a
/// mistake.
const MAX_ENTRIES: usize = 1_000_000;
/// Directories within directories; deeper than any project, and not too deep for the stack.
const MAX_DEPTH: usize = 128;

/// The root directory of a project.
#[derive(Debug)]
pub(crate) struct Project {
    root: tgp_fs::Directory,
}

/// What an append may do on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Refuse,
    Make,
}

/// A directory that may hold chronicles.
#[derive(Debug)]
pub(crate) struct Directory(tgp_fs::Directory);

impl Project {
    /// Opens the root. The program names it, so links on the way to it are fine.
    pub(crate) fn open(path: &Path) -> Result<Self, std::io::Error> {
        Ok(Self { root: tgp_fs::Directory::open(path)? })
    }

    /// The directory at `path`, opened name by name; nothing when it is missing and not to be made.
    pub(crate) fn directory(
        &self,
        path: &RelativePath,
        missing: Missing,
    ) -> Result<Option<Directory>, Failure> {
        let mut directory = self.root.descend(&RelativePath::root())?;
        for name in path.parts() {
            let next = match directory.step(name)? {
                Some(next) => next,
                None if missing == Missing::Refuse => return Ok(None),
                None => {
                    let made = directory.make(name)?;
                    directory.sync()?;
                    made
                }
            };
            directory = next;
        }
        Ok(Some(Directory(directory)))
    }

    /// The name of every chronicle of the scope that has a plain file where the layout has it, sorted.
    pub(crate) fn chronicles(
        &self,
        scope: &Scope,
        layout: ChronicleLayout,
    ) -> Result<Vec<RelativePath>, Failure> {
        let mut walk = Walk { scope, layout, found: Vec::new(), seen: 0 };
        let tree = [RelativePath::new(CHRONICLE_DIRECTORY).unwrap_or_default()];
        let bases = match layout {
            // All of its files are in there, whatever the scope.
            ChronicleLayout::Tree => tree.as_slice(),
            ChronicleLayout::Beside => scope.bases.as_slice(),
        };
        for base in bases {
            match self.directory(base, Missing::Refuse) {
                Ok(Some(directory)) => walk.descend(&directory)?,
                // What is not a directory of ours holds no chronicle of ours.
                Ok(None) | Err(Failure::Link(_) | Failure::NotDirectory(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        walk.found.sort();
        Ok(walk.found)
    }
}

impl Directory {
    fn below(&self, name: &str) -> RelativePath {
        self.0.path().join(name).unwrap_or_else(|_| self.0.path().clone())
    }

    /// Makes the names in this directory survive a power failure.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        Ok(self.0.sync()?)
    }

    /// Opens a plain file that has no second name for reading; nothing when there is none.
    pub(crate) fn open(&self, name: &str) -> Result<Option<File>, Failure> {
        match self.0.open_file(name, HardLinks::Refuse) {
            Ok(file) => Ok(Some(file)),
            Err(FsError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a plain file for reading and appending, and makes it where there is none. Says whether it did.
    pub(crate) fn open_to_append(&self, name: &str) -> Result<Option<(File, bool)>, Failure> {
        if let Some(file) = self.0.open_to_append(name)? {
            return Ok(Some((file, false)));
        }
        Ok(self.0.create(name)?.map(|file| (file, true)))
    }

    /// Makes a file for which there must not be any yet.
    pub(crate) fn create(&self, name: &str) -> Result<Option<File>, Failure> {
        Ok(self.0.create(name)?)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        Ok(self.0.remove_file(name)?)
    }

    /// Opens a plain file for reading and writing; nothing when there is none.
    pub(crate) fn open_to_write(&self, name: &str) -> Result<Option<File>, Failure> {
        Ok(self.0.open_to_append(name)?)
    }

    /// Gives the file `from` of this directory another name. Returns whether it did.
    pub(crate) fn rename(&self, from: &str, to: &str, replace: Replace) -> Result<bool, Failure> {
        Ok(self.0.rename(from, to, replace)?)
    }

    /// The first bytes of a plain file, however many names it has; nothing when there is no such file.
    pub(crate) fn beginning(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Failure> {
        let file = match self.0.open_file(name, HardLinks::Read) {
            Ok(file) => file,
            Err(FsError::NotFound(_) | FsError::IsDirectory(_) | FsError::Security { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).doing("cannot read", &self.below(name))?;
        Ok(Some(bytes))
    }

    /// Whether `name` still names `file`, and nothing else.
    pub(crate) fn names(&self, name: &str, file: &File) -> Result<bool, Failure> {
        Ok(self.0.names(name, file)?)
    }

    /// The names in this directory that a path can hold, in no order.
    pub(crate) fn children(&self) -> Result<Vec<String>, Failure> {
        let entries = self.0.entries(MAX_ENTRIES)?;
        Ok(entries.entries.iter().filter_map(|entry| entry.path.name()).map(str::to_owned).collect())
    }
}

struct Walk<'a> {
    scope: &'a Scope,
    layout: ChronicleLayout,
    found: Vec<RelativePath>,
    seen: usize,
}

impl Walk<'_> {
    fn descend(&mut self, directory: &Directory) -> Result<(), Failure> {
        for entry in directory.0.entries(MAX_ENTRIES)?.entries {
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return Err(too_many());
            }
            let path = entry.path;
            let name = path.name().unwrap_or_default();
            match entry.kind {
                EntryKind::File => {
                    let name = self.layout.name_of(&path);
                    self.found.extend(name.filter(|name| self.scope.allows(name)));
                }
                // Looking through the tree for what is beside the sources finds nothing.
                EntryKind::Directory
                    if self.layout == ChronicleLayout::Beside && is_in_chronicle_tree(&path) => {}
                EntryKind::Directory if !is_git(name) => {
                    if path.parts().count() > MAX_DEPTH {
                        let message = format!("`{path}` is nested deeper than {MAX_DEPTH} directories");
                        return Err(Failure::Request(message));
                    }
                    match directory.0.step(name) {
                        Ok(Some(next)) => self.descend(&Directory(next))?,
                        Ok(None) | Err(FsError::Security { .. } | FsError::NotDirectory(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                EntryKind::Directory | EntryKind::Other => {}
            }
        }
        Ok(())
    }
}

fn too_many() -> Failure {
    Failure::Request(format!(
        "the scope of the chronicle holds more than {MAX_ENTRIES} files and directories"
    ))
}
