//! Why a call was judged as it was, rule by rule.

use std::fmt;

use serde::Serialize;
use tgp_contract::{RUNS_LATER, SourceLocation};

use crate::{PolicyDecision, RuleEffect};

pub(crate) const UNCONFIRMED: &str =
    "rules of the tool repository only tighten; `tgp policy trust` confirms its `allow` rules";
/// Why a person has to see a change of a file that runs later.
pub(crate) const RUNS_LATER_REASON: &str =
    "files that run later are changed when a person has seen the change, or by a rule that names them";
/// The same for a manifest, of which only some fields count.
pub(crate) const FIELDS_RUN_LATER: &str =
    "it asks as well when a field of the manifest changes that says what is executed";

pub(crate) const OPAQUE: &str =
    "a value of the call is too long or too large to be matched against this rule";
pub(crate) const UNNAMED_LIMITS: &str =
    "limits above the usual ones are asked for, unless a rule that allows them names `limits`";
pub(crate) const UNNAMED_SECRET: &str =
    "the use of a secret is asked for, unless a rule that allows it names it in `target`";

/// The result of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleFinding {
    /// It gave the answer.
    Decided,
    /// It means this call too, but another one decided.
    Matched,
    /// It does not mean this call.
    Idle,
}

/// One rule and why it did or did not decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    pub rule: String,
    pub effect: RuleEffect,
    pub finding: RuleFinding,
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLocation>,
    /// It is a built-in default, and not a rule of a file.
    #[serde(skip)]
    pub is_default: bool,
}

/// The decision and every rule's part in it. Its `Display` is a text for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyExplanation {
    pub decision: PolicyDecision,
    /// The deciding rule first, then those that matched, then the others.
    pub rules: Vec<RuleReport>,
}

impl PolicyExplanation {
    pub(crate) fn new(decision: PolicyDecision, mut rules: Vec<RuleReport>) -> Self {
        for report in rules.iter_mut().filter(|report| report.rule == decision.rule) {
            report.finding = RuleFinding::Decided;
        }
        for report in rules.iter_mut().filter(|report| report.finding == RuleFinding::Matched) {
            // A default that only a rule that names the file can override.
            if report.rule == RUNS_LATER {
                continue;
            }
            report.why = if report.is_default {
                format!("a default gives way to `{}`", decision.rule)
            } else if report.effect < decision.effect {
                format!("it matches, and `{}` is stricter", decision.rule)
            } else {
                format!("it matches, and `{}` of the same strictness comes first", decision.rule)
            };
        }
        rules.sort_by_key(|report| report.finding);
        Self { decision, rules }
    }
}

impl fmt::Display for PolicyExplanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyDecision { effect, rule, reason, source, .. } = &self.decision;
        match source {
            Some(place) => writeln!(formatter, "{effect} by `{rule}` ({place})")?,
            None => writeln!(formatter, "{effect} by `{rule}`")?,
        }
        writeln!(formatter, "  {reason}")?;
        let others: Vec<&RuleReport> =
            self.rules.iter().filter(|report| report.finding != RuleFinding::Decided).collect();
        let width = others.iter().map(|report| report.rule.len()).max().unwrap_or(0);
        for (finding, title) in
            [(RuleFinding::Matched, "matched as well:"), (RuleFinding::Idle, "did not match:")]
        {
            let mut reports = others.iter().filter(|report| report.finding == finding).peekable();
            if reports.peek().is_some() {
                writeln!(formatter, "{title}")?;
            }
            for report in reports {
                writeln!(
                    formatter,
                    "  {:<5} {:<width$}  {}",
                    report.effect.as_str(),
                    report.rule,
                    report.why
                )?;
            }
        }
        Ok(())
    }
}
