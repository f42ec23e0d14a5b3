//! The other end of a connection: what is written to it, and the requests that it has not answered yet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tgp_contract::{Code, JsonLimits, ToolError};
use tgp_text::one_line;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::envelope;
use super::protocol::{CancelParams, RequestId, RpcError, callback, notification};
use crate::memory::{ClientMemory, Held};

/// Lines on their way to the other end; more of them wait in their senders.
const MAX_QUEUED: usize = 64;
/// Characters of why an answer cannot be read.
const MAX_CAUSE: usize = 300;
/// Requests that the other end has not answered.
const MAX_OPEN: usize = 4096;

/// What comes for a request: its answer, or why what came cannot be read.
type Answer = oneshot::Sender<Result<Result<Value, RpcError>, String>>;

/// A request that is not answered yet.
#[derive(Debug)]
struct Waiting {
    answer: Answer,
    /// Values that its answer may have.
    values: usize,
}

/// The requests that wait for an answer; none any more once the other end is gone.
#[derive(Debug, Default)]
struct Open(Option<BTreeMap<u64, Waiting>>);

/// Why a request to the host gave nothing.
#[derive(Debug)]
pub(crate) enum HostFailure {
    /// The host says that it failed.
    Answered(ToolError),
    /// It says nothing that can be read; what it did is not known.
    Silent(ToolError),
}

impl From<HostFailure> for ToolError {
    fn from(failure: HostFailure) -> Self {
        match failure {
            HostFailure::Answered(error) | HostFailure::Silent(error) => error,
        }
    }
}

/// What is written.
#[derive(Debug)]
enum Outgoing {
    /// A line, and the memory that it takes where that is counted.
    Line(Vec<u8>, Option<Held>),
    /// Nothing more: parts of a kernel hold a peer longer than it is of use.
    End,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lines: mpsc::Sender<Outgoing>,
    open: Mutex<Open>,
    next: AtomicU64,
    /// What answers count in, where they do.
    memory: Option<ClientMemory>,
}

impl Peer {
    /// Writes to `writer` until [`Peer::finish`], or the other end takes nothing for `patience`.
    pub(crate) fn new<W>(
        writer: W,
        patience: Duration,
        memory: Option<ClientMemory>,
    ) -> (Self, JoinHandle<()>)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (lines, queue) = mpsc::channel(MAX_QUEUED);
        let open = Mutex::new(Open(Some(BTreeMap::new())));
        let peer = Self(Arc::new(Inner { lines, open, next: AtomicU64::new(1), memory }));
        (peer, tokio::spawn(write_lines(writer, queue, patience)))
    }

    /// Whether the other end still takes what is written.
    pub(crate) async fn closed(&self) {
        self.0.lines.closed().await;
    }

    pub(crate) async fn answer(&self, id: &RequestId, result: Result<impl Serialize, RpcError>) {
        let line = envelope::answer(id, &result);
        drop(result);
        let Some(memory) = &self.0.memory else { return self.write(line).await };
        match memory.hold_answer(line.len()) {
            Some(held) => {
                let _ = self.0.lines.send(Outgoing::Line(line, Some(held))).await;
            }
            None => {
                drop(line);
                let message = "too many answers wait to be read by the clients";
                let error = ToolError::new(Code::Budget, message).detail("ran", true).help(
                    "read answers before sending more requests; `tgp audit tail` shows how the call ended",
                );
                self.refuse(Some(id), &error.into()).await;
            }
        }
    }

    pub(crate) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.write(envelope::failure(id, error)).await;
    }

    /// What is written to a peer that is gone is of no more interest.
    async fn write(&self, line: Vec<u8>) {
        let _ = self.0.lines.send(Outgoing::Line(line, None)).await;
    }

    /// Says something that is not answered. It waits until there is room.
    pub(crate) async fn notify(&self, method: &str, params: &impl Serialize) {
        if let Some(line) = envelope::notification(method, params) {
            self.write(line).await;
        }
    }

    /// The same where nothing may wait; it is left out when there is no room.
    pub(crate) fn try_notify(&self, method: &str, params: &impl Serialize) -> bool {
        let line = envelope::notification(method, params);
        line.is_some_and(|line| self.0.lines.try_send(Outgoing::Line(line, None)).is_ok())
    }

    /// Asks the other end. Dropped before the answer, the request is cancelled there.
    ///
    /// # Errors
    /// What the other end says, with its own code where it gives one. Without one, and when it is silent or has ended, the
    /// code is `otherwise`.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
        otherwise: Code,
    ) -> Result<T, HostFailure> {
        match self.exchange(method, params, patience, otherwise).await.map_err(HostFailure::Silent)? {
            Ok(result) => serde_json::from_value(result)
                .map_err(|error| HostFailure::Silent(unreadable(method, &error.to_string(), otherwise))),
            Err(RpcError { message, data, .. }) => {
                let error = data.map_or_else(|| ToolError::new(otherwise, message), |data| *data);
                Err(HostFailure::Answered(error.bounded()))
            }
        }
    }

    /// The other end's answer to a request, whatever it is.
    async fn exchange(
        &self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
        otherwise: Code,
    ) -> Result<Result<Value, RpcError>, ToolError> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let line = envelope::request(id, method, params).ok_or_else(|| {
            ToolError::new(otherwise, format!("what `{method}` would send to the host is too large"))
        })?;
        let (waiting, answer) = oneshot::channel();
        {
            let mut open = self.open();
            let requests = open.0.as_mut().ok_or_else(|| gone(otherwise))?;
            if requests.len() >= MAX_OPEN {
                return Err(ToolError::new(Code::Budget, "too many requests wait for the host"));
            }
            requests.insert(id, Waiting { answer: waiting, values: values_of(method) });
        }
        let mut asked = Asked { peer: self, id, is_answered: false };
        self.0.lines.send(Outgoing::Line(line, None)).await.map_err(|_| gone(otherwise))?;
        let answer = tokio::time::timeout(patience, answer).await.map_err(|_| {
            let message = format!("the host did not answer `{method}` within {} s", patience.as_secs());
            ToolError::new(otherwise, message).help("the host program must answer what it has offered to do")
        })?;
        asked.is_answered = true;
        answer.map_err(|_| gone(otherwise))?.map_err(|why| unreadable(method, &why, otherwise))
    }

    /// Takes the answer to a request, and how many values its line has. One to a request that is not open is dropped.
    pub(crate) fn answered(&self, id: u64, result: Result<Value, RpcError>, values: usize) {
        let waiting = self.open().0.as_mut().and_then(|open| open.remove(&id));
        if let Some(Waiting { answer, values: most }) = waiting {
            let taken =
                if values > most { Err(format!("it has more than {most} values")) } else { Ok(result) };
            // Who has asked may be gone.
            let _ = answer.send(taken);
        }
    }

    /// Takes what came in place of an answer. The request fails at once, and what it did is not known.
    pub(crate) fn unreadable(&self, id: u64, why: &str) {
        let waiting = self.open().0.as_mut().and_then(|open| open.remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.answer.send(Err(why.to_owned()));
        }
    }

    /// The other end says nothing any more: every request fails.
    pub(crate) fn end(&self) {
        self.open().0 = None;
    }

    /// What was written before is the last.
    pub(crate) async fn finish(&self) {
        let _ = self.0.lines.send(Outgoing::End).await;
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request on its way. It is cancelled when it is dropped without an answer.
struct Asked<'a> {
    peer: &'a Peer,
    id: u64,
    is_answered: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let was_open = self.peer.open().0.as_mut().is_some_and(|open| open.remove(&self.id).is_some());
        let cancel = CancelParams { id: RequestId::Number(self.id) };
        if !was_open || self.peer.try_notify(notification::CANCEL, &cancel) {
            return;
        }
        // The queue is full. At most as many wait for room as requests can be open.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let peer = self.peer.clone();
            runtime.spawn(async move { peer.notify(notification::CANCEL, &cancel).await });
        }
    }
}

/// What a function of the host gives goes through a tool, which holds several copies of it, as a call does of its arguments.
fn values_of(method: &str) -> usize {
    if method == callback::CALL { JsonLimits::ARGUMENTS.values } else { usize::MAX }
}

fn unreadable(method: &str, why: &str, code: Code) -> ToolError {
    let why = one_line(why, MAX_CAUSE);
    ToolError::new(code, format!("the host's answer to `{method}` cannot be read: {why}"))
        .help("docs/protocol.md shows every message")
}

fn gone(code: Code) -> ToolError {
    ToolError::new(code, "the host has ended").help("start the host program again")
}

async fn write_lines<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::Receiver<Outgoing>,
    patience: Duration,
) {
    while let Some(Outgoing::Line(line, _held)) = queue.recv().await {
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        if !matches!(tokio::time::timeout(patience, written).await, Ok(Ok(()))) {
            return;
        }
    }
}
