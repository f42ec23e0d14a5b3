//! The only calls that turn a name into a handle. Each takes one name and follows no link.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use tgp_contract::{Entry, EntryKind, FsError, RelativePath};

use super::{HardLinks, SECOND_NAME, not_a_plain_file};
use crate::os;

const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// How far a walk from the root came.
#[derive(Debug)]
pub(crate) struct Walked {
    /// The last directory on the way that could be opened.
    pub(crate) directory: OwnedFd,
    /// Why the walk ended before its goal, if it did.
    pub(crate) stopped: Option<Obstacle>,
}

/// What is at a path where a directory was expected.
#[derive(Debug)]
pub(crate) enum Obstacle {
    Missing,
    File(RelativePath),
}

impl Obstacle {
    /// The error of a caller that wanted `path`.
    pub(crate) fn into_error(self, path: &RelativePath) -> FsError {
        match self {
            Self::Missing => FsError::NotFound(path.clone()),
            Self::File(file) => FsError::NotDirectory(file),
        }
    }
}

/// A regular file that was opened, and its size at that moment.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) size: u64,
}

/// Opens the root. It is named by the program and not by a tool, so links on the way to it are fine.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, DIRECTORY, Mode::empty())
}

/// Opens the directory `path` below `root`, name by name.
pub(crate) fn walk(root: impl AsFd, path: &RelativePath) -> Result<Walked, FsError> {
    let mut directory = openat(root, ".", DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())
        .map_err(|errno| io(&RelativePath::root(), errno))?;
    let depth = path.parts().count();
    for (index, name) in path.parts().enumerate() {
        let at = || (index + 1..depth).fold(path.clone(), |path, _| path.parent());
        match step(&directory, name, at)? {
            Ok(next) => directory = next,
            Err(obstacle) => return Ok(Walked { directory, stopped: Some(obstacle) }),
        }
    }
    Ok(Walked { directory, stopped: None })
}

/// The directory `path` below `root`, or what is in its place, for a caller that does not ask how far the way leads.
pub(crate) fn directory(root: impl AsFd, path: &RelativePath) -> Result<Result<OwnedFd, Obstacle>, FsError> {
    match open_at_once(&root, path) {
        Some(Ok(directory)) => Ok(Ok(directory)),
        Some(Err(Errno::ENOENT)) => Ok(Err(Obstacle::Missing)),
        // The walk by name finds out why.
        _ => {
            let walked = walk(root, path)?;
            Ok(walked.stopped.map_or(Ok(walked.directory), Err))
        }
    }
}

/// The directory, in one call of the system. `None` for the root, and where the system has no such call.
fn open_at_once(root: impl AsFd, path: &RelativePath) -> Option<Result<OwnedFd, Errno>> {
    path.name()?;
    os::open_beneath(root, path.as_str(), DIRECTORY | OFlag::O_NOFOLLOW)
}

/// Opens the directory `name` in `directory`; `at` names it in errors.
pub(crate) fn step(
    directory: impl AsFd,
    name: &str,
    at: impl Fn() -> RelativePath,
) -> Result<Result<OwnedFd, Obstacle>, FsError> {
    match openat(&directory, name, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty()) {
        Ok(next) => Ok(Ok(next)),
        Err(Errno::ENOENT) => Ok(Err(Obstacle::Missing)),
        // Systems differ in what they say about a link here. The second look only chooses the words of the error.
        Err(Errno::ENOTDIR | Errno::ELOOP | Errno::EMLINK) => {
            let at = at();
            match stat(&directory, name, &at)?.as_ref().map(kind) {
                Some(EntryKind::File) => Ok(Err(Obstacle::File(at))),
                None => Ok(Err(Obstacle::Missing)),
                Some(EntryKind::Other | EntryKind::Directory) => Err(not_a_plain_file(&at)),
            }
        }
        Err(errno) => Err(io(&at(), errno)),
    }
}

/// What is at `name`, itself and not what it may point to.
pub(crate) fn stat(
    directory: impl AsFd,
    name: &str,
    path: &RelativePath,
) -> Result<Option<FileStat>, FsError> {
    match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(io(path, errno)),
    }
}

/// Opens a regular file for reading.
pub(crate) fn open_file(
    directory: impl AsFd,
    name: &str,
    path: &RelativePath,
    hard_links: HardLinks,
) -> Result<OpenFile, FsError> {
    // The first check prevents opening a device, which can have side effects. The check of the open handle is
    // the one that counts; non-blocking mode is for a pipe that appeared in between.
    let before = stat(&directory, name, path)?.ok_or_else(|| FsError::NotFound(path.clone()))?;
    refuse_all_but_files(path, &before)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let handle = openat(directory, name, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::ELOOP | Errno::EMLINK | Errno::ENXIO => not_a_plain_file(path),
        errno => io(path, errno),
    })?;
    let stat = fstat(&handle).map_err(|errno| io(path, errno))?;
    refuse_all_but_files(path, &stat)?;
    if hard_links == HardLinks::Refuse {
        refuse_second_names(path, &stat)?;
    }
    Ok(OpenFile { file: File::from(handle), size: size(&stat) })
}

pub(crate) fn kind(stat: &FileStat) -> EntryKind {
    match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => EntryKind::File,
        SFlag::S_IFDIR => EntryKind::Directory,
        _ => EntryKind::Other,
    }
}

pub(crate) fn entry(path: &RelativePath, stat: &FileStat) -> Entry {
    let kind = kind(stat);
    let size = if kind == EntryKind::File { size(stat) } else { 0 };
    Entry { path: path.clone(), kind, size }
}

/// The error that `errno` means for `path`.
pub(crate) fn io(path: &RelativePath, errno: Errno) -> FsError {
    match errno {
        Errno::ENOENT => FsError::NotFound(path.clone()),
        Errno::EISDIR => FsError::IsDirectory(path.clone()),
        Errno::ELOOP => not_a_plain_file(path),
        errno => FsError::Io { path: path.clone(), source: errno.into() },
    }
}

fn size(stat: &FileStat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Refuses a file that has another name.
pub(crate) fn refuse_second_names(path: &RelativePath, stat: &FileStat) -> Result<(), FsError> {
    if stat.st_nlink > 1 {
        return Err(FsError::Security { path: path.to_string(), reason: SECOND_NAME });
    }
    Ok(())
}

pub(crate) fn refuse_all_but_files(path: &RelativePath, stat: &FileStat) -> Result<(), FsError> {
    match kind(stat) {
        EntryKind::File => Ok(()),
        EntryKind::Directory => Err(FsError::IsDirectory(path.clone())),
        EntryKind::Other => Err(not_a_plain_file(path)),
    }
}
