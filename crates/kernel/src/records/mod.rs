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
    // Beside a configured token the user of an address is a name; without one it is taken for a pasted token.
    let user = if token.is_some() { User::Name } else { User::Token };
    let addresses = [
        (git.and_then(|git| git.url.as_deref()), user),
        (config.db.url.as_deref(), User::Name),
        (config.graph.url.as_deref(), User::Name),
        (config.llm.base_url.as_deref(), User::Token),
        (config.llm.provider.as_deref(), User::Token),
    ];
    let carried = addresses.into_iter().filter_map(|(address, user)| secret_of_address(address?, user));
    let variables = MODEL_KEYS.iter().copied().chain(config.llm.key_variable.as_deref());
    token
        .into_iter()
        .chain(key)
        .chain(carried)
        .chain(variables.filter_map(|name| environment(name)))
        .collect()
}

/// What a user name without a password is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Name,
    Token,
}

/// The password of an address, or the token that an http address has instead of a user name. A user name is no secret: if it
/// were one, every `deploy` in a path would be redacted.
fn secret_of_address(address: &str, user: User) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (credentials, _) = authority.rsplit_once('@')?;
    let secret = match credentials.split_once(':') {
        Some((_, password)) => password,
        None if user == User::Token && matches!(scheme, "http" | "https") => credentials,
        None => return None,
    };
    (!secret.is_empty()).then(|| secret.to_owned())
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

#[cfg(test)]
mod tests {
    use super::{User, secret_of_address};

    #[test]
    fn passwords_and_pasted_tokens_are_secrets_and_user_names_are_not() {
        for (address, user, secret) in [
            ("https://ann:pw12345678@host/x", User::Name, Some("pw12345678")),
            ("postgres://app:p@ss@host/db?x=1", User::Name, Some("p@ss")),
            ("https://ghpabcdefgh@host/x", User::Token, Some("ghpabcdefgh")),
            ("https://deploy@host/x", User::Name, None),
            ("ssh://deploy@host/x", User::Token, None),
            ("postgres://deploy@host/db", User::Name, None),
            ("https://host/a@b", User::Token, None),
            ("git@host:x.git", User::Token, None),
            ("../tools.git", User::Token, None),
        ] {
            assert_eq!(secret_of_address(address, user).as_deref(), secret, "{address}");
        }
    }
}
