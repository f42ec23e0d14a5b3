//! JSON-RPC over lines: one message a line, every buffer bounded.
//!
//! The reader counts the values of a message before it parses it, and how many requests are open. Requests beyond that are
//! answered with an error, and nothing is read while such an answer cannot be written. So a host that sends without reading
//! makes the server wait, and never makes it grow.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use tgp_contract::{JsonLimits, measure};
use tgp_net::{CappedLine, CappedLines};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of one message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Requests of a host that are not answered yet.
const MAX_OPEN: usize = 512;
/// Messages on their way to the host; more of them wait in their senders.
const MAX_QUEUED: usize = 16;
/// How long the last answers may take to be written when the connection ends.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// The requests that a host waits for.
type OpenRequests = Arc<Mutex<HashSet<RequestId>>>;

pub(crate) struct LineTransport<R> {
    lines: CappedLines<R>,
    /// An answer of the reader itself, until there is room for it.
    refusal: Option<Vec<u8>>,
    open: OpenRequests,
    sender: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

/// The part of an invalid message that can still be read.
#[derive(Deserialize)]
struct OnlyId {
    id: Option<RequestId>,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    pub(crate) fn new<W: AsyncWrite + Unpin + Send + 'static>(reader: R, writer: W) -> Self {
        let (sender, queue) = mpsc::channel(MAX_QUEUED);
        Self {
            lines: CappedLines::new(reader, MAX_MESSAGE_BYTES),
            refusal: None,
            open: OpenRequests::default(),
            sender: Some(sender),
            writer: Some(tokio::spawn(write_lines(writer, queue))),
        }
    }

    /// The message of a line, or what the host is told about it.
    fn message(&self, line: &CappedLine) -> Result<ClientJsonRpcMessage, Box<ServerJsonRpcMessage>> {
        match line {
            CappedLine::Text(text) => self.parse(text),
            CappedLine::TooLong => {
                Err(refused(None, format!("a message has at most {MAX_MESSAGE_BYTES} bytes")))
            }
        }
    }

    fn parse(&self, text: &[u8]) -> Result<ClientJsonRpcMessage, Box<ServerJsonRpcMessage>> {
        let id = || serde_json::from_slice::<OnlyId>(text).ok().and_then(|only| only.id);
        measure(text, JsonLimits::ARGUMENTS).map_err(|error| refused(id(), error.to_string()))?;
        let message: ClientJsonRpcMessage = serde_json::from_slice(text).map_err(|error| {
            let code = if error.is_data() { ErrorCode::INVALID_REQUEST } else { ErrorCode::PARSE_ERROR };
            let error = ErrorData::new(code, "the message is not a JSON-RPC message of MCP", None);
            Box::new(ServerJsonRpcMessage::error(error, id()))
        })?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                if open.len() >= MAX_OPEN {
                    return Err(refused(Some(id), format!("{MAX_OPEN} requests are open; wait for answers")));
                }
                if !open.insert(id.clone()) {
                    return Err(refused(None, format!("the request `{id}` is open already")));
                }
            }
            ClientJsonRpcMessage::Notification(notification) => {
                // A cancelled request is not answered any more.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    open.remove(id);
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ServerJsonRpcMessage::Error(error) => error.id.clone(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        let (open, sender) = (Arc::clone(&self.open), self.sender.clone());
        async move {
            let sent = match sender {
                Some(sender) => sender.send(encoded(&item)).await.is_ok(),
                None => false,
            };
            if let Some(id) = answered {
                open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            }
            if sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let sender = self.sender.clone()?;
            if self.refusal.is_some() {
                let place = sender.reserve().await.ok()?;
                place.send(self.refusal.take().unwrap_or_default());
            }
            let line = tokio::select! {
                // A host that takes no answers is gone.
                () = sender.closed() => return None,
                line = self.lines.next() => line?,
            };
            match self.message(&line) {
                Ok(message) => return Some(message),
                Err(refusal) => self.refusal = Some(encoded(&refusal)),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.sender.take());
        if let Some(writer) = self.writer.take() {
            let abort = writer.abort_handle();
            if tokio::time::timeout(CLOSE_PATIENCE, writer).await.is_err() {
                abort.abort();
            }
        }
        Ok(())
    }
}

async fn write_lines<W: AsyncWrite + Unpin>(mut writer: W, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

fn refused(id: Option<RequestId>, reason: String) -> Box<ServerJsonRpcMessage> {
    Box::new(ServerJsonRpcMessage::error(ErrorData::invalid_request(reason, None), id))
}

/// A message as a line. JSON has no line break outside of its own white space, of which none is written.
fn encoded(message: &ServerJsonRpcMessage) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
