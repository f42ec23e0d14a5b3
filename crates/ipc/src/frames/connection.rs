//! One client.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tgp::Kernel;
use tgp::project::ClientClaim;
use tgp_contract::{
    CallContext, CapabilityToken, ClientEntry, Code, JsonLimits, ToolCall, ToolError, background, measure,
};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::frame::{
    FrameError, MAX_FRAME_BYTES, read_frame_within, read_length, read_rest, skip, write_frame,
};
use super::message::{Hello, SocketAnswer, SocketRequest, id_of};
use crate::buffer::BoundedBuffer;
use crate::memory::{ClientMemory, Held, Memory};
use crate::server::ServeOptions;

/// The largest first frame: a token and two names. Until it has shown a token, a client gets no more.
const MAX_HELLO_BYTES: usize = 32 << 10;
/// After a client that has sent a frame of this size, what its calls have freed is given back to the system.
const LARGE_FRAME_BYTES: usize = 1 << 20;
/// How long a client that was refused may keep sending before its connection is closed.
const LONGEST_LINGER: Duration = Duration::from_secs(1);
/// Ids of requests come back in answers and are in records.
const MAX_ID_BYTES: usize = 256;

pub(crate) struct Connection {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) options: ServeOptions,
    pub(crate) memory: Arc<Memory>,
}

/// A client that has shown a token.
struct Client {
    /// What each of its calls carries.
    context: CallContext,
    memory: ClientMemory,
    sent_large_frame: AtomicBool,
}

/// Why a frame is not taken, and its id where that can be read.
struct Refusal {
    id: Option<String>,
    error: ToolError,
}

/// An answer on its way to the client, and the memory it takes.
struct Queued {
    frame: Vec<u8>,
    _held: Option<Held>,
}

impl Connection {
    /// Serves a client to its end.
    pub(crate) async fn run(self, stream: UnixStream) {
        let (mut reader, mut writer) = stream.into_split();
        let client = match self.greet(&mut reader).await {
            Ok(client) => client,
            Err(error) => {
                let refusal = encoded(&refusal(error));
                if in_time(self.options.patience, write_frame(&mut writer, &refusal)).await.is_ok() {
                    drop(writer);
                    linger(&mut reader, self.options.patience).await;
                }
                return;
            }
        };
        let welcome = encoded(&SocketAnswer::Welcome { session: client.context.session.clone() });
        if in_time(self.options.patience, write_frame(&mut writer, &welcome)).await.is_err() {
            return;
        }
        let client = Arc::new(client);
        self.serve(&mut reader, writer, &client).await;
        if client.sent_large_frame.load(Ordering::Relaxed) {
            let release = || {
                tgp::sandbox::release_free_memory();
                Ok(())
            };
            let _ = background::run(release).await;
        }
    }

    async fn serve(&self, reader: &mut OwnedReadHalf, writer: OwnedWriteHalf, client: &Arc<Client>) {
        let (answers, waiting) = mpsc::channel(self.options.calls);
        let patience = self.options.patience;
        let mut writing = tokio::spawn(write_answers(writer, waiting, patience));
        // A client that no longer takes answers is gone; its calls end with it.
        tokio::select! {
            () = self.take_requests(reader, Arc::clone(client), answers) => {}
            _ = &mut writing => return,
        }
        if in_time(patience, async { writing.await.map_err(|_| FrameError::Torn) }).await.is_ok() {
            linger(reader, patience).await;
        }
    }

    async fn greet(&self, reader: &mut OwnedReadHalf) -> Result<Client, ToolError> {
        let frame = in_time(self.options.patience, read_frame_within(reader, MAX_HELLO_BYTES))
            .await
            .map_err(|error| refused(&error))?;
        let hello: Hello = parse(&frame.ok_or_else(|| refused(&FrameError::Torn))?)?;
        let token = CapabilityToken::new(hello.token);
        let family = self.kernel.check_token(&token)?.family_id().to_owned();
        let claim = ClientClaim { token: Some(token), actor: hello.actor, session: hello.session };
        let context = self.kernel.client_context(ClientEntry::Socket, claim, self.options.consent)?;
        Ok(Client { context, memory: self.memory.of(&family), sent_large_frame: AtomicBool::new(false) })
    }

    /// Takes requests one after the other; at most a fixed number of them is under way.
    async fn take_requests(
        &self,
        reader: &mut OwnedReadHalf,
        client: Arc<Client>,
        answers: mpsc::Sender<Queued>,
    ) {
        let places = Arc::new(Semaphore::new(self.options.calls));
        let mut calls = JoinSet::new();
        loop {
            // A finished call gives its memory back while the client is silent.
            while calls.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let next = match self.next_request(reader, &client).await {
                Ok(Some(next)) => next,
                // A client that closes does not wait for answers; what is under way is cancelled with the tasks.
                Ok(None) => return,
                Err(error) => {
                    let _ = answers.send(queued(&client, &refusal(refused(&error)))).await;
                    break;
                }
            };
            match next {
                Ok((request, held)) => {
                    let kernel = Arc::clone(&self.kernel);
                    let (client, answers) = (Arc::clone(&client), answers.clone());
                    calls.spawn(async move {
                        let answer = answer(&kernel, &client, request).await;
                        // The request is done with; from here on the answer counts.
                        drop(held);
                        let queued = queued(&client, &answer);
                        drop(answer);
                        let _ = answers.send(queued).await;
                        drop(place);
                    });
                }
                Err(Refusal { id, error }) => {
                    let answer = SocketAnswer::Refused { id, error: error.bounded() };
                    if answers.send(queued(&client, &answer)).await.is_err() {
                        return;
                    }
                }
            }
        }
        while calls.join_next().await.is_some() {}
    }

    /// The next request and the memory it takes, or why it is refused; nothing when the client has ended.
    ///
    /// A client may be silent between frames for a while, but not within one.
    async fn next_request(
        &self,
        reader: &mut OwnedReadHalf,
        client: &Client,
    ) -> Result<Option<Result<(SocketRequest, Held), Refusal>>, FrameError> {
        let mut first = [0_u8; 1];
        let count = in_time(self.options.idle, async { Ok(reader.read(&mut first).await?) }).await?;
        if count == 0 {
            return Ok(None);
        }
        let patience = self.options.patience;
        let length = {
            let mut rest = first.as_slice().chain(&mut *reader);
            in_time(patience, read_length(&mut rest, MAX_FRAME_BYTES)).await?.unwrap_or_default()
        };
        client.sent_large_frame.fetch_or(length >= LARGE_FRAME_BYTES, Ordering::Relaxed);
        let mut held = match client.memory.hold(length, patience).await {
            Ok(held) => held,
            Err(error) => {
                in_time(patience, skip(reader, length)).await?;
                return Ok(Some(Err(Refusal { id: None, error })));
            }
        };
        let frame = in_time(patience, read_rest(reader, length)).await?;
        Ok(Some(match parse_request(&frame, &mut held) {
            Ok(request) => Ok((request, held)),
            Err(error) => {
                let id = id_of(&frame).filter(|id| id.len() <= MAX_ID_BYTES);
                Err(Refusal { id, error })
            }
        }))
    }
}

/// Values are counted before they are made.
fn parse_request(frame: &[u8], held: &mut Held) -> Result<SocketRequest, ToolError> {
    let size = measure(frame, JsonLimits::ARGUMENTS)
        .map_err(|error| ToolError::new(Code::Validation, error.to_string()).help("send less at a time"))?;
    held.keep(frame.len(), size);
    let request: SocketRequest = parse(frame)?;
    if request.id().len() > MAX_ID_BYTES {
        let message = format!("the `id` of a request has at most {MAX_ID_BYTES} bytes");
        return Err(ToolError::new(Code::Validation, message).help("docs/socket.md shows every frame"));
    }
    Ok(request)
}

async fn answer(kernel: &Kernel, client: &Client, request: SocketRequest) -> SocketAnswer {
    let id = request.id().to_owned();
    match request {
        SocketRequest::Tools { .. } => {
            SocketAnswer::Tools { id, tools: kernel.definitions().cloned().collect() }
        }
        SocketRequest::Call { id: call_id, tool, arguments, dry_run } => {
            let context = CallContext { dry_run, ..client.context.clone() };
            let result = kernel.call_with(ToolCall { id: call_id, tool, arguments }, context).await;
            SocketAnswer::Result { id, result }
        }
    }
}

async fn write_answers(mut writer: OwnedWriteHalf, mut waiting: mpsc::Receiver<Queued>, patience: Duration) {
    while let Some(queued) = waiting.recv().await {
        if in_time(patience, write_frame(&mut writer, &queued.frame)).await.is_err() {
            return;
        }
    }
}

/// Takes what a client still sends after its last answer, until it closes.
///
/// A socket that is closed with bytes left in it breaks the connection: the client would lose the answer that says why.
async fn linger(reader: &mut OwnedReadHalf, patience: Duration) {
    let _ = in_time(patience.min(LONGEST_LINGER), skip(reader, MAX_FRAME_BYTES)).await;
}

fn refusal(error: ToolError) -> SocketAnswer {
    SocketAnswer::Refused { id: None, error: error.bounded() }
}

/// An answer as bytes, counted until it is written. One that is too large, or that there is no room for, is replaced by
/// an error: the call has run, and the audit says how it ended.
fn queued(client: &Client, answer: &SocketAnswer) -> Queued {
    let id = match answer {
        SocketAnswer::Result { id, .. } | SocketAnswer::Tools { id, .. } => Some(id.clone()),
        SocketAnswer::Welcome { .. } | SocketAnswer::Refused { .. } => None,
    };
    let mut frame = BoundedBuffer::new(MAX_FRAME_BYTES);
    let lost = |error: ToolError| {
        let frame =
            encoded(&SocketAnswer::Refused { id: id.clone(), error: error.detail("ran", id.is_some()) });
        Queued { frame, _held: None }
    };
    if serde_json::to_writer(&mut frame, answer).is_err() {
        let message = format!("the answer has more than {MAX_FRAME_BYTES} bytes, too many for a frame");
        return lost(ToolError::new(Code::Runtime, message).help("ask for less at a time"));
    }
    match client.memory.hold_answer(frame.len()) {
        Some(held) => Queued { frame: frame.into_bytes(), _held: Some(held) },
        None => {
            drop(frame);
            lost(
                ToolError::new(Code::Budget, "too many answers wait to be read by the clients").help(
                    "read answers before sending more requests; `tgp audit tail` shows how the call ended",
                ),
            )
        }
    }
}

/// A short answer as bytes.
fn encoded(answer: &SocketAnswer) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

async fn in_time<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, FrameError>>,
) -> Result<T, FrameError> {
    match tokio::time::timeout(patience, work).await {
        Ok(done) => done,
        Err(_) => Err(FrameError::Late(patience)),
    }
}

fn parse<T: DeserializeOwned>(frame: &[u8]) -> Result<T, ToolError> {
    serde_json::from_slice(frame).map_err(|error| {
        ToolError::new(Code::Validation, format!("the frame cannot be read: {error}"))
            .help("docs/socket.md shows every frame")
    })
}

fn refused(error: &FrameError) -> ToolError {
    ToolError::new(Code::Validation, error.to_string()).help("docs/socket.md shows every frame")
}

/// Informs a client that it is not served, as far as that can be done without waiting.
pub(crate) fn turn_away(stream: UnixStream, error: ToolError) {
    let text = serde_json::to_vec(&SocketAnswer::Refused { id: None, error }).unwrap_or_default();
    let Ok(length) = u32::try_from(text.len()) else { return };
    let frame: Vec<u8> = length.to_be_bytes().into_iter().chain(text).collect();
    // The standard library's stream is still one that does not wait, and needs no readiness to be asked for first.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(&frame);
    }
}
