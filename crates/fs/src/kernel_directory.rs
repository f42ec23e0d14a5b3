//! Which files of a project are the kernel's own: one answer for every caller.

/// The directory of the kernel at the top of a project: the tool repository, and the kernel's state.
pub const KERNEL_DIRECTORY: &str = ".tgp";

/// Whether a path of a project is the kernel's directory, or in it.
///
/// Only the one at the top of the project counts. A directory of that name further down belongs to another project, or to
/// none: this kernel does not run it, its files are files of the project like others, and what an agent writes there is
/// listed, watched, in the graph and in the chronicle. What no call may read or write in such a directory either is a
/// question of the built-in rules (`tgp-policy`).
#[must_use]
pub fn is_in_kernel_directory(path: &str) -> bool {
    path.strip_prefix(KERNEL_DIRECTORY).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
