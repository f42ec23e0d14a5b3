//! `config.toml` of the user: what holds in all projects of one person, where a project and the command line say nothing else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tgp_contract::{Code, Consent, ToolError};
use tgp_fs::{private_record, real_place};
use tgp_text::{LineCol, did_you_mean};
use url::Url;

use super::ConfigError;
use super::fields::Fields;
use super::key_variable::check_key_variable;
use crate::boot::Environment;
use crate::user_state;

/// The name of the file in the user's configuration directory.
const FILE: &str = "config.toml";
/// A page of settings has a few hundred bytes.
const MAX_BYTES: u64 = 64 << 10;
/// Addresses and providers that have a key of their own.
const MAX_KEYS: usize = 100;

/// The providers that a key can be for by name, without those that share one.
const KEY_OWNERS: [&str; 2] = ["openai", "anthropic"];

/// What the user has set up for all projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserConfig {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// As [`super::LlmConfig::provider`].
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    /// The variables that hold keys, by the base URL that each key is for, or by `openai` or `anthropic`.
    pub keys: BTreeMap<String, String>,
    pub theme: Theme,
    pub permissions: Permissions,
}

/// How the terminal is written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// In colours, where the terminal has them.
    #[default]
    Auto,
    /// Without colours.
    Plain,
}

/// What `tgp run` asks a person for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// Everything but reads.
    #[default]
    Ask,
    /// Nothing that `--yes` settles.
    Yes,
}

impl Permissions {
    /// What they settle of a session's calls.
    #[must_use]
    pub fn consent(self) -> Consent {
        match self {
            Self::Ask => Consent::Ask,
            Self::Yes => Consent::Everything,
        }
    }
}

impl UserConfig {
    /// Where the file is, whether or not it exists. `None` without a home.
    #[must_use]
    pub fn place(environment: &Environment) -> Option<PathBuf> {
        Some(user_state::config_directory(environment)?.join(FILE))
    }

    /// Reads the file; without one everything is as usual.
    ///
    /// # Errors
    /// `ESECURITY` when others may have written it, `ECONFIG` for every wrong field.
    pub fn read(environment: &Environment) -> Result<Self, ToolError> {
        let Some(place) = Self::place(environment) else { return Ok(Self::default()) };
        let refused = |why: &str| {
            let message = format!("the user configuration `{}` is not used: {why}", place.display());
            ToolError::new(Code::Security, message)
                .help("make it a file of at most 64 KiB that you own and only you can write: chmod 600 FILE")
        };
        // A link is followed, to a file that is subject to the same rules: many people keep such files elsewhere.
        let real = real_place(&place);
        if real.is_dir() {
            return Err(refused("it is a directory, and not a file"));
        }
        let text = private_record::read_text(&real, MAX_BYTES, refused)
            .map_err(|error| not_text(&place, &real).unwrap_or(error))?;
        let Some(text) = text else { return Ok(Self::default()) };
        let shown = place.display().to_string();
        let config = Self::from_text(&shown, &text)?;
        Ok(Self { file: Some(place), ..config })
    }

    fn from_text(file: &str, text: &str) -> Result<Self, ToolError> {
        let value: Value = toml::from_str(text).map_err(|error| {
            let LineCol { line, column } = LineCol::of(text, error.span().map_or(0, |span| span.start));
            // Its own text would show the line, which may hold a key by mistake.
            let message =
                format!("{file} is not valid TOML at line {line}, column {column}: {}", error.message());
            ToolError::new(Code::Config, message)
                .help("correct that line; docs/configuration.md shows the fields")
        })?;
        let mut problems = Vec::new();
        let config = Self::from_fields(Fields::new("", &value, &mut problems));
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Fields { file: file.to_owned(), problems }.into())
        }
    }

    fn from_fields(mut root: Fields<'_>) -> Self {
        let mut text = |name| root.text(name).filter(|text| !text.is_empty());
        let (provider, model, base_url) = (text("provider"), text("model"), text("baseUrl"));
        if let Some(why) = base_url.as_deref().and_then(wrong_base_url) {
            root.problem("baseUrl", why);
        }
        let theme = root.choice("theme", &[("auto", Theme::Auto), ("plain", Theme::Plain)]);
        let permissions = root.choice("permissions", &[("ask", Permissions::Ask), ("yes", Permissions::Yes)]);
        let mut keys = BTreeMap::new();
        let named = root.object("keys").unwrap_or_default();
        if named.len() > MAX_KEYS {
            root.problem("keys", &format!("has {} entries, and {MAX_KEYS} are allowed", named.len()));
        }
        for (number, (owner, variable)) in named.into_iter().take(MAX_KEYS).enumerate() {
            match key_entry(&owner, &variable) {
                Ok(variable) => drop(keys.insert(owner, variable)),
                // Either side may be a key that was written in the wrong place.
                Err(why) => root.problem(&format!("keys (entry {})", number + 1), &why),
            }
        }
        root.done();
        Self {
            file: None,
            provider,
            model,
            base_url,
            keys,
            theme: theme.unwrap_or_default(),
            permissions: permissions.unwrap_or_default(),
        }
    }

    /// The variable with the key for an address, or for a named provider at its own address.
    pub(crate) fn key_variable(&self, provider: &str, address: Option<&str>) -> Option<&str> {
        let is_for = |owner: &str| match address {
            Some(address) => same_address(owner, address),
            None => owner == provider || (owner == "openai" && provider == "openai-chat"),
        };
        self.keys.iter().find(|(owner, _)| is_for(owner)).map(|(_, variable)| variable.as_str())
    }
}

/// The error of a file that could be read and is not text.
fn not_text(place: &Path, real: &Path) -> Option<ToolError> {
    let mut bytes = Vec::new();
    File::open(real).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let valid = std::str::from_utf8(&bytes).err()?.valid_up_to();
    let line = bytes.iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
    let message = format!("{} is not UTF-8 text at line {line}", place.display());
    Some(
        ToolError::new(Code::Config, message)
            .help("save the file as UTF-8; docs/configuration.md shows the fields"),
    )
}

/// What the client of the provider would refuse. The address is not repeated: it may hold a key.
fn wrong_base_url(text: &str) -> Option<&'static str> {
    match Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("must begin with http:// or https://, such as https://gateway.example/v1")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Some("must have no user and no password; [keys] names the variable with the key")
        }
        Ok(_) => None,
        Err(_) => Some("is not a URL; write one such as https://gateway.example/v1"),
    }
}

fn key_entry(owner: &str, variable: &Value) -> Result<String, String> {
    let is_address = Url::parse(owner).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
    });
    if !is_address && !KEY_OWNERS.contains(&owner) {
        let expected = "must be for openai, anthropic, or a base URL without user, password and query";
        // A name that is nearly that of a provider is not a secret, so it can be repeated.
        return Err(match did_you_mean(owner, KEY_OWNERS) {
            Some(hint) => format!("{expected}, and not for `{}`; {hint}", owner.escape_debug()),
            None => expected.to_owned(),
        });
    }
    let Some(variable) = variable.as_str() else {
        return Err("must name an environment variable, as a string".to_owned());
    };
    check_key_variable(variable).map(|()| variable.to_owned()).map_err(str::to_owned)
}

/// Whether both are the same base URL, however their ends are written.
fn same_address(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (Url::parse(one), Url::parse(other)) else { return false };
    let path = |url: &Url| url.path().trim_end_matches('/').to_owned();
    one.origin() == other.origin() && path(&one) == path(&other)
}

#[cfg(test)]
#[path = "user_tests.rs"]
mod tests;
