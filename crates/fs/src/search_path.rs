//! Where programs are looked for.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The entries of a `PATH` that are absolute and not excluded. What an agent can write must not decide which program runs
/// outside the jail: an activated environment puts a directory of the project first.
#[must_use]
pub fn search_path(variable: &OsStr, is_excluded: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    std::env::split_paths(variable).filter(|entry| entry.is_absolute() && !is_excluded(entry)).collect()
}

/// The same as a variable for a program that is started.
#[must_use]
pub fn search_variable(variable: &OsStr, is_excluded: impl Fn(&Path) -> bool) -> OsString {
    // What came from one variable fits into one.
    std::env::join_paths(search_path(variable, is_excluded)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::search_variable;

    #[test]
    fn bug_a_directory_of_the_project_decided_which_git_runs() {
        let kept = search_variable(OsStr::new("/p/.venv/bin:/usr/bin::bin:./x:/p:/bin:/pq"), |entry| {
            entry.starts_with(Path::new("/p"))
        });
        assert_eq!(kept, "/usr/bin:/bin:/pq");
    }
}
