//! Whether commands can see the program that runs tests: a command has no home directory, and programs outside of the
//! system and `jail.readable` are not there for it.

use std::path::{Path, PathBuf};

use super::runner::{Runner, RunnerKind, RunnerProblem, lacks_program};

/// Directories of the system in which commands can run programs, see `docs/jail.md`.
const SYSTEM: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/run/current-system",
    "/etc/alternatives",
];

/// Where commands look for programs when the environment does not say.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What commands see of this machine.
#[derive(Clone, Copy, Debug)]
pub struct VisiblePrograms<'a> {
    pub project: &'a Path,
    /// Absolute paths outside the project: toolchains.
    pub readable: &'a [PathBuf],
}

impl VisiblePrograms<'_> {
    /// A runner whose program is a link to what commands cannot see, as the interpreter of an environment may be, is not
    /// available.
    #[must_use]
    pub fn check(&self, runner: Runner) -> Runner {
        match self.hidden_target(&runner) {
            Some(problem) if runner.unavailable().is_none() => runner.lacking(Some(problem)),
            _ => runner,
        }
    }

    /// Why no run of a runner could count, where that is known before one is made. `search` is the `PATH` of commands.
    #[must_use]
    pub fn problem(&self, runner: &Runner, search: Option<&str>) -> Option<RunnerProblem> {
        let known = runner.unavailable().or(runner.distrusted()).cloned();
        known.or_else(|| self.hidden_target(runner)).or_else(|| self.missing(runner, search))
    }

    fn can_run(&self, real: &Path) -> bool {
        SYSTEM.iter().any(|directory| real.starts_with(directory))
            || real.starts_with(self.project)
            || self.readable.iter().any(|directory| real.starts_with(directory))
    }

    /// The program as a path, where the command names it by one.
    fn path_of(&self, runner: &Runner) -> Option<PathBuf> {
        let program = runner.program();
        program.contains('/').then(|| self.project.join(runner.folder()).join(program))
    }

    fn hidden_target(&self, runner: &Runner) -> Option<RunnerProblem> {
        let path = self.path_of(runner)?;
        let program = runner.program();
        match path.canonicalize() {
            Ok(real) if self.can_run(&real) => None,
            Ok(real) => {
                // The whole installation is needed, and not its directory of programs alone.
                let home = real.parent().and_then(Path::parent).unwrap_or(&real).display();
                Some(RunnerProblem::new(
                    format!("`{program}` is a link to `{}`, which commands cannot see", real.display()),
                    format!(
                        "ask the user to make the environment again with a program of the system, or to add \
                         \"{home}\" to `jail.readable` in the configuration"
                    ),
                ))
            }
            // A link that leads nowhere; what is not there at all may be the word of a shell.
            Err(_) if path.is_symlink() => Some(RunnerProblem::new(
                format!("`{program}` is a link to a program that does not exist"),
                "ask the user to make the environment again",
            )),
            Err(_) => None,
        }
    }

    /// A program that is nowhere on the search path, or an interpreter without pytest.
    fn missing(&self, runner: &Runner, search: Option<&str>) -> Option<RunnerProblem> {
        let program = runner.program();
        let is_name = program.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte));
        let found = match self.path_of(runner) {
            Some(path) => path,
            // The command of a user may begin with anything that a shell understands.
            None if runner.decides_by_exit_code() || !is_name => return None,
            None => {
                let directories = std::env::split_paths(search.unwrap_or(SEARCH_PATH));
                let mut candidates = directories.map(|directory| directory.join(program));
                let found = candidates
                    .find(|path| path.canonicalize().is_ok_and(|real| real.is_file() && self.can_run(&real)));
                match found {
                    Some(path) => path,
                    None => return Some(lacks_program(program)),
                }
            }
        };
        (runner.kind == RunnerKind::Pytest && has_pytest(&found) == Some(false))
            .then(|| runner.lacks_pytest())
    }
}

/// Whether the interpreter has pytest, by the directories of its modules; `None` where they are not found.
fn has_pytest(interpreter: &Path) -> Option<bool> {
    if !interpreter.file_name()?.to_str()?.starts_with("python") {
        return None;
    }
    let home = interpreter.parent()?.parent()?;
    let settings = std::fs::read_to_string(home.join("pyvenv.cfg")).unwrap_or_default();
    let is_shared = settings.lines().filter_map(|line| line.split_once('=')).any(|(key, value)| {
        key.trim() == "include-system-site-packages" && value.trim().eq_ignore_ascii_case("true")
    });
    if is_shared {
        return None;
    }
    let mut homes = vec![home.to_owned()];
    if home == Path::new("/usr") || home == Path::new("/") {
        homes.extend(["/usr", "/usr/local"].map(PathBuf::from));
    }
    // What pyenv puts on the search path is a script that chooses one of its versions.
    let versions = home.join("versions").read_dir().into_iter().flatten().flatten();
    homes.extend(versions.map(|version| version.path()));
    let libraries = homes.iter().flat_map(|home| [home.join("lib"), home.join("lib64")]);
    let versions = libraries.filter_map(|library| library.read_dir().ok()).flatten().flatten();
    let versions = versions.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    let modules: Vec<PathBuf> = versions
        .flat_map(|version| ["site-packages", "dist-packages"].map(|name| version.path().join(name)))
        .filter(|modules| modules.is_dir())
        .collect();
    if modules.is_empty() {
        return None;
    }
    Some(modules.iter().any(|modules| {
        // One that was installed for development is not a directory here.
        modules.join("pytest").is_dir() || modules.join("pytest.py").is_file() || has_link_file(modules)
    }))
}

/// Whether modules are also looked for in directories that a file names.
fn has_link_file(modules: &Path) -> bool {
    let entries = modules.read_dir().into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| {
        name.ends_with(".pth")
            && !name.starts_with("distutils-precedence")
            && !name.starts_with("_virtualenv")
    })
}
