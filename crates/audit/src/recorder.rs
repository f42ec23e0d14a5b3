//! The recorder of the kernel: it takes records and decisions, and keeps them.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tgp_contract::{CallRecord, Recorder, Target, ToolError, ToolResult};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::Span;

use crate::anchor::{Anchor, Head};
use crate::failure::{ErrorContext, Failure};
use crate::queue::{Item, QueuedRecord, Reply};
use crate::reader::{AuditReader, VerifyReport};
use crate::redact::Redaction;
use crate::writer::{self, Shared, Writer};
use crate::{AuditOptions, AuditSync};

/// The unit in which waiting records are weighed.
const UNIT_BYTES: usize = 1 << 10;
/// Waiting records take at most 64 MiB of memory; a larger one takes all of it and waits until it is alone.
const ROOM_UNITS: u32 = 64 << 10;
/// Room for records of cancelled calls, which cannot wait, when there is no other.
const SPARE_UNITS: u32 = 16 << 10;
/// How long a call waits for room. Until then a disk that works has written everything that was waiting.
const ROOM_WAIT: Duration = Duration::from_secs(10);
/// What a record takes beside its texts.
const RECORD_BYTES: usize = 1 << 10;
/// What a file, verdict or node of the arguments takes beside its texts.
const NODE_BYTES: usize = 64;

/// Keeps every record in the chain. Dropping it writes and anchors what is still waiting.
pub struct Audit {
    options: AuditOptions,
    anchor: Arc<dyn Anchor>,
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    spare: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<Result<(), ToolError>>>>,
    opened_at: Head,
    verified: u64,
}

impl fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Audit").field("path", &self.options.path).finish_non_exhaustive()
    }
}

/// The proof that a person's decision is in the audit. What loosens a rule takes one, so it cannot happen without its
/// record.
#[derive(Debug)]
#[must_use = "a recorded decision has not taken effect yet"]
pub struct RecordedDecision(());

impl RecordedDecision {
    /// Marks the moment from which the decision holds. One record covers one change.
    pub fn take_effect(self) {}
}

impl Audit {
    /// Records what a person decides, and returns once the entry is written and anchored.
    ///
    /// # Errors
    /// When the entry could not be written. Then the decision must not take effect.
    pub async fn record_decision(&self, record: CallRecord) -> Result<RecordedDecision, ToolError> {
        self.record(record).await?;
        self.flush().await?;
        Ok(RecordedDecision(()))
    }

    /// Opens the chain, or begins one where there is neither a database nor an anchor. What came since the checkpoint
    /// is verified. It reads and writes files, so call it from a thread that may wait.
    ///
    /// # Errors
    /// `EINTEGRITY` when the chain is broken, cut off or replaced (`details.sequence` names the first bad entry where
    /// it is known), `EINTERNAL` when the database cannot be used, `ECONFIG` for too many secrets.
    pub fn open(options: AuditOptions, anchor: Arc<dyn Anchor>) -> Result<Self, ToolError> {
        Redaction::check(&options.secret_names, &options.secret_values)?;
        let opened = writer::open(&options, anchor.as_ref())?;
        let (opened_at, verified) = (opened.head.clone(), opened.verified);
        let shared = Arc::new(Shared::default());
        let writer = Writer::new(Arc::clone(&shared), opened, Arc::clone(&anchor), &options);
        let (names, values) = (options.secret_names.clone(), options.secret_values.clone());
        let thread = std::thread::Builder::new()
            .name("tgp-audit".to_owned())
            .spawn(move || writer.run(|| Redaction::new(&names, &values)))
            .doing("cannot start the writer of", &options.path)?;
        Ok(Self {
            options,
            anchor,
            shared,
            room: Arc::new(Semaphore::new(ROOM_UNITS as usize)),
            spare: Arc::new(Semaphore::new(SPARE_UNITS as usize)),
            thread: Mutex::new(Some(thread)),
            opened_at,
            verified,
        })
    }

    /// The newest entry when the audit was opened.
    #[must_use]
    pub fn opened_at(&self) -> &Head {
        &self.opened_at
    }

    /// How many entries opening had to verify: those since the checkpoint.
    #[must_use]
    pub fn verified(&self) -> u64 {
        self.verified
    }

    /// Whether this process has written an entry, and no other one.
    #[must_use]
    pub fn is_own(&self, sequence: u64) -> bool {
        self.shared.is_own(sequence)
    }

    /// Writes and anchors everything that was recorded before.
    ///
    /// # Errors
    /// When something could not be written or anchored, or was lost.
    pub async fn flush(&self) -> Result<(), ToolError> {
        self.wait_for(Item::Flush).await
    }

    /// Writes everything that was recorded before, so that it survives the end of this process.
    ///
    /// # Errors
    /// When something could not be written, or was lost.
    pub async fn settle(&self) -> Result<(), ToolError> {
        self.wait_for(Item::Settle).await
    }

    async fn wait_for(&self, item: impl FnOnce(Reply) -> Item) -> Result<(), ToolError> {
        let (reply, answer) = oneshot::channel();
        if !self.shared.queue.push(item(reply)) {
            return Err(Failure::Closed.into());
        }
        answer.await.map_err(|_| ToolError::from(Failure::Thread))?
    }

    /// Writes and anchors everything, and ends. Records that come later fail.
    ///
    /// # Errors
    /// As [`Audit::flush`].
    pub async fn close(&self) -> Result<(), ToolError> {
        let Some(thread) = self.end() else { return Ok(()) };
        let ended = tokio::task::spawn_blocking(move || thread.join()).await;
        ended.ok().and_then(Result::ok).unwrap_or_else(|| Err(Failure::Thread.into()))
    }

    /// Verifies the whole chain, from the first entry, with what is recorded up to now.
    ///
    /// # Errors
    /// `EINTEGRITY` with the first bad entry, or what kept the chain from being read.
    pub async fn verify_whole(&self) -> Result<VerifyReport, ToolError> {
        self.flush().await?;
        let (path, anchor) = (self.options.path.clone(), Arc::clone(&self.anchor));
        let verified = tokio::task::spawn_blocking(move || {
            AuditReader::open(path, anchor).and_then(|reader| reader.verify())
        });
        verified.await.map_err(|_| ToolError::from(Failure::Thread))?
    }

    fn end(&self) -> Option<JoinHandle<Result<(), ToolError>>> {
        self.shared.queue.close();
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn wait_for_room(&self, units: u32) -> Result<OwnedSemaphorePermit, ToolError> {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(units) {
            return Ok(room);
        }
        if let Some(error) = self.shared.failure() {
            return Err(error);
        }
        let room = Arc::clone(&self.room).acquire_many_owned(units);
        match tokio::time::timeout(ROOM_WAIT, room).await {
            Ok(Ok(room)) => Ok(room),
            Ok(Err(_)) => Err(Failure::Closed.into()),
            Err(_) => {
                Err(self.shared.failure().unwrap_or_else(|| Failure::NoRoom(ROOM_WAIT.as_secs()).into()))
            }
        }
    }
}

#[async_trait]
impl Recorder for Audit {
    async fn record(&self, mut record: CallRecord) -> Result<(), ToolError> {
        forget_data(&mut record);
        if let Some(error) = self.shared.final_failure() {
            return Err(error);
        }
        let room = self.wait_for_room(units(&record)).await?;
        let waits = self.options.durability == AuditSync::Call || self.shared.is_failing();
        let (reply, answer) = oneshot::channel();
        let span = Span::current();
        let queued = QueuedRecord { record: Box::new(record), room, reply: waits.then_some(reply), span };
        if !self.shared.queue.push(Item::Record(queued)) {
            return Err(Failure::Closed.into());
        }
        if waits {
            answer.await.map_err(|_| ToolError::from(Failure::Thread))??;
        }
        match self.shared.lost.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            lost => Err(Failure::Lost(lost).into()),
        }
    }

    fn check(&self) -> Result<(), ToolError> {
        // What only failed the last time is tried again, and a record waits for it.
        if let Some(error) = self.shared.final_failure() {
            return Err(error);
        }
        if self.shared.queue.is_open() { Ok(()) } else { Err(Failure::Closed.into()) }
    }

    async fn ready(&self) -> Result<(), ToolError> {
        if self.shared.is_failing() && self.shared.final_failure().is_none() {
            // What could not be written before may be now: the disk has room again, the database is free again.
            return self.settle().await;
        }
        self.check()
    }

    fn record_cancelled(&self, mut record: CallRecord) {
        record.cancelled = true;
        forget_data(&mut record);
        let units = units(&record);
        let room = Arc::clone(&self.room)
            .try_acquire_many_owned(units)
            .or_else(|_| Arc::clone(&self.spare).try_acquire_many_owned(units.min(SPARE_UNITS)));
        let kept = room.is_ok_and(|room| {
            let record = Box::new(record);
            let queued = QueuedRecord { record, room, reply: None, span: Span::current() };
            self.shared.queue.push(Item::Record(queued))
        });
        if !kept {
            self.shared.lost.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if let Some(thread) = self.end() {
            let _ = thread.join();
        }
    }
}

/// What a tool answered is not part of its entry, and need not wait in memory.
fn forget_data(record: &mut CallRecord) {
    if let ToolResult::Done(data) = &mut record.result {
        *data = Value::Null;
    }
}

fn units(record: &CallRecord) -> u32 {
    let mut bytes = RECORD_BYTES + NODE_BYTES * (record.files.len() + record.verdicts.len());
    bytes += record.call.id.len() + record.call.tool.len() + record.context.session.len();
    bytes += record.result.error().map_or(0, |error| error.message.len());
    bytes += record.files.iter().map(|file| file.path.as_str().len()).sum::<usize>();
    bytes += record
        .targets
        .iter()
        .map(|target| match target {
            Target::Statement { sql, .. } => sql.len(),
            Target::Command { command } => command.len(),
            Target::Host { host } => host.len(),
            Target::File { path, .. } => path.as_str().len(),
            Target::UpstreamTool { server, tool } => server.len() + tool.len(),
            Target::Secret { name } | Target::HostTool { name } | Target::Branch { name } => name.len(),
            Target::Network | Target::Limits(_) => 0,
        })
        .sum::<usize>();
    let mut open = vec![&record.call.arguments];
    while let Some(value) = open.pop() {
        bytes += NODE_BYTES;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                bytes += fields.keys().map(String::len).sum::<usize>();
                open.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    u32::try_from(bytes / UNIT_BYTES + 1).unwrap_or(ROOM_UNITS).min(ROOM_UNITS)
}
