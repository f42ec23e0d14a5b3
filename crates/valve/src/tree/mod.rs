//! The files of the project as they are on the disk.

mod content;
mod rules;
mod walk;

pub(crate) use content::{ContentError, Hashing, Stamp};
pub(crate) use rules::{RULE_FILES, Rules, is_always_ignored};
pub(crate) use walk::{Blind, Scope, Seen, Walk, WalkError};

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use tgp_contract::RelativePath;

/// Where git keeps rules that are nobody's file.
pub(crate) const EXCLUDE: &str = ".git/info/exclude";

/// The project's directory, open: all files are opened from here, name by name and through no link.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    handle: File,
}

impl Tree {
    pub(crate) fn open(project: &Path) -> io::Result<Self> {
        let root = project.canonicalize()?;
        let handle = File::open(&root)?;
        if !handle.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { root, handle })
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
