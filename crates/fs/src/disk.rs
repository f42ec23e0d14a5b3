//! A directory on disk as a jail.
//!
//! INVARIANT: after the root is opened, every access is one name relative to an open directory handle, and no
//! link is followed on any of them. What a path meant a moment ago does not matter then: a directory that is swapped
//! for a link either was opened before, and is still the directory inside, or is refused.

pub(crate) mod handle;
mod listing;
mod recovery;
mod transaction;

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use tgp_contract::{
    Change, Code, CommitVote, Entry, EntryKind, FileSystem, FsError, RelativePath, ToolError,
};

use crate::FileLimits;
pub(crate) use crate::batch::not_a_plain_file;
use crate::batch::{Batch, refuse_reserved};

/// A file system below one directory of the disk.
///
/// Batches of one `DiskFs` happen one after the other, and its readers see all of a batch or nothing. For other
/// processes each file changes atomically, but a batch is not one step.
#[derive(Debug)]
pub struct DiskFs {
    root: OwnedFd,
    options: DiskOptions,
    /// One batch at a time, until its commit vote is cast: a batch is applied on a thread that may wait.
    writer: Mutex<()>,
    /// Held for writing only while the staged files take their places, or are rolled back; never while a database
    /// answers.
    visible: RwLock<()>,
}

/// How a [`DiskFs`] behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskOptions {
    pub limits: FileLimits,
    pub hard_links: HardLinks,
}

/// Whether a file with more than one name may be read. Its other name may be outside the root.
///
/// Writing never changes what the other name shows: a write makes a new file and leaves the old one to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HardLinks {
    #[default]
    Refuse,
    /// For trees that a package manager fills with links into its store.
    Read,
}

/// Why a file with more than one name is not opened.
pub const SECOND_NAME: &str = "the file has a second name, which may be outside the root";

/// A directory that cannot be the root of a [`DiskFs`].
#[derive(Debug, thiserror::Error)]
#[error("cannot open `{}` as a root directory: {source}", path.display())]
pub struct OpenError {
    path: PathBuf,
    source: std::io::Error,
}

impl OpenError {
    #[must_use]
    pub fn code(&self) -> Code {
        match self.source.kind() {
            std::io::ErrorKind::NotFound => Code::NotFound,
            std::io::ErrorKind::PermissionDenied => Code::Permission,
            std::io::ErrorKind::NotADirectory => Code::Validation,
            _ => Code::Internal,
        }
    }
}

impl From<OpenError> for ToolError {
    fn from(error: OpenError) -> Self {
        ToolError::new(error.code(), error.to_string()).help("name a directory that exists and can be read")
    }
}

impl DiskFs {
    /// Opens `root` with the default options, and removes what a killed process left behind.
    ///
    /// # Errors
    /// When `root` is not a directory or cannot be opened.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        Self::open_with(root, DiskOptions::default())
    }

    /// Opens `root` with `options`.
    ///
    /// # Errors
    /// As [`DiskFs::open`].
    pub fn open_with(root: &Path, options: DiskOptions) -> Result<Self, OpenError> {
        let handle = handle::open_root(root)
            .map_err(|errno| OpenError { path: root.to_owned(), source: errno.into() })?;
        recovery::sweep(&handle);
        Ok(Self { root: handle, options, writer: Mutex::default(), visible: RwLock::default() })
    }

    fn visible(&self) -> RwLockReadGuard<'_, ()> {
        self.visible.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`FileSystem::entry`] without the lock, for use inside a batch.
    fn entry_now(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        let Some(name) = path.name() else {
            return Ok(Some(Entry { path: path.clone(), kind: EntryKind::Directory, size: 0 }));
        };
        let Ok(parent) = handle::directory(&self.root, &path.parent())? else { return Ok(None) };
        Ok(handle::stat(&parent, name, path)?.map(|stat| handle::entry(path, &stat)))
    }
}

impl FileSystem for DiskFs {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        refuse_reserved(path)?;
        let Some(name) = path.name() else { return Err(FsError::IsDirectory(path.clone())) };
        let _visible = self.visible();
        let parent = handle::directory(&self.root, &path.parent())?;
        let parent = parent.map_err(|obstacle| obstacle.into_error(path))?;
        let file = handle::open_file(&parent, name, path, self.options.hard_links)?;
        let limits = self.options.limits;
        limits.check_file(path, file.size)?;
        let mut content = Vec::with_capacity(usize::try_from(file.size).unwrap_or_default());
        // The file may grow while it is read, so the limit holds for what is read and not for what was announced.
        file.file
            .take(limits.file_bytes.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|source| FsError::Io { path: path.clone(), source })?;
        limits.check_file(path, content.len() as u64)?;
        Ok(content)
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        refuse_reserved(path)?;
        let _visible = self.visible();
        self.entry_now(path)
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        refuse_reserved(directory)?;
        let _visible = self.visible();
        let handle = handle::directory(&self.root, directory)?;
        let handle = handle.map_err(|obstacle| obstacle.into_error(directory))?;
        listing::list(&handle, directory, &self.options.limits)
    }

    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = &self.options.limits;
        let batch = Batch::plan(changes, limits, &|path| Ok(self.entry_now(path)?.map(|entry| entry.kind)))?;
        batch.bytes_on_top_of(0, limits)?;
        transaction::run(&self.root, &batch, &self.visible, last_word)
    }
}
