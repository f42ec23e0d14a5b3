//! What the user can do about a failure.

use crate::endpoint::{Endpoint, shown};
use crate::failure::{Failure, LASTING_KINDS, ProviderMessage};
use crate::limits::LONGEST_RETRY_AFTER;
use crate::options::{HttpOptions, Wire};
use crate::retry::in_words;

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Turn,
    Models,
}

/// Knows of one provider what a next step can name.
#[derive(Debug)]
pub(crate) struct ProviderHints {
    key_variable: String,
    has_key: bool,
    /// The address that no key is set up for.
    without_key: Option<String>,
    wire: Wire,
    is_openai: bool,
    chat: String,
    models: String,
}

/// What a provider complains about, where the status alone does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComplaintKind {
    Context,
    Credit,
    WrongApi,
    Temperature,
    NoTools,
    Schema,
    OutputLimit,
}

/// The words for a conversation that is too long, as the makers of models and of servers write them.
const CONTEXT_WORDS: [&str; 9] = [
    "maximum context length",
    "context length",
    "context window",
    "context limit",
    "context size",
    "prompt is too long",
    "input is too long",
    "maximum prompt length",
    "too many tokens",
];
const CREDIT_WORDS: [&str; 5] = [
    "credit balance",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credits",
    "requires more credits",
];
const TOOL_WORDS: [&str; 7] = [
    "not support tool",
    "not support function",
    "support tool use",
    "tools are not supported",
    "tool use is not supported",
    "function calling is not",
    "tool choice requires",
];
const LIMIT_NAMES: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

impl ComplaintKind {
    /// By the code and the parameter where they are given, and by well-known words where not.
    fn of(said: &ProviderMessage, wire: Wire) -> Option<Self> {
        let message = said.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_about = |names: &[&str]| said.parameter.as_deref().is_some_and(|name| names.contains(&name));
        let cases = [
            (Self::Context, said.has(&["context_length_exceeded"]) || says(&CONTEXT_WORDS)),
            (Self::Credit, said.has(&LASTING_KINDS) || says(&CREDIT_WORDS)),
            (Self::WrongApi, wire == Wire::OpenAiChat && says(&["v1/responses"])),
            (Self::Temperature, is_about(&["temperature"]) || says(&["temperature"])),
            (Self::NoTools, says(&TOOL_WORDS)),
            (Self::Schema, said.has(&["invalid_function_parameters"]) || says(&["schema"])),
            (Self::OutputLimit, is_about(&LIMIT_NAMES) || says(&LIMIT_NAMES)),
        ];
        cases.into_iter().find_map(|(complaint, is_it)| is_it.then_some(complaint))
    }
}

impl ProviderHints {
    pub(crate) fn new(options: &HttpOptions, endpoint: &Endpoint) -> Self {
        Self {
            key_variable: options.key_variable().to_owned(),
            has_key: options.key.is_some(),
            without_key: (options.base_url.is_some() && options.key_variable.is_none())
                .then(|| endpoint.server.clone()),
            wire: options.wire,
            is_openai: endpoint.is_openai(),
            chat: shown(&endpoint.chat),
            models: shown(&endpoint.models),
        }
    }

    fn address(&self, asked: Asked) -> &str {
        match asked {
            Asked::Turn => &self.chat,
            Asked::Models => &self.models,
        }
    }

    pub(crate) fn next_step(&self, failure: &Failure, asked: Asked) -> String {
        let address = self.address(asked);
        match failure {
            Failure::Refused { status: 401 | 403, .. } => self.about_the_key(failure),
            Failure::Refused { said, .. } | Failure::Reported(said) => {
                match ComplaintKind::of(said, self.wire) {
                    Some(complaint) => self.about(complaint).to_owned(),
                    None => self.about_the_status(failure, asked),
                }
            }
            Failure::Unreachable(_) => format!("check the network and the address `{address}`"),
            Failure::NoConnection(_) => format!(
                "check the network and the address `{address}`, or set llm.timeouts.connectSeconds higher"
            ),
            Failure::Untrusted(_) => format!(
                "check the address `{address}`, or add the certificate of its issuer to those that this system trusts"
            ),
            Failure::NoTls => {
                format!(
                    "write `http://` if the server behind `{address}` speaks plain HTTP, or correct the port"
                )
            }
            Failure::NoHttp(_) => {
                format!("write `https://` if the server behind `{address}` speaks TLS, or correct the port")
            }
            Failure::Compressed(_) => {
                format!(
                    "have the server at `{address}`, or the proxy before it, send its answers as they are"
                )
            }
            Failure::Dropped(_) => format!("check the network, and the server at `{address}`"),
            Failure::Silent(_) => {
                "set llm.timeouts.idleSeconds higher if this model thinks for longer without a word"
                    .to_owned()
            }
            Failure::TooLong(_) => {
                "set llm.timeouts.totalSeconds higher if this model needs longer for a turn".to_owned()
            }
            Failure::NoStream { .. } | Failure::Unreadable(_) | Failure::TooLarge { .. } => {
                format!("check that the server at `{address}` speaks the configured API")
            }
        }
    }

    fn about_the_key(&self, failure: &Failure) -> String {
        let key_variable = &self.key_variable;
        if let (false, Some(address)) = (self.has_key, &self.without_key) {
            return format!(
                "no key was sent, because none is set up for `{address}`: pass --key-variable NAME, which names the environment \
                 variable that holds the key, or add `\"{address}\" = \"NAME\"` to [keys] of the user configuration"
            );
        }
        if !self.has_key {
            return format!("no key was sent; set the environment variable `{key_variable}`");
        }
        if matches!(failure, Failure::Refused { status: 403, .. }) {
            return format!(
                "check that the key in the environment variable `{key_variable}` may use this model"
            );
        }
        format!("the key in the environment variable `{key_variable}` was not accepted; set a valid one")
    }

    fn about(&self, complaint: ComplaintKind) -> &'static str {
        const RESPONSES: &str = "use --provider openai, which speaks the Responses API";
        let is_openai_chat = self.is_openai && self.wire == Wire::OpenAiChat;
        match complaint {
            ComplaintKind::Context => "set llm.contextTokens lower or begin another session",
            ComplaintKind::Credit => {
                "the account has no credit or quota left; look at its plan and its billing"
            }
            ComplaintKind::WrongApi => RESPONSES,
            ComplaintKind::Temperature => "remove llm.temperature",
            ComplaintKind::NoTools if is_openai_chat => RESPONSES,
            ComplaintKind::NoTools => "choose a model that can use tools; `tgp models` lists what there is",
            ComplaintKind::Schema => {
                "the schema of a tool was not accepted; fix or remove the tool that the message names"
            }
            ComplaintKind::OutputLimit => "set llm.maxOutputTokens to what this model can write",
        }
    }

    fn about_the_status(&self, failure: &Failure, asked: Asked) -> String {
        let address = self.address(asked);
        let Failure::Refused { status, retry_after, .. } = failure else {
            return "try again later; the provider's status page may know more".to_owned();
        };
        match (status, retry_after) {
            (429 | 500..=599, Some(pause)) if *pause > LONGEST_RETRY_AFTER => format!(
                "the provider asks for a pause of {}; wait, or look at the rate limits and the quota of the account",
                in_words(*pause)
            ),
            (402, _) => self.about(ComplaintKind::Credit).to_owned(),
            (404, _) if asked == Asked::Turn => {
                let step = format!(
                    "check the name of the model, `tgp models` lists what there is; and the address `{address}`"
                );
                // Few of those who speak like OpenAI know its newer API.
                let is_imitator = self.wire == Wire::OpenAiResponses && !self.is_openai;
                if is_imitator { step + "; or use --provider openai-chat" } else { step }
            }
            (404, _) => format!("check the base URL; the list of models was asked for at `{address}`"),
            (413, _) => self.about(ComplaintKind::Context).to_owned(),
            (429, _) => "wait a little, or look at the rate limits and the quota of the account".to_owned(),
            (300..=399, _) => {
                format!("redirects are not followed; set the base URL to where `{address}` points")
            }
            (500..=599, _) => {
                format!("try again later; the provider's status page may know more of `{address}`")
            }
            _ => format!(
                "check that the model exists and can use tools, and that the server at `{address}` speaks this API"
            ),
        }
    }
}
