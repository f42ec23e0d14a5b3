//! The providers' REST APIs, as far as opening and updating one request goes.

mod bitbucket;
mod github;
mod gitlab;

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tgp_contract::{Code, ToolError};
use tgp_net::{BodyError, Transport, build_client, client_builder, is_loopback, read_plain_body, root_cause};
use tgp_text::one_line;
use tokio::sync::OnceCell;
use url::Url;

use crate::secret::Sieve;
use crate::{Provider, RequestLink, Secret};

/// A request with all its fields is a few kilobytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// What a provider says about an error, for one sentence.
const MAX_SAID_CHARS: usize = 200;

/// What a request should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) branch: String,
    pub(crate) base: String,
    pub(crate) title: String,
    pub(crate) body: String,
}

/// Why a request could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("no token is configured")]
    NoToken,
    #[error("the provider's API cannot be reached ({0})")]
    Transport(String),
    #[error("the provider's API gave no answer within {} seconds", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("the provider answered {status}: {said}")]
    Status { status: u16, said: String },
    #[error("the provider's answer was not understood")]
    Answer,
}

impl ApiError {
    /// What the user does about it, in addition to opening the request by hand.
    pub(crate) fn next_step(&self) -> &'static str {
        match self {
            Self::NoToken => "set `git.auth.token`, and `tgp sync` opens it",
            Self::Status { status: 401, .. } => {
                "correct `git.auth.token`, or the environment variable that it reads, and `tgp sync` opens it"
            }
            Self::Status { status: 403, .. } => {
                "let the user of `git.auth.token` open requests there, and `tgp sync` opens it"
            }
            Self::Status { status: 404, .. } => {
                "check `git.repo` and `git.apiBaseUrl`, and that the user of `git.auth.token` may see the repository"
            }
            Self::Status { status: 300..=399, .. } => {
                "set `git.apiBaseUrl` to the address that it has moved to"
            }
            Self::Status { status: 429 | 500..=599, .. } | Self::Transport(_) | Self::TimedOut(_) => {
                "`tgp sync` tries again"
            }
            Self::Status { .. } | Self::Answer => "check `git.provider` and `git.apiBaseUrl`",
        }
    }
}

/// One HTTP call of an API.
struct Call {
    method: Method,
    url: Url,
    body: Option<Value>,
}

/// A request that exists.
struct Existing {
    number: u64,
    url: String,
}

/// The request for exactly the draft's branches. A filter that an installation does not know is ignored by it, and then
/// the list has everything that is open.
fn fitting<'a>(list: &'a Value, draft: &Draft, branch: &str, base: &str) -> Option<&'a Value> {
    let is =
        |value: &Value, place: &str, name: &str| value.pointer(place).and_then(Value::as_str) == Some(name);
    list.as_array()?.iter().find(|value| is(value, branch, &draft.branch) && is(value, base, &draft.base))
}

/// The requests of one repository.
pub(crate) struct Requests {
    provider: Provider,
    base: Url,
    repo: String,
    token: Option<Secret>,
    limit: Duration,
    sieve: Sieve,
    client: OnceCell<reqwest::Client>,
}

impl Requests {
    pub(crate) fn new(
        provider: Provider,
        base: &str,
        repo: &str,
        token: Option<Secret>,
        limit: Duration,
        sieve: Sieve,
    ) -> Result<Self, ToolError> {
        let wrong = |why: &str| {
            ToolError::new(Code::Config, format!("`git.apiBaseUrl` cannot be used: {why}"))
                .help(format!("leave it out for {}", provider.api_base()))
        };
        let base = Url::parse(base).map_err(|error| wrong(&error.to_string()))?;
        let is_clear = base.scheme() == "http" && is_loopback(&base);
        if base.scheme() != "https" && !is_clear {
            return Err(wrong("a token is only sent over https"));
        }
        if base.cannot_be_a_base() || !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("it carries a user name or a password"));
        }
        Ok(Self { provider, base, repo: repo.to_owned(), token, limit, sieve, client: OnceCell::new() })
    }

    /// Opens the request for `draft`, or updates the one that is open.
    pub(crate) async fn ensure(&self, draft: &Draft) -> Result<RequestLink, ApiError> {
        let found = self.call(self.find(draft)?).await?;
        let existing = match self.provider {
            Provider::GitHub => github::found(&found, draft),
            Provider::GitLab => gitlab::found(&found, draft),
            Provider::Bitbucket => bitbucket::found(&found, draft),
        };
        let created = existing.is_none();
        let call = match (&existing, self.provider) {
            (None, Provider::GitHub) => github::create(self, draft)?,
            (None, Provider::GitLab) => gitlab::create(self, draft)?,
            (None, Provider::Bitbucket) => bitbucket::create(self, draft)?,
            (Some(existing), Provider::GitHub) => github::update(self, existing, draft)?,
            (Some(existing), Provider::GitLab) => gitlab::update(self, existing, draft)?,
            (Some(existing), Provider::Bitbucket) => bitbucket::update(self, existing, draft)?,
        };
        let answer = self.call(call).await?;
        let request = match self.provider {
            Provider::GitHub => github::request(&answer),
            Provider::GitLab => gitlab::request(&answer),
            Provider::Bitbucket => bitbucket::request(&answer),
        };
        let Existing { number, url } = request.or(existing).ok_or(ApiError::Answer)?;
        Ok(RequestLink { url: self.sieve.clean(&url), number, created })
    }

    /// Where a person opens the request.
    pub(crate) fn by_hand(&self, draft: &Draft) -> String {
        let is_usual =
            Url::parse(self.provider.api_base()).is_ok_and(|usual| usual.host() == self.base.host());
        let own = self.base.origin().ascii_serialization();
        let site = match self.provider {
            Provider::GitHub if is_usual => "https://github.com",
            Provider::Bitbucket if is_usual => "https://bitbucket.org",
            _ => &own,
        };
        let Draft { branch, base, .. } = draft;
        let repo = &self.repo;
        match self.provider {
            Provider::GitHub => format!("{site}/{repo}/compare/{base}...{branch}"),
            Provider::GitLab => {
                format!("{site}/{repo}/-/merge_requests/new?merge_request[source_branch]={branch}")
            }
            Provider::Bitbucket => format!("{site}/{repo}/pull-requests/new?source={branch}&dest={base}"),
        }
    }

    fn find(&self, draft: &Draft) -> Result<Call, ApiError> {
        match self.provider {
            Provider::GitHub => github::find(self, draft),
            Provider::GitLab => gitlab::find(self, draft),
            Provider::Bitbucket => bitbucket::find(self, draft),
        }
    }

    /// The base URL with `segments` behind it, each one escaped as a whole.
    fn url(&self, segments: &[&str]) -> Result<Url, ApiError> {
        let mut url = self.base.clone();
        url.path_segments_mut().map_err(|()| ApiError::Answer)?.pop_if_empty().extend(segments);
        Ok(url)
    }

    fn headers(&self) -> Result<HeaderMap, ApiError> {
        let token = self.token.as_ref().ok_or(ApiError::NoToken)?.expose();
        let (name, value) = match self.provider {
            Provider::GitLab => (HeaderName::from_static("private-token"), token.to_owned()),
            Provider::GitHub | Provider::Bitbucket => {
                (reqwest::header::AUTHORIZATION, format!("Bearer {token}"))
            }
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| ApiError::NoToken)?;
        value.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(name, value);
        let accept = match self.provider {
            Provider::GitHub => {
                headers.insert("x-github-api-version", HeaderValue::from_static("2022-11-28"));
                "application/vnd.github+json"
            }
            Provider::GitLab | Provider::Bitbucket => "application/json",
        };
        headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static(accept));
        Ok(headers)
    }

    async fn call(&self, call: Call) -> Result<Value, ApiError> {
        let headers = self.headers()?;
        let work = async {
            let mut request = reqwest::Request::new(call.method, call.url);
            *request.headers_mut() = headers;
            if let Some(body) = call.body {
                request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                *request.body_mut() = Some(body.to_string().into());
            }
            let broken = |error: reqwest::Error| ApiError::Transport(self.reason(&error));
            let mut response = self.client().await?.execute(request).await.map_err(broken)?;
            let status = response.status();
            let bytes = match read_plain_body(&mut response, MAX_ANSWER_BYTES).await {
                Ok(bytes) => bytes,
                Err(BodyError::Transport(error)) => return Err(broken(error)),
                // The status says more than a body that cannot be read.
                Err(_) if !status.is_success() => Vec::new(),
                Err(BodyError::TooLarge(_) | BodyError::Compressed(_)) => return Err(ApiError::Answer),
            };
            if !status.is_success() {
                return Err(ApiError::Status { status: status.as_u16(), said: self.said(&bytes) });
            }
            serde_json::from_slice(&bytes).map_err(|_| ApiError::Answer)
        };
        tokio::time::timeout(self.limit, work).await.unwrap_or(Err(ApiError::TimedOut(self.limit)))
    }

    fn reason(&self, error: &reqwest::Error) -> String {
        self.sieve.clean(&root_cause(error))
    }

    /// The provider's own words. They differ in where they put them.
    fn said(&self, bytes: &[u8]) -> String {
        let answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let details = answer.pointer("/errors/0/message").and_then(Value::as_str);
        let message = answer
            .get("message")
            .or_else(|| answer.pointer("/error/message"))
            .or_else(|| answer.get("error"));
        let message = match message {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::from_utf8_lossy(bytes).into_owned(),
        };
        let whole = details.map_or_else(|| message.clone(), |details| format!("{message} ({details})"));
        let line = one_line(&self.sieve.clean(&whole), MAX_SAID_CHARS);
        if line.is_empty() { "no reason given".to_owned() } else { line }
    }

    async fn client(&self) -> Result<&reqwest::Client, ApiError> {
        let builder = client_builder(Transport::of(&self.base));
        self.client
            .get_or_try_init(|| build_client(builder, Vec::new()))
            .await
            .map_err(|error| ApiError::Transport(self.sieve.clean(&error.to_string())))
    }
}
