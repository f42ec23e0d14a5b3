//! The files of the project as they are on the disk.

mod content;
mod rules;
mod walk;

pub(crate) use content::{ContentError, Hashing, Stamp};
pub(crate) use rules::{RULE_FILES, Rules, is_always_ignored, is_chronicle_name};
pub(crate) use walk::{Blind, Scope, Seen, Walk, WalkError};

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, access};
use tgp_contract::{
    ChronicleLayout, MAX_CHRONICLE_LINE_BYTES, RelativePath, has_chronicle_name, is_chronicle_content,
};

/// Where git keeps rules that are nobody's file.
pub(crate) const EXCLUDE: &str = ".git/info/exclude";

/// The project's directory, open: all files are opened from here, name by name and through no link.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    handle: File,
    /// Device and inode of the files that this process prints to. Telling of them would print, and so on without end.
    printed: Vec<(u64, u64)>,
    /// Where chronicles are.
    layout: ChronicleLayout,
}

impl Tree {
    pub(crate) fn open(project: &Path, layout: ChronicleLayout) -> io::Result<Self> {
        let root = project.canonicalize()?;
        let handle = File::open(&root)?;
        if !handle.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let streams =
            [std::io::stdout().as_fd().try_clone_to_owned(), std::io::stderr().as_fd().try_clone_to_owned()];
        let printed = streams
            .into_iter()
            .filter_map(|stream| File::from(stream.ok()?).metadata().ok())
            .filter(Metadata::is_file)
            .map(|data| (data.dev(), data.ino()))
            .collect();
        Ok(Self { root, handle, printed, layout })
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
        let (now, then) = (std::fs::metadata(&self.root)?, self.handle.metadata()?);
        Ok((now.dev(), now.ino()) == (then.dev(), then.ino()))
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

    /// Without links, so that what the system tells can be compared with it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn at(&self, path: &RelativePath) -> PathBuf {
        if path.is_root() { self.root.clone() } else { self.root.join(path.as_str()) }
    }

    /// Opens a file for reading. A fifo does not make it wait, and a link on the way is an error.
    pub(crate) fn open_file(&self, path: &RelativePath) -> io::Result<File> {
        let flags =
            OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let mut directory = None;
        let parent = path.parent();
        for name in parent.parts() {
            let from = directory.as_ref().map_or_else(|| self.handle.as_fd(), AsFd::as_fd);
            let next = open_at(from, name, flags | OFlag::O_DIRECTORY)?;
            directory = Some(next);
        }
        let from = directory.as_ref().map_or_else(|| self.handle.as_fd(), AsFd::as_fd);
        Ok(File::from(open_at(from, path.name().unwrap_or("."), flags)?))
    }
}

fn open_at(
    directory: std::os::fd::BorrowedFd<'_>,
    name: &str,
    flags: OFlag,
) -> io::Result<std::os::fd::OwnedFd> {
    loop {
        match openat(directory, name, flags, Mode::empty()) {
            Err(Errno::EINTR) => {}
            opened => return Ok(opened?),
        }
    }
}
