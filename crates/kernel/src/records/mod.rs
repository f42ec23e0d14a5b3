//! The audit of a project: where it is kept, and how it is read without a kernel, since a kernel does not boot on a
//! broken one.

mod anchor;
mod audit_history;
mod audit_tail;
mod secrets;
mod shared;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_audit::{Anchor, AuditOptions, AuditReader, AuditSync, Restarted};
use tgp_text::now_ms;

use crate::boot::{BootContext, BootError, BootOptions};
use crate::config::AuditDurability;
use crate::settings::state_directory;
use anchor::AuditAnchor;
pub(crate) use audit_history::Past;
pub(crate) use audit_tail::audit_tail_tool;
pub(crate) use secrets::{key_variables, learn_secrets};
pub(crate) use shared::SharedRecord;

/// The database of the audit.
pub(crate) fn audit_file(root: &Path) -> PathBuf {
    state_directory(root).join("audit.sqlite")
}

/// Where else the head of the audit is kept, in addition to the database.
pub(crate) fn audit_anchor(root: &Path) -> Arc<dyn Anchor> {
    Arc::new(AuditAnchor::new(root))
}

/// How the audit is kept.
pub(crate) fn audit_options(ground: &BootContext) -> AuditOptions {
    let config = &ground.config.audit;
    let mut kept = AuditOptions::new(audit_file(&ground.root));
    kept.durability = match config.durability {
        AuditDurability::Batched => AuditSync::Batched,
        AuditDurability::Call => AuditSync::Call,
    };
    kept.secret_names.clone_from(&config.redact_names);
    kept.secret_values.clone_from(&ground.secrets);
    kept
}

/// Opens the audit of a project to read and verify it.
///
/// # Errors
/// When the configuration cannot be read, or there is no audit.
pub async fn open_records(options: &BootOptions) -> Result<AuditReader, BootError> {
    let ground = BootContext::find(options).await?;
    Ok(AuditReader::open(audit_file(&ground.root), audit_anchor(&ground.root))?)
}

/// Sets a broken audit aside and begins a new chain that says why.
///
/// # Errors
/// When the old one cannot be moved or the new one not be made.
pub async fn restart_records(options: &BootOptions, reason: &str) -> Result<Restarted, BootError> {
    let ground = BootContext::find(options).await?;
    Ok(tgp_audit::restart(&audit_options(&ground), &audit_anchor(&ground.root), reason, now_ms())?)
}
