//! The tamper-evident record of every call: one entry a call, each bound to the one before by its hash.
//!
//! A separate thread redacts, hashes and writes; callers only hand their records over. What the database says is
//! believed as far as the chain of hashes and the anchor, a copy of the newest hash kept elsewhere, agree with it.
#![forbid(unsafe_code)]

mod anchor;
mod entry;
mod export;
mod failure;
mod options;
mod queue;
mod reader;
mod recorder;
mod redact;
mod restart;
mod secret_patterns;
mod store;
mod verify;
mod writer;

pub use anchor::{Anchor, FileAnchor, Head, HeadError, Settle};
pub use entry::{VERDICTS, is_whole};
pub use export::ExportFormat;
pub use options::{AuditOptions, AuditSync};
pub use reader::{AuditEntry, AuditFilter, AuditReader, MAX_TAIL, RecordedCall, VerifyReport};
pub use recorder::{Audit, RecordedDecision};
pub use redact::Redaction;
pub use restart::{Restarted, Restarter, restart};
