//! To which token an MCP session belongs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::shares::{Room, Shares};

/// MCP sessions at a time.
const MAX_SESSIONS: usize = 64;

/// The sessions by their ids, each with the family of the token that began it, and the requests under way.
pub(super) struct SessionOwners(Mutex<Shares<Arc<AtomicUsize>>>);

/// A request of a session that is under way, up to the end of its answer.
pub(super) struct SessionUse(Arc<AtomicUsize>);

impl SessionUse {
    fn of(requests: &Arc<AtomicUsize>) -> Self {
        requests.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(requests))
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Default for SessionOwners {
    fn default() -> Self {
        Self(Mutex::new(Shares::new(MAX_SESSIONS)))
    }
}

impl SessionOwners {
    /// Notes who began a session. The id is known to its client only after this.
    pub(super) fn bind(&self, id: &str, family: &str) -> Room {
        let mut sessions = self.sessions();
        if sessions.used(id).is_some() {
            return Room::Free;
        }
        let is_busy = |requests: &Arc<AtomicUsize>| requests.load(Ordering::Acquire) > 0;
        sessions.take(id, family, Arc::default(), is_busy)
    }

    pub(super) fn forget(&self, id: &str) {
        self.sessions().remove(id);
    }

    /// Begins a request of a session; `None` where the session is not of this family.
    pub(super) fn begin(&self, id: &str, family: &str) -> Option<SessionUse> {
        let mut sessions = self.sessions();
        let (owner, requests) = sessions.used(id)?;
        (owner == family).then(|| SessionUse::of(requests))
    }

    /// Whether a family has a session.
    pub(super) fn has(&self, family: &str) -> bool {
        self.sessions().has(family)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.sessions().keys()
    }

    fn sessions(&self) -> MutexGuard<'_, Shares<Arc<AtomicUsize>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
