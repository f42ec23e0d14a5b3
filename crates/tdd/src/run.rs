//! A run of tests as it is reported, and its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{RelativePath, TddState};

use crate::{Scope, SourceSnapshot};

/// What a shell says when a command could not be executed or was not found: then no test has run.
const NOT_STARTED: [i32; 2] = [126, 127];

/// How much of the suite a run was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// All tests of the scope. Only such a run can make it green.
    Whole,
    /// Some of them. It can show that a test fails, where the failing files are known, never that all pass.
    Part,
}

/// A run of tests, as it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    pub scope: Scope,
    pub command: String,
    pub selection: Selection,
    /// `None` when it did not end by itself: killed, or out of time.
    pub exit_code: Option<i32>,
    /// `None` when the output has no readable numbers; then the exit code alone decides.
    pub passed: Option<u64>,
    /// As `passed`. A test file that does not compile counts as one that failed.
    pub failed: Option<u64>,
    /// The test files in which something failed; `None` when not all of them are known.
    pub failing_files: Option<Vec<RelativePath>>,
    /// Test and code files just before the run, and just after it.
    pub before: SourceSnapshot,
    pub after: SourceSnapshot,
    /// Milliseconds since the epoch.
    pub started_ms: u64,
    pub duration_ms: u64,
}

/// What a run says of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// Some test ran, and none failed.
    Passed,
    /// A test failed.
    Failed,
    /// No test ran, the runner itself failed, its words contradict each other, or it is unknown which of some tests
    /// failed.
    Inconclusive,
    /// Files changed while it ran, so it is unknown which files it saw.
    Stale,
}

impl TestOutcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::Stale => "stale",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Passed, Self::Failed, Self::Inconclusive, Self::Stale]
            .into_iter()
            .find(|outcome| outcome.as_str() == word)
    }
}

impl TestRun {
    /// What the run says, whatever the machine makes of it.
    #[must_use]
    pub fn outcome(&self) -> TestOutcome {
        if self.before != self.after {
            return TestOutcome::Stale;
        }
        if self.before.is_empty() {
            return TestOutcome::Inconclusive;
        }
        match (self.exit_code, self.passed, self.failed) {
            (Some(0), None | Some(1..), None | Some(0)) => TestOutcome::Passed,
            // A filter may have matched nothing: then it is unknown whether the new test was among what
            // failed.
            (Some(code), _, _) if code != 0 && self.is_unknown_part() => TestOutcome::Inconclusive,
            (Some(code), _, None) if code != 0 && !NOT_STARTED.contains(&code) => TestOutcome::Failed,
            (Some(code), _, Some(1..)) if code != 0 => TestOutcome::Failed,
            _ => TestOutcome::Inconclusive,
        }
    }

    /// Whether some tests were asked for, and nothing says in which files they failed.
    fn is_unknown_part(&self) -> bool {
        self.selection == Selection::Part && self.failing_files.as_ref().is_none_or(Vec::is_empty)
    }
}

/// What the machine made of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    pub outcome: TestOutcome,
    pub state_before: TddState,
    pub state_after: TddState,
    /// A sentence that says why the state is what it is now, and what to do next.
    pub why: String,
}

/// A run as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRun {
    /// Counts up over all scopes of a store.
    pub id: i64,
    pub scope: Scope,
    pub command: String,
    pub selection: Selection,
    pub exit_code: Option<i32>,
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    pub outcome: TestOutcome,
    pub state_before: TddState,
    pub state_after: TddState,
    /// SHA-256 of the canonical JSON of the files before the run.
    pub fingerprint: String,
    pub started_ms: u64,
    pub duration_ms: u64,
}
