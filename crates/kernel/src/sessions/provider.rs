//! From a name to a provider of models.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tgp_contract::{Code, ModelProvider, ToolError};
use tgp_llm::{HttpOptions, OnRetry, ProviderTimeouts, Retries, Script, Wire};
use tgp_net::Secret;

use crate::boot::Environment;
use crate::config::{Config, UserConfig};
use crate::records::key_variables;

/// Which model is to work, where it differs from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// `openai`, `openai-chat`, `anthropic`, the base URL of a compatible server, or `script:FILE`.
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    /// The environment variable whose value is sent as the key, to whatever address is chosen. The kernel has to know it from
    /// its start, see [`BootOptions::key_variables`](crate::BootOptions::key_variables).
    pub key_variable: Option<String>,
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

/// What the command line, the files and the environment come to, before anything is read or opened for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedModel {
    /// As the user named it.
    pub(crate) name: String,
    pub(crate) model: Option<String>,
    /// Another address than the provider's own.
    pub(crate) base_url: Option<String>,
    /// The variable whose value is sent as the key. Without one no key is sent.
    pub(crate) key_variable: Option<String>,
}

impl ResolvedModel {
    /// The command line comes before the configuration of the project, which a person has confirmed, that before the
    /// configuration of the user, and the keys of the environment come last.
    ///
    /// # Errors
    /// `ECONFIG` when no provider is named, or a variable is that the kernel was not told of.
    pub(crate) fn new(
        choice: &ModelChoice,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ToolError> {
        let (llm, user) = (&config.llm, &config.user);
        let name = choice
            .provider
            .clone()
            .or_else(|| llm.provider.clone())
            .or_else(|| user.provider.clone())
            .map_or_else(|| by_key(environment), Ok)?;
        // What a file says of one provider is not meant for another.
        let of_project = choice.provider.is_none() || choice.provider == llm.provider;
        let of_user = match &user.provider {
            Some(provider) => *provider == name,
            None => choice.provider.is_none() && llm.provider.is_none(),
        };
        let first = |chosen: &Option<String>, project: &Option<String>, user: &Option<String>| {
            let project = project.as_ref().filter(|_| of_project);
            chosen.as_ref().or(project).or(user.as_ref().filter(|_| of_user)).cloned()
        };
        let model = first(&choice.model, &llm.model, &user.model);
        let base_url = first(&choice.base_url, &llm.base_url, &user.base_url);
        // A key goes only where its owner has said: no server gets the one of another.
        let key_variable = match &choice.key_variable {
            Some(variable) => Some(named(variable, config)?),
            None => {
                let address = if is_url(&name) { Some(name.as_str()) } else { base_url.as_deref() };
                let of_project = of_project && base_url == llm.base_url;
                let known = NAMED.iter().find(|(known, _)| *known == name);
                let usual = known.filter(|_| address.is_none()).map(|(_, wire)| wire.key_variable());
                let project = llm.key_variable.as_deref().filter(|_| of_project);
                project.or(user.key_variable(&name, address)).or(usual).map(str::to_owned)
            }
        };
        Ok(Self { name, model, base_url, key_variable })
    }

    /// The file of a scripted model.
    pub(crate) fn script(&self) -> Option<&str> {
        self.name.strip_prefix(SCRIPT)
    }

    /// How the provider is spoken to, and where.
    ///
    /// # Errors
    /// `ECONFIG` when the provider is not known.
    pub(crate) fn wire(&self) -> Result<(Wire, Option<String>), ToolError> {
        if is_url(&self.name) {
            return Ok((Wire::OpenAiChat, Some(self.name.clone())));
        }
        let known = NAMED.iter().find(|(known, _)| *known == self.name);
        let (_, wire) = known.ok_or_else(|| unknown(&self.name))?;
        Ok((*wire, self.base_url.clone()))
    }

    /// Whether the variable of the key is set.
    pub(crate) fn has_key(&self, environment: &Environment) -> bool {
        self.key_variable.as_deref().is_some_and(|variable| value_of(variable, environment).is_some())
    }
}

fn is_url(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

/// The value of a variable that says something.
fn value_of(variable: &str, environment: &Environment) -> Option<String> {
    environment(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// A variable that was named for one session. One that was not named when the kernel started is not sent: its value is not
/// known to what keeps secrets out of records.
fn named(variable: &str, config: &Config) -> Result<String, ToolError> {
    if key_variables(config).any(|known| known == variable) {
        return Ok(variable.to_owned());
    }
    Err(ToolError::new(Code::Config, "the variable with the key was not named when the kernel started")
        .detail("field", "keyVariable")
        .help("name it in BootOptions::key_variables, or in [keys] of the user configuration"))
}

/// # Errors
/// `ECONFIG` when the provider is not named, not known or has no key.
pub(crate) fn choose(
    choice: &ModelChoice,
    config: &Config,
    environment: &Environment,
    project: &Path,
    on_wait: Option<OnRetry>,
) -> Result<SelectedModel, ToolError> {
    let resolved = ResolvedModel::new(choice, config, environment)?;
    if let Some(file) = resolved.script() {
        if choice.key_variable.is_some() {
            return Err(ToolError::new(Code::Config, "a script is sent no key")
                .detail("field", "keyVariable")
                .help("leave out --key-variable"));
        }
        let script = Script::read(&project.join(file))?;
        return Ok(SelectedModel {
            frozen_ms: script.clock_ms(),
            seed: script.seed(),
            provider: Arc::new(script),
            model: resolved.model.or_else(|| Some(SCRIPTED_MODEL.to_owned())),
            name: resolved.name,
            base_url: None,
        });
    }
    let (wire, base_url) = resolved.wire()?;
    let ResolvedModel { name, model, key_variable, .. } = resolved;
    let key = match &key_variable {
        None => None,
        Some(variable) => match value_of(variable, environment) {
            Some(key) => Some(Secret::new(key)),
            None => return Err(no_key(&name, variable)),
        },
    };
    let llm = &config.llm;
    let options = HttpOptions {
        base_url: base_url.clone(),
        key,
        key_variable,
        patience: ProviderTimeouts {
            connect: llm.patience.connect,
            idle: llm.patience.idle,
            total: llm.patience.total,
        },
        retries: Retries { attempts: llm.attempts, ..Retries::default() },
        body: llm.body.clone(),
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
    let is_set = |wire: Wire| value_of(wire.key_variable(), environment).is_some();
    let problem = match (is_set(Wire::Anthropic), is_set(Wire::OpenAiResponses)) {
        (true, false) => return Ok("anthropic".to_owned()),
        (false, true) => return Ok("openai".to_owned()),
        (true, true) => "no provider of models was named, and there are keys for two",
        (false, false) => "no provider of models was named, and no key was found",
    };
    let is_moved = ["TGP_HOME", "XDG_CONFIG_HOME"].iter().any(|name| value_of(name, environment).is_some());
    let file = UserConfig::place(environment).filter(|_| is_moved);
    let file = file.map_or("~/.config/tgp/config.toml".to_owned(), |file| file.display().to_string());
    Err(ToolError::new(Code::Config, problem).detail("field", "llm.provider").help(format!(
        "pass --provider openai, anthropic, a base URL such as http://localhost:11434/v1, or script:FILE; \
         or set provider in {file} or llm.provider in tgp.config.ts; keys are read from OPENAI_API_KEY \
         and ANTHROPIC_API_KEY"
    )))
}

fn unknown(name: &str) -> ToolError {
    ToolError::new(Code::Config, format!("there is no provider `{name}`")).detail("field", "llm.provider").help(
        "the providers are openai, openai-chat, anthropic, a base URL that begins with http, and script:FILE",
    )
}

fn no_key(name: &str, variable: &str) -> ToolError {
    ToolError::new(Code::Config, format!("`{name}` needs a key, and {variable} is not set"))
        .help(format!("export {variable}=…, or name another variable with --key-variable"))
}
