//! Limits of a run above the usual ones: how a rule matches them, and what holds where no rule names them.

use tgp_contract::{LimitRequest, Target};

use crate::pattern::MatchBias;
use crate::{PolicyDecision, PolicyRequest, RuleEffect};

/// The rule that asks where no rule names the limits.
pub(crate) const DEFAULT_RULE: &str = "default/limits";

/// The limits that a matcher can name.
pub(crate) const NAMES: [&str; 3] = ["cpuMs", "wallMs", "memoryMb"];

/// One alternative of `limits`.
#[derive(Clone, Debug)]
pub(crate) enum LimitMatcher {
    Any,
    Ranges(Vec<LimitRange>),
}

/// Values of one limit.
#[derive(Clone, Debug)]
pub(crate) struct LimitRange {
    pub(crate) name: &'static str,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
}

impl LimitRange {
    #[expect(clippy::cast_precision_loss, reason = "a limit that large is refused before any gate")]
    fn holds(&self, value: u64) -> bool {
        let value = value as f64;
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

impl LimitMatcher {
    /// A restricting rule needs one limit in its range, a permitting one has to name every limit that is asked for.
    pub(crate) fn fits(&self, asked: &LimitRequest, leaning: MatchBias) -> bool {
        let Self::Ranges(ranges) = self else { return true };
        let mut in_range = asked
            .given()
            .map(|(name, value, _)| ranges.iter().any(|range| range.name == name && range.holds(value)));
        match leaning {
            MatchBias::Restricting => in_range.any(|fits| fits),
            MatchBias::Permitting => in_range.all(|fits| fits),
        }
    }
}

/// What holds for a call that asks for limits above the usual ones, unless a rule that allows it names limits.
pub(crate) fn default_decision(question: &PolicyRequest<'_>) -> Option<PolicyDecision> {
    let asked = question.targets.iter().find_map(|target| match target {
        Target::Limits(asked) => Some(asked),
        _ => None,
    })?;
    let reason = format!("the call asks for more than the usual limits: {asked}");
    Some(PolicyDecision::by_default(RuleEffect::Ask, DEFAULT_RULE, &reason))
}
