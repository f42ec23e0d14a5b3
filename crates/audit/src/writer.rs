//! The thread that owns the database: takes records in, redacts them, and writes batch after batch.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tgp_contract::{Code, ToolError, canonical};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Span;

use crate::anchor::{Anchor, Head};
use crate::entry::UnchainedEntry;
use crate::failure::{ErrorContext, Failure};
use crate::queue::{Item, Queue, Reply};
use crate::redact::Redaction;
use crate::store::{self, Store};
use crate::verify;
use crate::{AuditOptions, AuditSync};

/// How long after a failure the writer tries again by itself; every record and every flush makes it try too.
const RETRY: Duration = Duration::from_millis(500);
/// However often the anchor should be moved, the writer does not spin for it.
const LEAST_WAIT: Duration = Duration::from_millis(5);
/// Entries of one transaction, so that other processes get their turn.
const MAX_ENTRIES: usize = 256;

/// Ranges of own entries that are remembered.
const MAX_OWN_RANGES: usize = 100_000;

/// What the callers and the writer share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    /// The last try to write failed. A caller with a record now waits for the result of the next write.
    is_failing: AtomicBool,
    failure: Mutex<Option<ToolError>>,
    /// The chain is broken, and nothing is written to it any more.
    is_final: AtomicBool,
    /// Records of cancelled calls for which there was no room.
    pub(crate) lost: AtomicU64,
    /// The entries that this process has written, as ranges in their order. Other processes write between them.
    own: Mutex<VecDeque<(u64, u64)>>,
}

impl Shared {
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Acquire)
    }

    /// Why nothing can be recorded any more.
    pub(crate) fn final_failure(&self) -> Option<ToolError> {
        if self.is_final.load(Ordering::Acquire) { self.slot().clone() } else { None }
    }

    /// Why the last try to write failed.
    pub(crate) fn failure(&self) -> Option<ToolError> {
        if self.is_failing() { self.slot().clone() } else { None }
    }

    /// Whether this process has written an entry. Of very old ones that is forgotten; then they count as another's.
    pub(crate) fn is_own(&self, sequence: u64) -> bool {
        let own = self.own();
        let next = own.partition_point(|(first, _)| *first <= sequence);
        let range = next.checked_sub(1).and_then(|index| own.get(index));
        range.is_some_and(|(_, last)| sequence <= *last)
    }

    fn own(&self) -> MutexGuard<'_, VecDeque<(u64, u64)>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self) -> MutexGuard<'_, Option<ToolError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, failure: Option<(ToolError, bool)>) {
        let is_failing = failure.is_some();
        if let Some((error, is_final)) = failure {
            *self.slot() = Some(error);
            self.is_final.fetch_or(is_final, Ordering::AcqRel);
        }
        self.is_failing.store(is_failing, Ordering::Release);
    }
}

/// A record that is redacted and waits for its place in the chain.
struct Pending {
    draft: UnchainedEntry,
    reply: Option<Reply>,
    /// The call in the log.
    span: Span,
    /// Given back when the record is written.
    _room: OwnedSemaphorePermit,
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    store: Store,
    anchor: Arc<dyn Anchor>,
    chain: String,
    /// The newest entry that this process has seen: it can never vanish again.
    known: Head,
    pending: VecDeque<Pending>,
    is_anchored: bool,
    anchor_tried: Instant,
    collect: Duration,
    anchor_every: Duration,
}

/// What opening found.
pub(crate) struct OpenedStore {
    pub(crate) store: Store,
    pub(crate) head: Head,
    /// Entries that had to be verified.
    pub(crate) verified: u64,
    pub(crate) is_anchored: bool,
}

/// Opens the database, or makes it, and verifies what came since the checkpoint.
pub(crate) fn open(options: &AuditOptions, anchor: &dyn Anchor) -> Result<OpenedStore, Failure> {
    let path = options.path.as_path();
    // In this order: a process that creates a database anchors it afterwards, so an anchor without one is not an
    // accident.
    if let Some(anchored) = verify::load(anchor)?
        && !exists(path)?
    {
        return Err(verify::vanished(&anchored, path));
    }
    let mut store = Store::open(path, options.durability, options.lock_wait)?;
    make_chain(&mut store, anchor)?;
    // No other process writes while this reads, so the anchor cannot be newer than the entries.
    let transaction = store.begin()?;
    store::check_schema(&transaction, path)?;
    let chain = store::chain(&transaction, path)?;
    let anchored = verify::load(anchor)?;
    let (head, verified) = verify::recent(&transaction, &chain, anchored.as_ref(), path)?;
    if anchored.is_none() {
        // A chain without entries. The first entry comes after its anchor, so that later no anchor means no honest one.
        let mut settle = || Ok(store::sync(path).and_then(|()| store::sync_folder(path))?);
        anchor.store(&head, &mut settle).map_err(Failure::Told)?;
    }
    if chain.checkpoint != head {
        store::set_checkpoint(&transaction, &head).doing("cannot write", path)?;
    }
    transaction.commit().doing("cannot write", path)?;
    let is_anchored = anchored.is_none_or(|anchored| anchored == head);
    Ok(OpenedStore { store, head, verified, is_anchored })
}

fn make_chain(store: &mut Store, anchor: &dyn Anchor) -> Result<(), Failure> {
    let path = store.path.clone();
    if !store::is_empty(&store.connection).doing("cannot read", &path)? {
        return Ok(());
    }
    let transaction = store.begin()?;
    // Another process may have been quicker.
    if store::is_empty(&transaction).doing("cannot read", &path)? {
        if let Some(anchored) = verify::load(anchor)? {
            return Err(verify::vanished(&anchored, &path));
        }
        store::create(&transaction, &new_chain_id()?).doing("cannot write", &path)?;
    }
    transaction.commit().doing("cannot write", &path)
}

pub(crate) fn new_chain_id() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::Told(
            ToolError::new(Code::Internal, format!("the system gives no random numbers: {error}"))
                .help("try again"),
        )
    })?;
    Ok(canonical::hex(&bytes))
}

fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().doing("cannot look at", path)
}

/// Marks the writer as gone, however the thread ends.
struct MarkDeadOnDrop(Arc<Shared>);

impl Drop for MarkDeadOnDrop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(Some((Failure::Panicked.into(), true)));
        }
        self.0.queue.die();
    }
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        opened: OpenedStore,
        anchor: Arc<dyn Anchor>,
        options: &AuditOptions,
    ) -> Self {
        let collect = match options.durability {
            AuditSync::Batched => options.flush_after,
            AuditSync::Call => Duration::ZERO,
        };
        Self {
            shared,
            store: opened.store,
            anchor,
            chain: opened.head.chain.clone(),
            known: opened.head,
            pending: VecDeque::new(),
            is_anchored: opened.is_anchored,
            anchor_tried: Instant::now(),
            collect,
            anchor_every: options.anchor_every,
        }
    }

    /// Works until the queue is closed. The answer is what a last flush would have said. Compiling the patterns takes
    /// longer than opening the chain, so it is done here: the first record waits for it, and no start does.
    pub(crate) fn run(
        mut self,
        redaction: impl FnOnce() -> Result<Redaction, ToolError>,
    ) -> Result<(), ToolError> {
        let _death = MarkDeadOnDrop(Arc::clone(&self.shared));
        let redaction = redaction()?;
        loop {
            let idle = if !self.pending.is_empty() {
                Some(RETRY)
            } else if !self.is_anchored && self.shared.final_failure().is_none() {
                Some(self.anchor_every.saturating_sub(self.anchor_tried.elapsed()).max(LEAST_WAIT))
            } else {
                None
            };
            let taken = self.shared.queue.take(idle, self.collect);
            let (mut flushes, mut settles) = (Vec::new(), Vec::new());
            for item in taken.items {
                match item {
                    Item::Flush(reply) => flushes.push(reply),
                    Item::Settle(reply) => settles.push(reply),
                    Item::Record(queued) => self.pending.push_back(Pending {
                        draft: UnchainedEntry::call(*queued.record, &redaction),
                        reply: queued.reply,
                        span: queued.span,
                        _room: queued.room,
                    }),
                }
            }
            let mut outcome = self.write_all();
            for reply in settles {
                let _ = reply.send(self.with_losses(&outcome));
            }
            let must_anchor = !flushes.is_empty() || taken.is_last;
            let is_due = must_anchor || self.anchor_tried.elapsed() >= self.anchor_every;
            if outcome.is_ok() && !self.is_anchored && is_due {
                let anchored = self.store_anchor();
                if must_anchor {
                    outcome = anchored;
                }
            }
            for reply in flushes {
                let _ = reply.send(self.with_losses(&outcome));
            }
            if taken.is_last {
                return self.with_losses(&outcome);
            }
        }
    }

    fn with_losses(&self, outcome: &Result<(), ToolError>) -> Result<(), ToolError> {
        outcome.clone()?;
        match self.shared.lost.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            lost => Err(Failure::Lost(lost).into()),
        }
    }

    /// Writes what waits. What cannot be written now stays, for the next try.
    fn write_all(&mut self) -> Result<(), ToolError> {
        if let Some(error) = self.shared.final_failure() {
            self.answer_all(&error);
            self.pending.clear();
            return Err(error);
        }
        while !self.pending.is_empty() {
            match self.write_some() {
                Ok(count) => {
                    self.shared.set(None);
                    self.is_anchored = false;
                    // No other process has written after these, so the last of them is the newest entry.
                    let first = (self.known.sequence + 1).saturating_sub(count as u64);
                    for (seq, pending) in (first..).zip(self.pending.drain(..count)) {
                        pending.span.record("seq", seq);
                        pending.span.in_scope(|| tracing::debug!(target: "audit", "recorded"));
                        if let Some(reply) = pending.reply {
                            let _ = reply.send(Ok(()));
                        }
                    }
                }
                Err(failure) => {
                    let is_final = failure.is_final();
                    let error = ToolError::from(failure);
                    tracing::error!(target: "audit", "{}", error.message);
                    self.shared.set(Some((error.clone(), is_final)));
                    self.answer_all(&error);
                    if is_final {
                        self.pending.clear();
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn answer_all(&mut self, error: &ToolError) {
        for pending in &mut self.pending {
            if let Some(reply) = pending.reply.take() {
                let _ = reply.send(Err(error.clone()));
            }
        }
    }

    /// One transaction: reads where the chain ends, whichever process wrote there, and continues from it.
    fn write_some(&mut self) -> Result<usize, Failure> {
        self.store.check_identity()?;
        let path = self.store.path.clone();
        let transaction = self.store.begin()?;
        let mut head = end_of_chain(&transaction, &self.chain, &self.known, &path)?;
        let count = self.pending.len().min(MAX_ENTRIES);
        for Pending { draft, .. } in self.pending.iter().take(count) {
            let placed = draft
                .placed(&head)
                .map_err(|error| Failure::Foreign(format!("an entry cannot be written: {error}")))?;
            store::append(&transaction, head.sequence + 1, &draft.columns, &placed)
                .doing("cannot write", &path)?;
            head = Head { sequence: head.sequence + 1, hash: placed.hash, ..head };
        }
        // Held until they are committed, so that no reader finds an entry whose writer is not known yet.
        let mut own = self.shared.own();
        transaction.commit().doing("cannot write", &path)?;
        let first = (head.sequence + 1).saturating_sub(count as u64);
        match own.back_mut() {
            Some((_, last)) if *last + 1 == first => *last = head.sequence,
            _ => own.push_back((first, head.sequence)),
        }
        if own.len() > MAX_OWN_RANGES {
            own.pop_front();
        }
        drop(own);
        self.known = head;
        Ok(count)
    }

    /// Anchors the newest entry, and sets the checkpoint to it. A failure to anchor is reported to the caller that
    /// flushes; the records are kept all the same.
    fn store_anchor(&mut self) -> Result<(), ToolError> {
        self.anchor_tried = Instant::now();
        let stored = self.try_anchor();
        match stored {
            Ok(head) => {
                self.known = head;
                self.is_anchored = true;
                Ok(())
            }
            Err(failure) => {
                let is_final = failure.is_final();
                let error = ToolError::from(failure);
                if is_final {
                    self.shared.set(Some((error.clone(), true)));
                }
                Err(error)
            }
        }
    }

    fn try_anchor(&mut self) -> Result<Head, Failure> {
        self.store.check_identity()?;
        let path = self.store.path.clone();
        // With the right to write in hand, so that no other process anchors something older after this.
        let transaction = self.store.begin()?;
        let head = end_of_chain(&transaction, &self.chain, &self.known, &path)?;
        self.anchor.store(&head, &mut || Ok(store::sync(&path)?)).map_err(Failure::Told)?;
        store::set_checkpoint(&transaction, &head).doing("cannot write", &path)?;
        transaction.commit().doing("cannot write", &path)?;
        Ok(head)
    }
}

/// Where the chain ends now; what this process knew of it has to be in it still.
fn end_of_chain(
    connection: &rusqlite::Connection,
    chain: &str,
    known: &Head,
    path: &Path,
) -> Result<Head, Failure> {
    if store::chain(connection, path)?.id != chain {
        return Err(Failure::Foreign("the database came to hold another chain while it was open".to_owned()));
    }
    let last = store::last(connection, chain, path)?;
    if last != *known {
        store::confirm(connection, known, "this process", path)?;
    }
    Ok(last)
}
