//! What the runs of several runners mean together.

use tgp_contract::RelativePath;

use super::counts::{Counts, Failing};
use super::runner::{Runner, RunnerKind};

/// What pytest and unittest exit with when they have found no test.
const NO_TESTS_FOUND: i32 = 5;

/// The run of one runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerRun {
    pub runner: Runner,
    /// `None` when it did not end by itself, or was not started.
    pub exit_code: Option<i32>,
    pub counts: Counts,
}

/// What one run says about its tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Failed,
    /// Some passed, or it is certain that it has none.
    Passed,
    Unknown,
}

/// The runs of all runners as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CombinedRun {
    pub exit_code: Option<i32>,
    /// What may decide the state of the work, see [`Counts::evidence`].
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    /// The files in which something failed; `None` when not every one is known.
    pub failing_files: Option<Vec<RelativePath>>,
}

impl RunnerRun {
    fn verdict(&self) -> Verdict {
        let (passed, failed) = self.counts.evidence(&self.runner);
        let (passed, failed) = (passed.unwrap_or(0), failed.unwrap_or(0));
        let is_python = matches!(self.runner.kind, RunnerKind::Pytest | RunnerKind::Unittest);
        match self.exit_code {
            _ if self.runner.distrusted().is_some() => Verdict::Unknown,
            Some(0) if failed == 0 && (passed > 0 || self.counts.is_understood) => Verdict::Passed,
            Some(NO_TESTS_FOUND) if is_python && passed == 0 && failed == 0 => Verdict::Passed,
            Some(code) if code != 0 && failed > 0 => Verdict::Failed,
            _ => Verdict::Unknown,
        }
    }

    /// Whether nothing is known of its tests, so that the runs together cannot pass.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.verdict() == Verdict::Unknown
    }
}

/// Puts runs together: they have failed when one has failed, and passed when all have. When nothing is known of one, no
/// number of the others counts. A single run is taken as it is.
#[must_use]
pub fn combine(runs: &[RunnerRun]) -> CombinedRun {
    if let [only] = runs {
        let (passed, failed) = only.counts.evidence(&only.runner);
        let failing_files = only.counts.failing_files();
        return CombinedRun { exit_code: only.exit_code, passed, failed, failing_files };
    }
    let of = |wanted: Verdict| runs.iter().filter(move |run| run.verdict() == wanted);
    let sum = |number: fn(&Counts) -> Option<u64>| {
        let known = runs.iter().filter(|run| run.verdict() != Verdict::Unknown);
        Some(known.filter_map(|run| number(&run.counts)).fold(0, u64::saturating_add))
    };
    if let Some(first) = of(Verdict::Failed).next() {
        let files: Option<Vec<Vec<RelativePath>>> =
            of(Verdict::Failed).map(|run| run.counts.failing_files()).collect();
        let failing_files = files.map(|files| {
            let mut files = files.concat();
            files.sort();
            files.dedup();
            files
        });
        return CombinedRun {
            exit_code: first.exit_code,
            passed: sum(|counts| counts.passed),
            failed: sum(|counts| counts.failed),
            failing_files,
        };
    }
    if let Some(unknown) = of(Verdict::Unknown).next() {
        let nothing = Some(0);
        return CombinedRun {
            exit_code: unknown.exit_code,
            passed: nothing,
            failed: nothing,
            failing_files: Some(Vec::new()),
        };
    }
    CombinedRun {
        exit_code: Some(0),
        passed: sum(|counts| counts.passed),
        failed: Some(0),
        failing_files: Some(Vec::new()),
    }
}

/// Everything that was counted, whether or not it decides anything. A number that no output has is unknown.
#[must_use]
pub fn total(runs: &[RunnerRun]) -> Counts {
    let sum = |number: fn(&Counts) -> Option<u64>| {
        runs.iter().filter_map(|run| number(&run.counts)).reduce(u64::saturating_add)
    };
    let failing: Vec<Failing> = runs.iter().flat_map(|run| run.counts.failing.iter().cloned()).collect();
    Counts {
        passed: sum(|counts| counts.passed),
        failed: sum(|counts| counts.failed),
        skipped: sum(|counts| counts.skipped),
        failing,
        is_understood: runs.iter().all(|run| run.counts.is_understood),
    }
}
