//! Room for so many steps at once, given to the first of the query that waits and not to the one that asked first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::scope::Position;

/// Who comes first: a number that a shuffle has drawn, and the place in the query.
pub(super) type Priority = (u64, Position);

pub(super) struct Limiter {
    state: Mutex<State>,
}

struct State {
    free: usize,
    /// At most one for each step that is alive.
    waiting: BTreeMap<Priority, oneshot::Sender<Permit>>,
}

/// One place; it is free again when this is dropped.
pub(super) struct Permit(Option<Arc<Limiter>>);

impl Limiter {
    pub(super) fn new(free: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { free, waiting: BTreeMap::new() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn take(self: &Arc<Self>, priority: Priority) -> Permit {
        let waiting = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Permit(Some(Arc::clone(self)));
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.insert(priority, sender);
            receiver
        };
        // The sender is dropped with the slots only, and they live as long as this borrow.
        waiting.await.unwrap_or(Permit(None))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(limiters) = self.0.take() else { return };
        let mut state = limiters.state();
        while let Some((_, next)) = state.waiting.pop_first() {
            match next.send(Permit(Some(Arc::clone(&limiters)))) {
                Ok(()) => return,
                // There is no waiter any more. Dropping it here would ask for the lock that is held.
                Err(mut refused) => refused.0 = None,
            }
        }
        state.free += 1;
    }
}
