//! Directories by handle: everything in them is reached by one name at a time, and no link is followed.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, fsync, unlinkat};
use tgp_contract::{Entry, FsError, RelativePath};

use crate::HardLinks;
use crate::disk::handle::{self, Obstacle};
use crate::disk::not_a_plain_file;
use crate::rename::{self, RenameFlags};

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC).union(OFlag::O_NOFOLLOW);
/// Non-blocking for a pipe that takes the file's place at the wrong moment.
const FILE: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);
/// As git makes them; the user's mask takes away what it takes from every file.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);
const DIRECTORY_MODE: Mode = Mode::from_bits_truncate(0o777);

/// What a renamed file may find where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// Nothing may be there.
    Nothing,
    Anything,
}

/// A directory that is held open, and its path for errors.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    path: RelativePath,
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// What is in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryEntries {
    pub entries: Vec<Entry>,
    /// Names that no [`RelativePath`] can hold: those that are not UTF-8, or have a backslash or a control character.
    pub unnamed: u64,
}

impl Directory {
    /// Opens a root. The program names it, so links on the way to it are fine.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { handle: handle::open_root(path)?, path: RelativePath::root() })
    }

    /// Where this directory is, as seen from its root.
    #[must_use]
    pub fn path(&self) -> &RelativePath {
        &self.path
    }

    /// The directory at `path` below this one.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory` for a file on the way, `Security` for a link or a special file on the way.
    pub fn descend(&self, path: &RelativePath) -> Result<Self, FsError> {
        let found = handle::directory(&self.handle, path)?;
        let path = self.below(path)?;
        let handle = found.map_err(|obstacle| obstacle.into_error(&path))?;
        Ok(Self { handle, path })
    }

    /// The directory `name` in this one; nothing when there is none.
    ///
    /// # Errors
    /// As [`Directory::descend`], without `NotFound`.
    pub fn step(&self, name: &str) -> Result<Option<Self>, FsError> {
        let path = self.named(name)?;
        match handle::step(&self.handle, name, || path.clone())? {
            Ok(handle) => Ok(Some(Self { handle, path })),
            Err(Obstacle::Missing) => Ok(None),
            Err(Obstacle::File(path)) => Err(FsError::NotDirectory(path)),
        }
    }

    /// The directory `name` in this one, made where there is none. Its name survives a power failure after
    /// [`Directory::sync`].
    ///
    /// # Errors
    /// As [`Directory::descend`], and `Io` when it cannot be made.
    pub fn make(&self, name: &str) -> Result<Self, FsError> {
        let path = self.named(name)?;
        match mkdirat(&self.handle, name, DIRECTORY_MODE) {
            // Another process may have made it at the same moment.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(handle::io(&path, errno)),
        }
        self.step(name)?.ok_or(FsError::NotFound(path))
    }

    /// Makes the names in this directory survive a power failure.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> Result<(), FsError> {
        fsync(&self.handle).map_err(|errno| handle::io(&self.path, errno))
    }

    /// What is at `name`, itself and not what it may point to.
    ///
    /// # Errors
    /// What the system says.
    pub fn entry(&self, name: &str) -> Result<Option<Entry>, FsError> {
        let path = self.named(name)?;
        Ok(handle::stat(&self.handle, name, &path)?.map(|stat| handle::entry(&path, &stat)))
    }

    /// Opens a plain file for reading.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`, and `Security` for everything else that is not a plain file.
    pub fn open_file(&self, name: &str, hard_links: HardLinks) -> Result<File, FsError> {
        Ok(handle::open_file(&self.handle, name, &self.named(name)?, hard_links)?.file)
    }

    /// Opens a plain file that has no second name for reading and appending; nothing when there is none.
    ///
    /// # Errors
    /// As [`Directory::open_file`].
    pub fn open_to_append(&self, name: &str) -> Result<Option<File>, FsError> {
        let path = self.named(name)?;
        // The first check prevents opening a device, which can have side effects. The check of the open handle is the
        // one that counts.
        let Some(before) = handle::stat(&self.handle, name, &path)? else { return Ok(None) };
        handle::refuse_all_but_files(&path, &before)?;
        let opened = openat(&self.handle, name, OFlag::O_RDWR | OFlag::O_APPEND | FILE, Mode::empty());
        let file = match opened {
            Ok(handle) => File::from(handle),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::EMLINK | Errno::ENXIO) => return Err(not_a_plain_file(&path)),
            Err(errno) => return Err(handle::io(&path, errno)),
        };
        let stat = self.stat_of(&file, &path)?;
        handle::refuse_all_but_files(&path, &stat)?;
        handle::refuse_second_names(&path, &stat)?;
        Ok(Some(file))
    }

    /// Makes a file for reading and appending; nothing when something has the name.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(&self, name: &str) -> Result<Option<File>, FsError> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL | FILE;
        match openat(&self.handle, name, flags, FILE_MODE) {
            Ok(handle) => Ok(Some(File::from(handle))),
            Err(Errno::EEXIST) => Ok(None),
            Err(errno) => Err(handle::io(&self.named(name)?, errno)),
        }
    }

    /// Gives the file `from` of this directory another name in it. Returns whether it did: not where something has the
    /// name and nothing may be replaced.
    ///
    /// # Errors
    /// What the system says.
    pub fn rename(&self, from: &str, to: &str, replace: Replace) -> Result<bool, FsError> {
        let flags = match replace {
            Replace::Nothing => RenameFlags::NOREPLACE,
            Replace::Anything => RenameFlags::empty(),
        };
        match rename::rename(&self.handle, from, &self.handle, to, flags) {
            Ok(()) => Ok(true),
            Err(Errno::EEXIST) if replace == Replace::Nothing => Ok(false),
            // This file system cannot report it; the earlier check is all that is available there.
            Err(Errno::EINVAL | Errno::ENOSYS) if replace == Replace::Nothing => match self.entry(to)? {
                Some(_) => Ok(false),
                None => self.rename(from, to, Replace::Anything),
            },
            Err(errno) => Err(handle::io(&self.named(to)?, errno)),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove_file(&self, name: &str) -> Result<(), FsError> {
        let removed = unlinkat(&self.handle, name, UnlinkatFlags::NoRemoveDir);
        removed.or_else(|errno| Err(handle::io(&self.named(name)?, errno)))
    }

    /// Removes a directory, if it is empty. Returns whether it was.
    ///
    /// # Errors
    /// `NotDirectory`, and what the system says.
    pub fn remove_empty(&self, name: &str) -> Result<bool, FsError> {
        match unlinkat(&self.handle, name, UnlinkatFlags::RemoveDir) {
            Ok(()) => Ok(true),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
            Err(Errno::ENOTDIR) => Err(FsError::NotDirectory(self.named(name)?)),
            Err(errno) => Err(handle::io(&self.named(name)?, errno)),
        }
    }

    /// Whether `name` still names `file`, and nothing else.
    ///
    /// # Errors
    /// What the system says.
    pub fn names(&self, name: &str, file: &File) -> Result<bool, FsError> {
        let path = self.named(name)?;
        let open = self.stat_of(file, &path)?;
        let now = handle::stat(&self.handle, name, &path)?;
        Ok(now.is_some_and(|stat| (stat.st_dev, stat.st_ino) == (open.st_dev, open.st_ino)))
    }

    /// What is in this directory, in no order. Names that no [`RelativePath`] can hold are counted; what has gone since its
    /// name was read is left out.
    ///
    /// # Errors
    /// What the system says, and `Io` when there are more than `most`.
    pub fn entries(&self, most: usize) -> Result<DirectoryEntries, FsError> {
        let mut stream = Dir::openat(&self.handle, ".", DIRECTORY, Mode::empty())
            .map_err(|errno| handle::io(&self.path, errno))?;
        let mut found = DirectoryEntries::default();
        for row in stream.iter() {
            let row = row.map_err(|errno| handle::io(&self.path, errno))?;
            if matches!(row.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let named = row.file_name().to_str().ok().and_then(|name| {
                let path = self.path.join(name).ok()?;
                (path.name() == Some(name) && path.parent() == self.path).then_some((name, path))
            });
            let Some((name, path)) = named else {
                found.unnamed += 1;
                continue;
            };
            let Ok(Some(stat)) = handle::stat(&self.handle, name, &path) else { continue };
            found.entries.push(handle::entry(&path, &stat));
            if found.entries.len() > most {
                let message = format!("more than {most} entries in one directory");
                let source = std::io::Error::new(std::io::ErrorKind::QuotaExceeded, message);
                return Err(FsError::Io { path: self.path.clone(), source });
            }
        }
        Ok(found)
    }

    fn stat_of(&self, file: &File, path: &RelativePath) -> Result<FileStat, FsError> {
        fstat(file).map_err(|errno| handle::io(path, errno))
    }

    /// The path of a name in this directory.
    fn named(&self, name: &str) -> Result<RelativePath, FsError> {
        let path = self.path.join(name).ok().filter(|path| path.name() == Some(name));
        let reason = "this is not the name of a file";
        path.ok_or_else(|| FsError::Security { path: format!("{}/{name}", self.path), reason })
    }

    fn below(&self, path: &RelativePath) -> Result<RelativePath, FsError> {
        let joined = if self.path.is_root() { Ok(path.clone()) } else { self.path.join(path.as_str()) };
        joined.map_err(|_| not_a_plain_file(path))
    }
}
