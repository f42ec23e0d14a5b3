//! A run and its questions that no person could answer at once: what was granted to it, what it has done already that
//! cannot be rolled back, and that nothing of it takes effect while a question waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use tgp_contract::{
    Actor, ApprovalDecision, ApprovalRequest, ApprovalStore, Approver, CallContext, Code, JournalEntry,
    KeptAnswer, KeptRun, PendingApproval, RunIdentity, ToolCall, ToolError, ToolResult, canonical,
};

/// What a run may have done that cannot be rolled back, when it is to wait for an approval: calls, and bytes of answers.
const MAX_JOURNAL_CALLS: usize = 1000;
const MAX_JOURNAL_BYTES: usize = 16 << 20;

/// Shared by an outermost call and all calls inside it.
#[derive(Default)]
pub(super) struct ApprovalRun {
    approver: Option<Arc<dyn Approver>>,
    /// Known as soon as the call asks or makes other calls.
    identity: OnceLock<RunIdentity>,
    state: Mutex<RunState>,
}

#[derive(Default)]
struct RunState {
    /// Whether the store was asked, and what it keeps.
    opened: bool,
    kept: Option<KeptRun>,
    /// How often each hash was granted in this attempt.
    used: BTreeMap<String, u32>,
    /// Why nothing takes effect any more: a question waits, or the run cannot go on as it began.
    stopped: Option<Stopped>,
    journal: Vec<JournalEntry>,
    journal_bytes: usize,
    /// Which entries of the journal were answered in this attempt, or made by it.
    consumed: BTreeSet<usize>,
    /// It has done more than is journalled, so it cannot start again.
    overflown: bool,
}

struct Stopped {
    error: ToolError,
    /// Whether the run can start again, so that what is kept of it stays.
    waits: bool,
}

/// What becomes of a call when its run is rolled back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Permanence {
    /// It has done something that stays.
    Sent,
    /// It has only asked, and may be answered otherwise next time.
    Asked,
}

/// What the store knows about a question.
pub(super) enum Known {
    Granted {
        by: String,
    },
    Denied {
        by: String,
        reason: String,
    },
    /// It was granted, and the run has made it so often already.
    UsedUp {
        times: u32,
    },
    Nothing,
}

impl ApprovalRun {
    pub(super) fn new(approver: &Arc<dyn Approver>) -> Self {
        Self { approver: Some(Arc::clone(approver)), ..Self::default() }
    }

    /// Says which call all of this is about. The first one that does is the outermost.
    pub(super) fn identify(&self, call: &ToolCall, context: &CallContext) {
        if self.store().is_some() {
            self.identity.get_or_init(|| RunIdentity::of(call, context));
        }
    }

    fn store(&self) -> Option<&dyn ApprovalStore> {
        self.approver.as_ref()?.store()
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of this run, read once.
    fn opened(&self) -> Result<MutexGuard<'_, RunState>, ToolError> {
        let mut state = self.state();
        if let (false, Some(store), Some(run)) = (state.opened, self.store(), self.identity.get()) {
            state.kept = store.open(run).inspect_err(|error| state.stop(error, false))?;
            state.opened = true;
            let journal = state.kept.as_mut().map(|kept| std::mem::take(&mut kept.journal));
            state.journal = journal.unwrap_or_default();
            state.journal_bytes = state.journal.iter().map(|entry| size(&entry.result)).sum();
            if state.kept.as_ref().is_some_and(|kept| !kept.is_whole) {
                let error = ToolError::new(
                    Code::Conflict,
                    "the run has sent more than can be remembered, so it cannot start again",
                )
                .help("what it has sent is done; let it ask before it sends so much");
                state.stop(&error, false);
                return Err(error);
            }
        }
        Ok(state)
    }

    /// # Errors
    /// When a question of this run waits for an answer, or it cannot go on as it began.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        self.state().stopped.as_ref().map_or(Ok(()), |stopped| Err(stopped.error.clone()))
    }

    /// The outermost call has this result. Its run is over, unless a question waits; whatever a program makes of an error
    /// that has stopped its run, that error is the result.
    pub(super) fn end(&self, result: Result<Value, ToolError>) -> Result<Value, ToolError> {
        let (stopped, waits) = match &self.state().stopped {
            Some(stopped) => (Some(stopped.error.clone()), stopped.waits),
            None => (None, false),
        };
        // A grant that cannot be removed expires; the result is known by now.
        if !waits && let Err(error) = self.finish() {
            tracing::warn!(target: "router", "{error}");
        }
        stopped.map_or(result, Err)
    }

    /// Whether a person has made the outermost call: they may change their mind, an agent may not do it for them.
    pub(super) fn is_of_person(&self) -> bool {
        self.identity.get().is_some_and(|run| matches!(run.actor, Actor::Person(_)))
    }

    /// Whether a call is the run itself, and not one that the run makes.
    pub(super) fn is_outermost(&self, call: &ToolCall, context: &CallContext) -> bool {
        self.identity.get().is_some_and(|run| *run == RunIdentity::of(call, context))
    }

    /// Whether a person has agreed to something that this attempt has not come to.
    pub(super) fn has_unused_grant(&self) -> bool {
        let state = self.state();
        let answers = state.kept.iter().flat_map(|kept| &kept.answers);
        let granted = |answer: &&KeptAnswer| matches!(answer.decision, ApprovalDecision::Granted { .. });
        answers.filter(granted).any(|answer| !state.used.contains_key(&answer.hash))
    }

    /// Whether something was granted to it, or could be.
    pub(super) fn has_grants(&self) -> bool {
        self.state().kept.is_some()
    }

    /// What a person has said about this before, while the run waited.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn known(&self, hash: &str) -> Result<Known, ToolError> {
        let mut state = self.opened()?;
        let answers = state.kept.iter().flat_map(|kept| &kept.answers);
        let decision =
            answers.filter(|answer| answer.hash == hash).map(|answer| answer.decision.clone()).next();
        Ok(match decision {
            Some(ApprovalDecision::Granted { by, times, spent }) => {
                let used = state.used.entry(hash.to_owned()).or_default();
                if *used + spent >= times {
                    return Ok(Known::UsedUp { times });
                }
                *used += 1;
                Known::Granted { by }
            }
            Some(ApprovalDecision::Denied { by, reason }) => Known::Denied { by, reason },
            None => Known::Nothing,
        })
    }

    /// Keeps a question until a person answers it. From then on nothing of the run takes effect. `None` where nothing can
    /// be kept.
    ///
    /// # Errors
    /// When the run cannot start again, or the store fails.
    pub(super) fn keep(&self, question: &ApprovalRequest<'_>) -> Result<Option<PendingApproval>, ToolError> {
        let (Some(store), Some(run)) = (self.store(), self.identity.get()) else { return Ok(None) };
        let state = self.opened()?;
        if state.overflown {
            let message = format!(
                "the run cannot wait for an approval: it has made more than {MAX_JOURNAL_CALLS} calls, or got more than \
                 {} MB, that cannot be rolled back",
                MAX_JOURNAL_BYTES >> 20
            );
            return Err(ToolError::new(Code::Approval, message)
                .help("let it ask before it makes them, or run it where a person can be asked"));
        }
        store.keep(run, question, &state.journal).map(Some)
    }

    /// Nothing of the run takes effect any more. The first question counts.
    pub(super) fn wait_for(&self, error: &ToolError) {
        self.state().stop(error, true);
    }

    /// A person has agreed to what was denied before.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn lift(&self, hash: &str) -> Result<(), ToolError> {
        let (Some(store), Some(run)) = (self.store(), self.identity.get()) else { return Ok(()) };
        store.lift(run, hash)
    }

    /// Counts the use of a grant that cannot be rolled back.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn spend(&self, hash: &str) -> Result<(), ToolError> {
        let (Some(store), Some(run)) = (self.store(), self.identity.get()) else { return Ok(()) };
        store.spend(run, hash)
    }

    /// The run takes effect, or has ended: what was granted to it holds no more.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn finish(&self) -> Result<(), ToolError> {
        let (Some(store), Some(run)) = (self.store(), self.identity.get()) else { return Ok(()) };
        let mut state = self.state();
        if state.kept.is_some() {
            store.finish(run)?;
            state.kept = None;
        }
        Ok(())
    }

    /// The answer that an earlier attempt has got for this call. Calls that are made beside each other may come in another
    /// order than before, so the same call elsewhere among those of its outer call counts, too.
    ///
    /// # Errors
    /// `ECONFLICT` when another call was made at its position; when the store fails.
    pub(super) fn answered(
        &self,
        position: &[u32],
        tool: &str,
        arguments: &Value,
    ) -> Result<Option<ToolResult>, ToolError> {
        let mut state = self.opened()?;
        if state.journal.len() == state.consumed.len() {
            return Ok(None);
        }
        let hash = canonical::hash_exact(arguments.clone());
        let outer = position.split_last().map(|(_, outer)| outer);
        let is_same = |entry: &JournalEntry| entry.tool == tool && entry.arguments == hash;
        let open = |index: &usize| !state.consumed.contains(index);
        let find = |fits: &dyn Fn(&JournalEntry) -> bool| {
            (0..state.journal.len()).filter(open).find(|index| state.journal.get(*index).is_some_and(fits))
        };
        let found = find(&|entry| entry.position == position && is_same(entry)).or_else(|| {
            find(&|entry| entry.position.split_last().map(|(_, outer)| outer) == outer && is_same(entry))
        });
        if let Some(index) = found {
            let result = state.journal.get(index).map(|entry| entry.result.clone());
            state.consumed.insert(index);
            return Ok(result);
        }
        let Some(other) = find(&|entry| entry.position == position) else { return Ok(None) };
        let other = state.journal.get(other).map(|entry| entry.tool.clone()).unwrap_or_default();
        let message = format!(
            "the run started again after an approval and calls `{tool}` where it had called `{other}` with other arguments \
             or another tool, which cannot be undone"
        );
        let error = ToolError::new(Code::Conflict, message).detail("position", position.to_vec()).help(
            "nothing of this run was kept; a run that waits for approvals must make the same calls each time: pass times \
             and random values as arguments",
        );
        state.stop(&error, false);
        Err(error)
    }

    /// Remembers a call that is about to do what cannot be rolled back. Where something was granted to the run it is
    /// written down before it happens: whatever becomes of this attempt, the next one does not do it again.
    ///
    /// # Errors
    /// When the store fails; then it must not happen.
    pub(super) fn announce(&self, position: &[u32], tool: &str, arguments: &Value) -> Result<(), ToolError> {
        if self.state().kept.is_none() {
            return Ok(());
        }
        let error =
            ToolError::new(Code::Runtime, "an earlier attempt of this run sent this, and was interrupted")
                .of_unknown_outcome()
                .help("look at what it would have changed before you make the call again");
        self.journal(position, tool, arguments, &ToolResult::Failed(error), Permanence::Sent)
    }

    /// Remembers a call for the next attempt, also one that ends after the run has asked.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn journal(
        &self,
        position: &[u32],
        tool: &str,
        arguments: &Value,
        result: &ToolResult,
        permanence: Permanence,
    ) -> Result<(), ToolError> {
        let (Some(store), Some(run)) = (self.store(), self.identity.get()) else { return Ok(()) };
        let mut state = self.state();
        let bytes = size(result);
        let hash = canonical::hash_exact(arguments.clone());
        let known = state
            .journal
            .iter()
            .position(|entry| entry.position == position && entry.tool == tool && entry.arguments == hash);
        let is_new = known.is_none();
        let has_room = !is_new || state.journal.len() < MAX_JOURNAL_CALLS;
        if has_room && state.journal_bytes + bytes <= MAX_JOURNAL_BYTES {
            state.journal_bytes += bytes;
            let index = known.unwrap_or(state.journal.len());
            let (tool, position) = (tool.to_owned(), position.to_vec());
            let entry = JournalEntry { position, tool, arguments: hash, result: result.clone() };
            match state.journal.get_mut(index) {
                Some(announced) => *announced = entry,
                None => state.journal.push(entry),
            }
            state.consumed.insert(index);
        } else {
            state.overflown = true;
        }
        let waits = state.stopped.as_ref().is_some_and(|stopped| stopped.waits);
        if waits || (permanence == Permanence::Sent && state.kept.is_some()) {
            store.keep_journal(run, &state.journal, !state.overflown)?;
        }
        Ok(())
    }
}

impl RunState {
    /// The first reason counts.
    fn stop(&mut self, error: &ToolError, waits: bool) {
        self.stopped.get_or_insert_with(|| Stopped { error: error.clone(), waits });
    }
}

/// About how large an answer is in the store.
fn size(result: &ToolResult) -> usize {
    serde_json::to_vec(result).map_or(usize::MAX / 2, |text| text.len())
}
