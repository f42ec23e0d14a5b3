//! What a run of tests said: how many passed and failed, and which.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::RelativePath;

use super::parsers::{cargo, go, javascript, python};
use super::runner::{Runner, RunnerKind, joined};
use super::text::without_colours;

/// Failing tests that are named; the number of all is kept beside them.
const MAX_FAILING: usize = 1_000;

/// A longer name is cut.
const MAX_NAME_BYTES: usize = 512;

/// A test that failed, or a file that could not be compiled or loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Failing {
    pub name: String,
    /// The test file, when the output says it.
    pub file: Option<RelativePath>,
}

/// How a run went. A number that the output does not contain is `None`; then only the exit code can be
/// believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub passed: Option<u64>,
    /// Tests that failed, and files that could not be compiled or loaded.
    pub failed: Option<u64>,
    pub skipped: Option<u64>,
    pub failing: Vec<Failing>,
    /// Whether the output had anything that only a known runner prints.
    pub is_understood: bool,
}

impl Counts {
    /// The files in which something failed, without repeats; `None` when not every one is known.
    #[must_use]
    pub fn failing_files(&self) -> Option<Vec<RelativePath>> {
        if self.failed.is_none_or(|failed| (self.failing.len() as u64) < failed) {
            return None;
        }
        let mut files = self.failing.iter().map(|one| one.file.clone()).collect::<Option<Vec<_>>>()?;
        files.sort();
        files.dedup();
        Some(files)
    }

    /// What of these may decide the state of the work: passed and failed. Of a command that the user has not configured
    /// only counted tests are believed, and only those of a runner that was run itself: the author of a manifest
    /// chooses its exit code and what its scripts print.
    #[must_use]
    pub fn evidence(&self, runner: &Runner) -> (Option<u64>, Option<u64>) {
        if runner.distrusted().is_some() {
            // As if no test had run.
            return (Some(0), Some(0));
        }
        if runner.decides_by_exit_code() {
            (self.passed, self.failed)
        } else {
            (Some(self.passed.unwrap_or(0)), Some(self.failed.unwrap_or(0)))
        }
    }

    /// Whether no number of tests could be read.
    #[must_use]
    pub fn are_unknown(&self) -> bool {
        self.passed.is_none()
    }
}

/// What a run printed, without colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output<'a> {
    /// The project's folder as the run saw it; absolute paths below it become relative.
    pub root: Option<&'a str>,
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// Reads what a run printed. A known runner of which nothing can be read has passed no test and failed none; of an
/// unknown one nothing is known.
#[must_use]
pub fn read_counts(runner: &Runner, exit_code: Option<i32>, stdout: &str, stderr: &str) -> Counts {
    let (stdout, stderr) = (without_colours(stdout), without_colours(stderr));
    let output = Output { root: runner.root.as_deref(), stdout: &stdout, stderr: &stderr };
    let kinds: &[RunnerKind] = match runner.kind {
        // A script may well end in one of the runners that are known.
        RunnerKind::Other => &RunnerKind::KNOWN,
        ref one => std::slice::from_ref(one),
    };
    let found = kinds.iter().map(|kind| read_as(*kind, runner, &output)).find(|tally| tally.is_understood);
    let mut counts = match (found, runner.kind) {
        (Some(tally), _) => tally.counts(exit_code),
        (None, RunnerKind::Other) => Counts::default(),
        (None, _) => Tally::default().counts(exit_code),
    };
    // A runner names files from its own folder.
    for failing in counts.failing.iter_mut().filter(|_| !runner.folder().is_empty()) {
        let file = failing.file.take();
        failing.file = file.and_then(|file| RelativePath::new(&joined(runner.folder(), file.as_str())).ok());
    }
    counts
}

fn read_as(kind: RunnerKind, runner: &Runner, output: &Output<'_>) -> Tally {
    match kind {
        RunnerKind::Cargo => cargo::read(output, runner.is_single_package),
        RunnerKind::Vitest => javascript::read_vitest(output),
        RunnerKind::Jest => javascript::read_jest(output),
        RunnerKind::Mocha => javascript::read_mocha(output),
        RunnerKind::NodeTest => javascript::read_node(output),
        RunnerKind::Pytest => python::read_pytest(output),
        RunnerKind::Unittest => python::read_unittest(output),
        RunnerKind::Go => go::read(output, runner.go_module.as_deref()),
        RunnerKind::Other => Tally::default(),
    }
}

/// Counts while they are being read.
#[derive(Debug, Default)]
pub(super) struct Tally {
    passed: u64,
    failed: u64,
    broken: u64,
    skipped: u64,
    failing: Vec<Failing>,
    seen: HashSet<Failing>,
    /// Whether the output had anything that only this runner prints.
    pub is_understood: bool,
    /// Whether tests ran that the runner did not count.
    pub has_uncounted: bool,
}

impl Tally {
    /// Names a failing test once. Does not count it.
    pub fn name(&mut self, name: &str, file: Option<RelativePath>) {
        let name = tgp_text::head(name, MAX_NAME_BYTES).to_owned();
        let failing = Failing { name, file };
        if self.failing.len() < MAX_FAILING && self.seen.insert(failing.clone()) {
            self.failing.push(failing);
        }
    }

    /// Names and counts a file that could not be compiled or loaded. Runners do not count it, or not among the tests.
    pub fn broken(&mut self, name: &str, file: Option<RelativePath>) {
        let before = self.failing.len();
        self.name(name, file);
        if self.failing.len() > before {
            self.broken = self.broken.saturating_add(1);
        }
    }

    pub fn has_broken(&self) -> bool {
        self.broken > 0
    }

    pub fn passed(&mut self, number: u64) {
        self.passed = self.passed.saturating_add(number);
    }

    pub fn failed(&mut self, number: u64) {
        self.failed = self.failed.saturating_add(number);
    }

    pub fn skipped(&mut self, number: u64) {
        self.skipped = self.skipped.saturating_add(number);
    }

    /// A run that ended well has no broken file: then a test has only printed something that looks like one.
    fn counts(self, exit_code: Option<i32>) -> Counts {
        let broken = if exit_code == Some(0) { 0 } else { self.broken };
        let failed = self.failed.saturating_add(broken);
        Counts {
            passed: (!self.has_uncounted || self.passed > 0).then_some(self.passed),
            failed: Some(failed),
            skipped: Some(self.skipped),
            failing: if failed == 0 { Vec::new() } else { self.failing },
            is_understood: self.is_understood,
        }
    }
}
