//! What all parts of the memory share: where the repository is, who may write it, and who may talk to the remote.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use git2::Oid;
use tgp_contract::{RelativePath, ToolError};
use tgp_fs::jittered;

use crate::failure::blocking;
use crate::local::{Context, LockedRepo, MAX_NOTES};
use crate::lock::{Lock, busy};
use crate::network::Network;
use crate::provider::Requests;
use crate::secret::Sieve;
use crate::{Conflict, GitTimeouts, Strategy};

/// Files that lost a conflict before they were committed are remembered up to this number; then the oldest news is
/// forgotten, and their content still is on its branch.
const MAX_SET_ASIDE: usize = 10_000;
/// A push takes tens of milliseconds at least, so a waiter checks seldom.
const LANE_LOOK: Duration = Duration::from_millis(20);

/// See the module's documentation.
pub(crate) struct Inner {
    pub(crate) context: Context,
    pub(crate) strategy: Strategy,
    pub(crate) timeouts: GitTimeouts,
    pub(crate) network: Option<Network>,
    pub(crate) requests: Option<Requests>,
    pub(crate) sieve: Sieve,
    /// Keeps the threads of this process from racing for the file lock.
    pub(crate) writer: Arc<tokio::sync::Mutex<()>>,
    pub(crate) lane: tokio::sync::Mutex<()>,
    /// Uncommitted content that was displaced by the remote's, until a caller asks to persist it.
    pub(crate) set_aside: Mutex<BTreeMap<RelativePath, (Oid, Conflict)>>,
    pub(crate) notes: Mutex<Vec<String>>,
}

/// The right to talk to the remote: one at a time for each repository, so that a push delivers for all who wait.
pub(crate) struct RemoteLock<'m> {
    _turn: tokio::sync::MutexGuard<'m, ()>,
    _lock: Lock,
}

impl Inner {
    /// Runs `work` as the one writer of the repository.
    pub(crate) async fn local<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LockedRepo) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let turn = Arc::clone(&self.writer).lock_owned().await;
        let context = self.context.clone();
        let (result, notes) = blocking(move || {
            let _turn = turn;
            let mut local = LockedRepo::open(&context)?;
            let result = work(&mut local);
            Ok((result, std::mem::take(&mut local.notes)))
        })
        .await?;
        if !notes.is_empty() {
            let mut kept = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(notes);
            kept.truncate(MAX_NOTES);
        }
        result
    }

    /// Waits for the right to talk to the remote, but not beyond `deadline`.
    pub(crate) async fn lane(&self, deadline: Instant) -> Result<RemoteLock<'_>, ToolError> {
        let lane = self.free_lane(deadline).await?;
        lane.ok_or_else(|| busy(&self.context.lane_lock(), self.timeouts.delivery))
    }

    /// The same; `None` when another process talks to the remote for longer than that.
    pub(crate) async fn free_lane(&self, deadline: Instant) -> Result<Option<RemoteLock<'_>>, ToolError> {
        let path = self.context.lane_lock();
        let Ok(turn) = tokio::time::timeout_at(deadline.into(), self.lane.lock()).await else {
            return Ok(None);
        };
        loop {
            if let Some(lock) = Lock::try_take(&path)? {
                return Ok(Some(RemoteLock { _turn: turn, _lock: lock }));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            tokio::time::sleep(jittered(LANE_LOOK)).await;
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeouts.delivery
    }

    /// The repairs since the last call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        notes.into_iter().map(|note| self.sieve.clean(&note)).collect()
    }

    pub(crate) fn remember_set_aside(&self, blobs: Vec<(RelativePath, Oid, Conflict)>) {
        let mut known = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, blob, conflict) in blobs {
            if known.len() >= MAX_SET_ASIDE {
                known.pop_first();
            }
            known.insert(path, (blob, conflict));
        }
    }

    /// The conflict that took exactly this content away from under its writer. It is reported once: a caller
    /// that persists the same bytes again after that means it.
    pub(crate) fn take_set_aside(&self, path: &RelativePath, blob: Option<Oid>) -> Option<Conflict> {
        let mut known = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, conflict) = known.remove(path)?;
        (Some(kept) == blob).then_some(conflict)
    }
}
