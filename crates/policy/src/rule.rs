//! Rules as they are kept once their files are read.

use tgp_contract::SourceLocation;

use crate::RuleEffect;
use crate::pattern::MatchBias;
use crate::selector::Selector;

/// What every rule has.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) effect: RuleEffect,
    pub(crate) reason: String,
    pub(crate) place: SourceLocation,
    /// How many examples it matches, and how many it does not, all as they say.
    pub(crate) examples: (usize, usize),
}

/// A rule about one call.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) head: Head,
    pub(crate) selector: Selector,
}

impl Rule {
    pub(crate) fn leaning(&self) -> MatchBias {
        match self.head.effect {
            RuleEffect::Allow => MatchBias::Permitting,
            RuleEffect::Ask | RuleEffect::Deny => MatchBias::Restricting,
        }
    }
}

/// A rule about a call and those before it in its session.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) head: Head,
    pub(crate) automaton: Automaton,
}

/// What a sequence rule waits for.
#[derive(Clone, Debug)]
pub(crate) enum Automaton {
    /// When the steps have happened in this order, the rule speaks of the calls that `judged` means.
    After { steps: Vec<Selector>, judged: Selector },
    /// The rule speaks of a call that would bring the count above `limit`.
    AtMost { limit: u64, of: Selector },
}

impl Automaton {
    /// The calls that the rule speaks of.
    pub(crate) fn judged(&self) -> &Selector {
        match self {
            Self::After { judged, .. } => judged,
            Self::AtMost { of, .. } => of,
        }
    }

    pub(crate) fn selectors(&self) -> impl Iterator<Item = &Selector> {
        match self {
            Self::After { steps, judged } => steps.iter().chain(std::iter::once(judged)),
            Self::AtMost { of, .. } => [].iter().chain(std::iter::once(of)),
        }
    }
}
