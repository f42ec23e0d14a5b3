//! The queue between the callers and the one who writes. Its size is bounded by the room that each record holds.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tgp_contract::{CallRecord, ToolError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::Span;

/// More entries than this are not written in one transaction, so that other processes get their turn.
const MAX_BATCH: usize = 256;
/// So many records are written without waiting for more.
const ENOUGH: usize = 64;

pub(crate) type Reply = oneshot::Sender<Result<(), ToolError>>;

/// A record on its way.
pub(crate) struct QueuedRecord {
    pub(crate) record: Box<CallRecord>,
    /// Its share of the memory that waiting records may take.
    pub(crate) room: OwnedSemaphorePermit,
    /// The sender that waits until it is written.
    pub(crate) reply: Option<Reply>,
    /// The span of the call in the log, which gets the sequence number.
    pub(crate) span: Span,
}

pub(crate) enum Item {
    Record(QueuedRecord),
    /// Everything before it has to be written and anchored.
    Flush(Reply),
    /// Everything before it has to be written.
    Settle(Reply),
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    first_came: Option<Instant>,
    /// A caller waits for an answer.
    is_urgent: bool,
    is_closing: bool,
    /// The writer is gone.
    is_dead: bool,
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    news: Condvar,
}

/// What the writer got.
pub(crate) struct EntryBatch {
    pub(crate) items: Vec<Item>,
    /// Nothing comes after these.
    pub(crate) is_last: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when the writer takes no more items.
    pub(crate) fn push(&self, item: Item) -> bool {
        let mut state = self.state();
        if state.is_closing || state.is_dead {
            return false;
        }
        let waits = match &item {
            Item::Record(queued) => queued.reply.is_some(),
            Item::Flush(_) | Item::Settle(_) => true,
        };
        let was_empty = state.items.is_empty();
        if was_empty {
            state.first_came = Some(Instant::now());
        }
        state.is_urgent |= waits;
        state.items.push_back(item);
        // The writer sleeps on while a batch fills; waking it for each record would cost the caller a turn.
        if was_empty || waits || state.items.len() == ENOUGH {
            self.news.notify_one();
        }
        true
    }

    /// Ends the queue; what is in it is still taken.
    pub(crate) fn close(&self) {
        self.state().is_closing = true;
        self.news.notify_one();
    }

    /// Whether items are still taken.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.state();
        !state.is_closing && !state.is_dead
    }

    /// Marks the queue as closed. Dropping the items informs the waiting callers.
    pub(crate) fn die(&self) {
        let mut state = self.state();
        state.is_dead = true;
        let dropped = std::mem::take(&mut state.items);
        drop(state);
        drop(dropped);
    }

    /// Waits for items, but for nothing longer than `idle`. A first item without a waiting caller waits for others, up
    /// to `collect`.
    pub(crate) fn take(&self, idle: Option<Duration>, collect: Duration) -> EntryBatch {
        let give_up = idle.map(|idle| Instant::now() + idle);
        let mut state = self.state();
        loop {
            let until = if state.items.is_empty() {
                if state.is_closing {
                    return EntryBatch { items: Vec::new(), is_last: true };
                }
                give_up
            } else if state.is_urgent || state.is_closing || state.items.len() >= ENOUGH {
                break;
            } else {
                state.first_came.map(|came| came + collect)
            };
            let Some(until) = until else {
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = state.items.len().min(MAX_BATCH);
        let items: Vec<Item> = state.items.drain(..count).collect();
        if state.items.is_empty() {
            state.is_urgent = false;
        }
        EntryBatch { items, is_last: state.is_closing && state.items.is_empty() }
    }
}
