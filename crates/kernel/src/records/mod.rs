//! The audit of a project: where it is kept, and how it is read without a kernel, since a kernel does not boot on a
//! broken one.

mod anchor;
mod audit_history;
mod audit_tail;
mod decision;
mod secrets;
mod shared;

use tgp_audit::{AuditOptions, AuditReader, AuditSync};

use crate::boot::{BootContext, BootError, BootOptions};
use crate::config::AuditDurability;
pub(crate) use anchor::AuditAnchor;
pub(crate) use audit_history::Past;
pub(crate) use audit_tail::audit_tail_tool;
pub(crate) use decision::Chain;
pub use decision::{
    Decision, RestartScope, SystemUser, open_user_records, record_decision, record_tightening,
    restart_records,
};
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
