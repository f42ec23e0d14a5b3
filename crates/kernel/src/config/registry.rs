//! `registry`: how tools are found again.

use super::fields::Fields;

/// What `write_file` does when a tool that does the job exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// It writes for an agent that has named every one of them, and for a person.
    #[default]
    Confirm,
    /// It writes, and names them.
    Warn,
    Refuse,
}

/// An OpenAI-compatible `/embeddings` endpoint, instead of the model inside the binary.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddingsConfig {
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
}

impl std::fmt::Debug for EmbeddingsConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not reach a log.
        formatter
            .debug_struct("EmbeddingsConfig")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// The section `registry`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryConfig {
    pub on_duplicate: OnDuplicate,
    pub embeddings: Option<EmbeddingsConfig>,
}

pub(super) fn read(mut registry: Fields<'_>) -> RegistryConfig {
    let choices =
        [("confirm", OnDuplicate::Confirm), ("warn", OnDuplicate::Warn), ("refuse", OnDuplicate::Refuse)];
    let on_duplicate = registry.choice("onDuplicate", &choices).unwrap_or_default();
    let mut embeddings = None;
    if let Some(mut fields) = registry.section("embeddings") {
        let base_url = fields.text("baseUrl");
        let model = fields.text("model");
        let api_key = fields.text("apiKey").filter(|key| !key.is_empty());
        for (name, value) in [("baseUrl", &base_url), ("model", &model)] {
            if value.as_ref().is_none_or(String::is_empty) {
                fields.problem(name, "must be given");
            }
        }
        embeddings =
            base_url.zip(model).map(|(base_url, model)| EmbeddingsConfig { base_url, model, api_key });
        fields.done();
    }
    registry.done();
    RegistryConfig { on_duplicate, embeddings }
}
