//! What can go wrong between us and a provider, and how it is reported.

use std::time::Duration;

use serde_json::Value;
use tgp_contract::{Code, REPEATABLE_DETAIL, ToolError};
use tgp_net::SecretScrubber;
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::advice::{Asked, ProviderHints};
use crate::endpoint::Endpoint;
use crate::limits::{MAX_QUOTED_CHARACTERS, MAX_REASON_CHARACTERS};
use crate::options::HttpOptions;
use crate::retry::{PauseCause, in_words};

/// Words by which providers say in the middle of a stream that the next attempt may succeed.
const PASSING_KINDS: [&str; 10] = [
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "api_error",
    "timeout_error",
    "server_error",
    "internal_server_error",
    "service_unavailable",
    "slow_down",
    "server_is_overloaded",
];

/// The kinds among them by which a rate limit is reported.
const RATE_LIMIT_KINDS: [&str; 3] = ["rate_limit_error", "rate_limit_exceeded", "429"];

/// An account without money answers like one that is too fast, but no pause helps.
pub(crate) const LASTING_KINDS: [&str; 3] =
    ["insufficient_quota", "billing_hard_limit_reached", "billing_error"];

/// Why a turn or an attempt at it failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("it answered with status {status}")]
    Refused { status: u16, said: ProviderMessage, retry_after: Option<Duration>, is_final: bool },
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("no connection to it was made within {}", in_words(*.0))]
    NoConnection(Duration),
    #[error("the server's certificate is not trusted ({0})")]
    Untrusted(String),
    #[error("this is not a TLS server: it answered something else on this port")]
    NoTls,
    #[error("this is not an HTTP server, or it speaks TLS on this port ({0})")]
    NoHttp(String),
    #[error("its answer is compressed with `{0}`, which was not asked for")]
    Compressed(String),
    #[error("the connection was closed before the answer was complete: {0}")]
    Dropped(String),
    #[error("it sent nothing for {}", in_words(*.0))]
    Silent(Duration),
    #[error("the turn took longer than {}", in_words(*.0))]
    TooLong(Duration),
    #[error("it reported an error in its answer")]
    Reported(ProviderMessage),
    #[error("it answered with `{content_type}` where a stream of events was asked for")]
    NoStream { content_type: String, said: ProviderMessage },
    #[error("its answer is not understood: {0}")]
    Unreadable(String),
    #[error("{what} in its answer is larger than {limit}")]
    TooLarge { what: &'static str, limit: u64 },
}

/// The provider's own words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProviderMessage {
    pub(crate) message: String,
    /// Its type and its code, where it has them.
    pub(crate) kinds: Vec<String>,
    /// The parameter of the request that it complains about.
    pub(crate) parameter: Option<String>,
}

impl ProviderMessage {
    /// Reads the shapes in which providers and gateways write errors.
    pub(crate) fn from_json(value: &Value) -> Self {
        // Some gateways put the error into a list.
        let value = value.get(0).unwrap_or(value);
        let inner = match value.get("error") {
            Some(Value::String(message)) => return Self { message: message.clone(), ..Self::default() },
            Some(inner @ Value::Object(_)) => inner,
            _ => value,
        };
        let word = |name: &str| match inner.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        Self {
            message: word("message").or_else(|| word("detail")).unwrap_or_default(),
            kinds: ["type", "code", "status"].into_iter().filter_map(word).collect(),
            parameter: word("param"),
        }
    }

    /// Reads a body that should be JSON and may be a page of a proxy.
    pub(crate) fn from_body(body: &[u8]) -> Self {
        let said =
            serde_json::from_slice::<Value>(body).map(|value| Self::from_json(&value)).unwrap_or_default();
        if !said.message.is_empty() {
            return said;
        }
        Self { message: String::from_utf8_lossy(body).into_owned(), ..said }
    }

    pub(crate) fn has(&self, words: &[&str]) -> bool {
        self.kinds.iter().any(|kind| words.contains(&kind.as_str()))
    }

    fn is_passing(&self) -> bool {
        let by_number = |kind: &String| kind.parse::<u16>().is_ok_and(is_passing_status);
        !self.has(&LASTING_KINDS) && (self.has(&PASSING_KINDS) || self.kinds.iter().any(by_number))
    }
}

fn is_passing_status(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

impl Failure {
    pub(crate) fn unexpected_end() -> Self {
        Self::Dropped("the stream ended".to_owned())
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Refused { status, said, is_final, .. } => {
                !is_final && is_passing_status(*status) && !said.has(&LASTING_KINDS)
            }
            Self::Reported(said) => said.is_passing(),
            Self::Unreachable(_) | Self::NoConnection(_) => true,
            Self::Dropped(_) | Self::Silent(_) | Self::TooLong(_) => true,
            Self::Untrusted(_) | Self::NoTls | Self::NoHttp(_) | Self::Compressed(_) => false,
            Self::NoStream { .. } | Self::Unreadable(_) | Self::TooLarge { .. } => false,
        }
    }

    /// Whether another attempt is made now. A user who has waited minutes in silence is informed, and
    /// decides.
    pub(crate) fn is_worth_an_attempt(&self) -> bool {
        self.is_passing() && !matches!(self, Self::Silent(_) | Self::TooLong(_))
    }

    pub(crate) fn pause_cause(&self) -> PauseCause {
        match self {
            Self::Refused { retry_after: Some(asked), .. } => PauseCause::RetryAfter(*asked),
            Self::Refused { status: 429, .. } => PauseCause::RateLimit,
            Self::Reported(said) if said.has(&RATE_LIMIT_KINDS) => PauseCause::RateLimit,
            _ => PauseCause::Other,
        }
    }

    fn said(&self) -> Option<&ProviderMessage> {
        match self {
            Self::Refused { said, .. } | Self::Reported(said) | Self::NoStream { said, .. } => Some(said),
            _ => None,
        }
    }
}

/// Reports failures of one provider, and removes its secrets.
#[derive(Debug)]
pub(crate) struct Reporter {
    name: String,
    /// How it is called in messages: who has named a server by its URL knows it by that.
    called: String,
    adviser: ProviderHints,
    scrubber: SecretScrubber,
    /// More than one attempt is wanted.
    has_attempts: bool,
}

/// Short values of headers are words such as `true`; they would make holes in every message.
const SHORTEST_SECRET: usize = 6;

impl Reporter {
    pub(crate) fn new(name: &str, options: &HttpOptions, endpoint: &Endpoint) -> Self {
        let mut scrubber = SecretScrubber::default();
        for (_, value) in options.headers.iter().filter(|(_, value)| value.len() >= SHORTEST_SECRET) {
            scrubber.add(value);
        }
        if let Some(key) = &options.key {
            scrubber.add_key(key.expose());
        }
        Self {
            name: name.to_owned(),
            called: endpoint.called(name, options),
            adviser: ProviderHints::new(options, endpoint),
            scrubber,
            has_attempts: options.retries.attempts > 1,
        }
    }

    /// What others said, fit for a screen: no secret, no control characters, and not too long.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.cut(text, MAX_QUOTED_CHARACTERS)
    }

    fn cut(&self, text: &str, limit: usize) -> String {
        let without = self.scrubber.clean(text);
        let mut shown = String::new();
        for (count, character) in without.trim().chars().enumerate() {
            if count == limit {
                shown.push_str(" [...]");
                break;
            }
            match character {
                '\n' | '\r' | '\t' => shown.push(' '),
                _ if is_invisible(character) => shown.extend(character.escape_unicode()),
                _ => shown.push(character),
            }
        }
        shown
    }

    /// The result of an attempt, in a few words.
    pub(crate) fn reason(&self, failure: &Failure) -> String {
        let words = match failure {
            Failure::Refused { status: 408, .. } => "408 timed out".to_owned(),
            Failure::Refused { status: 429, .. } => "429 rate limited".to_owned(),
            Failure::Refused { status: 503, .. } => "503 unavailable".to_owned(),
            Failure::Refused { status: 529, .. } => "529 overloaded".to_owned(),
            Failure::Refused { status, .. } => format!("{status} server error"),
            Failure::Reported(said) => format!("the provider reports: {}", said.message),
            Failure::Dropped(_) => "the connection was closed".to_owned(),
            other => other.to_string(),
        };
        self.cut(&words, MAX_REASON_CHARACTERS)
    }

    /// The error of an answer that has begun. `repeatable` says that the turn may be asked for again without a person:
    /// only the caller knows whether something of it has taken effect.
    pub(crate) fn interruption(&self, failure: &Failure, attempts: u32) -> ToolError {
        let error = self.error(failure, attempts, Asked::Turn);
        if self.has_attempts && failure.is_worth_an_attempt() {
            return error.detail(REPEATABLE_DETAIL, true);
        }
        error
    }

    pub(crate) fn error(&self, failure: &Failure, attempts: u32, asked: Asked) -> ToolError {
        let mut message =
            format!("the provider `{}` failed: {}", self.called, self.clean(&failure.to_string()));
        if let Some(said) =
            failure.said().map(|said| self.clean(&said.message)).filter(|said| !said.is_empty())
        {
            message.push_str(": ");
            message.push_str(&said);
        }
        let mut error = ToolError::new(Code::Provider, message)
            .help(self.adviser.next_step(failure, asked))
            .detail("provider", self.name.clone())
            .detail("retryable", failure.is_passing())
            .detail("attempts", attempts);
        if let Failure::Refused { status, retry_after, .. } = failure {
            error = error.detail("status", *status);
            if let Some(pause) = retry_after {
                error = error.detail("retryAfterMs", u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
            }
        }
        error
    }
}

/// Characters without their own glyph: they can hide or reorder their neighbours.
fn is_invisible(character: char) -> bool {
    matches!(
        get_general_category(character),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Unassigned
    )
}
