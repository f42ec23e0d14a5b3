//! The options of one run of the loop.

use serde::{Deserialize, Serialize};
use tgp_contract::{CapabilityToken, Consent, TddMode, Usage};

/// Where a session must stop. `None` means no bound; the number of steps always has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// Turns of the model.
    pub max_steps: u64,
    /// Tokens in and out, all turns together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
    /// In the currency of the prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Input that is read from the provider's cache; without it, what other input costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Input that is written to the provider's cache; without it, what other input costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Prices {
    /// All of them.
    pub(crate) fn amounts(&self) -> impl Iterator<Item = f64> {
        [Some(self.input), Some(self.output), self.cached_input, self.cache_write].into_iter().flatten()
    }

    /// What a use costs.
    #[expect(clippy::cast_precision_loss, reason = "a cost is an estimate long before tokens reach 2^53")]
    pub(crate) fn cost(&self, usage: Usage) -> f64 {
        let Usage { input_tokens, output_tokens, cached_input_tokens, cache_write_tokens } = usage;
        // A server that counts more of the input as cached than it has read has not read less than nothing.
        let cached = cached_input_tokens.min(input_tokens);
        let written = cache_write_tokens.min(input_tokens - cached);
        let other = input_tokens - cached - written;
        let of_cache = cached as f64 * self.cached_input.unwrap_or(self.input)
            + written as f64 * self.cache_write.unwrap_or(self.input);
        (other as f64 * self.input + output_tokens as f64 * self.output + of_cache) / MILLION
    }
}

/// What prices are for.
pub(crate) const MILLION: f64 = 1_000_000.0;

/// What the model can be asked with. A resumed session has those of now, not those it began with: they may be just
/// what the user had to correct.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentLimits {
    /// How many tokens the model can read at once; older results are shortened before it is exceeded.
    pub context_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// What the whole session has cost is reckoned with these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// The options of one run of the loop. All of them but the token and the consent are in the transcript's first
/// line.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    pub session: String,
    /// Who the calls are made by, for the gates and the record.
    pub actor: String,
    pub task: String,
    pub model: String,
    /// The system prompt.
    pub system: String,
    pub mode: TddMode,
    pub budgets: Budgets,
    pub limits: AgentLimits,
    pub consent: Consent,
    pub token: Option<CapabilityToken>,
}

/// The options of a run that resumes a session. The task, the prompt and the tools stay what they were.
#[derive(Clone, Debug)]
pub struct ResumeOptions {
    /// Another model than before.
    pub model: Option<String>,
    /// Bounds of the whole session, not of what is left of it.
    pub budgets: Budgets,
    pub limits: AgentLimits,
    /// Something more for the model to read; a session that is done needs it.
    pub message: Option<String>,
    pub consent: Consent,
    pub token: Option<CapabilityToken>,
}
