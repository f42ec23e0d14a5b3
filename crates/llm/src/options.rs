//! The options of a provider over HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tgp_net::Secret;

/// How requests and answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `POST {base}/chat/completions`: OpenAI, and compatible servers (Ollama, vLLM, gateways).
    OpenAiChat,
    /// `POST {base}/responses`.
    OpenAiResponses,
    /// `POST {base}/v1/messages`.
    Anthropic,
}

impl Wire {
    /// Where the API is served by its vendor.
    #[must_use]
    pub fn default_base_url(self) -> &'static str {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses => "https://api.openai.com/v1",
            Wire::Anthropic => "https://api.anthropic.com",
        }
    }

    /// The environment variable in which people keep the key.
    #[must_use]
    pub fn key_variable(self) -> &'static str {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses => "OPENAI_API_KEY",
            Wire::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

/// How long is waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderTimeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the next byte; models that think in silence need minutes.
    pub idle: Duration,
    /// For the whole turn, with all attempts and the pauses between them.
    pub total: Duration,
}

impl Default for ProviderTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(30 * 60),
        }
    }
}

/// Where in the interval from nothing to the whole pause an attempt is made, so that clients do not come in step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Anywhere, by the system's randomness.
    Random,
    /// Always at this fraction, from 0 to 1.
    Fixed(f64),
}

/// How often a turn is asked for, as long as nothing of it has been received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// All attempts together, at least 1.
    pub attempts: u32,
    /// The longest pause before the second attempt; it doubles with each one.
    pub first_delay: Duration,
    /// The pauses stop growing here. What a server asks for with `retry-after` counts beside it.
    pub longest_delay: Duration,
    /// The pause before the second attempt after a rate limit for which the server names no time. It doubles up to a
    /// minute, so that the attempts of a turn outlast a limit per minute.
    pub rate_limit_delay: Duration,
    pub jitter: Jitter,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(20),
            rate_limit_delay: Duration::from_secs(10),
            jitter: Jitter::Random,
        }
    }
}

/// A pause before the next attempt, reported when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// The number of the attempt that is made after the pause, from 2.
    pub attempt: u32,
    /// All attempts that are made at most.
    pub attempts: u32,
    pub pause: Duration,
    /// The result of the attempt before, in a few words that are fit for a screen.
    pub reason: String,
}

impl fmt::Display for RetryNotice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempt, attempts, pause, reason } = self;
        let pause = crate::retry::in_words(*pause);
        write!(formatter, "{reason}; attempt {attempt} of {attempts} in {pause}")
    }
}

/// Called at each pause, on a thread of the runtime; it should return at once.
pub type OnRetry = Arc<dyn Fn(&RetryNotice) + Send + Sync>;

/// The options of a provider over HTTP.
#[derive(Clone)]
pub struct HttpOptions {
    pub wire: Wire,
    /// As the server documents it, such as `http://localhost:11434/v1`. `None` is the address of the API's maker.
    pub base_url: Option<String>,
    pub key: Option<Secret>,
    /// Where the user keeps the key, for the error that says it is wrong. `None` is the wire's own variable.
    pub key_variable: Option<String>,
    /// Sent with every request, such as `anthropic-beta`. The values are treated as secrets.
    pub headers: Vec<(String, String)>,
    /// Fields of every request for a turn, such as `{"reasoning": {"effort": "high"}}`. They take the place of ours, but
    /// for `model`, `messages`, `input`, `tools` and `stream`.
    pub body: Map<String, Value>,
    pub patience: ProviderTimeouts,
    pub retries: Retries,
    /// Called before each pause between two attempts.
    pub on_wait: Option<OnRetry>,
}

impl HttpOptions {
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        Self {
            wire,
            base_url: None,
            key: None,
            key_variable: None,
            headers: Vec::new(),
            body: Map::new(),
            patience: ProviderTimeouts::default(),
            retries: Retries::default(),
            on_wait: None,
        }
    }

    pub(crate) fn key_variable(&self) -> &str {
        self.key_variable.as_deref().unwrap_or(self.wire.key_variable())
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("HttpOptions")
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("key", &self.key)
            .field("key_variable", &self.key_variable)
            .field("headers", &names)
            .field("body", &self.body.keys().collect::<Vec<_>>())
            .field("patience", &self.patience)
            .field("retries", &self.retries)
            .field("on_wait", &self.on_wait.as_ref().map(|_| ".."))
            .finish()
    }
}
