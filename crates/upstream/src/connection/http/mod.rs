//! A server over HTTP: the client below rmcp's streamable HTTP transport, with a limit on all that is read.

mod events;
mod failure;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::auth::AuthClient;
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig, StreamableHttpPostResponse,
};
use tgp_contract::{Code, ToolError};
use tgp_net::{CappedBody, content_encoding, root_cause};
use tgp_text::visible_json;
use tokio::time::timeout;

use super::flow::{Flow, MAX_MESSAGE_BYTES};
use super::oauth::{Account, HIDDEN_TOKEN, KnownTokens};
use super::{CALL_TIMEOUT, MAX_CLEANED, START_TIMEOUT, failed, quoted};
use crate::variables::ServerValues;
use failure::{HttpError, HttpFailure, failure};

/// How long a server has to begin an answer that needs no work.
const SHORT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a stream of events that broke is opened again.
const MAX_RECONNECTS: usize = 5;
/// Bytes of a challenge, and of the name of a session: both are kept.
const MAX_KEPT_HEADER: usize = 4 << 10;
/// Headers that the protocol sets.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// What rmcp sends the messages of a connection through.
pub(super) type HttpTransport = StreamableHttpClientTransport<AuthClient<HttpClient>>;

/// The transport to a server. Nothing but what the login needs is sent yet.
///
/// # Errors
/// `ECONFIG` for a header that cannot be sent; `EUPSTREAM` when a login is there that cannot be used.
pub(super) async fn transport(
    account: &Account,
    values: &ServerValues,
    flow: Arc<Flow>,
) -> Result<HttpTransport, ToolError> {
    let server = account.server();
    let headers = headers(server, values)?;
    let client = HttpClient {
        client: account.http_client().await.map_err(|error| failed(server, &error.message))?,
        flow,
        tokens: account.tokens().clone(),
    };
    // A header of the definition is what its user wants to be sent.
    let manager = match headers.contains_key(&AUTHORIZATION) {
        true => account.without_login().await?,
        false => timeout(START_TIMEOUT, account.with_login()).await.unwrap_or_else(|_| {
            let why = format!("its login could not be prepared within {} s", START_TIMEOUT.as_secs());
            Err(failed(server, &why))
        })?,
    };
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(MAX_RECONNECTS);
    let mut config = StreamableHttpClientTransportConfig::with_uri(account.url().as_str());
    config.retry_config = Arc::new(retries);
    config.custom_headers = headers;
    config.max_sse_event_size = MAX_MESSAGE_BYTES;
    Ok(StreamableHttpClientTransport::with_client(AuthClient::new(client, manager), config))
}

fn headers(server: &str, values: &ServerValues) -> Result<HashMap<HeaderName, HeaderValue>, ToolError> {
    let mut headers = HashMap::new();
    for (name, value) in values.pairs() {
        let wrong = |problem: &str| {
            let message =
                format!("the header `{}` of the upstream server `{server}` {problem}", name.escape_debug());
            ToolError::new(Code::Config, message)
        };
        let parsed =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("has a name that is invalid"))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(wrong("is set by the protocol"));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("has a value that is invalid"))?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// Sends messages to one server, and reads what comes back up to the limits of its flow.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    flow: Arc<Flow>,
    tokens: KnownTokens,
}

/// What all requests have.
struct Envelope {
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl HttpClient {
    /// Sends a request, and sorts out the answers that are the same for all.
    async fn send(
        &self,
        mut request: RequestBuilder,
        envelope: Envelope,
        patience: Duration,
    ) -> Result<Response, HttpError> {
        if let Some(why) = self.flow.why() {
            return Err(failure(why));
        }
        for (name, value) in envelope.headers {
            request = request.header(name, value);
        }
        if let Some(session) = &envelope.session {
            request = request.header(HEADER_SESSION_ID, session.as_ref());
        }
        if let Some(token) = &envelope.token {
            self.tokens.learn(token);
            request = request.bearer_auth(token);
        }
        let response = timeout(patience, request.send())
            .await
            .map_err(|_| failure(format!("it did not answer within {} s", patience.as_secs())))?
            .map_err(|error| failure(root_cause(&error)))?;
        if let Some(encoding) = content_encoding(response.headers()) {
            return Err(failure(format!("its answer is compressed with {}", quoted(&encoding))));
        }
        let status = response.status();
        let challenge = || text(response.headers(), WWW_AUTHENTICATE.as_str()).unwrap_or_default();
        match status {
            StatusCode::UNAUTHORIZED => Err(HttpError::AuthRequired(AuthRequiredError::new(challenge()))),
            StatusCode::FORBIDDEN if challenge().contains("insufficient_scope") => {
                Err(HttpError::InsufficientScope(InsufficientScopeError::new(challenge(), None)))
            }
            StatusCode::NOT_FOUND if envelope.session.is_some() => Err(HttpError::SessionExpired),
            status if status.is_redirection() => {
                let target = text(response.headers(), LOCATION.as_str()).unwrap_or_default();
                Err(failure(format!(
                    "it redirects to {} (status {}), and redirects are not followed",
                    quoted(&target),
                    status.as_u16()
                )))
            }
            _ => Ok(response),
        }
    }

    /// A whole body, without the tokens that were sent.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, HttpError> {
        let is_too_large =
            |length: u64| usize::try_from(length).is_ok_and(|length| length > MAX_MESSAGE_BYTES);
        if response.content_length().is_some_and(is_too_large) {
            return Err(failure(self.flow.too_large().to_string()));
        }
        let reading = async {
            let mut body = CappedBody::new(MAX_MESSAGE_BYTES);
            while let Some(chunk) = response.chunk().await.map_err(|error| failure(root_cause(&error)))? {
                self.flow.count(chunk.len()).map_err(|error| failure(error.to_string()))?;
                body.push(&chunk).map_err(|_| failure(self.flow.too_large().to_string()))?;
            }
            Ok::<_, HttpError>(body.into_bytes())
        };
        let body = timeout(CALL_TIMEOUT, reading)
            .await
            .map_err(|_| failure(format!("its answer did not end within {} s", CALL_TIMEOUT.as_secs())))??;
        self.flow.check_message(&body).map_err(|error| failure(error.to_string()))?;
        self.tokens.clean(body).ok_or_else(|| failure(self.flow.end(HIDDEN_TOKEN).to_string()))
    }

    /// An answer that is not a success. It may hold an error of the protocol all the same.
    async fn refusal(&self, response: Response) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        let said = match BodyKind::of(&response) {
            BodyKind::Json => {
                let body = self.body(response).await?;
                if let Ok(message @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body) {
                    return Ok(StreamableHttpPostResponse::Json(message, None));
                }
                format!(": {}", words(&body))
            }
            BodyKind::Events | BodyKind::Other(_) => String::new(),
        };
        Err(failure(format!("it answered with status {}{said}", status.as_u16())))
    }
}

/// What an answer holds.
enum BodyKind {
    Json,
    Events,
    Other(String),
}

impl BodyKind {
    fn of(response: &Response) -> Self {
        let written = text(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        match written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            JSON_MIME_TYPE => Self::Json,
            EVENT_STREAM_MIME_TYPE => Self::Events,
            _ => Self::Other(written),
        }
    }
}

/// A header that is short enough to be kept.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (value.len() <= MAX_KEPT_HEADER).then(|| value.to_owned())
}

/// The beginning of a body, to be shown once keys are removed from it; it is cut after that.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..MAX_CLEANED).unwrap_or(body)).into_owned();
    format!("\"{}\"", visible_json(&text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn unexpected(written: &str) -> HttpError {
    failure(match written {
        "" => "it answered without a content type".to_owned(),
        written => format!("it answered with the content type {}, not with JSON or events", quoted(written)),
    })
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let request = self
            .client
            .post(uri.as_ref())
            .header(ACCEPT, [JSON_MIME_TYPE, EVENT_STREAM_MIME_TYPE].join(", "))
            .header(CONTENT_TYPE, JSON_MIME_TYPE)
            .body(serde_json::to_vec(&message)?);
        // A server that answers with JSON sends nothing before the tool has ended.
        let patience = if is_request { CALL_TIMEOUT } else { SHORT_TIMEOUT };
        let response = self.send(request, Envelope { session, token, headers }, patience).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refusal(response).await;
        }
        let session = text(response.headers(), HEADER_SESSION_ID);
        match BodyKind::of(&response) {
            BodyKind::Events => {
                let events = events::events(response, Arc::clone(&self.flow), self.tokens.clone());
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            // Nothing waits for what is said to a notification.
            _ if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            BodyKind::Json => {
                let body = self.body(response).await?;
                let message = serde_json::from_slice(&body).map_err(|_| {
                    failure(format!("its answer is not a message of the protocol: {}", words(&body)))
                })?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            BodyKind::Other(written) => Err(unexpected(&written)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let envelope = Envelope { session: Some(session), token, headers };
        self.send(self.client.delete(uri.as_ref()), envelope, SHORT_TIMEOUT).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        let mut request = self.client.get(uri.as_ref()).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        if let Some(id) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, id);
        }
        let response = self.send(request, Envelope { session, token, headers }, SHORT_TIMEOUT).await?;
        let status = response.status();
        match BodyKind::of(&response) {
            _ if status == StatusCode::METHOD_NOT_ALLOWED => Err(HttpError::ServerDoesNotSupportSse),
            _ if !status.is_success() => Err(failure(format!("it answered with status {}", status.as_u16()))),
            BodyKind::Events => Ok(events::events(response, Arc::clone(&self.flow), self.tokens.clone())),
            BodyKind::Json => Err(unexpected(JSON_MIME_TYPE)),
            BodyKind::Other(written) => Err(unexpected(&written)),
        }
    }
}
