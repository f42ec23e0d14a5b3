//! A client of the socket that speaks JSON-RPC. Its first line has a token; what it may do is what the token says.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tgp::Kernel;
use tgp::project::ClientClaim;
use tgp_contract::{CapabilityToken, ClientEntry, Code, JsonLimits, ToolError, measure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::time::timeout;

use super::conversation::{Conversation, KernelState, Line, Lines};
use super::envelope::{self, Incoming, MAX_MESSAGE_BYTES, Malformed, number, params, parse};
use super::methods::Methods;
use super::peer::Peer;
use super::protocol::{InitializeParams, RequestId, RpcError, method};
use super::stdio::{check_version, short_name};
use crate::memory::{ClientMemory, Memory};
use crate::server::ServeOptions;

/// The largest first line. Until it has shown a token, a client gets no more.
const MAX_FIRST_BYTES: usize = 32 << 10;
/// A line up to this size is read before it is counted. All clients together can be that far.
const UNCOUNTED_BYTES: usize = 64 << 10;
/// What is taken of a client that was refused, so that it can read why.
const LONGEST_LINGER: Duration = Duration::from_secs(1);

/// A connection whose first byte says that it is of this protocol.
pub(crate) struct RpcConnection {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) options: ServeOptions,
    pub(crate) memory: Arc<Memory>,
}

/// Informs a client that it is not served, as far as that can be done without waiting.
pub(crate) fn turn_away(stream: UnixStream, error: ToolError) {
    let line = envelope::failure(None, &error.into());
    // The standard library's stream is still one that does not wait, and needs no readiness to be asked for first.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(&line);
    }
}

impl RpcConnection {
    /// Serves a client to its end.
    pub(crate) async fn run(self, stream: UnixStream) {
        let (reader, mut writer) = stream.into_split();
        let patience = self.options.patience;
        let mut lines = CountedLines {
            reader: BufReader::new(reader),
            line: Vec::new(),
            refused: None,
            most: MAX_FIRST_BYTES,
            memory: None,
            patience,
            idle: patience,
        };
        let (id, family, wanted, claim) = match self.greet(lines.next().await) {
            Ok(greeting) => greeting,
            Err(Malformed { id, error, .. }) => {
                let refusal = envelope::failure(id.as_ref(), &error);
                if let Ok(Ok(())) = timeout(patience, writer.write_all(&refusal)).await {
                    drop(writer);
                    lines.linger().await;
                }
                return;
            }
        };
        let memory = self.memory.of(&family);
        (lines.most, lines.memory, lines.idle) = (MAX_MESSAGE_BYTES, Some(memory.clone()), self.options.idle);
        let (peer, mut writing) = Peer::new(writer, patience, Some(memory));
        let context = match self.kernel.client_context(ClientEntry::Socket, claim, self.options.consent) {
            Ok(context) => context,
            Err(error) => return peer.refuse(Some(&id), &error.into()).await,
        };
        let kernel = Arc::clone(&self.kernel);
        let methods = Methods { kernel, context, peer: peer.clone(), is_host: false };
        peer.answer(&id, methods.welcome(&wanted.client).map_err(RpcError::from)).await;
        let state = KernelState::Ready(methods);
        let mut conversation =
            Conversation::new(peer.clone(), state, self.options.calls, JsonLimits::ARGUMENTS);
        let _ = conversation.serve(&mut lines).await;
        peer.end();
        conversation.end().await;
        let last_words = async {
            peer.finish().await;
            (&mut writing).await
        };
        if timeout(patience, last_words).await.is_err() {
            writing.abort();
            return;
        }
        lines.linger().await;
    }

    /// The first request, if it is one with a token of this kernel.
    fn greet(&self, first: Line) -> Result<(RequestId, String, InitializeParams, ClientClaim), Malformed> {
        let without_id = |error: RpcError| Malformed { id: None, answers: None, error };
        let text = match first {
            Line::Text(text, _) => text,
            Line::TooLong => {
                let message = format!("the first line has at most {MAX_FIRST_BYTES} bytes");
                return Err(without_id(RpcError::new(number::PARSE, message)));
            }
            Line::Refused(error) => return Err(without_id(error.into())),
            Line::End => {
                return Err(without_id(RpcError::new(
                    number::NOT_READY,
                    "the first line did not come in time",
                )));
            }
        };
        let (id, value) = match parse(&text, JsonLimits::ARGUMENTS)? {
            Incoming::Request { id, method, params } if method == method::INITIALIZE => (id, params),
            Incoming::Request { id, .. } => {
                let error = RpcError::new(number::NOT_READY, "the first request is `initialize`");
                return Err(Malformed { id: Some(id), answers: None, error });
            }
            Incoming::Notification { .. } | Incoming::Answer { .. } => {
                return Err(without_id(RpcError::new(
                    number::NOT_READY,
                    "the first request is `initialize`",
                )));
            }
        };
        match self.claim(value) {
            Ok((family, wanted, claim)) => Ok((id, family, wanted, claim)),
            Err(error) => Err(Malformed { id: Some(id), answers: None, error }),
        }
    }

    fn claim(&self, value: serde_json::Value) -> Result<(String, InitializeParams, ClientClaim), RpcError> {
        let mut wanted: InitializeParams = params(value)?;
        check_version(wanted.protocol_version)?;
        let wrong = |field: &str, message: &str, help: &str| {
            RpcError::from(ToolError::new(Code::Validation, message).detail("field", field).help(help))
        };
        if wanted.host.is_some() {
            let message = "`host` is for the program that starts the kernel";
            return Err(wrong("host", message, "leave it out, or start `tgp serve --stdio`"));
        }
        let token = wanted.token.take().ok_or_else(|| {
            wrong("token", "a client of the socket needs a token", "`tgp token mint` makes one")
        })?;
        let token = CapabilityToken::new(token);
        let family = self.kernel.check_token(&token)?.family_id().to_owned();
        let claim = ClientClaim {
            token: Some(token),
            actor: short_name(&wanted.client.name),
            session: wanted.session.clone(),
        };
        Ok((family, wanted, claim))
    }
}

/// The lines of a client, each counted before more than a little of it is in memory.
struct CountedLines {
    reader: BufReader<OwnedReadHalf>,
    /// What was read of the next line; all of it once it ends.
    line: Vec<u8>,
    /// Why the line that comes is not taken.
    refused: Option<ToolError>,
    most: usize,
    memory: Option<ClientMemory>,
    /// For the rest of a line that has begun.
    patience: Duration,
    /// Between two lines.
    idle: Duration,
}

/// How the reading of a line has ended.
enum Read {
    Line,
    TooLong,
    End,
}

impl CountedLines {
    /// Reads until the line ends or has `most` bytes.
    async fn read_until(&mut self, most: usize) -> Read {
        while self.line.last() != Some(&b'\n') {
            let wait = if self.line.is_empty() { self.idle } else { self.patience };
            let Ok(Ok(available)) = timeout(wait, self.reader.fill_buf()).await else { return Read::End };
            if available.is_empty() {
                return Read::End;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > most {
                return Read::TooLong;
            }
            self.line.extend_from_slice(available.get(..taken).unwrap_or_default());
            self.reader.consume(taken);
        }
        Read::Line
    }

    /// Drops the rest of a line that is not taken.
    async fn skip_line(&mut self) -> Read {
        self.line = Vec::new();
        let mut skipped = 0_usize;
        loop {
            let Ok(Ok(available)) = timeout(self.patience, self.reader.fill_buf()).await else {
                return Read::End;
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            skipped = skipped.saturating_add(taken);
            if taken == 0 || skipped > self.most {
                return Read::End;
            }
            self.reader.consume(taken);
            if end.is_some() {
                return Read::Line;
            }
        }
    }

    async fn linger(&mut self) {
        let mut rest = (&mut self.reader).take(MAX_MESSAGE_BYTES as u64);
        let _ = timeout(LONGEST_LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
    }
}

#[async_trait]
impl Lines for CountedLines {
    async fn next(&mut self) -> Line {
        loop {
            if let Some(error) = self.refused.clone() {
                let read = self.skip_line().await;
                self.refused = None;
                return if matches!(read, Read::Line) { Line::Refused(error) } else { Line::End };
            }
            let small = self.most.min(UNCOUNTED_BYTES);
            let mut held = None;
            let mut read = self.read_until(small).await;
            if matches!(read, Read::TooLong) && small < self.most {
                if let Some(memory) = &self.memory {
                    match memory.hold(self.most, self.patience).await {
                        Ok(room) => held = Some(room),
                        Err(error) => {
                            self.refused = Some(error);
                            continue;
                        }
                    }
                }
                read = self.read_until(self.most).await;
            }
            match read {
                Read::End => return Line::End,
                Read::TooLong => return Line::TooLong,
                Read::Line => {}
            }
            if let (Some(memory), None) = (&self.memory, &held) {
                match memory.hold(self.line.len(), self.patience).await {
                    Ok(room) => held = Some(room),
                    Err(error) => {
                        self.line = Vec::new();
                        return Line::Refused(error);
                    }
                }
            }
            let text = std::mem::take(&mut self.line).trim_ascii().to_vec();
            if text.is_empty() {
                continue;
            }
            // What a message has too much of, its parser says.
            if let (Some(held), Ok(size)) = (&mut held, measure(&text, JsonLimits::ARGUMENTS)) {
                held.keep(text.len(), size);
            }
            return Line::Text(text, held);
        }
    }
}
