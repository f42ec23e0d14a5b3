//! Connections kept for the next transaction, and the bound on how many are in use.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tgp_contract::ToolError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::esql;

/// A bounded set of connections. The holder of a [`Slot`] may own one connection.
pub(crate) struct Pool<C> {
    slots: Arc<Semaphore>,
    // The lock guards a push or a pop and is never held over an await.
    idle: Mutex<Vec<C>>,
    size: usize,
    wait: Duration,
}

/// The right to one connection; given back when dropped.
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
}

impl<C> Pool<C> {
    pub fn new(size: usize, wait: Duration) -> Self {
        Self { slots: Arc::new(Semaphore::new(size)), idle: Mutex::new(Vec::new()), size, wait }
    }

    /// Waits for a slot, first come first served.
    pub async fn slot(&self) -> Result<Slot, ToolError> {
        let waiting = Arc::clone(&self.slots).acquire_owned();
        match tokio::time::timeout(self.wait, waiting).await {
            Ok(Ok(permit)) => Ok(Slot { _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(esql(format!(
                "all {} database connections were in use for {} ms",
                self.size,
                self.wait.as_millis()
            ))
            .detail("wait_ms", u64::try_from(self.wait.as_millis()).unwrap_or(u64::MAX))
            .help("try again, or raise the size of the database pool")),
        }
    }

    /// The connection that was given back last, so that the others can grow old and be forgotten.
    pub fn idle(&self) -> Option<C> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps a clean connection. The slot is still held, so there are never more of them than slots.
    pub fn keep(&self, connection: C) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// Completes when no slot is in use.
    pub async fn finished(&self) {
        let all = u32::try_from(self.size).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let _ = self.slots.acquire_many(all).await;
    }

    pub fn wait(&self) -> Duration {
        self.wait
    }
}
