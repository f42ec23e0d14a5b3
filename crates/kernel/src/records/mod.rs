//! The audit of a project: where it is kept, and how it is read without a kernel, since a kernel does not boot on a
//! broken one.

mod anchor;
mod audit_history;
mod audit_tail;
mod secrets;
mod shared;

use tgp_audit::{AuditOptions, AuditReader, AuditSync, Restarted};
use tgp_text::now_ms;

use crate::boot::{BootContext, BootError, BootOptions};
use crate::config::AuditDurability;
pub(crate) use anchor::AuditAnchor;
pub(crate) use audit_history::Past;
pub(crate) use audit_tail::audit_tail_tool;
pub(crate) use secrets::{key_variables, learn_secrets};
pub(crate) use shared::SharedRecord;

/// How the audit is kept.
pub(crate) fn audit_options(ground: &BootContext) -> AuditOptions {
    let config = &ground.config.audit;
    let mut kept = AuditOptions::new(ground.access.state().audit_file());
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
    Ok(ground.access.records().audit_reader()?)
}

/// Sets a broken audit aside and begins a new chain that says why.
///
/// # Errors
/// When the old one cannot be moved or the new one not be made.
pub async fn restart_records(options: &BootOptions, reason: &str) -> Result<Restarted, BootError> {
    let ground = BootContext::find(options).await?;
    ground.access.check_kernel_files()?;
    let anchor = ground.access.state().audit_anchor();
    Ok(tgp_audit::restart(&audit_options(&ground), &anchor, reason, now_ms())?)
}
