//! The HTTP client of one provider.

use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response};
use serde_json::Value;
use tgp_net::{CappedBody, Transport, build_client, client_builder, content_encoding};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::failure::{Failure, ProviderMessage};
use crate::limits::{MAX_ERROR_BODY_BYTES, MAX_WHOLE_BYTES};
use crate::options::ProviderTimeouts;
use crate::retry;
use crate::transport::{broken_off, unanswered};

/// A session asks for one turn after the other; a helper may ask beside it.
const IDLE_CONNECTIONS: usize = 2;
/// Tools run between two turns, and a new connection costs several round trips.
const IDLE_CONNECTION_LIFE: Duration = Duration::from_secs(90);

/// Builds its connection pool with the first request, off the runtime's threads.
#[derive(Debug)]
pub(crate) struct Client {
    headers: HeaderMap,
    patience: ProviderTimeouts,
    inner: OnceCell<reqwest::Client>,
}

/// How a server answers the question for a stream.
pub(crate) enum Answer {
    Stream(Response),
    /// Some servers do not stream, and say everything at once.
    Whole(Value),
}

/// A body, or as much of it as may be read.
pub(crate) enum Body {
    Whole(Vec<u8>),
    Beginning(Vec<u8>),
}

impl Client {
    pub(crate) fn new(headers: HeaderMap, patience: ProviderTimeouts) -> Self {
        Self { headers, patience, inner: OnceCell::new() }
    }

    /// Asks for a stream of events.
    pub(crate) async fn post(&self, url: &Url, body: String, deadline: Instant) -> Result<Answer, Failure> {
        let mut request = reqwest::Request::new(Method::POST, url.clone());
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        *request.body_mut() = Some(body.into());
        let response = self.send(request, deadline).await?;
        let content_type = response.headers().get(CONTENT_TYPE).map(lower).unwrap_or_default();
        // Some servers name no type or a wrong one; these two are never a stream.
        if !content_type.starts_with("application/json") && !content_type.starts_with("text/html") {
            return Ok(Answer::Stream(response));
        }
        let (Body::Whole(body) | Body::Beginning(body)) =
            self.body(response, MAX_WHOLE_BYTES, deadline).await?;
        match serde_json::from_slice::<Value>(&body) {
            Ok(value) if is_error(&value) => Err(Failure::Reported(ProviderMessage::from_json(&value))),
            Ok(value) if value.is_object() => Ok(Answer::Whole(value)),
            _ => Err(Failure::NoStream { content_type, said: ProviderMessage::from_body(&body) }),
        }
    }

    pub(crate) async fn get(&self, url: &Url, limit: usize, deadline: Instant) -> Result<Vec<u8>, Failure> {
        let mut request = reqwest::Request::new(Method::GET, url.clone());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let response = self.send(request, deadline).await?;
        match self.body(response, limit, deadline).await? {
            Body::Whole(body) => Ok(body),
            Body::Beginning(_) => Err(Failure::TooLarge { what: "the list of models", limit: limit as u64 }),
        }
    }

    async fn send(&self, mut request: reqwest::Request, deadline: Instant) -> Result<Response, Failure> {
        let headers = request.headers_mut();
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        // Also where the configured headers ask for another.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let client = self.client(Transport::of(request.url())).await?;
        let sent = self.in_time(client.execute(request), deadline).await?;
        let response = sent.map_err(|error| unanswered(&error, self.patience.connect))?;
        let encoding = content_encoding(response.headers());
        if response.status().is_success() {
            return encoding.map_or(Ok(response), |encoding| Err(Failure::Compressed(encoding)));
        }
        let status = response.status().as_u16();
        let retry_after = retry::retry_after(response.headers());
        let is_final = retry::is_final(response.headers());
        // The status is worth more than a message that does not come.
        let body = match self.body(response, MAX_ERROR_BODY_BYTES, deadline).await {
            Ok(Body::Whole(body) | Body::Beginning(body)) if encoding.is_none() => body,
            _ => Vec::new(),
        };
        Err(Failure::Refused { status, said: ProviderMessage::from_body(&body), retry_after, is_final })
    }

    /// Reads up to `limit` bytes.
    async fn body(&self, mut response: Response, limit: usize, deadline: Instant) -> Result<Body, Failure> {
        let mut body = CappedBody::new(limit);
        while let Some(chunk) =
            self.in_time(response.chunk(), deadline).await?.map_err(|error| broken_off(&error))?
        {
            if body.push(&chunk).is_err() {
                return Ok(Body::Beginning(body.into_bytes()));
            }
        }
        Ok(Body::Whole(body.into_bytes()))
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>, deadline: Instant) -> Result<T, Failure> {
        let ProviderTimeouts { idle, total, .. } = self.patience;
        let silent_at = Instant::now() + idle;
        timeout_at(silent_at.min(deadline), work)
            .await
            .map_err(|_| if silent_at < deadline { Failure::Silent(idle) } else { Failure::TooLong(total) })
    }

    async fn client(&self, transport: Transport) -> Result<&reqwest::Client, Failure> {
        let builder = client_builder(transport)
            .tcp_nodelay(true)
            .connect_timeout(self.patience.connect)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_CONNECTION_LIFE);
        self.inner
            .get_or_try_init(|| build_client(builder, Vec::new()))
            .await
            .map_err(|error| Failure::Unreachable(error.to_string()))
    }
}

fn lower(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).trim().to_lowercase()
}

/// True when a server says `200` and means that it failed.
fn is_error(value: &Value) -> bool {
    let error = value.get(0).unwrap_or(value).get("error");
    error.is_some_and(|error| !error.is_null()) || value.get("type").is_some_and(|kind| kind == "error")
}
