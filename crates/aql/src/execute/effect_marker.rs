//! Whether an attempt has begun to take effect, known to the journal before it does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tgp_contract::{BeforeEffectHook, Code, ToolError};

use super::{JournalLine, QueryJournal};

/// The effect marker of one attempt. It writes one line, however often it is called. After it is dropped, an attempt
/// that has not taken effect cannot do so later, even if a task still works on it.
pub(super) struct EffectMarker(Arc<EffectMarkerState>);

struct EffectMarkerState {
    line: JournalLine,
    state: Mutex<State>,
}

enum State {
    /// Nothing has happened yet. The journal is let go with this state, since others may keep the witness.
    Waiting(Arc<dyn QueryJournal>),
    /// The line is kept; from then on only the records know the result of the attempt.
    Given,
    /// The line could not be kept, so nothing may happen.
    Unkept(ToolError),
    /// The attempt was over before anything happened, so nothing may happen any more.
    Closed,
}

impl EffectMarker {
    pub(super) fn new(journal: &Arc<dyn QueryJournal>, step: &str, attempt: u32) -> Self {
        let line = JournalLine::Effecting { step: step.to_owned(), attempt };
        Self(Arc::new(EffectMarkerState { line, state: Mutex::new(State::Waiting(Arc::clone(journal))) }))
    }

    pub(super) fn witness(&self) -> BeforeEffectHook {
        let stand = Arc::clone(&self.0);
        Arc::new(move || stand.give())
    }

    /// Keeps the line, once.
    pub(super) fn give(&self) -> Result<(), ToolError> {
        self.0.give()
    }

    /// The attempt is over. Returns whether it may have taken effect.
    ///
    /// # Errors
    /// When the line could not be kept.
    pub(super) fn close(&self) -> Result<bool, ToolError> {
        let mut state = self.0.state();
        match &*state {
            State::Given => Ok(true),
            State::Unkept(error) => Err(error.clone()),
            State::Waiting(_) | State::Closed => {
                *state = State::Closed;
                Ok(false)
            }
        }
    }
}

impl Drop for EffectMarker {
    fn drop(&mut self) {
        // Its result was used before, or the whole run is gone.
        let _ = self.close();
    }
}

impl EffectMarkerState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self) -> Result<(), ToolError> {
        // Closing it waits until the line is written.
        let mut state = self.state();
        let (next, answer) = match &*state {
            State::Given => return Ok(()),
            State::Unkept(error) => return Err(error.clone()),
            State::Closed => {
                let error = ToolError::new(Code::Runtime, "the attempt was given up before it took effect");
                return Err(error.of_cancellation());
            }
            State::Waiting(journal) => match journal.append(&self.line) {
                Ok(()) => (State::Given, Ok(())),
                Err(error) => (State::Unkept(error.clone()), Err(error)),
            },
        };
        *state = next;
        answer
    }
}
