//! The audit of a project: where it is kept, and how it is read without a kernel, since nobody boots on a broken one.

mod anchor;
mod past;
mod shared;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_audit::{Anchor, AuditOptions, AuditReader, Durability, Restarted};
use tgp_text::now_ms;

use crate::boot::{BootError, BootOptions, Environment, Ground};
use crate::config::{AuditDurability, Config};
use crate::settings::state_directory;
use anchor::AuditAnchor;
pub(crate) use past::Past;
pub(crate) use shared::SharedRecord;

/// The variables in which providers' keys usually are.
const MODEL_KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

/// The database of the audit.
pub(crate) fn audit_file(root: &Path) -> PathBuf {
    state_directory(root).join("audit.sqlite")
}

/// Where the head of the audit is kept besides the database.
pub(crate) fn audit_anchor(root: &Path) -> Arc<dyn Anchor> {
    Arc::new(AuditAnchor::new(root))
}

/// How the audit is kept.
pub(crate) fn audit_options(ground: &Ground, options: &BootOptions) -> AuditOptions {
    let config = &ground.config.audit;
    let mut kept = AuditOptions::new(audit_file(&ground.root));
    kept.durability = match config.durability {
        AuditDurability::Batched => Durability::Batched,
        AuditDurability::Call => Durability::Call,
    };
    kept.secret_names.clone_from(&config.redact_names);
    kept.secret_values =
        config.redact_environment.iter().filter_map(|name| (options.environment)(name)).collect();
    kept.secret_values.extend(secrets(&ground.config, &options.environment));
    kept
}

/// Secrets that the configuration itself holds or names: tokens, keys, and what addresses carry.
fn secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let git = config.git.as_ref();
    let token = git.and_then(|git| git.auth.token.clone());
    let key = config.registry.embeddings.as_ref().and_then(|embeddings| embeddings.api_key.clone());
    let addresses = [
        git.and_then(|git| git.url.as_deref()),
        config.db.url.as_deref(),
        config.graph.url.as_deref(),
        config.llm.base_url.as_deref(),
        config.llm.provider.as_deref(),
    ];
    let variables = MODEL_KEYS.iter().copied().chain(config.llm.key_variable.as_deref());
    token
        .into_iter()
        .chain(key)
        .chain(addresses.into_iter().flatten().flat_map(secrets_of_address))
        .chain(variables.filter_map(|name| environment(name)))
        .collect()
}

/// The password of an address, and a user name that stands alone: that is a token more often than a name.
fn secrets_of_address(address: &str) -> Vec<String> {
    let Some((_, rest)) = address.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else { return Vec::new() };
    let secret = user.split_once(':').map_or(user, |(_, password)| password);
    if secret.is_empty() { Vec::new() } else { vec![secret.to_owned()] }
}

/// Opens the audit of a project to read and verify it.
///
/// # Errors
/// When the configuration cannot be read, or there is no audit.
pub async fn open_records(options: &BootOptions) -> Result<AuditReader, BootError> {
    let ground = Ground::find(options).await?;
    Ok(AuditReader::open(audit_file(&ground.root), audit_anchor(&ground.root))?)
}

/// Sets a broken audit aside and begins a new chain that says why.
///
/// # Errors
/// When the old one cannot be moved or the new one not be made.
pub async fn restart_records(options: &BootOptions, reason: &str) -> Result<Restarted, BootError> {
    let ground = Ground::find(options).await?;
    Ok(tgp_audit::restart(&audit_options(&ground, options), &audit_anchor(&ground.root), reason, now_ms())?)
}
