//! The secrets of a configuration, in every form in which a text may show them.
//!
//! They are known as soon as the configuration is read, including those of fields that the user has not confirmed: an
//! error or a log may name such a field before the kernel runs, or when it never does.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tgp_audit::Redaction;
use tgp_contract::{Code, ToolError};
use tgp_net::secret_forms;

use crate::boot::{BootOptions, Environment};
use crate::config::{Config, SecretOrigin, UserConfig, check_key_variable};
use crate::trust::is_secret_setting;
use crate::user_state;

/// The variables in which providers' keys usually are.
const MODEL_KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

/// Reads the configuration of the user, and gives the secrets of all that configures this kernel. The listener of the options
/// gets them before anything of them is shown.
///
/// # Errors
/// When the configuration of the user cannot be used, or what should be the name of a variable is not one.
pub(crate) fn learn_secrets(
    config: &mut Config,
    project: &Path,
    options: &BootOptions,
) -> Result<Vec<String>, ToolError> {
    for name in &options.key_variables {
        check_key_variable(name).map_err(not_a_variable)?;
    }
    config.key_variables.clone_from(&options.key_variables);
    let user = UserConfig::read(&options.environment);
    if let Ok(user) = &user {
        config.user = user.clone();
    }
    let secrets = secrets(config, &options.environment);
    if let Some(listener) = &options.secrets_listener
        && let Ok(redaction) = Redaction::new(&config.audit.redact_names, &secrets)
    {
        listener(Arc::new(redaction));
    }
    if let Some(file) = &user?.file {
        user_state::check_outside(file, project, "the settings of the user")?;
    }
    Ok(secrets)
}

fn not_a_variable(why: &str) -> ToolError {
    ToolError::new(Code::Config, format!("what was given as the name of the variable with the key {why}"))
        .detail("field", "keyVariable")
        .help(
            "export the key, and name its variable: --key-variable NAME; if this was the key itself, replace it, because \
             arguments can be seen by others",
        )
}

/// Secrets that the configuration itself holds or names: tokens, keys, and what addresses carry.
fn secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let git = config.git.as_ref();
    let token = git.and_then(|git| git.auth.token.clone());
    let embeddings = config.registry.embeddings.as_ref();
    let key = embeddings.and_then(|embeddings| embeddings.api_key.clone());
    // Beside a configured token the user of an address is a name; without one it is taken for a pasted token.
    let user = if token.is_some() { User::Name } else { User::Token };
    let addresses = [
        (git.and_then(|git| git.url.as_deref()), user),
        (git.and_then(|git| git.api_base_url.as_deref()), User::Token),
        (embeddings.map(|embeddings| embeddings.base_url.as_str()), User::Token),
        (config.db.url.as_deref(), User::Name),
        (config.graph.url.as_deref(), User::Name),
        (config.llm.base_url.as_deref(), User::Token),
        (config.llm.provider.as_deref(), User::Token),
        (config.user.base_url.as_deref(), User::Token),
        (config.user.provider.as_deref(), User::Token),
    ];
    let carried =
        addresses.into_iter().filter_map(|(address, user)| Some(secrets_of_address(address?, user)));
    let variables = key_variables(config);
    let plain = token.into_iter().chain(key).chain(variables.filter_map(|name| environment(name)));
    let of_requests = config.secrets.iter().filter_map(|secret| match &secret.from {
        SecretOrigin::Env(name) => Some(name),
        SecretOrigin::File(_) | SecretOrigin::Command(_) => None,
    });
    let named =
        config.audit.redact_environment.iter().chain(of_requests).filter_map(|name| environment(name));
    let mut in_body = Vec::new();
    secrets_in(&Value::Object(config.llm.body.clone()), false, &mut in_body);
    let all = plain.chain(named).chain(in_body).chain(carried.flatten());
    let mut all: Vec<String> = all.flat_map(|secret| secret_forms(&secret)).collect();
    all.sort();
    all.dedup();
    all
}

/// The variables whose values may be sent as keys of models. No other is sent, because it would not be redacted.
pub(crate) fn key_variables(config: &Config) -> impl Iterator<Item = &str> {
    let of_user = config.user.keys.values().chain(&config.key_variables).map(String::as_str);
    MODEL_KEYS.iter().copied().chain(config.llm.key_variable.as_deref()).chain(of_user)
}

/// The texts of a value that are below a name which holds secrets.
fn secrets_in(value: &Value, is_secret: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if is_secret => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| secrets_in(item, is_secret, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                secrets_in(value, is_secret || is_secret_setting(name), found);
            }
        }
        _ => {}
    }
}

/// What a user name without a password is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Name,
    Token,
}

/// The password of an address, or the token that an http address has instead of a user name, and the settings that hold
/// secrets. A user name is not a secret: if it were one, every `deploy` in a path would be redacted.
fn secrets_of_address(address: &str, user: User) -> Vec<String> {
    let Some((scheme, rest)) = address.split_once("://") else { return Vec::new() };
    let scheme = scheme.to_ascii_lowercase();
    let settings = rest.split(['?', '&', '#', ';']).skip(1).filter_map(|setting| setting.split_once('='));
    let mut found: Vec<String> = settings
        .filter(|(name, value)| is_secret_setting(name) && !value.is_empty())
        .map(|(_, value)| value.to_owned())
        .collect();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The client of PostgreSQL reads up to the `@`, so that a password may hold any other sign.
    let authority = if scheme.starts_with("postgres") && !authority.contains('@') { rest } else { authority };
    if let Some((credentials, _)) = authority.rsplit_once('@') {
        let secret = match credentials.split_once(':') {
            Some((_, password)) => password,
            None if user == User::Token && matches!(scheme.as_str(), "http" | "https") => credentials,
            None => "",
        };
        found.extend((!secret.is_empty()).then(|| secret.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{User, secrets_of_address};

    #[test]
    fn passwords_and_pasted_tokens_are_secrets_and_user_names_are_not() {
        for (address, user, secret) in [
            ("https://ann:pw12345678@host/x", User::Name, &["pw12345678"][..]),
            ("postgres://app:p@ss@host/db?x=1", User::Name, &["p@ss"][..]),
            ("postgres://app:pa/ss#w?rd@host/db", User::Name, &["pa/ss#w?rd"][..]),
            ("https://ghpabcdefgh@host/x", User::Token, &["ghpabcdefgh"][..]),
            ("https://deploy@host/x", User::Name, &[]),
            ("ssh://deploy@host/x", User::Token, &[]),
            ("postgres://deploy@host/db", User::Name, &[]),
            ("https://host/a@b", User::Token, &[]),
            ("git@host:x.git", User::Token, &[]),
            ("../tools.git", User::Token, &[]),
            ("mysql://app:pw@host/db?ssl-key-pass=k1&charset=utf8", User::Name, &["k1", "pw"]),
            ("postgres://host/db?user=app&passw%6Frd=in-the-query", User::Name, &["in-the-query"]),
        ] {
            assert_eq!(secrets_of_address(address, user), secret, "{address}");
        }
    }
}
