//! Which commands run the tests of a project, found in its manifests.

use super::node::{node, plain_node};
use super::python::{plain_python, python};
use super::runner::{
    Language, Manifests, Runner, RunnerKind, RunnerProblem, SET_THE_COMMAND, joined, manifest,
};

/// Runners of one project. Each runs on its own, so more of them take longer than a person waits.
pub const MAX_RUNNERS: usize = 16;

/// Folders that are searched for manifests.
pub const MAX_FOLDERS: usize = 4_096;

/// Levels below the root that are searched.
const LEVELS: usize = 2;

/// Folders whose manifests belong to other projects: packages, build output, copies, and examples. Hidden folders are left
/// out as well. Ignore files decide nothing here, because an agent may write them.
const OTHERS: [&str; 26] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "coverage",
    "vendor",
    "third_party",
    "venv",
    "env",
    "__pycache__",
    "site-packages",
    "tmp",
    "temp",
    "docs",
    "doc",
    "example",
    "examples",
    "sample",
    "samples",
    "template",
    "templates",
    "fixtures",
    "testdata",
    "bench",
    "benchmarks",
];

/// Why the runners of a project are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoverError {
    #[error("the project has more than {MAX_RUNNERS} test runners")]
    TooManyRunners,
    #[error(
        "the project has more than {MAX_FOLDERS} folders in its upper levels, so its test runners cannot all be found"
    )]
    TooManyFolders,
}

/// A folder of the project.
pub(super) struct Below<'a> {
    files: &'a dyn Manifests,
    folder: String,
}

impl<'a> Below<'a> {
    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// The folder and those above it up to the root, nearest first, each with the way to it (`../`).
    pub(super) fn upwards(&self) -> impl Iterator<Item = (String, Below<'a>)> {
        let mut next = Some((String::new(), self.folder.clone()));
        let files = self.files;
        std::iter::from_fn(move || {
            let (up, folder) = next.take()?;
            if !folder.is_empty() {
                let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
                next = Some((format!("../{up}"), above.to_owned()));
            }
            Some((up, Below { files, folder }))
        })
    }
}

impl Manifests for Below<'_> {
    fn read(&self, path: &str) -> Option<String> {
        self.files.read(&joined(&self.folder, path))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.files.names(&joined(&self.folder, folder))
    }

    fn folders(&self, folder: &str) -> Vec<String> {
        self.files.folders(&joined(&self.folder, folder))
    }
}

/// Finds how tests are run: the configured way, else one runner for each language that has tests to offer. Those of the
/// root come first, then those of folders by name. A language that the root has a runner for is not looked for below:
/// workspaces have manifests in many folders, and the runner of the root runs them all.
///
/// # Errors
/// When there are too many to be found or run.
pub fn discover(configured: Option<&str>, files: &dyn Manifests) -> Result<Vec<Runner>, DiscoverError> {
    if let Some(line) = configured.map(str::trim).filter(|line| !line.is_empty()) {
        return Ok(vec![knowing(Runner::configured(kind_of_line(line), line), files)]);
    }
    let mut found = Vec::new();
    let mut folders_seen = 0;
    let mut waiting = vec![(Below { files, folder: String::new() }, Vec::new(), LEVELS)];
    // A stack, filled backwards: folders come in the order of their names, each before those below it.
    while let Some((below, covered, levels)) = waiting.pop() {
        let own = runners_of(&below, &covered);
        let covered: Vec<Language> = own.iter().map(|runner| runner.kind.language()).chain(covered).collect();
        found.extend(own);
        if found.len() > MAX_RUNNERS {
            return Err(DiscoverError::TooManyRunners);
        }
        if levels == 0 || covered.len() == LANGUAGES {
            continue;
        }
        let mut names = below.folders("");
        names.retain(|name| !name.starts_with('.') && !OTHERS.contains(&name.to_ascii_lowercase().as_str()));
        names.sort_unstable_by(|one, other| other.cmp(one));
        folders_seen += names.len();
        if folders_seen > MAX_FOLDERS {
            return Err(DiscoverError::TooManyFolders);
        }
        waiting.extend(names.iter().map(|name| {
            let folder = joined(&below.folder, name);
            (Below { files, folder }, covered.clone(), levels - 1)
        }));
    }
    if found.is_empty() {
        let root = Below { files, folder: String::new() };
        found.extend(plain_python(&root).or_else(|| plain_node(&root)).map(|runner| checked(runner, &root)));
    }
    Ok(found)
}

/// The first of the project's runners.
#[must_use]
pub fn detect(configured: Option<&str>, files: &dyn Manifests) -> Option<Runner> {
    discover(configured, files).ok()?.into_iter().next()
}

/// Finds the runner of one language in a folder.
type FindRunner = fn(&Below<'_>) -> Option<Runner>;

/// Languages that are looked for.
const LANGUAGES: usize = 4;

/// The runners of one folder, in the order in which they run.
fn runners_of(below: &Below<'_>, covered: &[Language]) -> Vec<Runner> {
    let search: [(Language, FindRunner); LANGUAGES] = [
        (Language::Rust, |files| cargo(files)),
        (Language::JavaScript, node),
        (Language::Python, python),
        (Language::Go, |files| go(files)),
    ];
    let wanted = search.into_iter().filter(|(language, _)| !covered.contains(language));
    wanted.filter_map(|(_, find)| find(below)).map(|runner| checked(runner, below)).collect()
}

/// With what the folder says of it.
fn checked(runner: Runner, below: &Below<'_>) -> Runner {
    let runner = match replaced(runner.kind, below) {
        Some(why) => runner.distrusting(RunnerProblem::new(why, SET_THE_COMMAND)),
        None => runner,
    };
    knowing(runner.within(&below.folder), below)
}

fn knowing(runner: Runner, files: &dyn Manifests) -> Runner {
    runner.knowing(go_module(files), is_single_package(files))
}

/// The words of a command line, whatever is between them.
pub(super) fn words(line: &str) -> Vec<&str> {
    line.split(|letter: char| letter.is_whitespace() || ";&|()\"'".contains(letter)).collect()
}

/// The runner that a command line names.
pub(super) fn kind_of_line(line: &str) -> RunnerKind {
    let words = words(line);
    let has = |name: &str| words.iter().any(|word| word.rsplit('/').next() == Some(name));
    let pair = |first: &str, second: &str| {
        words.windows(2).any(|pair| match pair {
            [one, two] => one.rsplit('/').next() == Some(first) && *two == second,
            _ => false,
        })
    };
    if pair("cargo", "test") {
        RunnerKind::Cargo
    } else if has("vitest") {
        RunnerKind::Vitest
    } else if has("jest") {
        RunnerKind::Jest
    } else if has("mocha") {
        RunnerKind::Mocha
    } else if has("node") && words.contains(&"--test") {
        RunnerKind::NodeTest
    } else if has("pytest") || has("py.test") {
        RunnerKind::Pytest
    } else if pair("-m", "unittest") {
        RunnerKind::Unittest
    } else if pair("go", "test") {
        RunnerKind::Go
    } else {
        RunnerKind::Other
    }
}

fn cargo(files: &dyn Manifests) -> Option<Runner> {
    manifest(files, "Cargo.toml")?;
    // All targets run, so that every failing file is known.
    Some(Runner::new(RunnerKind::Cargo, "cargo test --offline --no-fail-fast --color=never"))
}

fn is_single_package(files: &dyn Manifests) -> bool {
    manifest(files, "Cargo.toml").is_some_and(|text| {
        let has = |beginning: &str| text.lines().any(|line| line.trim().starts_with(beginning));
        has("[package]") && !has("members")
    })
}

/// Files of the project that take the place of a runner, or of what the runner starts.
fn replaced(kind: RunnerKind, files: &Below<'_>) -> Option<String> {
    let stands_in = |modules: &[&str]| {
        let all = files.names("");
        // Python also loads compiled modules and libraries, `pytest.pyc` and `pytest.cpython-311-x86_64-linux-gnu.so`.
        let is_module = |own: &&String| {
            let (name, rest) = own.split_once('.').unwrap_or((own.as_str(), "py"));
            let ending = rest.rsplit('.').next().unwrap_or(rest);
            modules.contains(&name) && ["py", "pyc", "pyo", "pyd", "so"].contains(&ending)
        };
        let found = all.iter().find(is_module).cloned().or_else(|| {
            let names = modules.iter().map(|module| format!("{module}.py"));
            names.into_iter().find(|name| manifest(files, name).is_some())
        });
        found.map(|name| format!("`{name}` in the project takes the place of the runner of the same name"))
    };
    match kind {
        // Cargo reads the settings of every folder above as well.
        RunnerKind::Cargo => files.upwards().find_map(|(_, above)| cargo_settings(&above)),
        RunnerKind::Pytest => stands_in(&["pytest", "_pytest", "pluggy"]),
        RunnerKind::Unittest => stands_in(&["unittest"]),
        _ => None,
    }
}

/// A file that lets cargo run another program.
fn cargo_settings(files: &Below<'_>) -> Option<String> {
    let settings = [".cargo/config.toml", ".cargo/config"];
    let keys = ["runner", "rustc", "rustdoc", "linker", "target-applies-to-host"];
    let own = settings.iter().find(|path| {
        manifest(files, path).is_some_and(|text| {
            text.lines().filter_map(|line| line.split_once('=')).any(|(key, _)| {
                let key = key.trim().trim_matches(['"', '\'']);
                keys.iter()
                    .any(|own| key == *own || key.ends_with(&format!(".{own}")) || key.starts_with("rustc-"))
            })
        })
    });
    let toolchain = ["rust-toolchain.toml", "rust-toolchain"].into_iter().find(|path| {
        manifest(files, path).is_some_and(|text| {
            text.lines().any(|line| line.split('=').next().is_some_and(|key| key.trim() == "path"))
        })
    });
    own.copied().or(toolchain).map(|path| {
        let path = joined(files.folder(), path);
        format!("`{path}` lets cargo run another program than the tests or the compiler")
    })
}

fn go(files: &dyn Manifests) -> Option<Runner> {
    manifest(files, "go.mod")?;
    Some(Runner::new(RunnerKind::Go, "go test -v ./..."))
}

fn go_module(files: &dyn Manifests) -> Option<String> {
    let text = manifest(files, "go.mod")?;
    let name = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
    Some(name.split("//").next().unwrap_or(name).trim().trim_matches('"').to_owned())
}
