//! Who may run a tool now. Each run is a process with its own heap, so there are so many places and no more; a call beyond
//! that waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Tools that run at a time.
const MAX_RUNNING: usize = 32;
/// Of those, the ones of one session. What it asks for beyond that waits in its own queue, so that a session that starts
/// a thousand runs does not keep the next one waiting for all of them.
const MAX_PER_SESSION: usize = 16;

/// See the module's documentation. Those who wait are served in the order in which they came.
#[derive(Debug)]
pub(super) struct RunPlaces {
    all: Semaphore,
    sessions: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

/// A place of a run; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct RunPlace<'a> {
    _one: Option<SemaphorePermit<'a>>,
    _of_session: Option<OwnedSemaphorePermit>,
}

impl RunPlaces {
    pub(super) fn new() -> Self {
        Self { all: Semaphore::new(MAX_RUNNING), sessions: Mutex::default() }
    }

    /// Waits for a place. Neither queue is ever closed.
    pub(super) async fn take(&self, session: &str) -> RunPlace<'_> {
        let of_session = self.session(session).acquire_owned().await.ok();
        RunPlace { _one: self.all.acquire().await.ok(), _of_session: of_session }
    }

    fn session(&self, name: &str) -> Arc<Semaphore> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sessions.get(name).and_then(Weak::upgrade) {
            return known;
        }
        // The one that is made now takes the place of those that have ended.
        sessions.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(MAX_PER_SESSION));
        sessions.insert(name.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(waiting: std::pin::Pin<&mut impl Future>) -> bool {
        waiting.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn a_session_leaves_places_for_others_and_none_behind() {
        let places = RunPlaces::new();
        let mut held = Vec::new();
        for _ in 0..MAX_PER_SESSION {
            held.push(places.take("one").await);
        }
        let mut waiting = pin!(places.take("one"));
        assert!(!is_ready(waiting.as_mut()));
        for _ in 0..MAX_RUNNING - MAX_PER_SESSION {
            held.push(places.take("two").await);
        }
        let mut third = pin!(places.take("three"));
        assert!(!is_ready(third.as_mut()));
        held.remove(0);
        // The session that waits for its own place gets it, and then waits behind the one that came before.
        assert!(!is_ready(waiting.as_mut()));
        assert!(is_ready(third.as_mut()));
        held.clear();
        waiting.await;
        places.take("four").await;
        places.take("five").await;
        assert_eq!(places.sessions.lock().unwrap().len(), 1, "sessions that have ended are kept");
    }
}
