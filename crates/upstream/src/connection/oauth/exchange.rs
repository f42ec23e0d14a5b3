//! The requests of a login: to the server, and to the authorization servers that it names.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::{Value, json};
use tgp_fetch::FetchClient;
use tgp_net::{is_loopback, read_plain_body, root_cause};
use tgp_text::truncate;
use tokio::time::timeout;
use url::Url;

use super::tokens::KnownTokens;

/// Bytes of an answer: descriptions of servers and tokens have a few thousand.
const MAX_BODY_BYTES: usize = 256 << 10;
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Characters of what an authorization server says of an error.
const MAX_DESCRIPTION: usize = 200;

/// Why a request of a login failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ExchangeError(String);

/// Sends the requests of a login.
pub(super) struct LoginHttpClient {
    pub(super) fetch: Arc<FetchClient>,
    /// The server that is logged in to.
    pub(super) server: Url,
    pub(super) tokens: KnownTokens,
}

impl OAuthHttpClient for LoginHttpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request.request)?;
            let host = request.url().host_str().unwrap_or_default().to_owned();
            match timeout(REQUEST_TIMEOUT, self.send(request)).await {
                Ok(answered) => Ok(answered?),
                Err(_) => Err(ExchangeError(format!(
                    "`{host}` did not answer within {} s",
                    REQUEST_TIMEOUT.as_secs()
                ))
                .into()),
            }
        })
    }
}

impl LoginHttpClient {
    async fn send(&self, request: reqwest::Request) -> Result<http::Response<Vec<u8>>, ExchangeError> {
        let (url, method) = (request.url().clone(), request.method().clone());
        check_url(&url, &self.server).map_err(ExchangeError)?;
        let host = url.host_str().unwrap_or_default();
        let client =
            self.fetch.http_client(&url).await.map_err(|error| ExchangeError(error.message.clone()))?;
        let mut response = client
            .execute(request)
            .await
            .map_err(|error| ExchangeError(format!("`{host}` cannot be reached: {}", root_cause(&error))))?;
        let mut status = response.status();
        if status.is_redirection() {
            // Where a description is looked for there may be another page; nothing that matters is behind a redirect.
            if method != Method::GET {
                return Err(ExchangeError(format!("`{host}` redirects, and redirects are not followed")));
            }
            status = StatusCode::NOT_FOUND;
        }
        let headers = response.headers().clone();
        let kind =
            headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase()).unwrap_or_default();
        // Pages are for people, and a stream of events does not end.
        let is_read = !kind.starts_with(b"text/html") && !kind.starts_with(b"text/event-stream");
        let mut body = match is_read {
            true => read_plain_body(&mut response, MAX_BODY_BYTES)
                .await
                .map_err(|error| ExchangeError(format!("the answer of `{host}` cannot be used: {error}")))?,
            false => Vec::new(),
        };
        if !status.is_success() {
            body = self.error_body(&body);
        }
        let mut answered = http::Response::new(body);
        *answered.status_mut() = status;
        *answered.headers_mut() = headers;
        Ok(answered)
    }

    /// What is needed of an error: its code, and a few words without the tokens that were sent.
    fn error_body(&self, body: &[u8]) -> Vec<u8> {
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        let word = |name: &str| {
            let text = said.get(name).and_then(Value::as_str)?;
            Some(truncate(&self.tokens.clean_text(text), MAX_DESCRIPTION).to_string())
        };
        match (word("error"), word("error_description")) {
            (Some(error), Some(description)) => json!({ "error": error, "error_description": description }),
            (Some(error), None) => json!({ "error": error }),
            (None, _) => return Vec::new(),
        }
        .to_string()
        .into_bytes()
    }
}

/// Codes and tokens are sent encrypted, except between programs of this machine.
///
/// # Errors
/// Why a URL that a server names is not used.
pub(super) fn check_url(url: &Url, server: &Url) -> Result<(), String> {
    let is_here = is_loopback(url) && is_loopback(server);
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_here => Ok(()),
        _ => Err(format!(
            "the login leads to `{}`, which is not encrypted",
            truncate(&url.origin().ascii_serialization(), MAX_DESCRIPTION)
        )),
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::check_url;

    #[test]
    fn a_login_is_encrypted_or_stays_on_this_machine() {
        for (url, server, is_used) in [
            ("https://login.example.com/token", "https://mcp.example.com/mcp", true),
            ("http://login.example.com/token", "https://mcp.example.com/mcp", false),
            ("http://127.0.0.1:9/token", "https://mcp.example.com/mcp", false),
            ("http://127.0.0.1:9/token", "http://localhost:8/mcp", true),
            ("http://login.example.com/token", "http://localhost:8/mcp", false),
            ("file:///etc/passwd", "http://localhost:8/mcp", false),
            ("javascript:alert(1)", "https://mcp.example.com/mcp", false),
        ] {
            let checked = check_url(&Url::parse(url).unwrap(), &Url::parse(server).unwrap());
            assert_eq!(checked.is_ok(), is_used, "{url} of {server}");
        }
    }
}
