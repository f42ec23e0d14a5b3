//! Runners of Python: pytest or unittest, with the interpreter of the project's own environment.

use super::discover::Below;
use super::runner::{Manifests, Runner, RunnerKind, RunnerProblem, manifest};

/// Files that name what a project depends on.
const SETTINGS: [&str; 7] = [
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "setup.py",
    "Pipfile",
    "requirements.txt",
    "requirements-dev.txt",
];

/// Folders that hold an environment. The second is such a folder at the project's root only, where agents cannot write it.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

/// Pytest or unittest, where tests or settings of pytest are there.
pub(super) fn python(files: &Below<'_>) -> Option<Runner> {
    let own = ["pytest.ini", "conftest.py", "tests/conftest.py"];
    let mentions = |path: &&str| manifest(files, path).is_some_and(|text| text.contains("pytest"));
    if own.iter().any(|path| manifest(files, path).is_some()) || SETTINGS.iter().any(mentions) {
        return Some(pytest(files));
    }
    let is_test =
        |name: &&String| name.starts_with("test") && name.ends_with(".py") || name.ends_with("_test.py");
    let (folder, name) = ["tests", "test", ""]
        .iter()
        .find_map(|folder| files.names(folder).iter().find(is_test).map(|name| (*folder, name.clone())))?;
    let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
    let source = manifest(files, &path).unwrap_or_default();
    if !source.contains("unittest") || source.contains("import pytest") {
        return Some(pytest(files));
    }
    let is_package = folder.is_empty() || files.names(folder).iter().any(|name| name == "__init__.py");
    let interpreter = Interpreter::of(files);
    let line = if is_package {
        format!("{} -m unittest", interpreter.program)
    } else {
        format!("{} -m unittest discover -s {folder}", interpreter.program)
    };
    Some(Runner::new(RunnerKind::Unittest, line).lacking(interpreter.unavailable))
}

/// Pytest for a project of which nothing but its manifest is known.
pub(super) fn plain_python(files: &Below<'_>) -> Option<Runner> {
    SETTINGS.iter().any(|path| manifest(files, path).is_some()).then(|| pytest(files))
}

fn pytest(files: &Below<'_>) -> Runner {
    let Interpreter { program, unavailable } = Interpreter::of(files);
    // No cache is written into the project.
    let line = format!("{program} -m pytest -q -p no:cacheprovider");
    Runner::new(RunnerKind::Pytest, line).lacking(unavailable)
}

/// The Python that runs the tests.
struct Interpreter {
    program: String,
    unavailable: Option<RunnerProblem>,
}

impl Interpreter {
    /// The environment in the folder or above it; else `python3`, unless a manager keeps the environment elsewhere: with
    /// another interpreter every import of a dependency would fail, and look like a failing test.
    fn of(files: &Below<'_>) -> Self {
        let found = files.upwards().find_map(|(up, above)| {
            let names = if above.folder().is_empty() { &ENVIRONMENTS[..] } else { &ENVIRONMENTS[..1] };
            names
                .iter()
                .find(|name| is_environment(&above, name))
                .map(|name| format!("{up}{name}/bin/python"))
        });
        if let Some(program) = found {
            return Self { program, unavailable: None };
        }
        let settings = manifest(files, "pyproject.toml").unwrap_or_default();
        let is_of = |lock: &str, table: &str| {
            let has_lock = files.names("").iter().any(|name| name == lock) || manifest(files, lock).is_some();
            has_lock || settings.lines().any(|line| line.trim_start().starts_with(table))
        };
        let (manager, command) = if is_of("uv.lock", "[tool.uv") {
            ("uv", "uv sync")
        } else if is_of("poetry.lock", "[tool.poetry") {
            ("Poetry", "poetry config virtualenvs.in-project true && poetry install")
        } else {
            return Self { program: "python3".to_owned(), unavailable: None };
        };
        let unavailable = RunnerProblem {
            problem: format!(
                "the {manager} environment of this project is not in `.venv`, where test runs can see it"
            ),
            help: format!(
                "ask the user to run `{command}`, or to set `tdd.command` in the configuration to the command that runs \
                 the tests"
            ),
        };
        Self { program: "python3".to_owned(), unavailable: Some(unavailable) }
    }
}

/// A folder that `venv`, uv or Poetry has made. A link in its place does not count: what it leads to may be writable.
fn is_environment(files: &Below<'_>, name: &str) -> bool {
    manifest(files, &format!("{name}/pyvenv.cfg")).is_some()
        && files.names(&format!("{name}/bin")).iter().any(|program| program == "python")
}
