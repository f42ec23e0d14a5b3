//! What came of a run of the kit, row by row.

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, FaultKind};

/// How a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuiteOutcome {
    Passed,
    Failed,
    /// It could not be tried on this machine; the fault says why.
    Skipped,
}

impl SuiteOutcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// One case with one combination of parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// `t1` to `t6`, or `fixtures`.
    pub suite: String,
    /// Such as `t1.loop`.
    pub case: String,
    /// What the case is about, in a few words.
    pub title: String,
    /// The parts whose promises are checked.
    pub under_test: Vec<String>,
    /// Parts of this product that take a role.
    pub real: Vec<String>,
    pub fake: Vec<String>,
    /// Programs and substitutes that were given from outside.
    pub external: Vec<String>,
    pub result: SuiteOutcome,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

impl Row {
    pub(crate) fn ended(mut self, outcome: Result<(), Fault>, duration_ms: u64) -> Self {
        self.duration_ms = duration_ms;
        (self.result, self.fault) = match outcome {
            Ok(()) => (SuiteOutcome::Passed, None),
            Err(fault) if fault.kind == FaultKind::Unable => (SuiteOutcome::Skipped, Some(fault)),
            Err(fault) => (SuiteOutcome::Failed, Some(fault)),
        };
        self
    }
}

/// All rows of a run, in the order of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayReport {
    pub rows: Vec<Row>,
}

impl RelayReport {
    /// How many rows ended so.
    #[must_use]
    pub fn count(&self, outcome: SuiteOutcome) -> usize {
        self.rows.iter().filter(|row| row.result == outcome).count()
    }

    /// Whether something was tried and nothing has failed.
    #[must_use]
    pub fn is_green(&self) -> bool {
        self.count(SuiteOutcome::Failed) == 0 && self.count(SuiteOutcome::Passed) > 0
    }
}
