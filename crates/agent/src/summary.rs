//! What a session came to: only what was seen, nothing the model claims.

use serde::{Deserialize, Serialize};
use tgp_contract::{Root, ToolError, Usage};

/// Why a run of the loop ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ending {
    /// The model said that it is done.
    Done,
    /// A budget is used up (`EBUDGET`).
    Budget { error: ToolError },
    /// The same call has failed too often; the error is its last one.
    Stuck { error: ToolError },
    /// A person wished it.
    Interrupted,
    /// Something only the user can fix: a key, a model, a provider that does not answer.
    NeedsUser { error: ToolError },
    /// Something is broken, so nothing may continue: `EHALT`, `EINTEGRITY`, `EINTERNAL`.
    Broken { error: ToolError },
}

/// A file that calls have changed, by what was there before the first and after the last change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TouchedFile {
    pub root: Root,
    pub path: String,
    pub created: bool,
    pub deleted: bool,
}

/// What the last test run said, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestCount {
    pub runs: u64,
    pub passed: u64,
    pub failed: u64,
    /// True when the last run has no result: it did not end by itself, or it does not report whether the tests pass.
    /// The two numbers are then what was counted before, if anything was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inconclusive: bool,
}

/// The first and the last entry of the audit that belong to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRange {
    pub first: u64,
    pub last: u64,
}

/// What a session came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub session: String,
    pub ending: Ending,
    /// What the model said last.
    pub answer: String,
    pub steps: u64,
    pub calls: u64,
    /// Calls that a gate denied or that were not approved.
    pub refused: u64,
    pub failed: u64,
    /// Calls that were begun and left no record, such as `r3.1 fs_write one.txt`: they may have changed something or
    /// not, so they count as neither done nor failed. At most a hundred; the last line then counts the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    pub usage: Usage,
    /// True when the provider did not say what every turn has used, so that some of it is reckoned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_estimated: bool,
    /// In the currency of the prices, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    pub duration_ms: u64,
    /// At most a thousand; `filesOmitted` counts the others.
    pub files: Vec<TouchedFile>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_omitted: u64,
    /// Tools that were written, by path.
    pub forged: Vec<String>,
    /// Tools that were run and not written in this session, by path.
    pub reused: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditRange>,
}

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
