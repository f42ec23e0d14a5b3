//! Where the blocks inside other blocks are polled: side by side, however deep they are.

use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

pub(super) type Boxed<'r, T> = Pin<Box<dyn Future<Output = T> + Send + 'r>>;

/// New tasks on their way to the poller. There are never more than the blocks started in one round.
#[derive(Default)]
pub(super) struct TaskQueue<'p> {
    born: Mutex<Vec<Boxed<'p, ()>>>,
    cry: Notify,
}

impl<'p> TaskQueue<'p> {
    pub(super) fn push(&self, task: Boxed<'p, ()>) {
        self.born.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        self.cry.notify_one();
    }

    fn take(&self) -> Vec<Boxed<'p, ()>> {
        std::mem::take(&mut self.born.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Polls `main` and all that comes, until `main` ends. What is still there then is dropped.
    pub(super) async fn with<T>(&self, main: impl Future<Output = T>) -> T {
        let _emptied = DrainOnDrop(self);
        let mut main = pin!(main);
        let mut tasks = FuturesUnordered::new();
        loop {
            tasks.extend(self.take());
            tokio::select! {
                biased;
                outcome = &mut main => return outcome,
                () = self.cry.notified() => {}
                Some(()) = tasks.next(), if !tasks.is_empty() => {}
            }
        }
    }
}

/// Each task holds the run that holds this nursery, so one that is left here would keep both forever.
struct DrainOnDrop<'a, 'p>(&'a TaskQueue<'p>);

impl Drop for DrainOnDrop<'_, '_> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}
