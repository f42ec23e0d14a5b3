//! The program that has started this process, on its standard streams.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tgp::Kernel;
use tgp::project::ClientClaim;
use tgp_contract::{ClientEntry, Code, ToolError};
use tgp_net::{CappedLine, CappedLines};
use tgp_text::one_line;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::envelope::{Incoming, MAX_MESSAGE_BYTES, Malformed, number, params, parse};
use super::host::{HostBoot, HostParts};
use super::methods::{Methods, consent, unknown_method};
use super::peer::Peer;
use super::protocol::{
    CancelParams, Done, HostConsent, InitializeParams, InitializeResult, PROTOCOL_VERSION, RequestId,
    RpcError, method, notification,
};
use super::requests::OpenRequests;

/// Requests of a host that are under way.
const MAX_REQUESTS: usize = 4096;
/// How long a host may take to read a line.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Characters of the name that a host gives itself.
const MAX_NAME: usize = 48;

/// Serves the host until it closes its side or asks for the end. Gives back the kernel, so that it can be shut down in
/// order; nothing when the host never asked for one.
///
/// # Errors
/// `EVALIDATION` when the host does not speak the protocol.
pub async fn serve_stdio<R, W>(
    boot: Arc<dyn HostBoot>,
    reader: R,
    writer: W,
) -> Result<Option<Arc<Kernel>>, ToolError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (peer, mut writing) = Peer::new(writer, PATIENCE);
    let mut host = Host {
        boot,
        peer: peer.clone(),
        requests: OpenRequests::new(MAX_REQUESTS),
        work: JoinSet::new(),
        kernel: KernelState::None,
    };
    let ended = host.serve(CappedLines::new(reader, MAX_MESSAGE_BYTES)).await;
    // Every request to the host fails from here on; calls are cancelled with their tasks, and recorded as such.
    peer.end();
    host.work.shutdown().await;
    let kernel = host.kernel.into_kernel();
    let last_words = async {
        peer.finish().await;
        (&mut writing).await
    };
    if tokio::time::timeout(LAST_WORDS, last_words).await.is_err() {
        writing.abort();
    }
    ended.map(|()| kernel)
}

/// Where the kernel of the host stands.
enum KernelState {
    None,
    Booting(oneshot::Receiver<Methods>),
    Ready(Methods),
}

impl KernelState {
    fn into_kernel(self) -> Option<Arc<Kernel>> {
        match self {
            Self::Ready(methods) => Some(methods.kernel),
            Self::Booting(mut ready) => ready.try_recv().ok().map(|methods| methods.kernel),
            Self::None => None,
        }
    }
}

struct Host {
    boot: Arc<dyn HostBoot>,
    peer: Peer,
    requests: OpenRequests,
    work: JoinSet<()>,
    kernel: KernelState,
}

impl Host {
    async fn serve<R: AsyncRead + Unpin>(&mut self, mut lines: CappedLines<R>) -> Result<(), ToolError> {
        let mut ending: Option<RequestId> = None;
        loop {
            if let (Some(id), true) = (&ending, self.requests.is_empty()) {
                self.peer.answer(id, Ok(Done {})).await;
                return Ok(());
            }
            let line = tokio::select! {
                line = lines.next() => line,
                // A host that takes no answers is gone.
                () = self.peer.closed() => return Ok(()),
                Some(_) = self.work.join_next() => continue,
            };
            let text = match line {
                None => return Ok(()),
                Some(CappedLine::Text(text)) => text,
                Some(CappedLine::TooLong) => {
                    let message = format!("a message has at most {MAX_MESSAGE_BYTES} bytes");
                    self.peer.refuse(None, &RpcError::new(number::PARSE, message.clone())).await;
                    return Err(ToolError::new(Code::Validation, message));
                }
            };
            match parse(&text) {
                Ok(Incoming::Answer { id, result }) => self.peer.answered(id, result),
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
                    if let Err(error) = self.begin(&id, method, params) {
                        self.peer.refuse(Some(&id), &error).await;
                    }
                }
                Err(Malformed { id, error }) => self.peer.refuse(id.as_ref(), &error).await,
            }
        }
    }

    /// Begins to work on a request.
    fn begin(&mut self, id: &RequestId, method: String, value: Value) -> Result<(), RpcError> {
        if let KernelState::Booting(ready) = &mut self.kernel {
            match ready.try_recv() {
                Ok(methods) => self.kernel = KernelState::Ready(methods),
                // It did not boot; the host may try again.
                Err(oneshot::error::TryRecvError::Closed) => self.kernel = KernelState::None,
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
        }
        match (&self.kernel, method.as_str()) {
            (KernelState::None, method::INITIALIZE) => {
                let wanted = params(value)?;
                let request = self.requests.begin(id)?;
                let (ready, booted) = oneshot::channel();
                self.kernel = KernelState::Booting(booted);
                let (boot, peer) = (Arc::clone(&self.boot), self.peer.clone());
                self.work.spawn(async move {
                    let answer = match initialize(&*boot, &peer, wanted).await {
                        Ok((methods, welcome)) => {
                            // Before the answer: the host's next request finds it.
                            let _ = ready.send(methods);
                            Ok(welcome)
                        }
                        Err(error) => {
                            drop(ready);
                            Err(RpcError::from(error))
                        }
                    };
                    peer.answer(&request.id, answer).await;
                });
                Ok(())
            }
            (KernelState::Ready(methods), _) => {
                let request = self.requests.begin(id)?;
                self.work.spawn(methods.clone().serve(request, method, value));
                Ok(())
            }
            (KernelState::Booting(_), _) => {
                Err(RpcError::new(number::NOT_READY, "the kernel boots; wait for the answer to `initialize`"))
            }
            (
                KernelState::None,
                method::TOOLS_LIST | method::TOOLS_CALL | method::PROMPT_GET | method::SESSION_RUN,
            ) => Err(RpcError::new(number::NOT_READY, "the first request is `initialize`")),
            (KernelState::None, other) => Err(unknown_method(other)),
        }
    }
}

/// Boots the kernel as the host wants it.
async fn initialize(
    boot: &dyn HostBoot,
    peer: &Peer,
    wanted: InitializeParams,
) -> Result<(Methods, InitializeResult), ToolError> {
    check_version(wanted.protocol_version)?;
    if wanted.token.is_some() {
        return Err(ToolError::new(Code::Validation, "a token is for the socket; a host needs none")
            .detail("field", "token")
            .help("leave it out"));
    }
    let host = wanted.host.unwrap_or_default();
    let kernel = Arc::new(boot.boot(&host, HostParts::new(peer, &host)).await?);
    let name = Some(one_line(&wanted.client.name, MAX_NAME)).filter(|name| !name.is_empty());
    let claim = ClientClaim { token: None, session: wanted.session.or_else(|| name.clone()), actor: name };
    let asks_for_effects = host.consent == HostConsent::Effects;
    let context = kernel.client_context(ClientEntry::Host, claim, consent(asks_for_effects))?;
    let methods = Methods { kernel, context, peer: peer.clone(), runs_sessions: true };
    let welcome = methods.welcome(&wanted.client)?;
    Ok((methods, welcome))
}

/// # Errors
/// `EVALIDATION` for another version of the protocol.
pub(crate) fn check_version(version: u32) -> Result<(), ToolError> {
    if version == PROTOCOL_VERSION {
        return Ok(());
    }
    let message = format!("this kernel speaks version {PROTOCOL_VERSION} of the protocol, not {version}");
    Err(ToolError::new(Code::Validation, message)
        .detail("field", "protocolVersion")
        .help("install the same version of the client and of the program `tgp`"))
}
