//! How far a failure or a stop reaches: a part of the run that ends together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tgp_contract::ToolError;
use tokio::sync::watch;

/// The position of a step among all steps of a run, in the order of the query: the numbers of the steps and items on
/// the way to it.
pub(super) type Position = Vec<u32>;

/// The step that failed first, in the order of the query, and why.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) position: Position,
    /// `None` for what belongs to no step, such as the value of the whole query.
    pub(super) step: Option<String>,
    pub(super) error: ToolError,
}

/// Says that a block did not come to its value; why is known to the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

/// A part of a run. When it stops, all scopes inside it have stopped too.
pub(super) struct RunScope {
    outer: Option<Arc<RunScope>>,
    state: Mutex<State>,
    /// Moves whenever any scope of the run stops; a waiter then checks whether it was its own.
    pulse: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct State {
    is_stopped: bool,
    failure: Option<Failure>,
}

impl RunScope {
    pub(super) fn root() -> Arc<Self> {
        Arc::new(Self { outer: None, state: Mutex::default(), pulse: Arc::new(watch::Sender::new(0)) })
    }

    pub(super) fn inner(self: &Arc<Self>) -> Arc<Self> {
        let (outer, pulse) = (Some(Arc::clone(self)), Arc::clone(&self.pulse));
        Arc::new(Self { outer, state: Mutex::default(), pulse })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing begins in it any more, and what runs is cancelled. Of several failures the first of the query is kept.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.state();
        let is_first = state.failure.as_ref().is_none_or(|known| failure.position < known.position);
        if is_first {
            state.failure = Some(failure);
        }
        drop(state);
        self.stop();
    }

    /// As [`RunScope::fail`], unless it has stopped already.
    pub(super) fn fail_first(&self, failure: Failure) {
        if !self.is_stopped() {
            self.fail(failure);
        }
    }

    pub(super) fn stop(&self) {
        self.state().is_stopped = true;
        self.pulse.send_modify(|beats| *beats = beats.wrapping_add(1));
    }

    pub(super) fn is_stopped(&self) -> bool {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if here.state().is_stopped {
                return true;
            }
            scope = here.outer.as_deref();
        }
        false
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        self.state().failure.clone()
    }

    /// Ends when this scope has stopped.
    pub(super) async fn stopped(&self) {
        let mut pulse = self.pulse.subscribe();
        while !self.is_stopped() {
            // The sender lives as long as this scope, so there is no other end.
            if pulse.changed().await.is_err() {
                return;
            }
        }
    }
}
