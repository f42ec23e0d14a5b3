//! The files of the project as they are on the disk.

mod content;
mod rules;
mod walk;

pub(crate) use content::{ContentError, Hashing};
pub(crate) use rules::{Rules, is_always_ignored, is_chronicle_name};
pub(crate) use tgp_fs::{RULE_FILES, Stamp};
pub(crate) use walk::{ScanObstacle, Scope, Seen, Walk, WalkError};

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use tgp_contract::{
    ChronicleLayout, FsError, MAX_CHRONICLE_LINE_BYTES, RelativePath, has_chronicle_name,
    is_chronicle_content,
};
use tgp_fs::{Directory, HardLinks, OutsideRules, RepositoryAccess, outside_rules};

/// Where git keeps rules outside of the work tree.
pub(crate) const EXCLUDE: &str = ".git/info/exclude";

/// The project's directory, open: all files are opened from here, name by name and through no link.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    repository: RepositoryAccess,
    handle: Directory,
    /// Device and inode of that directory.
    held: (u64, u64),
    /// Device and inode of the files that this process prints to. Reporting them would print, and so on without end.
    printed: Vec<(u64, u64)>,
    /// Where chronicles are.
    layout: ChronicleLayout,
}

impl Tree {
    pub(crate) fn open(
        project: &Path,
        repository: RepositoryAccess,
        layout: ChronicleLayout,
    ) -> io::Result<Self> {
        let root = project.canonicalize()?;
        let handle = Directory::open(&root)?;
        let held = std::fs::metadata(&root)?;
        let held = (held.dev(), held.ino());
        let streams =
            [std::io::stdout().as_fd().try_clone_to_owned(), std::io::stderr().as_fd().try_clone_to_owned()];
        let printed = streams
            .into_iter()
            .filter_map(|stream| File::from(stream.ok()?).metadata().ok())
            .filter(Metadata::is_file)
            .map(|data| (data.dev(), data.ino()))
            .collect();
        Ok(Self { root, repository, handle, held, printed, layout })
    }

    /// The rules for files of the project that are not in it.
    pub(crate) fn outside_rules(&self) -> Vec<OutsideRules> {
        outside_rules(&self.root, &self.repository)
    }

    pub(crate) fn layout(&self) -> ChronicleLayout {
        self.layout
    }

    /// Whether a file is a chronicle by its content: one that an earlier version has left beside its source.
    pub(crate) fn is_old_chronicle(&self, path: &RelativePath) -> bool {
        if !has_chronicle_name(path) {
            return false;
        }
        let mut beginning = Vec::new();
        let read = self.open_file(path).and_then(|file| {
            // A fifo would be waited for.
            if !file.metadata()?.is_file() {
                return Ok(0);
            }
            file.take(MAX_CHRONICLE_LINE_BYTES as u64).read_to_end(&mut beginning)
        });
        read.is_ok() && is_chronicle_content(&beginning)
    }

    /// Whether the folder at the root's path is still the one that was opened.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        let now = std::fs::metadata(&self.root)?;
        Ok((now.dev(), now.ino()) == self.held)
    }

    pub(crate) fn is_printed(&self, stamp: &Stamp) -> bool {
        self.printed.contains(&(stamp.device, stamp.inode))
    }

    /// Whether the system does not let this user write a file that is there, or make one, and the folders on the way to it.
    pub(crate) fn is_locked(&self, path: &RelativePath) -> bool {
        let denied = |path: &RelativePath| {
            let asked = access(&self.at(path), AccessFlags::W_OK);
            matches!(asked, Err(Errno::EACCES | Errno::EPERM | Errno::EROFS))
        };
        let mut nearest = path.clone();
        while !nearest.is_root() && !self.at(&nearest).exists() {
            nearest = nearest.parent();
        }
        denied(&nearest)
    }

    /// Without links, so that what the system reports can be compared with it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn at(&self, path: &RelativePath) -> PathBuf {
        if path.is_root() { self.root.clone() } else { self.root.join(path.as_str()) }
    }

    /// Opens a plain file for reading. A link on the way is an error.
    pub(crate) fn open_file(&self, path: &RelativePath) -> io::Result<File> {
        let directory = self.handle.descend(&path.parent()).map_err(system)?;
        directory.open_file(path.name().unwrap_or_default(), HardLinks::Read).map_err(system)
    }
}

/// The error as the system would say it.
fn system(error: FsError) -> io::Error {
    match error {
        FsError::Io { source, .. } => source,
        FsError::NotFound(_) => io::Error::from(io::ErrorKind::NotFound),
        FsError::NotDirectory(_) => io::Error::from(io::ErrorKind::NotADirectory),
        FsError::IsDirectory(_) => io::Error::from(io::ErrorKind::IsADirectory),
        FsError::Security { .. } => io::Error::from_raw_os_error(libc::ELOOP),
        other => io::Error::other(other),
    }
}
