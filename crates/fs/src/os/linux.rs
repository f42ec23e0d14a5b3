//! Linux opens a path without following links, and writes one file system, each in one call.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

/// Opens a path below an open directory in one call, which follows no link on the way either. `None` where the system has
/// no such call.
pub(crate) fn open_beneath(root: impl AsFd, path: &str, flags: OFlag) -> Option<Result<OwnedFd, Errno>> {
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    Some(openat2(root, path, OpenHow::new().flags(flags).resolve(resolve)))
}

/// Writes to the disk what the operating system still has in memory of the file system that has this file.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    rustix::fs::syncfs(file)?;
    Ok(())
}
