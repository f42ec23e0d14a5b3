//! What a check of a tool found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SourceLocation;

/// Whether a finding is an error or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Warning,
    Error,
}

/// One thing a rule has to say about one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub place: SourceLocation,
    /// Where the offending text ends, on the same terms as `place`; a caret screen underlines up to here.
    pub end: SourceLocation,
    /// The rule's stable name, such as `no-any` or `forbidden-global`.
    pub rule: String,
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Why the rule exists.
    pub reason: String,
    /// What to write instead.
    pub fix: String,
}

/// Whether the types were checked too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TypeCheck {
    Checked,
    /// The project has no native TypeScript compiler.
    Skipped,
}

/// The answer of `check_tool`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// True when there is no error-level finding.
    pub valid: bool,
    /// The error-level findings as plain text.
    pub errors: Vec<String>,
    pub findings: Vec<Finding>,
    /// `skipped` without TypeScript 7 in the project (`npm install --save-dev typescript@7`): types were not checked.
    pub types: TypeCheck,
}

impl CheckReport {
    /// Sorts the findings by place and derives `valid` and `errors` from them.
    #[must_use]
    pub fn new(mut findings: Vec<Finding>, types: TypeCheck) -> Self {
        findings.sort();
        findings.dedup();
        let errors: Vec<String> = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .map(|finding| format!("{}: {} [{}]", finding.place, finding.message, finding.rule))
            .collect();
        Self { valid: errors.is_empty(), errors, findings, types }
    }
}
