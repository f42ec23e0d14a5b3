//! A run and its questions that no person could answer at once: what was granted to it, what it has done already that
//! cannot be rolled back, and that nothing of it takes effect while a question waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use tgp_contract::{
    ApprovalDecision, ApprovalRequest, ApprovalStore, Approver, CallContext, Code, JournalEntry, KeptRun,
    PendingApproval, RunIdentity, ToolCall, ToolError, ToolResult, canonical,
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
    /// It has done more than is journalled, so it cannot start again.
    overflown: bool,
}

struct Stopped {
    error: ToolError,
    /// Whether the run can start again, so that what is kept of it stays.
    waits: bool,
}

/// What the store knows about a question.
pub(super) enum Known {
    Granted { by: String },
    Denied { reason: String },
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
                    return Ok(Known::Nothing);
                }
                *used += 1;
                Known::Granted { by }
            }
            Some(ApprovalDecision::Denied { by, reason }) => {
                Known::Denied { reason: format!("{by} has denied it: {reason}") }
            }
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

    /// The answer that an earlier attempt has got at this position.
    ///
    /// # Errors
    /// `ECONFLICT` when another call was made there; when the store fails.
    pub(super) fn answered(
        &self,
        position: &[u32],
        tool: &str,
        arguments: &Value,
    ) -> Result<Option<ToolResult>, ToolError> {
        let mut state = self.opened()?;
        let Some(entry) = state.journal.iter().find(|entry| entry.position == position) else {
            return Ok(None);
        };
        if entry.tool == tool && entry.arguments == canonical::hash_exact(arguments.clone()) {
            return Ok(Some(entry.result.clone()));
        }
        let message = format!(
            "the run started again after an approval and calls `{tool}` where it had called `{}` with other arguments \
             or another tool, which cannot be undone",
            entry.tool
        );
        let error = ToolError::new(Code::Conflict, message).detail("position", entry.position.clone()).help(
            "nothing of this run was kept; a run that waits for approvals must make the same calls each time: pass times \
             and random values as arguments",
        );
        state.stop(&error, false);
        Err(error)
    }

    /// Remembers a call that cannot be rolled back, also one that ends after the run has asked.
    pub(super) fn journal(&self, position: &[u32], tool: &str, arguments: &Value, result: &ToolResult) {
        let (Some(store), Some(run)) = (self.store(), self.identity.get()) else { return };
        let mut state = self.state();
        let bytes = size(result);
        if state.journal.len() >= MAX_JOURNAL_CALLS || state.journal_bytes + bytes > MAX_JOURNAL_BYTES {
            state.overflown = true;
            return;
        }
        state.journal_bytes += bytes;
        state.journal.push(JournalEntry {
            position: position.to_vec(),
            tool: tool.to_owned(),
            arguments: canonical::hash_exact(arguments.clone()),
            result: result.clone(),
        });
        if state.stopped.as_ref().is_some_and(|stopped| stopped.waits)
            && let Err(error) = store.keep_journal(run, &state.journal)
        {
            tracing::warn!(target: "router", "{error}");
        }
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
