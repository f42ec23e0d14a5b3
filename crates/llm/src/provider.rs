//! A provider over HTTP: one request a turn, and more attempts as long as nothing of it was heard.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tgp_contract::{ChatOptions, Code, EventStream, ModelInfo, ModelProvider, ToolError};
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Reporter};
use crate::limits::{LONGEST_PATIENCE, MAX_ATTEMPTS, MAX_MODEL_PAGES, MAX_MODELS, MAX_MODELS_BYTES};
use crate::options::{HttpOptions, Patience, Wire};
use crate::turn::Turn;
use crate::wire::{self, Dialect};

/// How many models a page has, where the server has pages: the most that is allowed.
const MODELS_A_PAGE: &str = "1000";

/// Makes a provider that is called `name`, which also marks the blocks that only it gets back. Nothing is sent yet.
/// Proxies of the environment are not used, and redirects not followed: both could show the key to somebody else.
///
/// # Errors
/// `ECONFIG` when the base URL, the key or a header cannot be used.
pub fn provider(
    name: impl Into<String>,
    mut options: HttpOptions,
) -> Result<Arc<dyn ModelProvider>, ToolError> {
    let name = name.into();
    let endpoint = Endpoint::new(&options)?;
    let Patience { connect, idle, total } = options.patience;
    if connect.is_zero() || idle.is_zero() || total.is_zero() {
        return Err(ToolError::new(Code::Config, format!("the provider `{name}` has a time-out of zero"))
            .help("leave it out for the default, or write a positive number of seconds"));
    }
    options.patience = Patience {
        connect: connect.min(LONGEST_PATIENCE),
        idle: idle.min(LONGEST_PATIENCE),
        total: total.min(LONGEST_PATIENCE),
    };
    Ok(Arc::new(HttpProvider {
        reporter: Arc::new(Reporter::new(&name, &options, &endpoint.chat)),
        client: Client::new(endpoint.headers.clone(), options.patience),
        options,
        without_thoughts: Mutex::new(None),
        endpoint,
        name,
    }))
}

struct HttpProvider {
    name: String,
    options: HttpOptions,
    endpoint: Endpoint,
    client: Client,
    reporter: Arc<Reporter>,
    /// The last model that said it cannot encrypt its thoughts, so that it is not asked in vain with every turn.
    without_thoughts: Mutex<Option<String>>,
}

impl HttpProvider {
    fn dialect(&self, model: &str) -> Dialect {
        let refused = self.without_thoughts.lock().unwrap_or_else(PoisonError::into_inner);
        Dialect {
            is_openai: self.endpoint.is_openai(),
            has_encrypted_thoughts: refused.as_deref() != Some(model),
        }
    }

    /// Remembers that a model cannot encrypt its thoughts; true when that was what the failure says, and is news.
    fn learns_from(&self, failure: &Failure, model: &str) -> bool {
        let Failure::Refused { status: 400, said, .. } = failure else { return false };
        if self.options.wire != Wire::OpenAiResponses || said.parameter.as_deref() != Some("include") {
            return false;
        }
        let mut refused = self.without_thoughts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = refused.as_deref() != Some(model);
        *refused = Some(model.to_owned());
        is_news
    }

    async fn attempt(&self, options: &ChatOptions, deadline: Instant) -> Result<Turn, Failure> {
        let body = wire::request(self.options.wire, &self.name, options, self.dialect(&options.model));
        let response = self.client.post(&self.endpoint.chat, body.to_string(), deadline).await?;
        let decoder = wire::decoder(self.options.wire, &self.name, options.turn);
        let mut turn = Turn::new(response, decoder, self.options.patience, deadline);
        turn.begin().await?;
        Ok(turn)
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
    async fn pause(&self, failure: &Failure, attempt: u32, deadline: Instant) -> Result<(), ToolError> {
        let error = || self.reporter.error(failure, attempt);
        if attempt >= self.options.retries.attempts.min(MAX_ATTEMPTS) || !failure.is_worth_an_attempt() {
            return Err(error());
        }
        let retry_after =
            if let Failure::Refused { retry_after, .. } = failure { *retry_after } else { None };
        let pause = self.options.retries.pause(attempt, retry_after).ok_or_else(error)?;
        if Instant::now() + pause >= deadline {
            return Err(error());
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
            let failure = match self.attempt(&options, deadline).await {
                Ok(turn) => return Ok(turn.into_stream(Arc::clone(&self.reporter), attempt)),
                Err(failure) => failure,
            };
            if attempt >= MAX_ATTEMPTS || !self.learns_from(&failure, &options.model) {
                self.pause(&failure, attempt, deadline).await?;
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
                Err(failure) => self.pause(&failure, attempt, deadline).await?,
            }
            attempt += 1;
        }
    }
}
