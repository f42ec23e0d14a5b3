//! How long a call has waited for approvals: for its own, and for those of the calls that it makes while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Questions about one call and the calls inside it. A tool that is refused may try again, and a person who is asked
/// without end agrees at last; beyond this number every further question is refused.
const MAX_QUESTIONS: usize = 100;

/// The waits of one call. Those of a call inside it are its own waits too, so that no clock runs while a person reads.
#[derive(Debug, Default)]
pub(super) struct ApprovalWait {
    state: Mutex<WaitState>,
    outer: Option<Arc<ApprovalWait>>,
}

#[derive(Debug, Default)]
struct WaitState {
    /// Questions without an answer.
    open: usize,
    /// Since when there has been one.
    since: Option<Instant>,
    total: Duration,
    questions: usize,
}

impl ApprovalWait {
    /// The waits of a call inside `outer`.
    pub(super) fn inside(outer: Option<Arc<Self>>) -> Self {
        Self { outer, ..Self::default() }
    }

    /// Begins to wait, until the guard is dropped. `None` when too much was asked already.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Waiting> {
        if self.around().any(|wait| wait.state().questions >= MAX_QUESTIONS) {
            return None;
        }
        for wait in self.around() {
            let mut state = wait.state();
            state.questions += 1;
            state.open += 1;
            state.since.get_or_insert_with(Instant::now);
        }
        Some(Waiting(Arc::clone(self)))
    }

    /// The time in which at least one question was open, up to now.
    pub(super) fn total(&self) -> Duration {
        let state = self.state();
        state.total + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Itself and the calls around it.
    fn around(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |wait| wait.outer.as_deref())
    }

    fn state(&self) -> MutexGuard<'_, WaitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is open.
pub(super) struct Waiting(Arc<ApprovalWait>);

impl Drop for Waiting {
    fn drop(&mut self) {
        for wait in self.0.around() {
            let mut state = wait.state();
            state.open = state.open.saturating_sub(1);
            if state.open == 0 {
                let waited = state.since.take().map(|since| since.elapsed());
                state.total += waited.unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{ApprovalWait, MAX_QUESTIONS};

    #[test]
    fn two_questions_at_the_same_time_count_once_and_for_every_call_around() {
        let outer = Arc::new(ApprovalWait::default());
        let inner = Arc::new(ApprovalWait::inside(Some(Arc::clone(&outer))));
        let first = inner.begin();
        let second = inner.begin();
        std::thread::sleep(Duration::from_millis(20));
        drop(first);
        drop(second);
        let (total, around) = (inner.total(), outer.total());
        assert!(total >= Duration::from_millis(20) && total < Duration::from_millis(500), "{total:?}");
        assert!(around >= Duration::from_millis(20) && around < Duration::from_millis(500), "{around:?}");
        assert_eq!(inner.total(), total, "nothing is added while no question is open");
    }

    #[test]
    fn questions_have_a_bound_that_holds_over_all_calls_inside() {
        let outer = Arc::new(ApprovalWait::default());
        for _ in 0..MAX_QUESTIONS {
            assert!(Arc::new(ApprovalWait::inside(Some(Arc::clone(&outer)))).begin().is_some());
        }
        assert!(Arc::new(ApprovalWait::inside(Some(Arc::clone(&outer)))).begin().is_none());
        assert!(outer.begin().is_none());
    }
}
