//! A history built from the record of a session, one call after the other and without holding them.

use std::array;

use super::{PastCall, SequenceEffect, SessionHistory};
use crate::Policy;
use crate::rule::Automaton;
use crate::selector::{Prepared, Selector, StatementMatcher};

/// What a record does not have of a call any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingDetails {
    /// Texts of the arguments were cut, redacted or left out.
    pub arguments: bool,
    /// Texts of the targets were, or targets are missing.
    pub targets: bool,
    /// Who made the call is not known.
    pub actor: bool,
}

impl MissingDetails {
    /// How many kinds of records there are.
    const KINDS: usize = 8;

    fn index(self) -> usize {
        usize::from(self.arguments) | usize::from(self.targets) << 1 | usize::from(self.actor) << 2
    }
}

/// Builds a [`SessionHistory`] from a record. What the record does not know of a call fits every sequence rule: a call
/// must not be forgotten because its text was too long to be kept. No record knows the mode and the state.
#[derive(Debug)]
pub struct HistoryReplay<'a> {
    policy: &'a Policy,
    history: SessionHistory,
    /// The rules as they apply to a call of which something is missing, made when the first such call comes.
    loosened: [Option<Vec<Automaton>>; MissingDetails::KINDS],
}

impl<'a> HistoryReplay<'a> {
    /// A session that has done nothing yet.
    #[must_use]
    pub fn new(policy: &'a Policy) -> Self {
        Self { policy, history: SessionHistory::new(policy), loosened: array::from_fn(|_| None) }
    }

    /// Continues a session: calls that others have made are noted on top of its own.
    #[must_use]
    pub fn of(policy: &'a Policy, history: SessionHistory) -> Self {
        Self { history, ..Self::new(policy) }
    }

    /// Notes the next call of the record, which ran.
    pub fn add(&mut self, call: &PastCall, missing: MissingDetails) {
        if !self.history.belongs_to(self.policy) {
            return;
        }
        let sequences = self.policy.sequences();
        let Some(slot) = self.loosened.get_mut(missing.index()) else { return };
        let automata = slot.get_or_insert_with(|| {
            sequences.iter().map(|sequence| loosened(&sequence.automaton, missing)).collect()
        });
        let question = call.as_question();
        let prepared = Prepared::new(&question);
        for (track, automaton) in self.history.tracks.iter_mut().zip(automata) {
            if let Some(mark) = SequenceEffect::of(automaton, &prepared) {
                track.apply(automaton, mark);
            }
        }
    }

    /// The session after all its calls.
    #[must_use]
    pub fn finish(self) -> SessionHistory {
        self.history
    }
}

fn loosened(automaton: &Automaton, missing: MissingDetails) -> Automaton {
    let loosen = |selector: &Selector| loosened_selector(selector, missing);
    match automaton {
        Automaton::After { steps, judged } => {
            Automaton::After { steps: steps.iter().map(loosen).collect(), judged: judged.clone() }
        }
        Automaton::AtMost { limit, of } => Automaton::AtMost { limit: *limit, of: loosen(of) },
    }
}

/// The selector without what it asks of parts that are missing.
fn loosened_selector(selector: &Selector, missing: MissingDetails) -> Selector {
    let mut loose = Selector { modes: Vec::new(), states: Vec::new(), ..selector.clone() };
    if missing.arguments {
        loose.arguments.clear();
        loose.text = None;
    }
    if missing.targets {
        loose.paths.clear();
        loose.hosts.clear();
        loose.commands.clear();
        // Kinds of statements are words, which are never cut.
        if loose.statements.iter().any(|matcher| matches!(matcher, StatementMatcher::Text(_))) {
            loose.statements.clear();
        }
    }
    if missing.actor {
        loose.actors = None;
    }
    loose
}
