//! Which command runs the tests of a project, found in its manifests.

use serde::Serialize;
use serde_json::Value;

/// A larger manifest is not read: it was not written by hand.
const MAX_MANIFEST_BYTES: usize = 1024 * 1024;

/// Node's own runner with the reporter that is read.
const NODE_TEST: &str = "node --test --test-reporter=tap";

/// What is read of a project. Paths are relative to its root.
pub trait Manifests {
    /// The text of a file, when it is there and is text.
    fn read(&self, path: &str) -> Option<String>;

    /// The names in a folder. Without them only manifests are read, and no test files.
    fn names(&self, _folder: &str) -> Vec<String> {
        Vec::new()
    }
}

impl<F: Fn(&str) -> Option<String>> Manifests for F {
    fn read(&self, path: &str) -> Option<String> {
        self(path)
    }
}

/// Whose output it will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    Cargo,
    Vitest,
    Jest,
    Mocha,
    NodeTest,
    Pytest,
    Unittest,
    Go,
    /// Some other command; its exit code counts where it is configured, unless it prints what one of the others would.
    Other,
}

impl RunnerKind {
    /// Those whose output is understood. Where one's words could be another's, the stricter reader comes first.
    pub(super) const KNOWN: [Self; 8] = [
        Self::Cargo,
        Self::Pytest,
        Self::Vitest,
        Self::Jest,
        Self::NodeTest,
        Self::Mocha,
        Self::Go,
        Self::Unittest,
    ];
}

/// How all tests of a project are run, from its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    pub kind: RunnerKind,
    /// For `sh -c`.
    line: String,
    /// Whether arguments for the runner have to pass npm first.
    is_npm: bool,
    /// Whether a person has chosen the command; any other is in a manifest that an agent may write.
    is_configured: bool,
    /// Why nothing that the command prints may decide what a run means: what runs is not the runner itself.
    distrusted: Option<String>,
    pub(super) root: Option<String>,
    /// The module's name in `go.mod`, which is needed to find a package's folder.
    pub(super) go_module: Option<String>,
    /// Whether the root is cargo's only package, so that its targets are named from the root.
    pub(super) is_single_package: bool,
}

impl Runner {
    fn new(kind: RunnerKind, line: impl Into<String>) -> Self {
        let line = line.into();
        Self {
            kind,
            line,
            is_npm: false,
            is_configured: false,
            distrusted: None,
            root: None,
            go_module: None,
            is_single_package: false,
        }
    }

    /// The same, but what it prints is believed in nothing.
    fn distrusting(self, why: impl Into<String>) -> Self {
        Self { distrusted: Some(why.into()), ..self }
    }

    /// Why its output decides nothing, where it does not. A command that a person has chosen always decides.
    #[must_use]
    pub fn distrusted(&self) -> Option<&str> {
        self.distrusted.as_deref().filter(|_| !self.is_configured)
    }

    /// Adds what a reader needs to know of the manifests.
    fn knowing(self, files: &dyn Manifests) -> Self {
        Self { go_module: go_module(files), is_single_package: is_single_package(files), ..self }
    }

    /// Sets where the project is as its tests see it, so that absolute paths in their output can be
    /// recognised.
    #[must_use]
    pub fn at(self, root: impl Into<String>) -> Self {
        Self { root: Some(root.into()), ..self }
    }

    /// Whether its exit code alone may decide what a run means.
    #[must_use]
    pub fn decides_by_exit_code(&self) -> bool {
        self.is_configured
    }

    /// The command line for `sh -c`; with `only`, of the tests of a file or with a name.
    #[must_use]
    pub fn command(&self, only: Option<&str>) -> String {
        let Some(only) = only else { return self.line.clone() };
        let words = self.selecting(only);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let between = if self.is_npm { " -- " } else { " " };
        match self.line.strip_suffix(" ./...") {
            // A package takes the place of all of them.
            Some(line) if self.kind == RunnerKind::Go && only.starts_with("./") => {
                format!("{line} {}", quoted(only))
            }
            _ => format!("{}{between}{}", self.line, words.join(" ")),
        }
    }

    fn selecting(&self, only: &str) -> Vec<String> {
        let is_path = only.contains('/') || only.contains("::") || only.ends_with(".py") || is_script(only);
        let by_name = |option: &str| vec![format!("{option}={only}")];
        let test_target = only
            .strip_prefix("tests/")
            .and_then(|file| file.strip_suffix(".rs"))
            // cargo would take it for an option.
            .filter(|target| !target.starts_with('-'));
        match self.kind {
            RunnerKind::Cargo => match test_target {
                Some(target) => vec!["--test".to_owned(), target.trim_end_matches("/main").to_owned()],
                None => vec!["--".to_owned(), only.to_owned()],
            },
            RunnerKind::Go => vec![format!("-run={only}")],
            RunnerKind::Vitest | RunnerKind::Jest if !is_path => by_name("--testNamePattern"),
            RunnerKind::Mocha if !is_path => by_name("--fgrep"),
            RunnerKind::NodeTest if !is_path => by_name("--test-name-pattern"),
            RunnerKind::Pytest if !is_path => vec!["-k".to_owned(), only.to_owned()],
            _ => vec![only.to_owned()],
        }
    }

    /// Folders that the run writes to in addition to its temporary ones.
    #[must_use]
    pub fn build_output(&self) -> &'static [&'static str] {
        match self.kind {
            RunnerKind::Cargo => &["target"],
            RunnerKind::Vitest => &["node_modules/.vite", "node_modules/.vite-temp"],
            _ => &[],
        }
    }

    /// Variables that keep output plain and a run from waiting for input.
    #[must_use]
    pub fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[("CI", "1"), ("NO_COLOR", "1"), ("PYTHONDONTWRITEBYTECODE", "1"), ("CARGO_TERM_COLOR", "never")]
    }
}

fn is_script(name: &str) -> bool {
    [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"].iter().any(|end| name.ends_with(end))
}

/// One word for a shell, whatever it holds.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Finds how tests are run: the configured way, else that of the first manifest which has tests to offer.
#[must_use]
pub fn detect(configured: Option<&str>, files: &dyn Manifests) -> Option<Runner> {
    let found = match configured.map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => Runner { is_configured: true, ..Runner::new(kind_of_line(line), line) },
        None => {
            let found = cargo(files)
                .or_else(|| node(files))
                .or_else(|| python(files))
                .or_else(|| go(files))
                .or_else(|| plain_node(files))?;
            match replaced(found.kind, files) {
                Some(why) => found.distrusting(why),
                None => found,
            }
        }
    };
    Some(found.knowing(files))
}

/// The words of a command line, whatever is between them.
pub(super) fn words(line: &str) -> Vec<&str> {
    line.split(|letter: char| letter.is_whitespace() || ";&|()\"'".contains(letter)).collect()
}

/// The runner that a command line names.
fn kind_of_line(line: &str) -> RunnerKind {
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

fn manifest(files: &dyn Manifests, path: &str) -> Option<String> {
    files.read(path).filter(|text| text.len() <= MAX_MANIFEST_BYTES)
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

pub(super) fn package_json(files: &dyn Manifests) -> Option<Value> {
    serde_json::from_str(&manifest(files, "package.json")?).ok()
}

/// The test script of a package, or a runner that it depends on though no script calls it.
fn node(files: &dyn Manifests) -> Option<Runner> {
    let package = package_json(files)?;
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default().trim();
    // What `npm init` writes into every new package is not a test.
    if script.is_empty() || script.contains("no test specified") {
        let depends_on = |name: &str| {
            ["devDependencies", "dependencies"]
                .iter()
                .any(|kind| package.get(kind).and_then(|list| list.get(name)).is_some())
        };
        return [(RunnerKind::Vitest, "vitest"), (RunnerKind::Jest, "jest"), (RunnerKind::Mocha, "mocha")]
            .into_iter()
            .find(|(_, name)| depends_on(name) && is_installed(name, files))
            .and_then(|(kind, name)| plain_call(kind, name, files));
    }
    // The runner that the script names is run itself: whatever else a script does, it could print the runner's words.
    if let Some(runner) = plain_call(kind_of_line(script), script, files) {
        return Some(runner);
    }
    let why = format!(
        "the test script of package.json (`{}`) is not a plain call of an installed runner, and its author can let it \
         print anything",
        tgp_text::truncate_bytes(script, MAX_SHOWN_BYTES)
    );
    let by_npm = Runner { is_npm: true, ..Runner::new(RunnerKind::Other, "npm test --silent") };
    Some(by_npm.distrusting(why))
}

fn is_installed(package: &str, files: &dyn Manifests) -> bool {
    manifest(files, &format!("node_modules/{package}/package.json")).is_some()
}

/// Options with which a script could let something else print than the runner.
const UNTRUSTED_OPTIONS: [&str; 22] = [
    "--reporter",
    "--reporters",
    "-R",
    "--test-reporter",
    "--test-reporter-destination",
    "--config",
    "-c",
    "--require",
    "-r",
    "--import",
    "--loader",
    "--experimental-loader",
    "--globalSetup",
    "--globalTeardown",
    "--setupFiles",
    "--testRunner",
    "--runner",
    "--json",
    "--outputFile",
    "--ui",
    "--eval",
    "--package",
];

fn is_trusted(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    // `-r./x` is the same as `-r ./x`.
    let is_short = !word.starts_with("--") && ["-R", "-c", "-r"].iter().any(|short| word.starts_with(short));
    !is_short && !UNTRUSTED_OPTIONS.contains(&name)
}

/// Takes `--import PACKAGE` away from behind `node`: a loader such as `tsx`, which TypeScript needs. Only installed packages
/// count, since no agent can write those; a file of the project could print anything.
fn take_loaders(words: &mut Vec<&str>, files: &dyn Manifests) -> String {
    let mut taken = String::new();
    while let [_, "--import", package, ..] = words[..] {
        let is_name = package.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@/-_".contains(&byte));
        if !is_name || package.starts_with('/') || !is_installed(package, files) {
            break;
        }
        taken.push_str(" --import ");
        taken.push_str(package);
        words.drain(1..3);
    }
    taken
}

/// A script that is nothing but a call of an installed runner, for one run: vitest would wait for changes.
fn plain_call(kind: RunnerKind, script: &str, files: &dyn Manifests) -> Option<Runner> {
    let mut words: Vec<&str> = script.split_whitespace().collect();
    let loaders = if kind == RunnerKind::NodeTest { take_loaders(&mut words, files) } else { String::new() };
    let is_plain = words.iter().all(|word| quoted(word) == *word && is_trusted(word));
    if !is_plain {
        return None;
    }
    let program = match kind {
        RunnerKind::Vitest => "vitest",
        RunnerKind::Jest => "jest",
        RunnerKind::Mocha => "mocha",
        RunnerKind::NodeTest => {
            let rest = words.strip_prefix(&["node", "--test"])?;
            let call = NODE_TEST.replacen("node", &format!("node{loaders}"), 1);
            let line =
                std::iter::once(call.as_str()).chain(rest.iter().copied()).collect::<Vec<_>>().join(" ");
            return Some(Runner::new(kind, line));
        }
        _ => return None,
    };
    let own = words.first()?.trim_start_matches("./").trim_start_matches("node_modules/.bin/");
    if own != program || !is_installed(program, files) {
        return None;
    }
    words.remove(0);
    if kind == RunnerKind::Vitest
        && !words.iter().any(|word| matches!(*word, "run" | "--run" | "--watch=false"))
    {
        words.retain(|word| !matches!(*word, "watch" | "dev" | "--watch"));
        words.insert(0, "run");
    }
    // The reporter that is read, whatever a file of settings says.
    let reporter: &[&str] = match kind {
        RunnerKind::Vitest => &["--reporter=default"],
        RunnerKind::Jest => &["--reporters=default"],
        RunnerKind::Mocha => &["--reporter=spec"],
        _ => &[],
    };
    let program = format!("node_modules/.bin/{program}");
    let line: Vec<&str> =
        std::iter::once(program.as_str()).chain(words).chain(reporter.iter().copied()).collect();
    Some(Runner::new(kind, line.join(" ")))
}

/// Bytes of a script that a message shows.
const MAX_SHOWN_BYTES: usize = 120;

/// Files of the project that take the place of a runner, or of what the runner starts.
fn replaced(kind: RunnerKind, files: &dyn Manifests) -> Option<String> {
    let stands_in = |names: &[&str]| {
        let all = files.names("");
        let found =
            names.iter().find(|name| all.iter().any(|own| own == *name) || manifest(files, name).is_some());
        found.map(|name| format!("`{name}` in the project takes the place of the runner of the same name"))
    };
    match kind {
        RunnerKind::Cargo => {
            let settings = [".cargo/config.toml", ".cargo/config"];
            let keys = ["runner", "rustc", "rustdoc", "linker", "target-applies-to-host"];
            let own = settings.iter().find(|path| {
                manifest(files, path).is_some_and(|text| {
                    text.lines().filter_map(|line| line.split_once('=')).any(|(key, _)| {
                        let key = key.trim().trim_matches(['"', '\'']);
                        keys.iter().any(|own| {
                            key == *own || key.ends_with(&format!(".{own}")) || key.starts_with("rustc-")
                        })
                    })
                })
            });
            let toolchain = ["rust-toolchain.toml", "rust-toolchain"].into_iter().find(|path| {
                manifest(files, path).is_some_and(|text| {
                    text.lines().any(|line| line.split('=').next().is_some_and(|key| key.trim() == "path"))
                })
            });
            own.copied()
                .or(toolchain)
                .map(|path| format!("`{path}` lets cargo run another program than the tests or the compiler"))
        }
        RunnerKind::Pytest => stands_in(&["pytest.py", "pytest", "_pytest", "_pytest.py"]),
        RunnerKind::Unittest => stands_in(&["unittest.py", "unittest"]),
        _ => None,
    }
}

/// Node's own runner, which is always there.
fn plain_node(files: &dyn Manifests) -> Option<Runner> {
    package_json(files)?;
    Some(Runner::new(RunnerKind::NodeTest, NODE_TEST))
}

fn python(files: &dyn Manifests) -> Option<Runner> {
    // No cache is written into the project.
    let pytest = Runner::new(RunnerKind::Pytest, "python3 -m pytest -q -p no:cacheprovider");
    let settings = [
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "setup.py",
        "Pipfile",
        "requirements.txt",
        "requirements-dev.txt",
    ];
    let own = ["pytest.ini", "conftest.py", "tests/conftest.py"];
    let texts: Vec<String> = settings.iter().filter_map(|path| manifest(files, path)).collect();
    if own.iter().any(|path| manifest(files, path).is_some())
        || texts.iter().any(|text| text.contains("pytest"))
    {
        return Some(pytest);
    }
    let is_test =
        |name: &&String| name.starts_with("test") && name.ends_with(".py") || name.ends_with("_test.py");
    let first_test = ["tests", "test", ""]
        .iter()
        .find_map(|folder| files.names(folder).iter().find(is_test).map(|name| (*folder, name.clone())));
    let Some((folder, name)) = first_test else { return (!texts.is_empty()).then_some(pytest) };
    let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
    let source = manifest(files, &path).unwrap_or_default();
    if !source.contains("unittest") || source.contains("import pytest") {
        return Some(pytest);
    }
    let is_package = folder.is_empty() || files.names(folder).iter().any(|name| name == "__init__.py");
    let line = if is_package {
        "python3 -m unittest".to_owned()
    } else {
        format!("python3 -m unittest discover -s {folder}")
    };
    Some(Runner::new(RunnerKind::Unittest, line))
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
