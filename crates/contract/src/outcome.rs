//! What the gates decided about a call, and how far its execution went.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The decision of one gate about a call, or the answer of the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateDecision {
    /// The gate lets the call pass.
    Allow,
    /// A person must approve the call first.
    Ask,
    /// The gate denies the call.
    Deny,
    /// The approval was given.
    Approved,
    /// The approval was not given.
    Refused,
}

impl GateDecision {
    /// The text on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Approved => "approved",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for GateDecision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The decision of all gates together about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallVerdict {
    /// Every gate let it pass, and no approval was needed.
    Allowed,
    /// Every gate let it pass, and a person approved it.
    Approved,
    /// A gate denied it.
    Denied,
    /// It was not approved.
    Refused,
    /// It failed before any gate: an unknown tool, or arguments that do not fit its schema.
    Invalid,
    /// Its caller cancelled it before it ended.
    Cancelled,
    /// Its process was killed; the result was read from the audit later. Only transcripts have it.
    Recovered,
}

impl CallVerdict {
    /// The text on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::Cancelled => "cancelled",
            Self::Recovered => "recovered",
        }
    }

    /// Whether a gate denied the call, or it was not approved.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Denied | Self::Refused)
    }
}

impl fmt::Display for CallVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How far the execution of a call went.
///
/// It describes the call itself. A call that it made inside has its own record: a request that a run sent to a host is
/// `done` there, even if the run is rolled back afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// The tool did not run: the call was invalid, denied, not approved, or cancelled before.
    NotStarted,
    /// The tool ran, and nothing that it changed was kept.
    RolledBack,
    /// The tool ran, and its effects are in place.
    Done,
    /// The tool ran, and it cannot be known whether its effects are in place: the connection to the database broke during
    /// COMMIT, or the kernel ended while the call took effect.
    Unknown,
}

impl Execution {
    /// The text on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::RolledBack => "rolled_back",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the tool began to run.
    #[must_use]
    pub fn has_started(self) -> bool {
        self != Self::NotStarted
    }
}

impl fmt::Display for Execution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What makes a call need approval.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "origin", content = "rule", rename_all = "snake_case")]
pub enum ApprovalOrigin {
    /// No rule matches, and the built-in default asks. The id of the default.
    Default(String),
    /// The call changes files that run later, outside of any jail: an earlier consent does not cover it.
    RunsLater,
    /// A rule of a person, an extension or the Guardian asks. Its id.
    Rule(String),
}

/// The id of the default that asks for files that run later.
pub const RUNS_LATER: &str = "default/runs-later";

impl ApprovalOrigin {
    /// The id of the rule, as records name it.
    #[must_use]
    pub fn rule(&self) -> &str {
        match self {
            Self::Default(rule) | Self::Rule(rule) => rule,
            Self::RunsLater => RUNS_LATER,
        }
    }

    /// Whether a rule asks, and not a default.
    #[must_use]
    pub fn is_rule(&self) -> bool {
        matches!(self, Self::Rule(_))
    }
}

/// Why a call needs approval: what asks for it, and a sentence for the person who answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalReason {
    #[serde(flatten)]
    pub origin: ApprovalOrigin,
    pub reason: String,
}
