//! The messages of one client, from its first line to its end.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tgp::Kernel;
use tgp_contract::{Code, JsonLimits, ToolError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::envelope::{Incoming, MAX_MESSAGE_BYTES, Malformed, number, params, parse};
use super::methods::{Methods, unknown_method};
use super::peer::Peer;
use super::protocol::{
    CancelParams, Done, InitializeParams, InitializeResult, RequestId, RpcError, method, notification,
};
use super::requests::OpenRequests;
use crate::memory::Held;

/// What comes from a client.
pub(crate) enum Line {
    /// A line, and the memory that it takes where that is counted.
    Text(Vec<u8>, Option<Held>),
    /// It is longer than a message may be.
    TooLong,
    /// It is not taken, for this reason; the client may continue.
    Refused(ToolError),
    /// The client sends no more, or not in time.
    End,
}

/// Where the lines of a client come from.
#[async_trait]
pub(crate) trait Lines: Send {
    /// The next one. What was read before the future is dropped is kept.
    async fn next(&mut self) -> Line;
}

/// Makes the kernel of a client at its first request.
#[async_trait]
pub(crate) trait Opener: Send + Sync {
    async fn open(
        &self,
        peer: &Peer,
        wanted: InitializeParams,
    ) -> Result<(Methods, InitializeResult), ToolError>;
}

/// Where the kernel of the client stands.
pub(crate) enum KernelState {
    None(Arc<dyn Opener>),
    Booting(oneshot::Receiver<Methods>, Arc<dyn Opener>),
    Ready(Methods),
}

impl KernelState {
    fn into_kernel(self) -> Option<Arc<Kernel>> {
        match self {
            Self::Ready(methods) => Some(methods.kernel),
            Self::Booting(mut ready, _) => ready.try_recv().ok().map(|methods| methods.kernel),
            Self::None(_) => None,
        }
    }
}

/// A client and what it has asked for.
pub(crate) struct Conversation {
    peer: Peer,
    requests: OpenRequests,
    work: JoinSet<()>,
    kernel: KernelState,
    limits: JsonLimits,
}

impl Conversation {
    /// At most `requests` are under way; a message has at most as many values as `limits` says.
    pub(crate) fn new(peer: Peer, kernel: KernelState, requests: usize, limits: JsonLimits) -> Self {
        Self { peer, requests: OpenRequests::new(requests), work: JoinSet::new(), kernel, limits }
    }

    /// Cancels what is under way, with its records, and gives back the kernel.
    pub(crate) async fn end(mut self) -> Option<Arc<Kernel>> {
        self.work.shutdown().await;
        self.kernel.into_kernel()
    }

    /// Serves the client until it closes its side or asks for the end.
    ///
    /// # Errors
    /// `EVALIDATION` when the client does not speak the protocol.
    pub(crate) async fn serve(&mut self, lines: &mut dyn Lines) -> Result<(), ToolError> {
        let mut ending: Option<RequestId> = None;
        loop {
            if let (Some(id), true) = (&ending, self.work.is_empty()) {
                self.peer.answer(id, Ok(Done {})).await;
                return Ok(());
            }
            let line = tokio::select! {
                line = lines.next() => line,
                // A client that takes no answers is gone.
                () = self.peer.closed() => return Ok(()),
                Some(_) = self.work.join_next() => continue,
            };
            let (text, held) = match line {
                Line::End => return Ok(()),
                Line::Text(text, held) => (text, held),
                Line::Refused(error) => {
                    self.peer.refuse(None, &error.into()).await;
                    continue;
                }
                Line::TooLong => {
                    let message = format!("a message has at most {MAX_MESSAGE_BYTES} bytes");
                    self.peer.refuse(None, &RpcError::new(number::PARSE, message.clone())).await;
                    return Err(ToolError::new(Code::Validation, message));
                }
            };
            match parse(&text, self.limits) {
                Ok(Incoming::Answer { id, result, values }) => self.peer.answered(id, result, values),
                Ok(Incoming::Notification { method, params: value }) => {
                    if let (notification::CANCEL, Ok(cancel)) =
                        (method.as_str(), params::<CancelParams>(value))
                    {
                        self.requests.cancel(&cancel.id);
                    }
                }
                Ok(Incoming::Request { id, method, .. }) if method == method::SHUTDOWN => {
                    if let Some(earlier) = ending.replace(id) {
                        self.peer.answer(&earlier, Ok(Done {})).await;
                    }
                }
                Ok(Incoming::Request { id, .. }) if ending.is_some() => {
                    self.peer
                        .refuse(Some(&id), &RpcError::new(number::NOT_READY, "the kernel is ending"))
                        .await;
                }
                Ok(Incoming::Request { id, method, params }) => {
                    if let Err(error) = self.begin(&id, method, params, held) {
                        self.peer.refuse(Some(&id), &error).await;
                    }
                }
                Err(Malformed { id, answers, error }) => {
                    if let Some(answers) = answers {
                        self.peer.unreadable(answers, &error.message);
                    }
                    self.peer.refuse(id.as_ref(), &error).await;
                }
            }
        }
    }

    /// Begins to work on a request.
    fn begin(
        &mut self,
        id: &RequestId,
        method: String,
        value: Value,
        held: Option<Held>,
    ) -> Result<(), RpcError> {
        if let KernelState::Booting(ready, opener) = &mut self.kernel {
            match ready.try_recv() {
                Ok(methods) => self.kernel = KernelState::Ready(methods),
                // It did not boot; the client may try again.
                Err(oneshot::error::TryRecvError::Closed) => {
                    self.kernel = KernelState::None(Arc::clone(opener));
                }
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
        }
        match (&self.kernel, method.as_str()) {
            (KernelState::None(opener), method::INITIALIZE) => {
                let wanted = params(value)?;
                let request = self.requests.begin(id)?;
                let (ready, booted) = oneshot::channel();
                let (opener, peer) = (Arc::clone(opener), self.peer.clone());
                self.kernel = KernelState::Booting(booted, Arc::clone(&opener));
                self.work.spawn(async move {
                    let answer = match opener.open(&peer, wanted).await {
                        Ok((methods, welcome)) => {
                            // Before the answer: the client's next request finds it.
                            let _ = ready.send(methods);
                            Ok(welcome)
                        }
                        Err(error) => {
                            drop(ready);
                            Err(RpcError::from(error))
                        }
                    };
                    let (id, _unanswered) = request.done();
                    peer.answer(&id, answer).await;
                });
                Ok(())
            }
            (KernelState::Ready(methods), _) => {
                let request = self.requests.begin(id)?;
                let work = methods.clone().serve(request, method, value);
                self.work.spawn(async move {
                    work.await;
                    // What the request holds counts until it is answered.
                    drop(held);
                });
                Ok(())
            }
            (KernelState::Booting(..), _) => {
                Err(RpcError::new(number::NOT_READY, "the kernel boots; wait for the answer to `initialize`"))
            }
            (
                KernelState::None(_),
                method::TOOLS_LIST | method::TOOLS_CALL | method::PROMPT_GET | method::SESSION_RUN,
            ) => Err(RpcError::new(number::NOT_READY, "the first request is `initialize`")),
            (KernelState::None(_), other) => Err(unknown_method(other)),
        }
    }
}
