//! Runs of which a filter has selected no test, by what they printed.

use super::counts::Counts;
use super::runner::{Runner, RunnerKind, RunnerProblem};

/// What pytest and unittest exit with when they have run no test.
const NO_TESTS_RUN: i32 = 5;

/// What runners print when a filter names no file or test of theirs.
const PHRASES: [&str; 7] = [
    // vitest and mocha
    "No test files found",
    // jest
    "No tests found",
    // pytest
    "no tests ran",
    "file or directory not found:",
    // cargo
    "no test target named",
    // node
    "Could not find '",
    // go
    "no test files",
];

/// Why a run with the filter `only` says nothing, where the filter has selected no test. This explains a run and decides
/// nothing: the words could be printed by a test.
#[must_use]
pub fn nothing_selected(
    runner: &Runner,
    only: &str,
    exit_code: Option<i32>,
    counts: &Counts,
    output: [&str; 2],
) -> Option<RunnerProblem> {
    let code = exit_code?;
    if counts.passed.unwrap_or(0) > 0 || counts.failed.unwrap_or(0) > 0 {
        return None;
    }
    let is_python = matches!(runner.kind, RunnerKind::Pytest | RunnerKind::Unittest);
    let is_said = || output.iter().any(|text| PHRASES.iter().any(|phrase| text.contains(phrase)));
    let is_nothing = (code == 0 && counts.is_understood) || (code == NO_TESTS_RUN && is_python) || is_said();
    is_nothing.then(|| {
        RunnerProblem::new(
            format!("no test matches `{only}`, so the run says nothing"),
            "name a test or a test file that exists, or leave `only` out to run all tests",
        )
    })
}
