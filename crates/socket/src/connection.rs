//! One client.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tgp::Kernel;
use tgp_contract::{Actor, CallContext, CapabilityToken, Code, ToolCall, ToolError};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::frame::{FrameError, read_frame, write_frame};
use crate::message::{Answer, Hello, Request};
use crate::server::ServeOptions;

/// A name longer than this is no name.
const MAX_NAME: usize = 200;

pub(crate) struct Connection {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) options: ServeOptions,
}

/// Whoever has shown a token.
struct Client {
    token: CapabilityToken,
    actor: String,
    session: String,
}

impl Connection {
    /// Serves a client to its end.
    pub(crate) async fn run(self, stream: UnixStream) {
        let (mut reader, mut writer) = stream.into_split();
        let client = match self.greet(&mut reader).await {
            Ok(client) => client,
            Err(error) => {
                let refusal = Answer::Refused { id: None, error };
                let _ = in_time(self.options.patience, send(&mut writer, &refusal)).await;
                return;
            }
        };
        let welcome = Answer::Welcome { session: client.session.clone() };
        if in_time(self.options.patience, send(&mut writer, &welcome)).await.is_err() {
            return;
        }
        let (answers, waiting) = mpsc::channel(self.options.calls);
        let patience = self.options.patience;
        let mut writing = tokio::spawn(write_answers(writer, waiting, patience));
        // A client that no longer takes answers is gone; its calls end with it.
        tokio::select! {
            () = self.take_requests(&mut reader, Arc::new(client), answers) => {}
            _ = &mut writing => return,
        }
        let _ = in_time(patience, async { writing.await.map_err(|_| FrameError::Torn) }).await;
    }

    async fn greet(&self, reader: &mut OwnedReadHalf) -> Result<Client, ToolError> {
        let frame =
            in_time(self.options.patience, read_frame(reader)).await.map_err(|error| refused(&error))?;
        let hello: Hello = parse(&frame.ok_or_else(|| refused(&FrameError::Torn))?)?;
        let named = [Some(&hello.actor), hello.session.as_ref()];
        if named
            .into_iter()
            .flatten()
            .any(|name| name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control))
        {
            return Err(ToolError::new(
                Code::Validation,
                format!("`actor` and `session` have 1 to {MAX_NAME} bytes and no control characters"),
            )
            .help("docs/socket.md shows every frame"));
        }
        let token = CapabilityToken::new(hello.token);
        let grant = self.kernel.check_token(&token)?;
        // Whoever shares a token shares its past, so that no rule over a session is evaded by connecting again.
        let session = hello.session.unwrap_or_else(|| format!("token-{}", grant.id()));
        Ok(Client { token, actor: hello.actor, session })
    }

    /// Takes requests one after the other; at most a fixed number of them is under way.
    async fn take_requests(
        &self,
        reader: &mut OwnedReadHalf,
        client: Arc<Client>,
        answers: mpsc::Sender<Answer>,
    ) {
        let places = Arc::new(Semaphore::new(self.options.calls));
        let mut calls = JoinSet::new();
        loop {
            // A finished call gives its memory back while the client is silent.
            while calls.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let frame = match self.next_frame(reader).await {
                Ok(Some(frame)) => frame,
                // Whoever closes does not wait for answers; what is under way is cancelled with the tasks.
                Ok(None) => return,
                Err(error) => {
                    let _ = answers.send(Answer::Refused { id: None, error: refused(&error) }).await;
                    break;
                }
            };
            match parse::<Request>(&frame) {
                Ok(request) => {
                    let kernel = Arc::clone(&self.kernel);
                    let (client, answers, consent) =
                        (Arc::clone(&client), answers.clone(), self.options.consent);
                    calls.spawn(async move {
                        let answer = answer(&kernel, &client, request, consent).await;
                        let _ = answers.send(answer).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    if answers.send(Answer::Refused { id: None, error }).await.is_err() {
                        return;
                    }
                }
            }
        }
        while calls.join_next().await.is_some() {}
    }

    /// A client may be silent between frames for a while, but not within one.
    async fn next_frame(&self, reader: &mut OwnedReadHalf) -> Result<Option<Vec<u8>>, FrameError> {
        let mut first = [0_u8; 1];
        let count = in_time(self.options.idle, async { Ok(reader.read(&mut first).await?) }).await?;
        if count == 0 {
            return Ok(None);
        }
        let mut rest = first.as_slice().chain(reader);
        in_time(self.options.patience, read_frame(&mut rest)).await
    }
}

async fn answer(
    kernel: &Kernel,
    client: &Client,
    request: Request,
    consent: tgp_contract::Consent,
) -> Answer {
    let id = request.id().to_owned();
    match request {
        Request::Tools { .. } => Answer::Tools { id, tools: kernel.definitions().cloned().collect() },
        Request::Call { id: call_id, tool, arguments, dry_run } => {
            let context = CallContext {
                actor: Actor::Agent(client.actor.clone()),
                session: client.session.clone(),
                consent,
                dry_run,
                depth: 0,
                token: Some(client.token.clone()),
            };
            let result = kernel.call_with(ToolCall { id: call_id, tool, arguments }, context).await;
            Answer::Result { id, result }
        }
    }
}

async fn write_answers(mut writer: OwnedWriteHalf, mut waiting: mpsc::Receiver<Answer>, patience: Duration) {
    while let Some(answer) = waiting.recv().await {
        if in_time(patience, send(&mut writer, &answer)).await.is_err() {
            return;
        }
    }
}

async fn send(writer: &mut OwnedWriteHalf, answer: &Answer) -> Result<(), FrameError> {
    let text = serde_json::to_vec(answer).unwrap_or_default();
    match write_frame(writer, &text).await {
        Err(FrameError::TooLarge(bytes)) => {
            let id = match answer {
                Answer::Result { id, .. } | Answer::Tools { id, .. } => Some(id.clone()),
                Answer::Welcome { .. } | Answer::Refused { .. } => None,
            };
            let error =
                ToolError::new(Code::Runtime, format!("the answer has {bytes} bytes, too many for a frame"))
                    .help("ask for less at a time");
            let refusal = serde_json::to_vec(&Answer::Refused { id, error }).unwrap_or_default();
            write_frame(writer, &refusal).await
        }
        other => other,
    }
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

/// Tells a client that it is not served, as far as that can be done without waiting.
pub(crate) fn turn_away(stream: UnixStream, reason: &str, help: &str) {
    let error = ToolError::new(Code::Permission, reason).help(help);
    let text = serde_json::to_vec(&Answer::Refused { id: None, error }).unwrap_or_default();
    let Ok(length) = u32::try_from(text.len()) else { return };
    let frame: Vec<u8> = length.to_be_bytes().into_iter().chain(text).collect();
    // The standard library's stream is still one that does not wait, and needs no readiness to be asked for first.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(&frame);
    }
}
