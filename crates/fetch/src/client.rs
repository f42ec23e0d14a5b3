//! The client that carries requests out.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, TRANSFER_ENCODING};
use tgp_contract::{ToolError, background};
use tgp_net::{BodyError, SecretRedaction, Transport, build_client, client_builder, read_body};
use tokio::sync::OnceCell;
use url::{Host, Url};

use super::address;
use super::decode::{DecodeError, codings, decode};
use super::failure::{self, bad_response, no_client, too_large, transport};
use super::hops::{Clock, EveryHop, Hop, HopJudge};
use super::redirect::{is_redirect, rewrite};
use super::request::Prepared;
use super::resolver::{OffLimits, ScreeningResolver};
use super::secret::{BoundSecret, SecretBroker, check_whole, clean, holds, redirects_with_secret};
use super::{AllowList, FetchLimits, FetchRequest, FetchResponse, NameResolver, Redirects, SystemResolver};

/// Idle connections serve the next call of a tool that makes many; beyond that they are only a burden.
const IDLE_CONNECTIONS_PER_HOST: usize = 4;
const IDLE_CONNECTION_LIFE: Duration = Duration::from_secs(20);

/// How far a request that may change something has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No such request has left.
    Nothing,
    /// It may have reached a server, and what that made of it is not known.
    Sent,
    /// The server that it was for has answered.
    Answered,
}

impl Progress {
    fn answered(&mut self) {
        if *self == Self::Sent {
            *self = Self::Answered;
        }
    }

    /// A caller must not send a request again because it failed, if it was only the answer that did.
    fn mark(self, error: ToolError) -> ToolError {
        match self {
            Self::Nothing => error,
            Self::Sent => error.of_unknown_outcome(),
            Self::Answered => error.after_effect(),
        }
    }
}

/// A request on its way.
struct Journey {
    start: Url,
    request: Prepared,
    redirects: Redirects,
    secret: Option<BoundSecret>,
    clock: Clock,
}

/// Returns why an answer cannot be searched for a secret.
fn unsearchable(response: &reqwest::Response) -> Option<&'static str> {
    let (status, headers) = (response.status(), response.headers());
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings(headers).is_none() || !headers.get_all(TRANSFER_ENCODING).iter().all(is_chunked) {
        return Some("it is encoded in a way that hides whether it holds a secret");
    }
    // A refusal of a part says there how long the whole is.
    let names_part = headers.contains_key(CONTENT_RANGE) && status != StatusCode::RANGE_NOT_SATISFIABLE;
    let is_parts = headers.get(CONTENT_TYPE).is_some_and(|value| {
        const PARTS: &[u8] = b"multipart/byteranges";
        let kind = value.as_bytes().trim_ascii_start();
        kind.get(..PARTS.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(PARTS))
    });
    // The last is the status of an answer that only says how it differs from an earlier one.
    let is_part = matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::IM_USED);
    (is_part || names_part || is_parts)
        .then_some("it is a part of an answer, which hides whether it holds a secret")
}

/// Carries out the fetches of tools under one allow list.
///
/// Making one costs nothing: the HTTP clients inside are built by the first fetch that needs them. There are two,
/// because a plain-http fetch must neither wait for the root certificates of the system nor fail without them.
pub struct FetchClient {
    list: Arc<AllowList>,
    limits: FetchLimits,
    resolver: Arc<dyn NameResolver>,
    extra_roots: Vec<u8>,
    secrets: Option<SecretBroker>,
    plain: OnceCell<reqwest::Client>,
    secure: OnceCell<reqwest::Client>,
}

impl fmt::Debug for FetchClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FetchClient")
            .field("list", &self.list)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl FetchClient {
    #[must_use]
    pub fn new(allow_list: AllowList, limits: FetchLimits) -> Self {
        Self {
            list: Arc::new(allow_list),
            limits,
            resolver: Arc::new(SystemResolver),
            extra_roots: Vec::new(),
            secrets: None,
            plain: OnceCell::new(),
            secure: OnceCell::new(),
        }
    }

    /// Resolves names with `resolver` instead of the operating system. Its answers are screened all the same.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn NameResolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Trusts the certificates in `pem` (one or more, PEM) in addition to those of the system.
    #[must_use]
    pub fn with_extra_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.extra_roots = pem.into();
        self
    }

    /// Lets requests use these secrets by their names.
    #[must_use]
    pub fn with_secrets(mut self, secrets: SecretBroker) -> Self {
        self.secrets = Some(secrets);
        self
    }

    #[must_use]
    pub fn allow_list(&self) -> &AllowList {
        &self.list
    }

    #[must_use]
    pub fn limits(&self) -> &FetchLimits {
        &self.limits
    }

    /// The HTTP client for a URL, for callers that speak a protocol of their own over HTTP. It follows no redirect, and a
    /// name that leads to an address off the public internet is not connected to.
    ///
    /// The caller decides where it sends to and what it reads: of the list counts only which hosts it names, so that
    /// their own addresses are reached.
    ///
    /// # Errors
    /// `ESECURITY` when the host of the URL is an address that is off limits; `EFETCH` when a client cannot be made.
    pub async fn http_client(&self, url: &Url) -> Result<reqwest::Client, ToolError> {
        self.check_literal(url)?;
        self.client_for(url).await.cloned()
    }

    /// Carries out one request. Must be called on a tokio runtime with time and I/O enabled.
    ///
    /// # Errors
    /// `ESECURITY` when the URL, a redirect or an address is not allowed, with what would have to be added to the
    /// list; `EFETCH` for everything else.
    pub async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, ToolError> {
        self.fetch_judged(request, &EveryHop).await
    }

    /// The same for a caller that judges every stop a redirect leads to. What the allow list does not have is refused
    /// before it is asked.
    ///
    /// # Errors
    /// As [`Self::fetch`], and what `judge` refuses.
    pub async fn fetch_judged(
        &self,
        request: FetchRequest,
        judge: &dyn HopJudge,
    ) -> Result<FetchResponse, ToolError> {
        let mut progress = Progress::Nothing;
        let followed = self.follow(request, judge, &mut progress).await;
        followed.map_err(|error| progress.mark(error))
    }

    /// Sends the request and follows where it leads; `progress` says how far it came.
    async fn follow(
        &self,
        request: FetchRequest,
        judge: &dyn HopJudge,
        progress: &mut Progress,
    ) -> Result<FetchResponse, ToolError> {
        let mut clock = Clock::new(&request.url, self.limits.timeout);
        let start = self.admit(&request.url, None)?;
        let (redirects, named) = (request.redirect, request.secret.clone());
        let request = request.prepare(&self.limits)?;
        let secret = match named {
            None => None,
            Some(name) => Some(clock.run(self.bound(&name, &request, &start)).await?),
        };
        // One that was used may be kept there, and would come back in pieces.
        if !self.redactions(secret.as_ref()).is_empty() {
            check_whole(&request)?;
        }
        let mut journey = Journey { start, request, redirects, secret, clock };
        let walked = self.walk(&mut journey, judge, progress).await;
        let secrets = self.redactions(journey.secret.as_ref());
        walked.map_err(|error| secrets.iter().fold(error, |error, secret| clean(secret, error)))
    }

    /// Returns what finds the secrets that were used so far, and the one of this request.
    fn redactions(&self, secret: Option<&BoundSecret>) -> Vec<Arc<SecretRedaction>> {
        let mut secrets = self.secrets.as_ref().map(SecretBroker::redactions).unwrap_or_default();
        // An old value makes room for a new one; the one that was sent is looked for in any case.
        secrets.extend(secret.map(BoundSecret::redaction));
        secrets
    }

    async fn walk(
        &self,
        journey: &mut Journey,
        judge: &dyn HopJudge,
        progress: &mut Progress,
    ) -> Result<FetchResponse, ToolError> {
        let Journey { start, request, redirects, secret, clock } = journey;
        let (secret, redirects) = (secret.as_ref(), *redirects);
        let mut url = start.clone();
        // Where it is not sent any more it may still be sent back.
        let mut is_sent = secret.is_some();
        for hops in 0..=self.limits.max_redirects {
            let inserted = secret.filter(|_| is_sent);
            let response = clock.run(self.send(request, &url, inserted, progress)).await?;
            let status = response.status();
            if status.is_informational() {
                return Err(bad_response(&url, "the server switched to another protocol"));
            }
            let location = response.headers().get(LOCATION).filter(|_| is_redirect(status));
            let Some(location) = location.filter(|_| redirects != Redirects::Manual) else {
                progress.answered();
                return clock.run(self.receive(response, &url, hops > 0, secret)).await;
            };
            if redirects == Redirects::Error {
                return Err(failure::unwanted_redirect(&url));
            }
            let target = self.redirect_target(&url, location, secret)?;
            drop(response);
            rewrite(request, status, &url, &target);
            is_sent &= secret.is_some_and(|secret| secret.follows(&request.method, &url, &target));
            judge.judge(Hop::new(&url, &target, request, is_sent)).await?;
            url = target;
        }
        Err(failure::too_many_redirects(start, self.limits.max_redirects))
    }

    async fn bound(&self, name: &str, request: &Prepared, url: &Url) -> Result<BoundSecret, ToolError> {
        match &self.secrets {
            Some(secrets) => secrets.bound(name, request, url).await,
            None => Err(failure::no_secrets(name)),
        }
    }

    /// Parses a URL and asks the list. What comes back is the only form of it that may be sent.
    fn admit(&self, url: &str, via: Option<&Url>) -> Result<Url, ToolError> {
        if url.len() > self.limits.max_url_bytes {
            return Err(too_large("URL", self.limits.max_url_bytes, "bytes"));
        }
        let admitted = self.list.check(url).map_err(|refusal| failure::refused(url, &refusal, via))?;
        self.check_literal(&admitted)?;
        Ok(admitted)
    }

    /// Resolvers are not asked about IP literals, so those are checked here: only one that the list names passes.
    fn check_literal(&self, url: &Url) -> Result<(), ToolError> {
        let Some(host) = url.host() else { return Err(bad_response(url, "it has no host")) };
        let address = match host {
            Host::Domain(_) => return Ok(()),
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
        };
        match address::off_limits(address) {
            Some(kind) if !self.list.names(&host) => {
                Err(failure::off_limits(url, &OffLimits { host: host.to_string(), address, kind }))
            }
            _ => Ok(()),
        }
    }

    fn redirect_target(
        &self,
        from: &Url,
        location: &HeaderValue,
        secret: Option<&BoundSecret>,
    ) -> Result<Url, ToolError> {
        // Non-ASCII is sent as UTF-8 by the servers that send it at all.
        let location = std::str::from_utf8(location.as_bytes())
            .map_err(|_| bad_response(from, "it redirects to a Location that is not text"))?;
        if location.len() > self.limits.max_url_bytes {
            return Err(too_large("URL of a redirect", self.limits.max_url_bytes, "bytes"));
        }
        let target = from.join(location).map_err(|error| {
            bad_response(from, &format!("it redirects to something that is not a URL ({error})"))
        })?;
        // First: what the list refuses is named in messages and records.
        let target = match secret {
            Some(secret) => secret.strip(target)?,
            None => target,
        };
        if self.redactions(None).iter().any(|secret| holds(secret, &target)) {
            return Err(redirects_with_secret("a secret that was used before"));
        }
        self.admit(target.as_str(), Some(from))
    }

    async fn send(
        &self,
        request: &Prepared,
        url: &Url,
        secret: Option<&BoundSecret>,
        progress: &mut Progress,
    ) -> Result<reqwest::Response, ToolError> {
        let client = self.client_for(url).await?;
        let mut outgoing = reqwest::Request::new(request.method.clone(), url.clone());
        *outgoing.headers_mut() = request.headers.clone();
        *outgoing.body_mut() = request.body.clone().map(reqwest::Body::from);
        if let Some(secret) = secret {
            secret.insert(&mut outgoing);
        }
        let before = *progress;
        if !request.is_safe() {
            *progress = Progress::Sent;
        }
        let response = client.execute(outgoing).await.map_err(|error| {
            if error.is_connect() || error.is_builder() {
                *progress = before;
            }
            transport(&error, url)
        })?;
        self.check_headers(response.headers())?;
        Ok(response)
    }

    /// The HTTP library has its own caps against a flood; these are the tighter ones of the configuration.
    fn check_headers(&self, headers: &HeaderMap) -> Result<(), ToolError> {
        if headers.len() > self.limits.max_headers {
            return Err(too_large("list of response headers", self.limits.max_headers, "headers"));
        }
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if bytes > self.limits.max_header_bytes {
            return Err(too_large("sum of the response headers", self.limits.max_header_bytes, "bytes"));
        }
        Ok(())
    }

    async fn receive(
        &self,
        mut response: reqwest::Response,
        url: &Url,
        redirected: bool,
        secret: Option<&BoundSecret>,
    ) -> Result<FetchResponse, ToolError> {
        let limit = self.limits.max_response_bytes;
        let problem = unsearchable(&response);
        let body = read_body(&mut response, limit).await.map_err(|error| match error {
            BodyError::Transport(error) => transport(&error, url),
            BodyError::TooLarge(_) | BodyError::Compressed(_) => too_large("response body", limit, "bytes"),
        })?;
        // Asked now: another request may have used one while this answer was on its way.
        let secrets = self.redactions(secret);
        if let Some(problem) = problem.filter(|_| !secrets.is_empty()) {
            return Err(bad_response(url, problem).help(
                "ask for all of it: once a secret was used, every answer is searched for it before a tool has it",
            ));
        }
        let body = self.decoded(body, response.headers(), url).await?;
        let status = response.status();
        let latin1 = |value: &HeaderValue| value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
        let received = FetchResponse {
            url: url.to_string(),
            status: status.as_u16(),
            status_text: status.canonical_reason().unwrap_or_default().to_owned(),
            headers: response
                .headers()
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), latin1(value)))
                .collect(),
            body,
            redirected,
        };
        if secrets.is_empty() {
            return Ok(received);
        }
        let hidden = bad_response(url, "it holds a secret in a form that cannot be removed");
        background::run(move || received.without(&secrets).ok_or(hidden)).await
    }

    /// Tools do not ask for compression, and some servers compress all the same. The headers stay as they were sent, as
    /// elsewhere.
    async fn decoded(&self, body: Vec<u8>, headers: &HeaderMap, url: &Url) -> Result<Vec<u8>, ToolError> {
        let limit = self.limits.max_response_bytes;
        let Some(codings) = codings(headers).filter(|codings| !codings.is_empty()) else { return Ok(body) };
        let url = url.clone();
        background::run(move || {
            decode(body, &codings, limit).map_err(|error| match error {
                DecodeError::TooLarge => too_large("unpacked response body", limit, "bytes"),
                DecodeError::Malformed(problem) => bad_response(&url, problem),
            })
        })
        .await
    }

    async fn client_for(&self, url: &Url) -> Result<&reqwest::Client, ToolError> {
        let transport = Transport::of(url);
        let (client, extra_roots) = match transport {
            Transport::Plain => (&self.plain, Vec::new()),
            Transport::Https => (&self.secure, self.extra_roots.clone()),
        };
        client
            .get_or_try_init(|| build_client(self.builder(transport), extra_roots))
            .await
            .map_err(|error| no_client(&error.to_string()))
    }

    fn builder(&self, transport: Transport) -> reqwest::ClientBuilder {
        let resolver =
            ScreeningResolver { list: Arc::clone(&self.list), resolver: Arc::clone(&self.resolver) };
        client_builder(transport)
            .dns_resolver(resolver)
            .http1_max_headers(self.limits.max_headers)
            .http2_max_header_list_size(u32::try_from(self.limits.max_header_bytes).unwrap_or(u32::MAX))
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
            .pool_idle_timeout(IDLE_CONNECTION_LIFE)
    }
}
