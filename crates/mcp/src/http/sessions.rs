//! To which token an MCP session belongs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// MCP sessions at a time.
pub(super) const MAX_SESSIONS: usize = 64;

/// The sessions by their ids, each with the family of the token that began it.
#[derive(Default)]
pub(super) struct SessionOwners(Mutex<BTreeMap<String, String>>);

impl SessionOwners {
    /// Notes who began a session. The id is known to its client only after this.
    pub(super) fn bind(&self, id: &str, family: &str) {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.entry(id.to_owned()).or_insert_with(|| family.to_owned());
    }

    pub(super) fn forget(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(super) fn belongs(&self, id: &str, family: &str) -> bool {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(id).is_some_and(|owner| owner == family)
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() >= MAX_SESSIONS
    }

    /// The families that have a session.
    pub(super) fn families(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}
