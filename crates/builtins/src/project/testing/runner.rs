//! A command that runs tests of a project: how it is called, where, and what it writes.

use std::fmt;

use serde::Serialize;

/// A larger manifest is not read: it was not written by hand.
const MAX_MANIFEST_BYTES: usize = 1024 * 1024;

/// What helps where nothing that a manifest lets run can decide.
pub(crate) const SET_THE_COMMAND: &str =
    "set `tdd.command` in the configuration to the command that runs the tests";

/// Where jest keeps transformed sources: the place of caches in the jail.
const JEST_CACHE: &str = "--cacheDirectory=/tmp/cache/jest";

/// What is read of a project. Paths are relative to its root.
pub trait Manifests {
    /// The text of a file, when it is there and is text.
    fn read(&self, path: &str) -> Option<String>;

    /// The names in a folder. Without them only manifests are read, and no test files.
    fn names(&self, _folder: &str) -> Vec<String> {
        Vec::new()
    }

    /// The names of the folders in a folder, links left out.
    fn folders(&self, folder: &str) -> Vec<String> {
        let names = self.names(folder).into_iter();
        names.filter(|name| !self.names(&joined(folder, name)).is_empty()).collect()
    }
}

impl<F: Fn(&str) -> Option<String>> Manifests for F {
    fn read(&self, path: &str) -> Option<String> {
        self(path)
    }
}

/// A path below a folder, where the empty folder is the root.
pub(crate) fn joined(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, path) => format!("{folder}/{path}"),
    }
}

/// The text of a manifest, unless it is too large to be one.
pub(super) fn manifest(files: &dyn Manifests, path: &str) -> Option<String> {
    files.read(path).filter(|text| text.len() <= MAX_MANIFEST_BYTES)
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

    /// What its tests are written in. What npm runs is taken for JavaScript.
    pub(super) fn language(self) -> Language {
        match self {
            Self::Cargo => Language::Rust,
            Self::Vitest | Self::Jest | Self::Mocha | Self::NodeTest | Self::Other => Language::JavaScript,
            Self::Pytest | Self::Unittest => Language::Python,
            Self::Go => Language::Go,
        }
    }
}

/// Languages that have runners of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    JavaScript,
    Python,
    Go,
}

/// How a run may use the project's cache, see `docs/jail.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheUse {
    /// It has nothing to keep.
    None,
    /// It is read only. The command fills it beforehand and executes no code of the project.
    Filled { by: String },
    /// The run itself writes it.
    Kept,
}

/// How tests of a project are run, from one of its folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    pub kind: RunnerKind,
    /// For `sh -c`.
    line: String,
    /// Where it runs, relative to the project; empty for its root.
    folder: String,
    /// Whether arguments for the runner have to pass npm first.
    is_npm: bool,
    /// Whether a person has chosen the command; any other is in a manifest that an agent may write.
    is_configured: bool,
    /// Why nothing that the command prints may decide what a run means: what runs is not the runner itself.
    distrusted: Option<RunnerProblem>,
    /// Why it cannot run at all.
    unavailable: Option<RunnerProblem>,
    pub(super) root: Option<String>,
    /// The module's name in `go.mod`, which is needed to find a package's folder.
    pub(super) go_module: Option<String>,
    /// Whether the root is cargo's only package, so that its targets are named from the root.
    pub(super) is_single_package: bool,
}

/// Why a runner cannot run, or why no run of it decides anything, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerProblem {
    pub problem: String,
    pub help: String,
}

impl RunnerProblem {
    pub(super) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }
}

impl fmt::Display for RunnerProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.problem, self.help)
    }
}

impl Runner {
    pub(super) fn new(kind: RunnerKind, line: impl Into<String>) -> Self {
        let line = line.into();
        Self {
            kind,
            line,
            folder: String::new(),
            is_npm: false,
            is_configured: false,
            distrusted: None,
            unavailable: None,
            root: None,
            go_module: None,
            is_single_package: false,
        }
    }

    pub(super) fn configured(kind: RunnerKind, line: &str) -> Self {
        Self { is_configured: true, ..Self::new(kind, line) }
    }

    /// The test script of a package, whatever it runs.
    pub(super) fn by_npm() -> Self {
        Self { is_npm: true, ..Self::new(RunnerKind::Other, "npm test --silent") }
    }

    /// Adds what a reader needs to know of the manifests.
    pub(super) fn knowing(self, go_module: Option<String>, is_single_package: bool) -> Self {
        Self { go_module, is_single_package, ..self }
    }

    pub(super) fn within(self, folder: &str) -> Self {
        Self { folder: folder.to_owned(), ..self }
    }

    /// The same, but what it prints is believed in nothing.
    pub(super) fn distrusting(self, why: RunnerProblem) -> Self {
        Self { distrusted: Some(why), ..self }
    }

    pub(super) fn lacking(self, unavailable: Option<RunnerProblem>) -> Self {
        Self { unavailable, ..self }
    }

    /// Why its output decides nothing, where it does not. A command that a person has chosen always decides.
    #[must_use]
    pub fn distrusted(&self) -> Option<&RunnerProblem> {
        self.distrusted.as_ref().filter(|_| !self.is_configured)
    }

    /// Why it cannot run, where it cannot.
    #[must_use]
    pub fn unavailable(&self) -> Option<&RunnerProblem> {
        self.unavailable.as_ref()
    }

    /// The program of its command, as the command names it.
    pub(super) fn program(&self) -> &str {
        self.line.split_whitespace().next().unwrap_or_default()
    }

    /// The folder it runs in, relative to the project; empty for its root.
    #[must_use]
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Sets where the project is as its tests see it, so that absolute paths in their output can be
    /// recognised.
    #[must_use]
    pub fn at(self, project: &str) -> Self {
        let root = joined(project.trim_end_matches('/'), &self.folder);
        Self { root: Some(root), ..self }
    }

    /// Whether its exit code alone may decide what a run means.
    #[must_use]
    pub fn decides_by_exit_code(&self) -> bool {
        self.is_configured
    }

    /// What the tests are written in; unknown for a configured command, which may run anything.
    pub(super) fn language(&self) -> Option<Language> {
        (!self.is_configured).then(|| self.kind.language())
    }

    /// The command line for `sh -c` in the runner's folder; with `only`, of the tests of a file or with a name. A file is
    /// named from that folder.
    #[must_use]
    pub fn command(&self, only: Option<&str>) -> String {
        let line = self.whole_line();
        let Some(only) = only else { return line };
        if self.kind == RunnerKind::Go
            && let Some(line) = line.strip_suffix(" ./...")
            && let Some(package) = go_package(only)
        {
            // A package takes the place of all of them.
            return format!("{line} {}", quoted(&package));
        }
        let words = self.selecting(only);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let between = if self.is_npm { " -- " } else { " " };
        format!("{line}{between}{}", words.join(" "))
    }

    /// The same as a person reads it: with the folder.
    #[must_use]
    pub fn shown_command(&self, only: Option<&str>) -> String {
        let line = self.command(only);
        if self.folder.is_empty() { line } else { format!("cd {} && {line}", quoted(&self.folder)) }
    }

    fn whole_line(&self) -> String {
        if self.kind == RunnerKind::Jest && !self.is_configured && !self.line.contains("--cacheDirectory") {
            return format!("{} {JEST_CACHE}", self.line);
        }
        self.line.clone()
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
            RunnerKind::Pytest | RunnerKind::Unittest if !is_path => vec!["-k".to_owned(), only.to_owned()],
            // With `discover` a file is a pattern for the names in its folder.
            RunnerKind::Unittest if self.line.contains(" discover ") => {
                let name = only.rsplit('/').next().unwrap_or(only);
                vec!["-p".to_owned(), name.to_owned()]
            }
            _ => vec![only.to_owned()],
        }
    }

    /// Folders of the project that the run writes to in addition to its temporary ones.
    #[must_use]
    pub fn build_output(&self) -> Vec<String> {
        let own: &[&str] = match self.kind {
            RunnerKind::Cargo => &["target"],
            RunnerKind::Vitest => &["node_modules/.vite", "node_modules/.vite-temp"],
            _ => &[],
        };
        own.iter().map(|path| joined(&self.folder, path)).collect()
    }

    /// What of the project's cache the run gets.
    #[must_use]
    pub fn cache(&self) -> CacheUse {
        match self.kind {
            _ if self.is_configured => CacheUse::Kept,
            // `-exec` lets `true` run in the place of each test binary, so everything is compiled, checked and linked, and
            // no code of the project runs.
            RunnerKind::Go => {
                CacheUse::Filled { by: "go test -exec=/bin/true ./... >/dev/null 2>&1".to_owned() }
            }
            RunnerKind::Jest => CacheUse::Kept,
            _ => CacheUse::None,
        }
    }

    /// Variables that keep output plain and a run from waiting for input, and that say where caches are. Go reports a test
    /// of which the cache has a result without running it, unless it is told how often to run it.
    #[must_use]
    pub fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("CI", "1"),
            ("NO_COLOR", "1"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            // Compiled files of the project are not those of its sources: any call may write them.
            ("PYTHONPYCACHEPREFIX", "/tmp/pycache"),
            ("CARGO_TERM_COLOR", "never"),
            ("GOCACHE", "/tmp/cache/go"),
            // Go does not index files that are younger than two seconds. A run that has the cache read-only would try later.
            ("GODEBUG", "goindex=0"),
            ("GOFLAGS", "-count=1"),
            ("MYPY_CACHE_DIR", "/tmp/cache/mypy"),
        ]
    }

    /// What to do when the runner itself is not installed, by what it printed.
    #[must_use]
    pub fn not_installed(&self, stdout: &str, stderr: &str) -> Option<String> {
        let has = |end: &str| stdout.lines().chain(stderr.lines()).any(|line| line.trim_end().ends_with(end));
        let is_missing = |program: &str| {
            // As dash and bash report it, with or without the path of the program.
            ["not found", "command not found", "No such file or directory"]
                .iter()
                .any(|why| has(&format!("{program}: {why}")))
        };
        let problem = match self.kind {
            RunnerKind::Pytest if has("No module named pytest") => self.lacks_pytest(),
            RunnerKind::Vitest if is_missing("vitest") => lacks_package("vitest", self.folder()),
            RunnerKind::Jest if is_missing("jest") => lacks_package("jest", self.folder()),
            RunnerKind::Mocha if is_missing("mocha") => lacks_package("mocha", self.folder()),
            _ if !self.program().is_empty() && is_missing(self.program()) => lacks_program(self.program()),
            _ => return None,
        };
        Some(problem.to_string())
    }

    /// The interpreter of the project's environment has no pytest.
    pub(super) fn lacks_pytest(&self) -> RunnerProblem {
        RunnerProblem::new(
            format!("pytest is not installed for `{}`", self.program()),
            "call `package_install` with {\"manager\": \"pip\", \"packages\": [\"pytest\"], \"dev\": true}, or ask the user to \
             install it in `.venv` of the project",
        )
    }
}

/// The packages of a folder are not installed, as in a fresh clone.
pub(super) fn lacks_package(name: &str, folder: &str) -> RunnerProblem {
    let place = joined(folder, "node_modules");
    RunnerProblem::new(
        format!("{name} is not installed in `{place}`"),
        format!(
            "install what `{}` names: call `package_install` without packages, or ask the user to run `npm install`",
            joined(folder, "package.json")
        ),
    )
}

/// A program is not on this machine, or not where commands can see it.
pub(super) fn lacks_program(program: &str) -> RunnerProblem {
    RunnerProblem::new(
        format!("`{program}` is not installed where commands can see it"),
        "ask the user to install it for the whole system, or to add its directory to `jail.readable` in the \
         configuration",
    )
}

/// The package of Go that `only` names: `./pkg`, or the folder of a test file.
fn go_package(only: &str) -> Option<String> {
    if only.starts_with("./") && !only.ends_with(".go") {
        return Some(only.to_owned());
    }
    let path = only.strip_prefix("./").unwrap_or(only);
    path.ends_with(".go").then(|| match path.rsplit_once('/') {
        Some((folder, _)) => format!("./{folder}"),
        None => ".".to_owned(),
    })
}

pub(super) fn is_script(name: &str) -> bool {
    [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"].iter().any(|end| name.ends_with(end))
}

/// One word for a shell, whatever it holds.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
