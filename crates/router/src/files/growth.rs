//! How many files each session has added. Without a limit a session could make every walk through the project as long as
//! it likes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tgp_contract::{Code, ToolError};

/// Files and directories that a session may add where the configuration says nothing else.
const USUAL_LIMIT: u64 = 50_000;

/// Sessions that have their own count. All further sessions share one, so that no number of sessions makes the kernel
/// forget what one of them has added.
const MAX_SESSIONS: usize = 4096;

/// The count that further sessions share. No session has an empty id.
const FURTHER_SESSIONS: &str = "";

/// Counts by session, over all ways of adding files: commands, tools for files, and runs of forged tools.
#[derive(Debug)]
pub struct SessionFiles {
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
        let has_own_count = counts.contains_key(session) || counts.len() < MAX_SESSIONS;
        let session = if has_own_count { session } else { FURTHER_SESSIONS };
        let before = counts.get(session).copied().unwrap_or_default();
        let after = before.saturating_add(added);
        if added > 0 && after.saturating_sub(removed) > this.limit {
            return Err(too_many(before, added, this.limit));
        }
        counts.insert(session.to_owned(), after);
        drop(counts);
        Ok(Growth { files: Arc::clone(this), session: session.to_owned(), added, removed, kept: false })
    }
}

/// Files that a call adds: given back when it did not come to it.
#[derive(Debug)]
pub struct Growth {
    files: Arc<SessionFiles>,
    session: String,
    added: u64,
    removed: u64,
    kept: bool,
}

impl Growth {
    /// The call has taken effect.
    pub fn keep(mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sessions_do_not_make_the_kernel_forget_what_one_has_added() {
        let files = Arc::new(SessionFiles::new(10));
        for number in 0..MAX_SESSIONS {
            SessionFiles::grow(&files, &format!("session-{number}"), 1, 0).unwrap().keep();
        }
        for number in 0..10 {
            SessionFiles::grow(&files, &format!("further-{number}"), 1, 0).unwrap().keep();
        }
        SessionFiles::grow(&files, "another", 1, 0).unwrap_err();
        SessionFiles::grow(&files, "session-0", 10, 0).unwrap_err();
        SessionFiles::grow(&files, "session-0", 9, 0).unwrap().keep();
    }
}
