//! Renaming with flags, in one step. Linux has it as `renameat2` and macOS as `renameatx_np`.

use std::os::fd::AsFd;

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
