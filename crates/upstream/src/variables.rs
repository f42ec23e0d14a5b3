//! The values that a server gets, and their removal from what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tgp_contract::{Code, ToolError, background};
use tgp_net::{Secret, SecretRedaction};
use url::Url;

use crate::UpstreamTool;
use crate::definition::ValueSource;

/// Shorter values occur in ordinary answers; removing them would spoil those.
const MIN_SECRET_BYTES: usize = 8;
/// Parts of names that say that a value is a key.
const KEY_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL"];

/// Gives the values of the project's secrets, and of variables of the environment.
#[async_trait]
pub trait ValueProvider: Send + Sync {
    fn variable(&self, name: &str) -> Option<String>;

    /// # Errors
    /// When the secret is not configured, or its value cannot be had. The error never holds the value.
    async fn secret(&self, name: &str) -> Result<Secret, ToolError>;

    /// A secret as the value of a header of all requests to an address.
    ///
    /// # Errors
    /// The same; `ESECURITY` when it is not for that address, or not for that header.
    async fn header_secret(&self, name: &str, header: &str, url: &Url) -> Result<Secret, ToolError>;
}

/// What a server was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerValues {
    pairs: Vec<(String, Secret)>,
    redactions: Arc<[SecretRedaction]>,
    /// The letters and digits of each key.
    plain: Arc<[Vec<u8>]>,
}

impl ServerValues {
    /// The variables of a program, or the headers of requests to an address.
    ///
    /// # Errors
    /// `ECONFIG` for a variable that is not set; what is wrong with a secret.
    pub(crate) async fn gather(
        server: &str,
        sources: &BTreeMap<String, ValueSource>,
        url: Option<&Url>,
        provider: &dyn ValueProvider,
    ) -> Result<Self, ToolError> {
        let mut pairs = Vec::new();
        let mut kept = Vec::new();
        for (name, source) in sources {
            let value = match source {
                ValueSource::Value(text) => Secret::new(text.clone()),
                ValueSource::Env(variable) => {
                    let value = provider.variable(variable).filter(|value| !value.is_empty());
                    Secret::new(value.ok_or_else(|| unset(server, variable))?)
                }
                ValueSource::Secret(secret) => match url {
                    Some(url) => provider.header_secret(secret, name, url).await?,
                    None => provider.secret(secret).await?,
                },
            };
            let is_key = matches!(source, ValueSource::Secret(_)) || is_key_name(name);
            if is_key && value.expose().len() >= MIN_SECRET_BYTES {
                kept.push(value.clone());
            }
            pairs.push((name.clone(), value));
        }
        let letters =
            |key: &Secret| -> Vec<u8> { key.expose().bytes().filter(u8::is_ascii_alphanumeric).collect() };
        let plain = kept.iter().map(letters).filter(|key| key.len() >= MIN_SECRET_BYTES).collect();
        let make = move || Ok(kept.iter().filter_map(SecretRedaction::new).collect::<Arc<[_]>>());
        Ok(Self { pairs, redactions: background::run(make).await?, plain })
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.expose()))
    }

    /// Whether a tool is described with a key that the server was given.
    pub(crate) fn are_in(&self, tool: &UpstreamTool) -> bool {
        let text = serde_json::to_vec(tool).unwrap_or_default();
        // Names of functions are made of names of tools: what is between the letters does not count.
        let plain: Vec<u8> = text.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
        self.redactions.iter().any(|redaction| redaction.finds(&text) || redaction.hides_in(&text))
            || self.plain.iter().any(|key| plain.windows(key.len()).any(|part| part == key.as_slice()))
    }

    /// A text without the keys that the server was given.
    pub(crate) async fn clean(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for redaction in self.redactions.iter() {
            bytes = redaction.clean(&bytes).unwrap_or(bytes);
            if redaction.hides_in(&bytes) {
                return "[it holds a secret]".to_owned();
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The same for an answer; `None` when a key is hidden in it.
    pub(crate) async fn clean_value(&self, value: Value) -> Option<Value> {
        if self.redactions.is_empty() {
            return Some(value);
        }
        let redactions = Arc::clone(&self.redactions);
        let cleaned = background::run(move || {
            let mut bytes = serde_json::to_vec(&value).unwrap_or_default();
            let mut is_clean = true;
            for redaction in redactions.iter() {
                if let Some(clean) = redaction.clean(&bytes) {
                    bytes = clean;
                    is_clean = false;
                }
                if redaction.hides_in(&bytes) {
                    return Ok(None);
                }
            }
            Ok(if is_clean { Some(value) } else { serde_json::from_slice(&bytes).ok() })
        });
        cleaned.await.ok().flatten()
    }
}

fn is_key_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    KEY_WORDS.iter().any(|word| name.contains(word))
}

fn unset(server: &str, variable: &str) -> ToolError {
    let message = format!("the upstream server `{server}` needs the variable `{variable}`, which is not set");
    ToolError::new(Code::Config, message).help(format!("set {variable} before you start tgp"))
}
