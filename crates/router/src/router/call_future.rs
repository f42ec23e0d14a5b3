//! A call on its way: polled by its caller, and carried to its end when it has gone too far to be rolled
//! back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tgp_contract::CallRecord;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::lifecycle::CallLifecycle;

/// The whole of a call, which owns what it works on.
type Whole = Pin<Box<dyn Future<Output = CallRecord> + Send>>;

/// Ends with the record that was kept. Dropped before, it rolls the call back; where that is not possible any more,
/// the call continues as its own task and leaves the record of what it did.
pub(super) struct CallFuture {
    whole: Option<Whole>,
    lifecycle: Arc<CallLifecycle>,
    detached: CallsInFlight,
    /// Counts it until it has left its record.
    place: Option<Place>,
    /// It may be dropped outside a runtime.
    runtime: Option<Handle>,
}

impl CallFuture {
    pub(super) fn new(
        whole: impl Future<Output = CallRecord> + Send + 'static,
        lifecycle: Arc<CallLifecycle>,
        calls: &CallsInFlight,
        detached: CallsInFlight,
    ) -> Self {
        let (place, runtime) = (Some(calls.place()), Handle::try_current().ok());
        Self { whole: Some(Box::pin(whole)), lifecycle, detached, place, runtime }
    }

    /// Takes the call back, if it has not taken effect. It still has to be waited for.
    pub(super) fn cancel(&self) {
        self.lifecycle.cancel();
    }
}

impl Future for CallFuture {
    type Output = CallRecord;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallRecord> {
        let Some(whole) = self.whole.as_mut() else { return Poll::Pending };
        let record = std::task::ready!(whole.as_mut().poll(context));
        self.whole = None;
        self.place = None;
        Poll::Ready(record)
    }
}

impl Drop for CallFuture {
    fn drop(&mut self) {
        let Some(whole) = self.whole.take() else { return };
        if self.lifecycle.cancel() {
            return;
        }
        if let Some(runtime) = &self.runtime {
            let places = (self.detached.place(), self.place.take());
            runtime.spawn(async move {
                let _places = places;
                whole.await;
            });
        }
    }
}

/// Calls that have not left their record: all of a router, or those whose callers have gone away while they took effect.
/// There are never more than there were callers.
#[derive(Clone, Debug, Default)]
pub struct CallsInFlight(watch::Sender<usize>);

impl CallsInFlight {
    /// Completes when there are none.
    pub async fn finished(&self) {
        // The sender is held here, so the count does not end.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    fn place(&self) -> Place {
        self.0.send_modify(|count| *count += 1);
        Place(self.0.clone())
    }

    /// Waits until there are none; answers whether that came to be in time.
    pub(super) async fn wait(&self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.finished()).await.is_ok()
    }
}

struct Place(watch::Sender<usize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
