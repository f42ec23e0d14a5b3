//! The turn of the one writer, which a transaction takes when it begins or at its first statement that writes.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::busy;
use super::connection::Connection;
use crate::failure::{Failure, abandoned};

/// How often a transaction that waits checks whether its caller is still there.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A transaction's place among the writers of this process.
pub(crate) struct WriterTurn {
    writer: Arc<Semaphore>,
    wait: Duration,
    runtime: Handle,
    held: RefCell<Option<OwnedSemaphorePermit>>,
}

impl WriterTurn {
    pub fn new(
        writer: Arc<Semaphore>,
        wait: Duration,
        runtime: Handle,
        held: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self { writer, wait, runtime, held: RefCell::new(held) }
    }

    /// Waits for the turn, unless this transaction has it. It is given back at the end of the transaction.
    pub fn take(&self, connection: &Connection) -> Result<(), Failure> {
        if self.held.borrow().is_some() {
            return Ok(());
        }
        let until = Instant::now() + self.wait;
        let mut waiting = Box::pin(Arc::clone(&self.writer).acquire_owned());
        let turn = self.runtime.block_on(async {
            loop {
                match tokio::time::timeout(LOOK_EVERY, &mut waiting).await {
                    Ok(Ok(turn)) => return Ok(turn),
                    Err(_) if connection.is_abandoned() => return Err(Failure::gone(abandoned())),
                    Err(_) if Instant::now() < until => {}
                    Ok(Err(_)) | Err(_) => return Err(busy(self.wait.as_millis()).into()),
                }
            }
        })?;
        self.held.replace(Some(turn));
        Ok(())
    }
}
