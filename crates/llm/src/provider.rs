//! A provider over HTTP: one request a turn, and more attempts as long as nothing of it was received.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use serde_json::Value;
use tgp_contract::{ChatOptions, Code, EventStream, ModelInfo, ModelProvider, ToolError};
use tokio::time::{Instant, sleep};

use crate::advice::Asked;
use crate::client::{Answer, Client};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, ProviderMessage, Reporter};
use crate::lessons::LearnedQuirks;
use crate::limits::{LONGEST_PATIENCE, MAX_ATTEMPTS, MAX_MODEL_PAGES, MAX_MODELS, MAX_MODELS_BYTES};
use crate::options::{HttpOptions, ProviderTimeouts, RetryNotice, Wire};
use crate::turn::{self, Turn};
use crate::wire::{self, Dialect};

/// How many models a page has, where the server has pages: the most that is allowed.
const MODELS_A_PAGE: &str = "1000";

/// The fields of a request that only we can know.
const OUR_FIELDS: [&str; 5] = ["model", "messages", "input", "tools", "stream"];

/// Makes a provider that is called `name`. Nothing is sent yet. What only one model of one server is to get back is marked
/// with both: the name, or the base URL where there is one, and the model.
/// Proxies of the environment are not used, and redirects not followed: both could show the key to another server.
///
/// # Errors
/// `ECONFIG` when the base URL, the key or a header cannot be used.
pub fn provider(
    name: impl Into<String>,
    mut options: HttpOptions,
) -> Result<Arc<dyn ModelProvider>, ToolError> {
    let name = name.into();
    let endpoint = Endpoint::new(&options)?;
    let ProviderTimeouts { connect, idle, total } = options.patience;
    if connect.is_zero() || idle.is_zero() || total.is_zero() {
        return Err(ToolError::new(Code::Config, format!("the provider `{name}` has a time-out of zero"))
            .help("leave it out for the default, or write a positive number of seconds"));
    }
    options.patience = ProviderTimeouts {
        connect: connect.min(LONGEST_PATIENCE),
        idle: idle.min(LONGEST_PATIENCE),
        total: total.min(LONGEST_PATIENCE),
    };
    Ok(Arc::new(HttpProvider {
        reporter: Arc::new(Reporter::new(&name, &options, &endpoint)),
        client: Client::new(endpoint.headers.clone(), options.patience),
        lessons: LearnedQuirks::default(),
        called: endpoint.called(&name, &options),
        options,
        endpoint,
        name,
    }))
}

/// The entry point of `fuzz/`: the events of an answer as it comes in.
///
/// # Errors
/// As [`provider`].
#[doc(hidden)]
pub fn answer_events(options: &HttpOptions, response: reqwest::Response) -> Result<EventStream, ToolError> {
    let reporter = Reporter::new("fuzz", options, &Endpoint::new(options)?);
    let decoder = wire::decoder(options.wire, "fuzz", 0);
    let turn = Turn::new(response, decoder, options.patience, Instant::now() + options.patience.total);
    Ok(turn.into_stream(Arc::new(reporter), 1))
}

struct HttpProvider {
    name: String,
    options: HttpOptions,
    endpoint: Endpoint,
    client: Client,
    reporter: Arc<Reporter>,
    /// Marks its own blocks, together with the model.
    called: String,
    lessons: LearnedQuirks,
}

impl HttpProvider {
    /// True when the failure says how to ask again with success. What the user has set is not ours to change.
    fn learns_from(&self, failure: &Failure, options: &ChatOptions) -> bool {
        let is_set = match self.options.wire {
            Wire::Anthropic => {
                options.max_output_tokens.is_some() || self.options.body.contains_key("max_tokens")
            }
            Wire::OpenAiResponses => self.options.body.contains_key("include"),
            Wire::OpenAiChat => self.options.body.contains_key("stream_options"),
        };
        !is_set && self.lessons.learn(self.options.wire, &options.model, failure)
    }

    fn body(&self, options: &ChatOptions, label: &str) -> Value {
        let dialect = Dialect { is_openai: self.endpoint.is_openai(), ..self.lessons.of(&options.model) };
        let mut body = wire::request(self.options.wire, label, options, dialect);
        let wishes = self.options.body.iter().filter(|(name, _)| !OUR_FIELDS.contains(&name.as_str()));
        if let Value::Object(fields) = &mut body {
            fields.extend(wishes.map(|(name, value)| (name.clone(), value.clone())));
        }
        body
    }

    async fn attempt(
        &self,
        options: &ChatOptions,
        attempt: u32,
        deadline: Instant,
    ) -> Result<EventStream, Failure> {
        // A thought is of use to the model that had it, and to no other one behind the same address.
        let label = format!("{}/{}", self.called, options.model);
        let body = self.body(options, &label).to_string();
        let decoder = wire::decoder(self.options.wire, &label, options.turn);
        match self.client.post(&self.endpoint.chat, body, deadline).await? {
            Answer::Stream(response) => {
                let mut turn = Turn::new(response, decoder, self.options.patience, deadline);
                turn.begin().await?;
                Ok(turn.into_stream(Arc::clone(&self.reporter), attempt))
            }
            Answer::Whole(answer) => {
                let events =
                    wire::events_of(self.options.wire, &answer).ok_or_else(|| Failure::NoStream {
                        content_type: "application/json".to_owned(),
                        said: ProviderMessage { message: answer.to_string(), ..ProviderMessage::default() },
                    })?;
                Ok(Box::pin(stream::iter(turn::whole(decoder, &events)?)))
            }
        }
    }

    async fn list(&self, deadline: Instant) -> Result<Vec<ModelInfo>, Failure> {
        let mut models = Vec::new();
        let mut url = self.endpoint.models.clone();
        if self.options.wire == Wire::Anthropic {
            url.query_pairs_mut().append_pair("limit", MODELS_A_PAGE);
        }
        let first = url.clone();
        for _ in 0..MAX_MODEL_PAGES {
            let body = self.client.get(&url, MAX_MODELS_BYTES, deadline).await?;
            let page = wire::page(self.options.wire, &body)?;
            models.extend(page.models);
            if models.len() > MAX_MODELS {
                return Err(Failure::TooLarge { what: "the number of models", limit: MAX_MODELS as u64 });
            }
            let Some(after) = page.after else { break };
            url = first.clone();
            url.query_pairs_mut().append_pair("after_id", &after);
        }
        Ok(models)
    }

    /// Waits for the next attempt, or gives the failure back as an error when there is none.
    async fn pause(
        &self,
        failure: &Failure,
        attempt: u32,
        asked: Asked,
        deadline: Instant,
    ) -> Result<(), ToolError> {
        let error = || self.reporter.error(failure, attempt, asked);
        let attempts = self.options.retries.attempts.min(MAX_ATTEMPTS);
        if attempt >= attempts || !failure.is_worth_an_attempt() {
            return Err(error());
        }
        let pause = self.options.retries.pause(attempt, failure.pause_cause()).ok_or_else(error)?;
        if Instant::now() + pause >= deadline {
            return Err(error());
        }
        if let Some(on_wait) = &self.options.on_wait {
            let reason = self.reporter.reason(failure);
            on_wait(&RetryNotice { attempt: attempt + 1, attempts, pause, reason });
        }
        sleep(pause).await;
        Ok(())
    }
}

#[async_trait]
impl ModelProvider for HttpProvider {
    fn name(&self) -> &str {
        &self.name
    }

    async fn chat(&self, options: ChatOptions) -> Result<EventStream, ToolError> {
        let deadline = Instant::now() + self.options.patience.total;
        let mut attempt = 1;
        loop {
            let failure = match self.attempt(&options, attempt, deadline).await {
                Ok(events) => return Ok(events),
                Err(failure) => failure,
            };
            if attempt >= MAX_ATTEMPTS || !self.learns_from(&failure, &options) {
                self.pause(&failure, attempt, Asked::Turn, deadline).await?;
            }
            attempt += 1;
        }
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        let deadline = Instant::now() + self.options.patience.total;
        let mut attempt = 1;
        loop {
            match self.list(deadline).await {
                Ok(models) => return Ok(models),
                Err(failure) => self.pause(&failure, attempt, Asked::Models, deadline).await?,
            }
            attempt += 1;
        }
    }
}
