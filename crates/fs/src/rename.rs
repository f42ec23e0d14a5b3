//! Renaming with flags, in one step. Linux has it as `renameat2` and macOS as `renameatx_np`.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::errno::Errno;
pub(crate) use rustix::fs::RenameFlags;

/// Renames a file between two open directories.
pub(crate) fn rename(
    from: impl AsFd,
    from_name: &str,
    to: impl AsFd,
    to_name: &str,
    flags: RenameFlags,
) -> Result<(), Errno> {
    rustix::fs::renameat_with(from, from_name, to, to_name, flags)
        .map_err(|errno| Errno::from_raw(errno.raw_os_error()))
}

/// Lets two directories of one file system change places, in one step: whoever opens one of the paths finds one or the other.
///
/// # Errors
/// What the system says; both are where they were then.
pub fn exchange_directories(one: &Path, other: &Path) -> io::Result<()> {
    let here = rustix::fs::CWD;
    Ok(rustix::fs::renameat_with(here, one, here, other, RenameFlags::EXCHANGE)?)
}
