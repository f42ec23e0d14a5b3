//! `secrets`: values that requests use by name, and never see.

use serde_json::{Value, json};
use tgp_fetch::{SecretBinding, SecretPlace};

use super::fields::Fields;

/// Where the value of a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretOrigin {
    /// A variable of the environment.
    Env(String),
    /// A file outside the project: an absolute path, or one that begins with `~/`.
    File(String),
    /// What a program prints, with its arguments.
    Command(Vec<String>),
}

/// One entry of `secrets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretConfig {
    pub name: String,
    pub from: SecretOrigin,
    pub hosts: Vec<String>,
    /// Empty for every method.
    pub methods: Vec<String>,
    /// Empty for every path.
    pub paths: Vec<String>,
    pub place: SecretPlace,
}

/// The longest name of a secret.
const MAX_NAME: usize = 64;

impl SecretConfig {
    pub(crate) fn binding(&self) -> Result<SecretBinding, String> {
        SecretBinding::new(&self.name, &self.hosts, &self.paths, &self.methods, &self.place)
    }

    /// The entry as it is shown to the person who confirms it.
    pub(crate) fn shown(&self) -> Value {
        let from = match &self.from {
            SecretOrigin::Env(name) => json!({ "env": name }),
            SecretOrigin::File(path) => json!({ "file": path }),
            SecretOrigin::Command(words) => json!({ "command": words }),
        };
        let place = match &self.place {
            SecretPlace::Bearer => json!("bearer"),
            SecretPlace::Header(name) => json!({ "header": name }),
            SecretPlace::Query(name) => json!({ "query": name }),
        };
        json!({ "from": from, "hosts": self.hosts, "methods": self.methods, "paths": self.paths, "as": place })
    }
}

pub(super) fn read(name: &str, mut fields: Fields<'_>) -> Option<SecretConfig> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        fields.wrong_itself(&format!("a name of a secret has 1 to {MAX_NAME} letters, digits, `_` and `-`"));
    }
    let from = origin(&mut fields);
    let place = place(&mut fields);
    let hosts = fields.texts("hosts").unwrap_or_default();
    let methods = fields.texts("methods").unwrap_or_default();
    let paths = fields.texts("paths").unwrap_or_default();
    let secret = from.zip(place).map(|(from, place)| SecretConfig {
        name: name.to_owned(),
        from,
        hosts,
        methods,
        paths,
        place,
    });
    if let Some(Err(problem)) = secret.as_ref().map(SecretConfig::binding) {
        fields.wrong_itself(&problem);
    }
    fields.done();
    secret
}

fn origin(secret: &mut Fields<'_>) -> Option<SecretOrigin> {
    const WANTED: &str = "must be { env: 'NAME' }, { file: '/path' } or { command: ['program', 'argument'] }";
    let Some(mut from) = secret.section("from") else {
        secret.problem("from", WANTED);
        return None;
    };
    let (env, file, command) = (from.text("env"), from.text("file"), from.texts("command"));
    from.done();
    match (env, file, command) {
        (Some(name), None, None) if !name.is_empty() => Some(SecretOrigin::Env(name)),
        (None, Some(path), None) if path.starts_with('/') || path.starts_with("~/") => {
            Some(SecretOrigin::File(path))
        }
        (None, Some(_), None) => {
            secret.problem("from.file", "must be an absolute path, or begin with `~/`");
            None
        }
        (None, None, Some(words)) if !words.is_empty() => Some(SecretOrigin::Command(words)),
        _ => {
            secret.problem("from", WANTED);
            None
        }
    }
}

fn place(secret: &mut Fields<'_>) -> Option<SecretPlace> {
    let wrong = "must be 'bearer', { header: 'NAME' } or { query: 'NAME' }";
    let place = match secret.value("as") {
        Some(Value::String(word)) if word == "bearer" => Some(SecretPlace::Bearer),
        Some(Value::Object(fields)) if fields.len() == 1 => {
            fields.into_iter().next().and_then(|(kind, value)| match (kind.as_str(), value) {
                ("header", Value::String(name)) => Some(SecretPlace::Header(name)),
                ("query", Value::String(name)) => Some(SecretPlace::Query(name)),
                _ => None,
            })
        }
        _ => None,
    };
    if place.is_none() {
        secret.problem("as", wrong);
    }
    place
}
