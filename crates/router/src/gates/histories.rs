//! What sessions and clients have done, as far as sequence rules care, shared with other processes by the record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tgp_contract::{CallContext, Code, ToolError, counted_session};
use tgp_policy::{HistoryReplay, HistoryReservation, MissingDetails, PastCall, PastOutcome, SessionHistory};

use super::rules::Rules;

/// Sessions whose history is kept ready; that of another is read from the record when it is needed again.
const MAX_SESSIONS: usize = 256;

/// What a session has done before this kernel knew it, and in other processes.
#[async_trait]
pub trait PastCalls: Send + Sync {
    /// Shows the calls of the session that ran, oldest first, each with its number and what is not known of it any more:
    /// all there are, or those after a number which other processes have made. Returns the number of the newest one
    /// there is. A client's session is all of its sessions, whatever it has called them.
    ///
    /// # Errors
    /// When the past cannot be known as a whole; then nothing that depends on it is allowed.
    async fn of_session(
        &self,
        session: &str,
        which: PastRange,
        each: &mut (dyn FnMut(u64, PastCall, MissingDetails) + Send),
    ) -> Result<u64, ToolError>;
}

/// Which calls of the past are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastRange {
    /// All of them.
    All,
    /// Those of other processes after the one of this number.
    OthersAfter(u64),
}

/// The histories that are kept ready.
pub(super) struct Histories {
    past: Arc<dyn PastCalls>,
    sessions: Mutex<BTreeMap<String, Session>>,
}

struct Session {
    history: SessionHistory,
    /// Those the history was made for.
    rules: Arc<Rules>,
    /// When it was last asked for, so that the oldest goes first.
    used: u64,
    /// The number of the newest recorded call that the history holds.
    seen: u64,
}

impl Histories {
    pub(super) fn new(past: Arc<dyn PastCalls>) -> Self {
        Self { past, sessions: Mutex::default() }
    }

    /// The newest recorded call that is known of a session under these rules.
    fn seen(&self, rules: &Rules, session: &str) -> Option<u64> {
        newest_seen(&self.sessions(), rules, session)
    }

    /// Makes sure that a session's past is known under these rules.
    ///
    /// # Errors
    /// When it cannot be known as a whole.
    pub(super) async fn load(&self, rules: &Arc<Rules>, session: &str) -> Result<(), ToolError> {
        if !rules.look_back || self.seen(rules, session).is_some() {
            return Ok(());
        }
        let mut replay = HistoryReplay::new(&rules.policy);
        let note = &mut |_, call: PastCall, missing: MissingDetails| replay.add(&call, missing);
        let newest = self.past.of_session(session, PastRange::All, note).await?;
        let past = replay.finish();
        // Another call may have been faster, and may have noted calls since.
        let mut sessions = self.sessions();
        if newest_seen(&sessions, rules, session).is_some() {
            return Ok(());
        }
        let history = match sessions.remove(session) {
            Some(known) => known.history.continued(past),
            None => past,
        };
        if sessions.len() >= MAX_SESSIONS {
            let idle = |(_, session): &(&String, &Session)| session.history.in_flight() == 0;
            let oldest = sessions.iter().filter(idle).min_by_key(|(_, session)| session.used);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                sessions.remove(&name);
            }
        }
        let used = next_use(&sessions);
        let made = Session { history, rules: Arc::clone(rules), used, seen: newest };
        sessions.insert(session.to_owned(), made);
        Ok(())
    }

    /// The same, with what other processes have done since it was last read.
    ///
    /// # Errors
    /// As [`Histories::load`].
    pub(super) async fn catch_up(&self, rules: &Arc<Rules>, session: &str) -> Result<(), ToolError> {
        if !rules.look_back {
            return Ok(());
        }
        let Some(seen) = self.seen(rules, session) else { return self.load(rules, session).await };
        let mut fresh = Vec::new();
        let note =
            &mut |number: u64, call: PastCall, missing: MissingDetails| fresh.push((number, call, missing));
        let newest = self.past.of_session(session, PastRange::OthersAfter(seen), note).await?;
        let mut sessions = self.sessions();
        // Other rules may have come into force; their history was read from the record as a whole.
        let same_rules = |known: &&mut Session| known.rules.generation == rules.generation;
        let Some(known) = sessions.get_mut(session).filter(same_rules) else { return Ok(()) };
        // Another call may have caught up in between.
        fresh.retain(|(number, ..)| *number > known.seen);
        if !fresh.is_empty() {
            let mut replay = HistoryReplay::of(&rules.policy, known.history.clone());
            fresh.iter().for_each(|(_, call, missing)| replay.add(call, *missing));
            known.history = replay.finish();
        }
        known.seen = known.seen.max(newest);
        Ok(())
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a session's history under these rules. Where none of them depends on the past there is none.
    ///
    /// # Errors
    /// When the history was taken away in between: other rules came into force, or too many sessions.
    pub(super) fn with<T>(
        &self,
        rules: &Rules,
        session: &str,
        work: impl FnOnce(&mut SessionHistory) -> T,
    ) -> Result<T, ToolError> {
        if !rules.look_back {
            return Ok(work(&mut SessionHistory::new(&rules.policy)));
        }
        let mut sessions = self.sessions();
        let used = next_use(&sessions);
        match sessions.get_mut(session) {
            Some(known) if known.rules.generation == rules.generation => {
                known.used = used;
                Ok(work(&mut known.history))
            }
            _ => Err(ToolError::new(Code::Policy, "the rules changed while the call was judged")
                .help("call it again")),
        }
    }

    /// Ends calls of a session that were reserved.
    pub(super) fn settle(
        &self,
        session: &str,
        ended: impl IntoIterator<Item = (HistoryReservation, PastCall, PastOutcome)>,
    ) {
        let mut sessions = self.sessions();
        let Some(session) = sessions.get_mut(session) else { return };
        for (ticket, call, outcome) in ended {
            // The rules may have changed meanwhile; the history knows the call by its ticket.
            session.history.settle(&session.rules.policy, ticket, &call.as_question(), outcome);
        }
    }
}

fn newest_seen(sessions: &BTreeMap<String, Session>, rules: &Rules, session: &str) -> Option<u64> {
    let known = sessions.get(session).filter(|known| known.rules.generation == rules.generation);
    known.map(|known| known.seen)
}

/// Whose past a call counts in. A client cannot choose it: neither the name of its session nor that of its actor makes a
/// new one, and all tokens of one family have the same.
pub(super) fn counted(context: &CallContext) -> &str {
    counted_session(&context.session)
}

/// Counts up, so that the session that was asked for longest ago has the smallest number.
fn next_use(sessions: &BTreeMap<String, Session>) -> u64 {
    sessions.values().map(|session| session.used).max().unwrap_or_default() + 1
}
