//! Everything below a directory, as `ls -R` shows it.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use tgp_contract::{Entry, EntryKind, FsError, RelativePath};

use super::handle;
use crate::FileLimits;
use crate::batch::TEMPORARY_PREFIX;

/// Lists `directory`, whose handle is `root`.
pub(super) fn list(
    root: &OwnedFd,
    directory: &RelativePath,
    limits: &FileLimits,
) -> Result<Vec<Entry>, FsError> {
    let mut listing = Listing { directory, limits, entries: Vec::new() };
    listing.descend(root, directory)?;
    listing.entries.sort();
    Ok(listing.entries)
}

/// The names in one directory, without the two dots.
pub(super) fn names(directory: impl AsFd, path: &RelativePath) -> Result<Vec<Name>, FsError> {
    let io = |errno| handle::io(path, errno);
    // A separate handle, so that the position of the caller's handle does not change.
    let mut stream =
        Dir::openat(directory, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
            .map_err(io)?;
    let mut names = Vec::new();
    for row in stream.iter() {
        let row = row.map_err(io)?;
        if !matches!(row.file_name().to_bytes(), b"." | b"..") {
            names.push(Name::new(row.file_name()));
        }
    }
    Ok(names)
}

/// A name on disk.
#[derive(Debug)]
pub(super) enum Name {
    Plain(String),
    /// The disk allows names that a [`RelativePath`] cannot hold. They are shown with their bad characters replaced,
    /// so that nothing is hidden, and cannot be opened.
    Unspeakable(String),
}

impl Name {
    fn new(name: &CStr) -> Self {
        match name.to_str() {
            Ok(text) if RelativePath::new(text).is_ok_and(|path| path.as_str() == text) => {
                Self::Plain(text.to_owned())
            }
            _ => {
                let bad = |character: char| character.is_control() || character == '\\';
                Self::Unspeakable(name.to_string_lossy().replace(bad, "\u{fffd}"))
            }
        }
    }
}

struct Listing<'a> {
    directory: &'a RelativePath,
    limits: &'a FileLimits,
    entries: Vec<Entry>,
}

impl Listing<'_> {
    fn descend(&mut self, handle: &OwnedFd, path: &RelativePath) -> Result<(), FsError> {
        for name in names(handle, path)? {
            let name = match name {
                Name::Plain(name) if name.starts_with(TEMPORARY_PREFIX) => continue,
                Name::Plain(name) => name,
                Name::Unspeakable(shown) => {
                    // A replaced character can be longer than the byte it replaces.
                    let path = path.join(&shown).or_else(|_| path.join("\u{fffd}"))?;
                    self.push(Entry { path, kind: EntryKind::Other, size: 0 })?;
                    continue;
                }
            };
            let below = path.join(&name)?;
            // What vanished since its name was read is not there any more, and that is not an error.
            let Some(stat) = handle::stat(handle, &name, &below)? else { continue };
            let entry = handle::entry(&below, &stat);
            let is_directory = entry.kind == EntryKind::Directory;
            self.push(entry)?;
            if is_directory && let Ok(next) = handle::step(handle, &name, || below.clone())? {
                self.descend(&next, &below)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, entry: Entry) -> Result<(), FsError> {
        self.limits.check_depth(&entry.path)?;
        self.entries.push(entry);
        self.limits.check_entries(self.directory, self.entries.len())
    }
}
