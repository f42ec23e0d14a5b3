//! The stops that redirects lead to: each is judged before anything is sent there, and no clock runs meanwhile.

use std::time::Duration;

use async_trait::async_trait;
use tgp_contract::ToolError;
use tokio::time::Instant;
use url::Url;

use super::failure;
use super::request::Prepared;

/// The request that a redirect would cause, as it would be sent.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    /// Where it would be sent. The allow list has it.
    pub url: &'a Url,
    /// The stop that redirects there.
    pub from: &'a Url,
    request: &'a Prepared,
    has_secret: bool,
}

impl<'a> Hop<'a> {
    pub(super) fn new(from: &'a Url, url: &'a Url, request: &'a Prepared, has_secret: bool) -> Self {
        Self { url, from, request, has_secret }
    }

    /// Whether the secret of the first request is sent along.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.has_secret
    }

    /// The method, which may be another one than that of the first request.
    #[must_use]
    pub fn method(&self) -> &'a str {
        self.request.method.as_str()
    }

    /// The headers that go along, as text. Those that were given for another origin do not.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.request.headers.iter().map(move |(name, value)| (name.as_str(), text(value.as_bytes())))
    }

    /// Whether the body of the first request is sent along.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.request.body.is_some()
    }
}

/// Decides about the stops that redirects lead to.
#[async_trait]
pub trait HopJudge: Send + Sync {
    /// May take as long as it likes; the time of the request does not run.
    ///
    /// # Errors
    /// Why nothing may be sent there.
    async fn judge(&self, hop: Hop<'_>) -> Result<(), ToolError>;
}

/// Every stop that the allow list has, for callers without further rules.
#[derive(Clone, Copy, Debug)]
pub struct EveryHop;

#[async_trait]
impl HopJudge for EveryHop {
    async fn judge(&self, _hop: Hop<'_>) -> Result<(), ToolError> {
        Ok(())
    }
}

/// The time that a request has, over all its stops.
pub(super) struct Clock {
    url: String,
    limit: Duration,
    left: Duration,
}

impl Clock {
    pub(super) fn new(url: &str, limit: Duration) -> Self {
        Self { url: url.to_owned(), limit, left: limit }
    }

    /// Does a part of the request, in the time that is left.
    pub(super) async fn run<T>(
        &mut self,
        part: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let began = Instant::now();
        let done = tokio::time::timeout(self.left, part).await;
        self.left = self.left.saturating_sub(began.elapsed());
        done.unwrap_or_else(|_| Err(failure::timed_out(&self.url, self.limit)))
    }
}
