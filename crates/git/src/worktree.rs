//! The working tree: files are read and replaced through handles that follow no link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use git2::{ObjectType, Oid};
use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use tgp_contract::{Code, EntryKind, FsError, RelativePath, ToolError};
use tgp_fs::{Directory, HardLinks};

use crate::branch_names::{STATE, is_private, writable};
use crate::failure::{At, Failure};

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// How the names of files begin that are being written; they are in `.state`, so a kill leaves none among the tools.
pub(crate) const TEMPORARY_PREFIX: &str = "git-writing-";
/// A tool is a page of text. A larger file is not read, so it counts as changed and is never overwritten.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;
/// More files than any tool library has; a walk that finds more stops. A commit of so many can still be read
/// ([`crate::bounds::MAX_ENTRIES`] counts folders too).
const MAX_FILES: usize = 100_000;
/// Folders within folders; the same for what comes from a remote.
pub(crate) const MAX_DEPTH: usize = 64;
/// The most files that are listed as refused; more would not be read.
const MAX_REFUSED: usize = 100;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Nothing,
    File(Vec<u8>),
    /// A link, a directory, a device, a file beyond all bounds, or one of these on the way.
    Other,
}

impl Standing {
    /// The id that the content would have in git.
    pub(crate) fn blob(&self) -> Option<Oid> {
        match self {
            Self::File(bytes) => Oid::hash_object(ObjectType::Blob, bytes).ok(),
            Self::Nothing | Self::Other => None,
        }
    }
}

/// What a walk through the working tree found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) files: Vec<RelativePath>,
    /// What git cannot be given, the first of it.
    pub(crate) refused: Vec<(PathBuf, Refusal)>,
}

/// Why something in the working tree cannot be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("its name is not a name for a file of the tool repository")]
    Name,
    #[error("it is a link, or something else that is not a plain file")]
    Kind,
    #[error("it lies too deep")]
    Depth,
    #[error("it is too large")]
    Size,
}

/// Whether the bits say that a file can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executable {
    Yes,
    No,
}

/// A root on disk, held open.
#[derive(Debug)]
pub(crate) struct Worktree {
    path: PathBuf,
    root: Directory,
    state: Directory,
}

static ISSUED: AtomicU64 = AtomicU64::new(0);

impl Worktree {
    pub(crate) fn open(path: &Path) -> Result<Self, ToolError> {
        let root = Directory::open(path).at("cannot open", path)?;
        let Some(state) = root.step(STATE)? else {
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(missing).at("cannot open", &path.join(STATE));
        };
        Ok(Self { path: path.to_owned(), root, state })
    }

    pub(crate) fn look(&self, path: &RelativePath) -> Result<Standing, ToolError> {
        let Some(name) = path.name() else { return Ok(Standing::Other) };
        let directory = match self.walk(&path.parent())? {
            Ok(directory) => directory,
            Err(standing) => return Ok(standing),
        };
        let file = match directory.open_file(name, HardLinks::Read) {
            Ok(file) => file,
            Err(FsError::NotFound(_)) => return Ok(Standing::Nothing),
            Err(FsError::IsDirectory(_) | FsError::Security { .. }) => return Ok(Standing::Other),
            Err(error) => return Err(self.failed("cannot read", path, error)),
        };
        let mut bytes = Vec::new();
        let shown = self.path.join(path.as_str());
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).at("cannot read", &shown)?;
        Ok(if bytes.len() as u64 > MAX_FILE_BYTES { Standing::Other } else { Standing::File(bytes) })
    }

    /// Replaces the file as a whole; folders on the way are made.
    ///
    /// # Errors
    /// `ESECURITY` when a link or something else that is not a folder is on the way.
    pub(crate) fn write(
        &self,
        path: &RelativePath,
        content: &[u8],
        executable: Executable,
    ) -> Result<(), ToolError> {
        let shown = self.path.join(path.as_str());
        let name = path.name().ok_or_else(|| blocked(path))?;
        let directory = self.make(&path.parent())?;
        match directory.entry(name) {
            // Renaming over a link would replace the link and not follow it, but it may be a user's.
            Ok(Some(entry)) if entry.kind != EntryKind::File => return Err(blocked(path)),
            Ok(_) => {}
            Err(error) => return Err(self.failed("cannot look at", path, error)),
        }
        let temporary =
            format!("{TEMPORARY_PREFIX}{}-{}", std::process::id(), ISSUED.fetch_add(1, Ordering::Relaxed));
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = match executable {
            Executable::Yes => 0o755,
            Executable::No => 0o644,
        };
        let handle = openat(&self.state, temporary.as_str(), flags, Mode::from_bits_truncate(mode))
            .at("cannot write", &shown)?;
        let mut file = File::from(handle);
        let written = file
            .write_all(content)
            .and_then(|()| match executable {
                // The umask may have taken the bit away, and git would call the file changed.
                Executable::Yes => fchmod(&file, Mode::from_bits_truncate(0o755)).map_err(Into::into),
                Executable::No => Ok(()),
            })
            .and_then(|()| Ok(renameat(&self.state, temporary.as_str(), &directory, name)?));
        if written.is_err() {
            let _ = unlinkat(&self.state, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        written.at("cannot write", &shown)
    }

    /// Removes a plain file, and the folders that are empty without it, but no folder of the root itself.
    pub(crate) fn remove(&self, path: &RelativePath) -> Result<(), ToolError> {
        if !matches!(self.look(path)?, Standing::File(_)) {
            return Ok(());
        }
        let (Some(name), Ok(directory)) = (path.name(), self.walk(&path.parent())?) else { return Ok(()) };
        match directory.remove_file(name) {
            Ok(()) | Err(FsError::NotFound(_)) => {}
            Err(error) => return Err(self.failed("cannot remove", path, error)),
        }
        let mut folder = path.parent();
        while !folder.is_root() && !folder.parent().is_root() {
            let (Some(name), Ok(above)) = (folder.name(), self.walk(&folder.parent())?) else {
                return Ok(());
            };
            // A folder that is not empty, or not ours to remove, stays.
            if !above.remove_empty(name).unwrap_or(false) {
                return Ok(());
            }
            folder = folder.parent();
        }
        Ok(())
    }

    /// Every plain file that git could hold, sorted, and what cannot be taken. Whether git ignores it is for the caller
    /// to ask; `skip` keeps the walk out of folders.
    pub(crate) fn files(&self, skip: &dyn Fn(&RelativePath) -> bool) -> Result<Found, ToolError> {
        let mut found = Vec::new();
        let mut refused: Vec<(PathBuf, Refusal)> = Vec::new();
        let mut refuse = |path: PathBuf, why: Refusal| {
            if refused.len() < MAX_REFUSED && !is_private(&path) {
                refused.push((path, why));
            }
        };
        let mut open = vec![RelativePath::root()];
        while let Some(directory) = open.pop() {
            let shown = self.path.join(directory.as_str());
            let Ok(handle) = self.walk(&directory)? else { continue };
            let mut entries =
                Dir::openat(&handle, ".", DIRECTORY, Mode::empty()).at("cannot list", &shown)?;
            let names: Vec<Vec<u8>> = entries
                .iter()
                .filter_map(Result::ok)
                .map(|entry| entry.file_name().to_bytes().to_vec())
                .filter(|name| name != b"." && name != b"..")
                .collect();
            for name in names {
                let raw = Path::new(directory.as_str()).join(OsStr::from_bytes(&name));
                let text = String::from_utf8(name).ok();
                let path = writable(&raw).filter(|path| path.name() == text.as_deref());
                let (Some(name), Some(path)) = (text, path) else {
                    refuse(raw, Refusal::Name);
                    continue;
                };
                match fstatat(&entries, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Ok(stat) if is(SFlag::S_IFREG, stat.st_mode) => found.push(path),
                    Ok(stat) if is(SFlag::S_IFDIR, stat.st_mode) => {
                        if path.parts().count() >= MAX_DEPTH {
                            refuse(raw, Refusal::Depth);
                        } else if !skip(&path) {
                            open.push(path);
                        }
                    }
                    Ok(_) => refuse(raw, Refusal::Kind),
                    // It is gone again.
                    Err(_) => {}
                }
            }
            if found.len() > MAX_FILES {
                let message = format!("the working tree holds more than {MAX_FILES} files");
                return Err(
                    ToolError::new(Code::Git, message).help("name in `.gitignore` what is not a tool")
                );
            }
        }
        found.sort();
        refused.sort();
        Ok(Found { files: found, refused })
    }

    fn walk(&self, path: &RelativePath) -> Result<Result<Directory, Standing>, ToolError> {
        match self.root.descend(path) {
            Ok(directory) => Ok(Ok(directory)),
            Err(FsError::NotFound(_)) => Ok(Err(Standing::Nothing)),
            Err(FsError::NotDirectory(_) | FsError::Security { .. }) => Ok(Err(Standing::Other)),
            Err(error) => Err(self.failed("cannot open", path, error)),
        }
    }

    /// The directory at `path`; those that are missing on the way are made.
    fn make(&self, path: &RelativePath) -> Result<Directory, ToolError> {
        let made =
            path.parts().try_fold(
                self.root.descend(&RelativePath::root())?,
                |directory, name| match directory.step(name)? {
                    Some(next) => Ok(next),
                    None => directory.make(name),
                },
            );
        made.map_err(|error| match error {
            FsError::NotDirectory(_) | FsError::Security { .. } => blocked(path),
            error => self.failed("cannot make a folder for", path, error),
        })
    }

    fn failed(&self, doing: &'static str, path: &RelativePath, error: FsError) -> ToolError {
        match error {
            FsError::Io { source, .. } => {
                Failure::Disk { doing, path: self.path.join(path.as_str()), source }.into()
            }
            error => error.into(),
        }
    }
}

fn is(kind: SFlag, mode: nix::libc::mode_t) -> bool {
    mode & SFlag::S_IFMT.bits() == kind.bits()
}

pub(crate) fn blocked(path: &RelativePath) -> ToolError {
    let message = format!(
        "`{path}` cannot be written: a link or something else that is not a plain file is in the way"
    );
    ToolError::new(Code::Security, message).help("remove what stands there from the tool repository")
}
