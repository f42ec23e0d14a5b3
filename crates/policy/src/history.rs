//! What a session has done, as far as sequence rules care: the state of each rule's automaton.

mod replay;

use std::collections::BTreeMap;

pub use replay::{HistoryReplay, MissingDetails};
use serde_json::Value;
use tgp_contract::{Actor, Effect, Target, TddMode, TddState};

use crate::pattern::MatchBias;
use crate::rule::Automaton;
use crate::selector::{MismatchKind, Prepared, Selector, Test};
use crate::{Policy, PolicyRequest};

/// More calls than a session has under way unless their tickets are lost; then it is better to stop.
pub(crate) const MAX_IN_FLIGHT: usize = 4096;

/// A reservation in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HistoryReservation(u64);

/// The result of a call that was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastOutcome {
    /// It ran, with whatever result: what it touched is touched.
    Ran,
    /// Another gate, a person or a cancellation stopped it before it began.
    DidNotRun,
}

/// A call of the past, to build a history from.
#[derive(Clone, Debug, PartialEq)]
pub struct PastCall {
    pub tool: String,
    pub aliases: Vec<String>,
    pub effect: Effect,
    pub arguments: Value,
    pub targets: Vec<Target>,
    pub actor: Actor,
    pub session: String,
    pub mode: TddMode,
    pub state: TddState,
}

impl PastCall {
    #[must_use]
    pub fn as_question(&self) -> PolicyRequest<'_> {
        PolicyRequest {
            tool: &self.tool,
            aliases: &self.aliases,
            effect: self.effect,
            arguments: &self.arguments,
            targets: &self.targets,
            actor: &self.actor,
            session: &self.session,
            mode: self.mode,
            state: self.state,
        }
    }
}

/// What one call does to one automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceEffect {
    /// The steps it is, one bit each.
    Steps(u8),
    /// How much it adds to the count.
    Weight(u64),
}

impl SequenceEffect {
    /// `None` when the call does nothing to it. A call that cannot be read does everything.
    fn of(automaton: &Automaton, call: &Prepared<'_>) -> Option<Self> {
        let weight = |selector: &Selector| match selector.test(call, MatchBias::Restricting) {
            Test::Match { weight } => weight,
            Test::Opaque => 1,
            Test::Miss(_) => 0,
        };
        match automaton {
            Automaton::After { steps, .. } => {
                let bits = steps.iter().zip(0_u32..).filter(|(step, _)| weight(step) > 0);
                let mask = bits.fold(0_u8, |mask, (_, index)| mask | 1_u8.checked_shl(index).unwrap_or(0));
                (mask != 0).then_some(Self::Steps(mask))
            }
            Automaton::AtMost { of, .. } => Some(weight(of)).filter(|weight| *weight > 0).map(Self::Weight),
        }
    }
}

/// The state of one automaton, and what the calls under way may do to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AutomatonState {
    /// Steps that have happened, or the count.
    reached: u64,
    /// Calls under way for each step.
    flying_steps: [u32; u8::BITS as usize],
    /// What the calls under way will add to the count.
    flying_weight: u64,
    /// Calls under way that were judged by other rules, so that their meaning to this one is unknown.
    strangers: u64,
}

/// Why a sequence rule does not speak of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoMatch {
    NotYet { reached: u64, steps: usize },
    Room { used: u64, limit: u64 },
    Miss(MismatchKind),
}

/// How a sequence rule speaks of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceMatch {
    Matched,
    /// It could not be read.
    Opaque,
}

impl NoMatch {
    pub(crate) fn say(&self, automaton: &Automaton, question: &PolicyRequest<'_>) -> String {
        let (Automaton::After { judged: selector, .. } | Automaton::AtMost { of: selector, .. }) = automaton;
        match self {
            Self::NotYet { reached, steps } => {
                format!("{reached} of {steps} steps have happened in this session")
            }
            Self::Room { used, limit } => format!("{used} of {limit} are used in this session"),
            Self::Miss(miss) => selector.say(miss, question),
        }
    }
}

impl AutomatonState {
    /// Whether the rule speaks of this call, with every call under way counted as if it had run.
    pub(crate) fn speaks(
        &self,
        automaton: &Automaton,
        call: &Prepared<'_>,
    ) -> Result<SequenceMatch, NoMatch> {
        let (Automaton::After { judged: selector, .. } | Automaton::AtMost { of: selector, .. }) = automaton;
        let weight = match selector.test(call, MatchBias::Restricting) {
            Test::Match { weight } => weight,
            Test::Opaque => return Ok(SequenceMatch::Opaque),
            Test::Miss(miss) => return Err(NoMatch::Miss(miss)),
        };
        match automaton {
            Automaton::After { steps, .. } => {
                let under_way = |step: &&u32| **step > 0 || self.strangers > 0;
                let done = usize::try_from(self.reached).unwrap_or(usize::MAX);
                let flying =
                    self.flying_steps.iter().take(steps.len()).skip(done).take_while(under_way).count();
                if done.saturating_add(flying) >= steps.len() {
                    Ok(SequenceMatch::Matched)
                } else {
                    Err(NoMatch::NotYet { reached: self.reached, steps: steps.len() })
                }
            }
            Automaton::AtMost { limit, .. } => {
                let used = self.reached.saturating_add(self.flying_weight).saturating_add(self.strangers);
                if used.saturating_add(weight) > *limit {
                    Ok(SequenceMatch::Matched)
                } else {
                    Err(NoMatch::Room { used, limit: *limit })
                }
            }
        }
    }

    /// A call has run.
    fn apply(&mut self, automaton: &Automaton, mark: SequenceEffect) {
        match (automaton, mark) {
            (Automaton::After { steps, .. }, SequenceEffect::Steps(mask)) => {
                let next = u32::try_from(self.reached).unwrap_or(u32::MAX);
                let is_next = mask.checked_shr(next).is_some_and(|rest| rest & 1 == 1);
                if is_next && self.reached < steps.len() as u64 {
                    self.reached = self.reached.saturating_add(1);
                }
            }
            (Automaton::AtMost { .. }, SequenceEffect::Weight(weight)) => {
                self.reached = self.reached.saturating_add(weight);
            }
            _ => {}
        }
    }

    /// A call starts, or ends.
    fn fly(&mut self, mark: SequenceEffect, begins: bool) {
        match mark {
            SequenceEffect::Steps(mask) => {
                for (index, count) in self.flying_steps.iter_mut().enumerate() {
                    if mask >> index & 1 == 1 {
                        *count = if begins { count.saturating_add(1) } else { count.saturating_sub(1) };
                    }
                }
            }
            SequenceEffect::Weight(weight) => {
                let now = self.flying_weight;
                self.flying_weight =
                    if begins { now.saturating_add(weight) } else { now.saturating_sub(weight) };
            }
        }
    }
}

/// The state of one automaton after some calls, for examples.
pub(crate) fn replayed(automaton: &Automaton, past: &[PastCall]) -> AutomatonState {
    let mut track = AutomatonState::default();
    for call in past {
        if let Some(mark) = SequenceEffect::of(automaton, &Prepared::new(&call.as_question())) {
            track.apply(automaton, mark);
        }
    }
    track
}

/// A call under way.
#[derive(Clone, Debug)]
enum PendingDecision {
    /// What it does to which automata.
    Known(Vec<(usize, SequenceEffect)>),
    /// It was judged by other rules.
    Stranger,
}

/// The state of every sequence rule of one policy in one session.
///
/// A call that is let through is reserved when it is judged, so that calls which run at the same time cannot together
/// do what one after the other could not; it has to be settled when it has ended. A history belongs to the policy it
/// was made for: another one denies everything by it until it is [renewed](Self::renewed).
#[derive(Clone, Debug)]
pub struct SessionHistory {
    policy: String,
    tracks: Vec<AutomatonState>,
    flights: BTreeMap<HistoryReservation, PendingDecision>,
    next: u64,
}

impl SessionHistory {
    /// A session that has done nothing.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let tracks = policy.sequences().iter().map(|_| AutomatonState::default()).collect();
        Self { policy: policy.fingerprint().to_owned(), tracks, flights: BTreeMap::new(), next: 0 }
    }

    /// A session that has done these calls, oldest first.
    #[must_use]
    pub fn replay(policy: &Policy, past: impl IntoIterator<Item = PastCall>) -> Self {
        let mut history = Self::new(policy);
        for call in past {
            history.advance(policy, &call.as_question());
        }
        history
    }

    /// The same session under other rules: rebuilt from what it has done; calls under way keep their tickets, and
    /// until they are settled every sequence rule takes them for its own.
    #[must_use]
    pub fn renewed(&self, policy: &Policy, past: impl IntoIterator<Item = PastCall>) -> Self {
        self.continued(Self::replay(policy, past))
    }

    /// As [`renewed`](Self::renewed), with what the session has done under the other rules built already.
    #[must_use]
    pub fn continued(&self, mut history: Self) -> Self {
        history.next = self.next;
        history.flights = self.flights.keys().map(|ticket| (*ticket, PendingDecision::Stranger)).collect();
        let strangers = history.flights.len() as u64;
        for track in &mut history.tracks {
            track.strangers = strangers;
        }
        history
    }

    /// Ends a reservation; the question is the one that was judged, the policy the one this history belongs to now. A
    /// ticket that is settled already changes nothing. Under another policy a call that ran stays under way forever:
    /// its meaning to these rules is unknown.
    pub fn settle(
        &mut self,
        policy: &Policy,
        ticket: HistoryReservation,
        question: &PolicyRequest<'_>,
        outcome: PastOutcome,
    ) {
        if outcome == PastOutcome::Ran && !self.belongs_to(policy) {
            return;
        }
        match self.flights.remove(&ticket) {
            None => {}
            Some(PendingDecision::Known(marks)) => {
                for (index, mark) in marks {
                    let Some(track) = self.tracks.get_mut(index) else { continue };
                    track.fly(mark, false);
                    if let (PastOutcome::Ran, Some(rule)) = (outcome, policy.sequences().get(index)) {
                        track.apply(&rule.automaton, mark);
                    }
                }
            }
            Some(PendingDecision::Stranger) => {
                for track in &mut self.tracks {
                    track.strangers = track.strangers.saturating_sub(1);
                }
                if outcome == PastOutcome::Ran {
                    self.advance(policy, question);
                }
            }
        }
    }

    /// Notes a call that ran without a ticket. A policy that is not this history's changes nothing.
    pub fn advance(&mut self, policy: &Policy, question: &PolicyRequest<'_>) {
        if !self.belongs_to(policy) {
            return;
        }
        let call = Prepared::new(question);
        for (track, rule) in self.tracks.iter_mut().zip(policy.sequences()) {
            if let Some(mark) = SequenceEffect::of(&rule.automaton, &call) {
                track.apply(&rule.automaton, mark);
            }
        }
    }

    /// How many calls are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    pub(crate) fn belongs_to(&self, policy: &Policy) -> bool {
        self.policy == policy.fingerprint()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.flights.len() >= MAX_IN_FLIGHT
    }

    pub(crate) fn tracks(&self) -> &[AutomatonState] {
        &self.tracks
    }

    pub(crate) fn reserve(&mut self, policy: &Policy, call: &Prepared<'_>) -> HistoryReservation {
        let mut marks = Vec::new();
        for (index, (track, rule)) in self.tracks.iter_mut().zip(policy.sequences()).enumerate() {
            if let Some(mark) = SequenceEffect::of(&rule.automaton, call) {
                track.fly(mark, true);
                marks.push((index, mark));
            }
        }
        let ticket = HistoryReservation(self.next);
        self.next = self.next.wrapping_add(1);
        self.flights.insert(ticket, PendingDecision::Known(marks));
        ticket
    }
}
