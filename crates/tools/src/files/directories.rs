//! Directories of the disk by handle: one level at a time, with no link followed on the way.
//!
//! The trait of all file systems lists whole trees, which is too much for a project that holds its packages and its
//! builds. A walk goes level by level, so that it can leave out what is ignored.

use std::os::fd::OwnedFd;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use tgp_contract::{Entry, EntryKind, FsError, RelativePath};

/// Entries of one directory; a larger one is a store of data, and no place to look around in.
const MAX_CHILDREN: usize = 500_000;
/// Begins the names under which the disk file system stages its writes.
pub(super) const TEMPORARY_PREFIX: &str = ".tgp-tmp-";
const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC).union(OFlag::O_NOFOLLOW);

/// The tree below one directory of the disk.
pub(super) struct Directories {
    root: OwnedFd,
}

impl Directories {
    pub(super) fn open(root: &Path) -> Result<Self, std::io::Error> {
        let flags = DIRECTORY.difference(OFlag::O_NOFOLLOW);
        Ok(Self { root: open(root, flags, Mode::empty())? })
    }

    /// Opens `path`, name by name.
    pub(super) fn handle(&self, path: &RelativePath) -> Result<OwnedFd, FsError> {
        let mut handle =
            openat(&self.root, ".", DIRECTORY, Mode::empty()).map_err(|errno| io(path, errno))?;
        for name in path.parts() {
            handle = openat(&handle, name, DIRECTORY, Mode::empty()).map_err(|errno| match errno {
                Errno::ENOENT => FsError::NotFound(path.clone()),
                Errno::ENOTDIR | Errno::ELOOP | Errno::EMLINK => {
                    match stat(&handle, name).map(|s| kind(&s)) {
                        Ok(EntryKind::File) => FsError::NotDirectory(path.clone()),
                        _ => link(path),
                    }
                }
                errno => io(path, errno),
            })?;
        }
        Ok(handle)
    }

    /// What stands in `directory`, in no order. Names that no [`RelativePath`] can hold are left out.
    pub(super) fn children(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        let handle = self.handle(directory)?;
        let mut stream =
            Dir::openat(&handle, ".", DIRECTORY, Mode::empty()).map_err(|errno| io(directory, errno))?;
        let mut entries = Vec::new();
        for row in stream.iter() {
            let row = row.map_err(|errno| io(directory, errno))?;
            let Ok(name) = row.file_name().to_str() else { continue };
            let Some(path) = child(directory, name) else { continue };
            // What vanished since its name was read is not there any more.
            let Ok(stat) = stat(&handle, name) else { continue };
            let kind = kind(&stat);
            let size =
                if kind == EntryKind::File { u64::try_from(stat.st_size).unwrap_or_default() } else { 0 };
            entries.push(Entry { path, kind, size });
            if entries.len() > MAX_CHILDREN {
                let message = format!("more than {MAX_CHILDREN} entries in one directory");
                let source = std::io::Error::new(std::io::ErrorKind::QuotaExceeded, message);
                return Err(FsError::Io { path: directory.clone(), source });
            }
        }
        Ok(entries)
    }

    /// Removes `directory`, if it is empty. Answers whether it was.
    pub(super) fn remove_empty(&self, directory: &RelativePath) -> Result<bool, FsError> {
        let Some(name) = directory.name() else { return Ok(false) };
        let parent = self.handle(&directory.parent())?;
        match unlinkat(&parent, name, UnlinkatFlags::RemoveDir) {
            Ok(()) => Ok(true),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
            Err(Errno::ENOTDIR) => Err(FsError::NotDirectory(directory.clone())),
            Err(errno) => Err(io(directory, errno)),
        }
    }
}

fn child(directory: &RelativePath, name: &str) -> Option<RelativePath> {
    if matches!(name, "." | "..") || name.starts_with(TEMPORARY_PREFIX) {
        return None;
    }
    let path = directory.join(name).ok()?;
    (path.name() == Some(name) && path.parent() == *directory).then_some(path)
}

/// What stands at `name`, itself and not what it may point to.
fn stat(directory: &OwnedFd, name: &str) -> Result<FileStat, Errno> {
    fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

fn kind(stat: &FileStat) -> EntryKind {
    match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => EntryKind::File,
        SFlag::S_IFDIR => EntryKind::Directory,
        _ => EntryKind::Other,
    }
}

fn link(path: &RelativePath) -> FsError {
    FsError::Security { path: path.to_string(), reason: "links and special files are not followed" }
}

fn io(path: &RelativePath, errno: Errno) -> FsError {
    match errno {
        Errno::ENOENT => FsError::NotFound(path.clone()),
        errno => FsError::Io { path: path.clone(), source: errno.into() },
    }
}
