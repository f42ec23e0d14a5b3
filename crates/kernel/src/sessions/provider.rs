//! From a name to a provider of models.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tgp_contract::{Code, ModelProvider, ToolError};
use tgp_llm::{HttpOptions, OnRetry, ProviderTimeouts, Retries, Script, Wire};
use tgp_net::Secret;

use crate::boot::Environment;
use crate::config::LlmConfig;

/// Which model is to work, where it differs from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// `openai`, `openai-chat`, `anthropic`, the base URL of a compatible server, or `script:FILE`.
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
}

/// The providers that are known by a name.
pub(super) const NAMED: [(&str, Wire); 3] =
    [("openai", Wire::OpenAiResponses), ("openai-chat", Wire::OpenAiChat), ("anthropic", Wire::Anthropic)];

/// How a scripted model is named.
pub(super) const SCRIPT: &str = "script:";
/// What a script is called where a model's name is wanted.
const SCRIPTED_MODEL: &str = "script";

/// How long the provider may take to say which models it has, when only a better error depends on it.
const LISTING_PATIENCE: Duration = Duration::from_secs(5);
/// Models that an error names.
const MAX_SUGGESTED: usize = 8;

/// A provider that can be asked.
pub(crate) struct SelectedModel {
    pub(crate) provider: Arc<dyn ModelProvider>,
    /// As the user named it.
    pub(crate) name: String,
    pub(crate) base_url: Option<String>,
    pub(crate) model: Option<String>,
    /// The time that a script wants it to be, throughout.
    pub(crate) frozen_ms: Option<u64>,
    /// What a script wants chance to be.
    pub(crate) seed: Option<u64>,
}

impl SelectedModel {
    /// The model that was named. Where none was, the provider is asked what there is: names change, and a guess of ours
    /// would be wrong soon.
    ///
    /// # Errors
    /// `ECONFIG` when no model is configured.
    pub(crate) async fn model(&self) -> Result<String, ToolError> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let offered = tokio::time::timeout(LISTING_PATIENCE, self.provider.models()).await;
        let offered: Vec<String> = match offered {
            Ok(Ok(models)) => models.into_iter().map(|model| model.name).take(MAX_SUGGESTED).collect(),
            _ => Vec::new(),
        };
        let such = match offered.join(", ") {
            names if names.is_empty() => String::new(),
            names => format!(", such as {names}"),
        };
        Err(ToolError::new(Code::Config, format!("no model of `{}` was named", self.name))
            .detail("field", "llm.model")
            .detail("models", offered)
            .help(format!(
                "pass --model NAME{such}, or set llm.model in tgp.config.ts; `tgp models --provider {}` lists all",
                self.name
            )))
    }
}

/// # Errors
/// `ECONFIG` when the provider is not named, not known or has no key.
pub(crate) fn choose(
    choice: &ModelChoice,
    config: &LlmConfig,
    environment: &Environment,
    project: &Path,
    on_wait: Option<OnRetry>,
) -> Result<SelectedModel, ToolError> {
    let name = choice
        .provider
        .clone()
        .or_else(|| config.provider.clone())
        .map_or_else(|| by_key(environment), Ok)?;
    // What the configuration says of one provider is not meant for another.
    let is_configured = choice.provider.is_none() || choice.provider == config.provider;
    let of_config = |value: &Option<String>| value.clone().filter(|_| is_configured);
    let model = choice.model.clone().or_else(|| of_config(&config.model));
    let base_url = choice.base_url.clone().or_else(|| of_config(&config.base_url));
    if let Some(file) = name.strip_prefix(SCRIPT) {
        let script = Script::read(&project.join(file))?;
        return Ok(SelectedModel {
            frozen_ms: script.clock_ms(),
            seed: script.seed(),
            provider: Arc::new(script),
            model: model.or_else(|| Some(SCRIPTED_MODEL.to_owned())),
            name,
            base_url: None,
        });
    }
    let key_variable = of_config(&config.key_variable);
    let is_url = name.starts_with("http://") || name.starts_with("https://");
    let (wire, base_url, key_variable) = if is_url {
        // A key goes only where its owner has said: no server gets the one of another.
        (Wire::OpenAiChat, Some(name.clone()), key_variable)
    } else {
        let (_, wire) = NAMED.iter().find(|(known, _)| *known == name).ok_or_else(|| unknown(&name))?;
        let usual = base_url.is_none().then(|| wire.key_variable().to_owned());
        (*wire, base_url, key_variable.or(usual))
    };
    let key = match &key_variable {
        None => None,
        Some(variable) => match environment(variable).filter(|key| !key.trim().is_empty()) {
            Some(key) => Some(Secret::new(key.trim())),
            None => return Err(no_key(&name, variable)),
        },
    };
    let options = HttpOptions {
        base_url: base_url.clone(),
        key,
        key_variable,
        patience: ProviderTimeouts {
            connect: config.patience.connect,
            idle: config.patience.idle,
            total: config.patience.total,
        },
        retries: Retries { attempts: config.attempts, ..Retries::default() },
        body: config.body.clone(),
        on_wait,
        ..HttpOptions::new(wire)
    };
    // Some servers take a key in their address; it is not part of a name.
    let provider = tgp_llm::provider(name.split('?').next().unwrap_or_default(), options)?;
    let base_url = base_url.filter(|url| *url != name);
    Ok(SelectedModel { provider, name, base_url, model, frozen_ms: None, seed: None })
}

/// The one named provider whose key is there.
fn by_key(environment: &Environment) -> Result<String, ToolError> {
    let is_set = |wire: Wire| environment(wire.key_variable()).is_some_and(|key| !key.trim().is_empty());
    let problem = match (is_set(Wire::Anthropic), is_set(Wire::OpenAiResponses)) {
        (true, false) => return Ok("anthropic".to_owned()),
        (false, true) => return Ok("openai".to_owned()),
        (true, true) => "no provider of models was named, and there are keys for two",
        (false, false) => "no provider of models was named, and no key was found",
    };
    Err(ToolError::new(Code::Config, problem).detail("field", "llm.provider").help(
        "pass --provider openai, anthropic, a base URL such as http://localhost:11434/v1, or script:FILE; \
         or set llm.provider in tgp.config.ts; keys are read from OPENAI_API_KEY and ANTHROPIC_API_KEY",
    ))
}

fn unknown(name: &str) -> ToolError {
    ToolError::new(Code::Config, format!("there is no provider `{name}`")).detail("field", "llm.provider").help(
        "the providers are openai, openai-chat, anthropic, a base URL that begins with http, and script:FILE",
    )
}

fn no_key(name: &str, variable: &str) -> ToolError {
    ToolError::new(Code::Config, format!("`{name}` needs a key, and {variable} is not set"))
        .help(format!("export {variable}=…, or name another variable with llm.keyVariable"))
}
