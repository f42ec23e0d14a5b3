//! Where a provider is, and what every request to it carries.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use tgp_contract::{Code, ToolError};
use tgp_net::is_loopback;
use url::Url;

use crate::options::{HttpOptions, Wire};

/// The version of the Messages API that this crate speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The addresses of one provider, and the headers of every request.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Who answers, as people know it: the base URL without its query, which may hold a secret.
    pub(crate) server: String,
    pub(crate) chat: Url,
    pub(crate) models: Url,
    pub(crate) headers: HeaderMap,
}

impl Endpoint {
    pub(crate) fn new(options: &HttpOptions) -> Result<Self, ToolError> {
        let base = base(options)?;
        let (chat, models): (&[&str], &[&str]) = match options.wire {
            Wire::OpenAiChat => (&["chat", "completions"], &["models"]),
            Wire::OpenAiResponses => (&["responses"], &["models"]),
            Wire::Anthropic => (&["v1", "messages"], &["v1", "models"]),
        };
        Ok(Self {
            server: shown(&base),
            chat: below(&base, chat)?,
            models: below(&base, models)?,
            headers: headers(options)?,
        })
    }

    /// How a provider is called: by its name, or by its URL where it has its own. Two servers may share a name.
    pub(crate) fn called(&self, name: &str, options: &HttpOptions) -> String {
        if options.base_url.is_some() { self.server.clone() } else { name.to_owned() }
    }

    /// True when OpenAI itself answers: it wants names of parameters that its imitators do not know.
    pub(crate) fn is_openai(&self) -> bool {
        let host = self.chat.host_str().unwrap_or_default();
        ["openai.com", "openai.azure.com"].iter().any(|domain| {
            host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }
}

/// A URL without its query: that may hold a secret.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path().trim_end_matches('/'))
}

fn wrong(why: &str) -> ToolError {
    ToolError::new(Code::Config, format!("the base URL of the model provider {why}"))
        .help("write a URL such as `http://localhost:11434/v1`, and the key in its own setting")
}

fn base(options: &HttpOptions) -> Result<Url, ToolError> {
    let text = options.base_url.as_deref().unwrap_or(options.wire.default_base_url());
    let base = Url::parse(text).map_err(|error| wrong(&format!("is not a URL: {error}")))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(wrong("is neither http nor https"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(wrong("carries a user or a password"));
    }
    let has_secrets = options.key.is_some() || !options.headers.is_empty();
    if base.scheme() == "http" && has_secrets && !is_loopback(&base) {
        return Err(wrong("is plain http to another machine, and a key would be readable on the way")
            .help("use https, or a tunnel to `127.0.0.1`, or configure the provider without a key"));
    }
    Ok(base)
}

/// People write a base with and without its version; it must not be there twice.
fn below(base: &Url, segments: &[&str]) -> Result<Url, ToolError> {
    let mut url = base.clone();
    let last = base.path_segments().and_then(|mut path| path.rfind(|segment| !segment.is_empty()));
    let segments = match segments.split_first() {
        Some((first, rest)) if *first == "v1" && last == Some("v1") => rest,
        _ => segments,
    };
    url.path_segments_mut().map_err(|()| wrong("has no path"))?.pop_if_empty().extend(segments);
    Ok(url)
}

fn headers(options: &HttpOptions) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let unfit = || {
            ToolError::new(
                Code::Config,
                format!("the header `{}` of the model provider cannot be sent", name.escape_debug()),
            )
            .help("use a name of letters, digits and `-`, and a value of visible ASCII characters")
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
        headers.append(name, secret(value).ok_or_else(unfit)?);
    }
    if options.wire == Wire::Anthropic {
        headers.entry("anthropic-version").or_insert(HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some(key) = &options.key {
        let key = key.expose();
        let (name, value) = match options.wire {
            Wire::Anthropic => (HeaderName::from_static("x-api-key"), secret(key)),
            Wire::OpenAiChat | Wire::OpenAiResponses => (AUTHORIZATION, secret(&format!("Bearer {key}"))),
        };
        let value = value.filter(|_| !key.is_empty()).ok_or_else(|| {
            ToolError::new(
                Code::Config,
                "the key of the model provider is empty or has characters that no key has",
            )
            .help(format!(
                "check the environment variable `{}`, also for a line break",
                options.key_variable()
            ))
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}
