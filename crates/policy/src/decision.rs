//! What a rule wants, and what all of them together decide.

use std::fmt;

use serde::{Deserialize, Serialize};
use tgp_contract::{ApprovalOrigin, ApprovalReason, Code, RUNS_LATER, SourceLocation, ToolError, Verdict};

/// What a rule wants of the calls it matches. Ordered by strictness, so that the strictest is the `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    Allow,
    Ask,
    Deny,
}

impl RuleEffect {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Allow, Self::Ask, Self::Deny].into_iter().find(|effect| effect.as_str() == word)
    }
}

impl fmt::Display for RuleEffect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The answer to a question, with the rule that gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecision {
    pub effect: RuleEffect,
    /// The rule's id: of a file, `builtin/…`, `default/…` or `extension/…`.
    pub rule: String,
    /// A sentence for the one who asked.
    pub reason: String,
    /// Where the rule is; built-in rules are not in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLocation>,
    /// No rule matched, and a built-in default decided.
    #[serde(skip)]
    pub is_default: bool,
}

impl PolicyDecision {
    pub(crate) fn new(effect: RuleEffect, rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { effect, rule: rule.into(), reason: reason.into(), source: None, is_default: false }
    }

    /// What holds where no rule matches.
    pub(crate) fn by_default(effect: RuleEffect, rule: &str, reason: &str) -> Self {
        Self { is_default: true, ..Self::new(effect, rule, reason) }
    }

    /// Of a file of a package that no rule names: its directory was judged.
    #[must_use]
    pub fn unnamed() -> Self {
        Self::by_default(RuleEffect::Allow, "none", "no rule names it")
    }

    /// The stricter of two; of two equals the first.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.effect > self.effect { other } else { self }
    }

    /// The decision after the extension `name` has answered. An extension can only tighten: its silence and its
    /// consent leave the decision as it is, and its failure denies.
    #[must_use]
    pub fn with_extension(self, name: &str, verdict: ExtensionVerdict) -> Self {
        let (effect, reason) = match verdict {
            ExtensionVerdict::Pass => return self,
            ExtensionVerdict::Ask { reason } => (RuleEffect::Ask, reason),
            ExtensionVerdict::Deny { reason } => (RuleEffect::Deny, reason),
            ExtensionVerdict::Failed { reason } => {
                (RuleEffect::Deny, format!("the extension failed: {reason}"))
            }
        };
        let of_extension = Self::new(effect, format!("extension/{name}"), reason);
        // What a person has written is not hidden behind what holds where no rule was written: consent that settles the
        // default does not settle the extension.
        if self.is_default && of_extension.effect >= self.effect {
            of_extension
        } else {
            self.stricter(of_extension)
        }
    }

    /// The decision as a gate's verdict; a denial is an `EPOLICY` that names the rule and its place.
    #[must_use]
    pub fn into_verdict(self) -> Verdict {
        match self.effect {
            RuleEffect::Allow => Verdict::Allow { rule: self.rule },
            RuleEffect::Ask => {
                let origin = match self.is_default {
                    true if self.rule == RUNS_LATER => ApprovalOrigin::RunsLater,
                    true => ApprovalOrigin::Default(self.rule),
                    false => ApprovalOrigin::Rule(self.rule),
                };
                Verdict::Ask(ApprovalReason { origin, reason: self.reason })
            }
            RuleEffect::Deny => {
                let message = format!("rule `{}` forbids this call: {}", self.rule, self.reason);
                let mut error = ToolError::new(Code::Policy, message)
                    .help("ask for something the rules allow; `tgp policy explain` shows which rule matches and why")
                    .detail("rule", self.rule.clone());
                if let Some(place) = &self.source {
                    error = error.detail("rulePlace", place.to_string());
                }
                Verdict::Deny { rule: self.rule, error }
            }
        }
    }
}

/// What an extension says of a call. The runner of extensions creates it; a crash, a time-out and an answer of the
/// wrong shape are `Failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum ExtensionVerdict {
    Pass,
    Ask { reason: String },
    Deny { reason: String },
    Failed { reason: String },
}
