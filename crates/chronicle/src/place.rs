//! The project as a jail: the only calls that turn a name into a handle. Each takes one name and follows no link.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, open, openat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::fsync;
use tgp_contract::{CHRONICLE_DIRECTORY, ChronicleLayout, RelativePath, is_in_chronicle_tree};

use crate::failure::{Doing, Failure};
use crate::scope::{Scope, is_git};

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC).union(OFlag::O_NOFOLLOW);
/// Non-blocking for a pipe that takes the file's place at the wrong moment.
const FILE: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);
/// As git makes them; the user's mask takes away what it takes from every file.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);
const DIRECTORY_MODE: Mode = Mode::from_bits_truncate(0o777);
/// Entries that a look for chronicles meets; a scope that holds more than a large project does is a mistake.
const MAX_ENTRIES: usize = 1_000_000;
/// Directories within directories; deeper than any project, and not too deep for the stack.
const MAX_DEPTH: usize = 128;

/// The root directory of a project.
#[derive(Debug)]
pub(crate) struct Project {
    root: OwnedFd,
}

/// What an append may do on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Refuse,
    Make,
}

/// What a renamed file may find where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Free,
    Any,
}

/// An open directory, and its name for errors.
#[derive(Debug)]
pub(crate) struct Directory {
    handle: OwnedFd,
    path: RelativePath,
}

impl Project {
    /// Opens the root. The program names it, so links on the way to it are fine.
    pub(crate) fn open(path: &Path) -> Result<Self, std::io::Error> {
        Ok(Self { root: open(path, DIRECTORY.difference(OFlag::O_NOFOLLOW), Mode::empty())? })
    }

    /// The directory at `path`, opened name by name; nothing when it is missing and not to be made.
    pub(crate) fn directory(
        &self,
        path: &RelativePath,
        missing: Missing,
    ) -> Result<Option<Directory>, Failure> {
        let handle =
            openat(&self.root, ".", DIRECTORY, Mode::empty()).doing("cannot open", &RelativePath::root())?;
        let mut directory = Directory { handle, path: RelativePath::root() };
        for name in path.parts() {
            let next = match directory.step(name)? {
                Some(next) => next,
                None if missing == Missing::Refuse => return Ok(None),
                None => directory.make(name)?,
            };
            directory = next;
        }
        Ok(Some(directory))
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
                // What is no directory of ours holds no chronicle of ours.
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
        self.path.join(name).unwrap_or_else(|_| self.path.clone())
    }

    fn step(&self, name: &str) -> Result<Option<Self>, Failure> {
        let path = self.below(name);
        match openat(&self.handle, name, DIRECTORY, Mode::empty()) {
            Ok(handle) => Ok(Some(Self { handle, path })),
            Err(Errno::ENOENT) => Ok(None),
            // The second look only chooses the words of the error.
            Err(Errno::ENOTDIR | Errno::ELOOP | Errno::EMLINK) => match self.stat(name)?.as_ref().map(kind) {
                Some(SFlag::S_IFREG) => Err(Failure::NotDirectory(path)),
                None => Ok(None),
                Some(_) => Err(Failure::Link(path)),
            },
            Err(errno) => Err(errno).doing("cannot open", &path),
        }
    }

    fn make(&self, name: &str) -> Result<Self, Failure> {
        let path = self.below(name);
        match mkdirat(&self.handle, name, DIRECTORY_MODE) {
            // Another process may have made it at the same moment.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno).doing("cannot make", &path),
        }
        self.sync()?;
        self.step(name)?.ok_or(Failure::Restless(path))
    }

    /// Makes the names in this directory survive a power failure.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        fsync(&self.handle).doing("cannot sync", &self.path)
    }

    /// What stands at `name`, itself and not what it may point to.
    fn stat(&self, name: &str) -> Result<Option<FileStat>, Failure> {
        match fstatat(&self.handle, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno).doing("cannot look at", &self.below(name)),
        }
    }

    /// Opens a plain file for reading; nothing when there is none.
    pub(crate) fn open(&self, name: &str) -> Result<Option<File>, Failure> {
        if self.stat(name)?.is_none() {
            return Ok(None);
        }
        self.open_as(name, OFlag::O_RDONLY)
    }

    /// Opens a plain file for reading and appending, and makes it where there is none. Says whether it did.
    pub(crate) fn open_to_append(&self, name: &str) -> Result<Option<(File, bool)>, Failure> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND;
        if self.stat(name)?.is_some() {
            return Ok(self.open_as(name, flags)?.map(|file| (file, false)));
        }
        Ok(self.create(name, flags)?.map(|file| (file, true)))
    }

    /// Makes a file for which there must not be any yet.
    pub(crate) fn create(&self, name: &str, flags: OFlag) -> Result<Option<File>, Failure> {
        match openat(&self.handle, name, flags | OFlag::O_CREAT | OFlag::O_EXCL | FILE, FILE_MODE) {
            Ok(handle) => Ok(Some(File::from(handle))),
            Err(Errno::EEXIST) => Ok(None),
            Err(errno) => Err(errno).doing("cannot make", &self.below(name)),
        }
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        nix::unistd::unlinkat(&self.handle, name, nix::unistd::UnlinkatFlags::NoRemoveDir)
            .doing("cannot remove", &self.below(name))
    }

    /// Opens a plain file for reading and writing; nothing when there is none.
    pub(crate) fn open_to_write(&self, name: &str) -> Result<Option<File>, Failure> {
        self.open_as(name, OFlag::O_RDWR | OFlag::O_APPEND)
    }

    /// Gives the file `from` of this directory another name, in the place of whatever has it. Where nothing may have it,
    /// answers whether that was so.
    pub(crate) fn rename(&self, from: &str, to: &str, place: Place) -> Result<bool, Failure> {
        let flags = match place {
            Place::Free => RenameFlags::RENAME_NOREPLACE,
            Place::Any => RenameFlags::empty(),
        };
        match renameat2(&self.handle, from, &self.handle, to, flags) {
            Ok(()) => Ok(true),
            Err(Errno::EEXIST) if place == Place::Free => Ok(false),
            // A file system that cannot tell; the look before is all that can be had there.
            Err(Errno::EINVAL | Errno::ENOSYS) if place == Place::Free => {
                if self.stat(to)?.is_some() {
                    Ok(false)
                } else {
                    self.rename(from, to, Place::Any)
                }
            }
            Err(errno) => Err(errno).doing("cannot put in its place", &self.below(to)),
        }
    }

    /// The first bytes of a plain file, however many names it has; nothing when there is no such file.
    pub(crate) fn beginning(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.below(name);
        match self.stat(name)? {
            Some(stat) if kind(&stat) == SFlag::S_IFREG => {}
            _ => return Ok(None),
        }
        let handle = match openat(&self.handle, name, OFlag::O_RDONLY | FILE, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::ENOENT | Errno::ELOOP | Errno::EMLINK | Errno::ENXIO) => return Ok(None),
            Err(errno) => return Err(errno).doing("cannot open", &path),
        };
        let file = File::from(handle);
        if !file.metadata().doing("cannot look at", &path)?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).doing("cannot read", &path)?;
        Ok(Some(bytes))
    }

    fn open_as(&self, name: &str, flags: OFlag) -> Result<Option<File>, Failure> {
        let path = self.below(name);
        // The first look keeps us from opening a device, which can have effects of its own. The look at the open handle
        // is the one that counts.
        let Some(before) = self.stat(name)? else { return Ok(None) };
        refuse_all_but_files(&path, &before)?;
        let handle = match openat(&self.handle, name, flags | FILE, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::EMLINK | Errno::ENXIO) => return Err(Failure::Link(path)),
            Err(errno) => return Err(errno).doing("cannot open", &path),
        };
        let stat = fstat(&handle).doing("cannot look at", &path)?;
        refuse_all_but_files(&path, &stat)?;
        if stat.st_nlink > 1 {
            return Err(Failure::SecondName(path));
        }
        Ok(Some(File::from(handle)))
    }

    /// Whether `name` still names `file`, and nothing else.
    pub(crate) fn names(&self, name: &str, file: &File) -> Result<bool, Failure> {
        let open = fstat(file).doing("cannot look at", &self.below(name))?;
        Ok(self.stat(name)?.is_some_and(|stat| (stat.st_dev, stat.st_ino) == (open.st_dev, open.st_ino)))
    }

    /// The names in this directory that a path can hold, in no order.
    pub(crate) fn children(&self) -> Result<Vec<String>, Failure> {
        let mut stream =
            Dir::openat(&self.handle, ".", DIRECTORY, Mode::empty()).doing("cannot list", &self.path)?;
        let mut names = Vec::new();
        for row in stream.iter() {
            let row = row.doing("cannot list", &self.path)?;
            let Ok(name) = row.file_name().to_str() else { continue };
            let is_speakable = RelativePath::new(name).is_ok_and(|path| path.as_str() == name);
            if is_speakable {
                names.push(name.to_owned());
            }
            if names.len() > MAX_ENTRIES {
                return Err(too_many());
            }
        }
        Ok(names)
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
        for name in directory.children()? {
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return Err(too_many());
            }
            // What vanished since its name was read is not there any more.
            let Some(stat) = directory.stat(&name)? else { continue };
            let path = directory.below(&name);
            match kind(&stat) {
                SFlag::S_IFREG => {
                    let name = self.layout.name_of(&path);
                    self.found.extend(name.filter(|name| self.scope.allows(name)));
                }
                // Looking through the tree for what is beside the sources finds nothing.
                SFlag::S_IFDIR if self.layout == ChronicleLayout::Beside && is_in_chronicle_tree(&path) => {}
                SFlag::S_IFDIR if !is_git(&name) => {
                    if path.parts().count() > MAX_DEPTH {
                        let message = format!("`{path}` is nested deeper than {MAX_DEPTH} directories");
                        return Err(Failure::Request(message));
                    }
                    match directory.step(&name) {
                        Ok(Some(next)) => self.descend(&next)?,
                        Ok(None) | Err(Failure::Link(_) | Failure::NotDirectory(_)) => {}
                        Err(failure) => return Err(failure),
                    }
                }
                _ => {}
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

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

fn refuse_all_but_files(path: &RelativePath, stat: &FileStat) -> Result<(), Failure> {
    match kind(stat) {
        SFlag::S_IFREG => Ok(()),
        SFlag::S_IFDIR => Err(Failure::Directory(path.clone())),
        _ => Err(Failure::Link(path.clone())),
    }
}
