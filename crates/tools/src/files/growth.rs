//! How many files each session has added: whoever could add any number of them could make every look through the project
//! as long as it likes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tgp_contract::{Code, ToolError};

/// Files and directories that a session may add where the configuration says nothing else.
const USUAL_LIMIT: u64 = 50_000;

/// Sessions that are counted. Beyond that the one that has added the fewest is forgotten.
const MAX_SESSIONS: usize = 4096;

/// Counts by session, over all ways of adding files: commands, tools for files, and runs of forged tools.
#[derive(Debug)]
pub(crate) struct SessionFiles {
    limit: u64,
    added: Mutex<BTreeMap<String, u64>>,
}

impl Default for SessionFiles {
    fn default() -> Self {
        Self::new(USUAL_LIMIT)
    }
}

impl SessionFiles {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, added: Mutex::default() }
    }

    fn added(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what a call is about to add; what it removes counts when it was kept.
    pub(super) fn grow(
        this: &Arc<Self>,
        session: &str,
        added: u64,
        removed: u64,
    ) -> Result<Growth, ToolError> {
        let mut counts = this.added();
        let before = counts.get(session).copied().unwrap_or_default();
        let after = before.saturating_add(added);
        if added > 0 && after.saturating_sub(removed) > this.limit {
            return Err(too_many(before, added, this.limit));
        }
        if !counts.contains_key(session) && counts.len() >= MAX_SESSIONS {
            let fewest = counts.iter().min_by_key(|(_, count)| **count).map(|(name, _)| name.clone());
            fewest.map(|name| counts.remove(&name));
        }
        counts.insert(session.to_owned(), after);
        drop(counts);
        Ok(Growth { files: Arc::clone(this), session: session.to_owned(), added, removed, kept: false })
    }
}

/// Files that a call adds: given back when it did not come to it.
#[derive(Debug)]
pub(crate) struct Growth {
    files: Arc<SessionFiles>,
    session: String,
    added: u64,
    removed: u64,
    kept: bool,
}

impl Growth {
    /// The call has taken effect.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        let less = if self.kept { self.removed } else { self.added };
        if let Some(count) = self.files.added().get_mut(&self.session) {
            // Never below nothing: what was there before the session is not its to give back.
            *count = count.saturating_sub(less);
        }
    }
}

fn too_many(before: u64, added: u64, limit: u64) -> ToolError {
    let message = format!(
        "this session has added {before} files and directories to the project and would add {added} more; \
         `jail.sessionFiles` allows {limit}"
    );
    ToolError::new(Code::Security, message).detail("limit", limit).help(
        "nothing was changed; remove files that are not needed, or let a person raise `jail.sessionFiles` in the configuration",
    )
}
