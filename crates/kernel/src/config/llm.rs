//! `llm`: which model works on a task, and where it must stop.

use std::time::Duration;

use serde_json::{Map, Value};
use tgp_agent::{Budgets, Prices};

use super::fields::Fields;
use super::key_variable::check_key_variable;

/// Turns of a session without another bound: enough for a task, and an end to a loop.
const DEFAULT_STEPS: u64 = 50;
/// What the common models of today read at once, and a little less.
const DEFAULT_CONTEXT_TOKENS: u64 = 120_000;

/// How long a model may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlmPatience {
    pub connect: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// For a turn, with all attempts at it.
    pub total: Duration,
}

impl Default for LlmPatience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(1800),
        }
    }
}

/// The section `llm`.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmConfig {
    /// `openai`, `openai-chat`, `anthropic`, the base URL of a compatible server, or `script:FILE`.
    pub provider: Option<String>,
    pub model: Option<String>,
    /// Another address for `openai`, `openai-chat` or `anthropic`, such as a gateway.
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub key_variable: Option<String>,
    pub context_tokens: u64,
    pub max_output_tokens: Option<u64>,
    pub temperature: Option<f64>,
    /// Fields that are added to every request.
    pub body: Map<String, Value>,
    pub budgets: Budgets,
    pub prices: Option<Prices>,
    pub patience: LlmPatience,
    /// Attempts at a turn of which nothing was received.
    pub attempts: u32,
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            base_url: None,
            key_variable: None,
            context_tokens: DEFAULT_CONTEXT_TOKENS,
            max_output_tokens: None,
            temperature: None,
            body: Map::new(),
            budgets: Budgets {
                max_steps: DEFAULT_STEPS,
                max_tokens: None,
                max_seconds: None,
                max_cost: None,
            },
            prices: None,
            patience: LlmPatience::default(),
            attempts: 4,
        }
    }
}

/// A day and a half: longer waits make no sense.
const MOST_SECONDS: u64 = 129_600;

pub(super) fn read(mut llm: Fields<'_>) -> LlmConfig {
    let defaults = LlmConfig::default();
    let key_variable = filled(&mut llm, "keyVariable");
    if let Some(Err(why)) = key_variable.as_deref().map(check_key_variable) {
        llm.problem("keyVariable", why);
    }
    let mut config = LlmConfig {
        provider: filled(&mut llm, "provider"),
        model: filled(&mut llm, "model"),
        base_url: filled(&mut llm, "baseUrl"),
        key_variable,
        context_tokens: llm.number("contextTokens", (1_000, 100_000_000)).unwrap_or(defaults.context_tokens),
        max_output_tokens: llm.number("maxOutputTokens", (1, 10_000_000)),
        temperature: llm.amount("temperature", 2.0),
        body: llm.object("body").unwrap_or_default(),
        budgets: defaults.budgets,
        prices: None,
        patience: defaults.patience,
        attempts: llm
            .number("attempts", (1, 10))
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(defaults.attempts),
    };
    if let Some(mut budgets) = llm.section("budgets") {
        config.budgets = Budgets {
            max_steps: budgets.number("steps", (1, 100_000)).unwrap_or(DEFAULT_STEPS),
            max_tokens: budgets.number("tokens", (1, u64::from(u32::MAX))),
            max_seconds: budgets.number("seconds", (1, 30 * 86_400)),
            max_cost: budgets.amount("cost", 1e9),
        };
        budgets.done();
    }
    if let Some(mut prices) = llm.section("prices") {
        let both = prices.amount("input", 1e9).zip(prices.amount("output", 1e9));
        if both.is_none() {
            prices.problem("input", "and `output` must be given: what a million tokens cost");
        }
        let (cached_input, cache_write) =
            (prices.amount("cachedInput", 1e9), prices.amount("cacheWrite", 1e9));
        config.prices = both.map(|(input, output)| Prices { input, output, cached_input, cache_write });
        prices.done();
    }
    if config.budgets.max_cost.is_some() && config.prices.is_none() {
        llm.problem("budgets.cost", "needs `llm.prices`, which says what a token costs");
    }
    if let Some(mut timeouts) = llm.section("timeouts") {
        let mut seconds =
            |name: &'static str| timeouts.number(name, (1, MOST_SECONDS)).map(Duration::from_secs);
        config.patience = LlmPatience {
            connect: seconds("connectSeconds").unwrap_or(defaults.patience.connect),
            idle: seconds("idleSeconds").unwrap_or(defaults.patience.idle),
            total: seconds("totalSeconds").unwrap_or(defaults.patience.total),
        };
        timeouts.done();
    }
    llm.done();
    config
}

/// An empty text, as an unset variable of the environment gives it, is not text.
fn filled(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    fields.text(name).filter(|text| !text.is_empty())
}
