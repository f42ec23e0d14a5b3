//! The program that has started this process, on its standard streams.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tgp::Kernel;
use tgp::project::ClientClaim;
use tgp_contract::{ClientEntry, Code, JsonLimits, ToolError};
use tgp_net::{CappedLine, CappedLines};
use tgp_text::one_line;
use tokio::io::{AsyncRead, AsyncWrite};

use super::conversation::{Conversation, KernelState, Line, Lines, Opener};
use super::envelope::MAX_MESSAGE_BYTES;
use super::host::{HostBoot, HostParts};
use super::methods::{Methods, consent};
use super::peer::Peer;
use super::protocol::{HostConsent, InitializeParams, InitializeResult, PROTOCOL_VERSION};

/// Requests of a host that are under way.
const MAX_REQUESTS: usize = 4096;
/// What a message of the host may have: rows of a database are many small values.
const HOST_LIMITS: JsonLimits = JsonLimits { values: 1_000_000, depth: 100 };
/// How long a host may take to read a line.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Characters of the name that a client gives itself.
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
    let (peer, mut writing) = Peer::new(writer, PATIENCE, None);
    let state = KernelState::None(Arc::new(HostOpener(boot)));
    let mut conversation = Conversation::new(peer.clone(), state, MAX_REQUESTS, HOST_LIMITS);
    let ended = conversation.serve(&mut HostLines(CappedLines::new(reader, MAX_MESSAGE_BYTES))).await;
    // Every request to the host fails from here on; calls are cancelled with their tasks, and recorded as such.
    peer.end();
    let kernel = conversation.end().await;
    let last_words = async {
        peer.finish().await;
        (&mut writing).await
    };
    if tokio::time::timeout(LAST_WORDS, last_words).await.is_err() {
        writing.abort();
    }
    ended.map(|()| kernel)
}

struct HostLines<R>(CappedLines<R>);

#[async_trait]
impl<R: AsyncRead + Unpin + Send> Lines for HostLines<R> {
    async fn next(&mut self) -> Line {
        match self.0.next().await {
            None => Line::End,
            Some(CappedLine::Text(text)) => Line::Text(text, None),
            Some(CappedLine::TooLong) => Line::TooLong,
        }
    }
}

/// Boots the kernel as the host wants it.
struct HostOpener(Arc<dyn HostBoot>);

#[async_trait]
impl Opener for HostOpener {
    async fn open(
        &self,
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
        let kernel = Arc::new(self.0.boot(&host, HostParts::new(peer, &host)).await?);
        let name = short_name(&wanted.client.name);
        let claim =
            ClientClaim { token: None, session: wanted.session.or_else(|| name.clone()), actor: name };
        let asks_for_effects = host.consent == HostConsent::Effects;
        let context = kernel.client_context(ClientEntry::Host, claim, consent(asks_for_effects))?;
        let methods = Methods { kernel, context, peer: peer.clone(), is_host: true };
        let welcome = methods.welcome(&wanted.client)?;
        Ok((methods, welcome))
    }
}

/// The name that a client gives itself, for the record.
pub(crate) fn short_name(name: &str) -> Option<String> {
    Some(one_line(name, MAX_NAME)).filter(|name| !name.is_empty())
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
