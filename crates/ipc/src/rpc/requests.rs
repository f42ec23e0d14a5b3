//! The requests of a client that are under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::envelope::number;
use super::protocol::{RequestId, RpcError};

/// The open requests of one client, by their ids.
#[derive(Clone, Debug)]
pub(crate) struct OpenRequests {
    most: usize,
    open: Arc<Mutex<BTreeMap<RequestId, oneshot::Sender<()>>>>,
    /// Those whose answers are not on their way yet, too: a client that reads none makes no more of them.
    unanswered: Arc<Semaphore>,
}

/// One of them. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    pub(crate) id: RequestId,
    requests: OpenRequests,
    cancelled: oneshot::Receiver<()>,
    unanswered: Option<OwnedSemaphorePermit>,
}

impl OpenRequests {
    pub(crate) fn new(most: usize) -> Self {
        // As many again may wait to be written: a client that has its answer may ask at once.
        Self { most, open: Arc::default(), unanswered: Arc::new(Semaphore::new(most.saturating_mul(2))) }
    }

    /// # Errors
    /// When too many are open, or one with this id is.
    pub(crate) fn begin(&self, id: &RequestId) -> Result<OpenRequest, RpcError> {
        let mut open = self.lock();
        if open.len() >= self.most {
            let message = format!("{} requests are open; wait for answers", self.most);
            return Err(RpcError::new(number::INVALID, message));
        }
        if open.contains_key(id) {
            return Err(RpcError::new(number::INVALID, "a request with this id is open"));
        }
        let unanswered = Arc::clone(&self.unanswered).try_acquire_owned().map_err(|_| {
            RpcError::new(number::INVALID, "too many answers wait to be read; read them first")
        })?;
        let (cancel, cancelled) = oneshot::channel();
        open.insert(id.clone(), cancel);
        let requests = self.clone();
        Ok(OpenRequest { id: id.clone(), requests, cancelled, unanswered: Some(unanswered) })
    }

    /// Cancels a request. One that has ended stays as it is.
    pub(crate) fn cancel(&self, id: &RequestId) {
        // The entry stays until the request has ended, so that its id is not used again before.
        let cancel = self.lock().get_mut(id).map(|cancel| std::mem::replace(cancel, oneshot::channel().0));
        if let Some(cancel) = cancel {
            let _ = cancel.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RequestId, oneshot::Sender<()>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenRequest {
    /// Completes when the client cancels it; never otherwise.
    pub(crate) async fn cancelled(&mut self) {
        if (&mut self.cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl OpenRequest {
    /// The work is done: the id can be used again. What is given back counts until the answer is on its way.
    pub(crate) fn done(mut self) -> (RequestId, Option<OwnedSemaphorePermit>) {
        (self.id.clone(), self.unanswered.take())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.id);
    }
}
