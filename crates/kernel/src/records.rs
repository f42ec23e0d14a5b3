//! The audit without a kernel: whoever looks into a broken one cannot boot on it.

use std::time::{SystemTime, UNIX_EPOCH};

use tgp_audit::{AuditReader, Restarted};

use crate::boot::{BootError, BootOptions, Ground, audit_anchor, audit_file, audit_options};

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
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    Ok(tgp_audit::restart(&audit_options(&ground, options), &audit_anchor(&ground.root), reason, now_ms)?)
}
