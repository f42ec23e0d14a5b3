//! Where the program of a manager is looked for: in directories outside of the project only, by their real names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError};

/// The directories of a `PATH` that are absolute, there, and not in the project. They are compared and passed on without links
/// and `..`: an entry such as `/proc/self/cwd` or `/opt/../home/ada/project/bin` means the project by another name.
pub(super) fn directories(path: &str, project: &Path) -> Vec<PathBuf> {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::env::split_paths(OsStr::new(path)).filter(|entry| entry.is_absolute()) {
        let Ok(directory) = entry.canonicalize() else { continue };
        // A directory above the project is refused too: a part of it is the project.
        let overlaps = directory.starts_with(&project) || project.starts_with(&directory);
        let is_plain = directory.to_str().is_some_and(|text| !text.contains([':', '\n']));
        if directory.is_dir() && !overlaps && is_plain && !found.contains(&directory) {
            found.push(directory);
        }
    }
    found
}

/// The same as a variable, from the environment of commands.
pub(super) fn variable(environment: &[(String, String)], project: &Path) -> (String, String) {
    let path = environment.iter().rev().find(|(name, _)| name == "PATH").map_or("", |(_, value)| value);
    let directories: Vec<String> =
        directories(path, project).iter().map(|path| path.to_string_lossy().into_owned()).collect();
    ("PATH".to_owned(), directories.join(":"))
}

/// A program of this name, as the name in its directory and as the file that it is. Neither is in the project.
///
/// # Errors
/// `ECAPABILITY` when there is none.
pub(super) fn find(
    name: &str,
    environment: &[(String, String)],
    project: &Path,
) -> Result<Program, ToolError> {
    use std::os::unix::fs::PermissionsExt;
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let (_, path) = variable(environment, &project);
    let program = |directory: &str| {
        let named = Path::new(directory).join(name);
        let file = named.canonicalize().ok()?;
        let metadata = file.metadata().ok()?;
        let runs = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        (runs && !file.starts_with(&project)).then_some(Program { named, file })
    };
    path.split(':').filter(|entry| !entry.is_empty()).find_map(program).ok_or_else(|| {
        ToolError::new(Code::Capability, format!("`{name}` is not installed outside of the project"))
            .help(format!("ask the user to install {name} where `PATH` finds it; nothing was installed"))
    })
}

/// A program outside of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// In its directory of `PATH`: programs such as those of rustup decide by this name what they are.
    pub(super) named: PathBuf,
    /// Without links.
    pub(super) file: PathBuf,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn bug_an_entry_of_path_led_into_the_project_by_another_name() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for name in ["project/bin", "tools", "project/.venv/bin"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["project/bin/cargo", "tools/cargo"] {
            fs::write(root.join(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(root.join("project/bin"), root.join("link")).unwrap();
        let (project, shown) = (root.join("project"), root.display());
        for entry in [
            format!("{shown}/project/bin"),
            format!("{shown}/tools/../project/bin"),
            format!("{shown}/link"),
            format!("{shown}/project"),
            shown.to_string(),
            "bin".to_owned(),
            "./bin".to_owned(),
            "..".to_owned(),
            String::new(),
            format!("{shown}/missing"),
        ] {
            let path = format!("{entry}:{shown}/link/../tools");
            // What a shell makes of `link/..` and what the system makes of it differ; neither leads into the project.
            assert!(directories(&path, &project).iter().all(|found| !found.starts_with(&project)), "{entry}");
            let path = format!("{entry}:{shown}/tools");
            assert_eq!(directories(&path, &project), [root.join("tools")], "{entry}");
        }
        let environment = [("PATH".to_owned(), format!("{shown}/project/bin:{shown}/tools"))];
        let found = find("cargo", &environment, &project).unwrap();
        assert_eq!(found.file, root.join("tools/cargo"));
        // A link in a good directory to a file of the project is not taken either.
        fs::remove_file(root.join("tools/cargo")).unwrap();
        symlink(root.join("project/bin/cargo"), root.join("tools/cargo")).unwrap();
        assert_eq!(find("cargo", &environment, &project).unwrap_err().code, Code::Capability);
    }

    #[test]
    fn bug_the_working_directory_of_the_kernel_was_an_entry_of_path() {
        let here = std::env::current_dir().unwrap();
        assert!(directories("/proc/self/cwd", &here).is_empty());
        assert!(directories("/proc/self/cwd/..", &here).is_empty());
    }
}
