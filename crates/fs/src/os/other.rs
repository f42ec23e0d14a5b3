//! Systems without these calls: a path is opened name by name, and all file systems are written.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;

pub(crate) fn open_beneath(_root: impl AsFd, _path: &str, _flags: OFlag) -> Option<Result<OwnedFd, Errno>> {
    None
}

/// Writes to the disk what the operating system still has in memory of all file systems.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    rustix::fs::sync();
    // That call reports no failure, so the file itself is asked too.
    file.sync_all()
}
