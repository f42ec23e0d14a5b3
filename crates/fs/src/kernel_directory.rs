//! Which files of a project are the kernel's own: one answer for every caller.

/// The directory of the kernel at the top of a project: the tool repository, and the kernel's state.
pub const KERNEL_DIRECTORY: &str = ".tgp";

/// The directory of a tool repository with what is not source: audit, sessions, tokens.
pub const STATE_DIRECTORY: &str = ".state";

/// The default database, directly in the tool repository.
pub const DATABASE_FILE: &str = "data.sqlite";

/// The endings of the files that a SQLite database consists of. The file itself comes first.
pub const DATABASE_ENDINGS: [&str; 4] = ["", "-wal", "-shm", "-journal"];

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

/// Whether the first name of a path in a tool repository is private to the kernel: its state, or a file of the default
/// database. No call reads or writes such a file, git does not commit it, and no remote brings one. Compared without case,
/// because some disks do.
#[must_use]
pub fn is_kernel_private(name: &str) -> bool {
    name.eq_ignore_ascii_case(STATE_DIRECTORY) || is_default_database(name)
}

/// Whether a name in a tool repository is a file of the default database. SQLite separates what it adds by a `-`.
#[must_use]
pub fn is_default_database(name: &str) -> bool {
    let (beginning, rest) = name.split_at_checked(DATABASE_FILE.len()).unwrap_or((name, ""));
    beginning.eq_ignore_ascii_case(DATABASE_FILE) && (rest.is_empty() || rest.starts_with('-'))
}
