//! How an audit is kept.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Records that wait this long are written whether or not more have come.
const FLUSH_AFTER: Duration = Duration::from_millis(50);
/// How often the head is anchored while records come in. Truncating the database can hide at most as much.
const ANCHOR_EVERY: Duration = Duration::from_secs(1);
/// How long another process that holds the database is waited for. Its batches take milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// When a record counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditSync {
    /// When it is queued. A killed kernel loses up to [`AuditOptions::flush_after`] of records.
    #[default]
    Batched,
    /// When it is on the disk. All calls that wait share one sync.
    Call,
}

/// Where and how an audit is kept. It holds secrets, so it shows only its path.
#[derive(Clone)]
pub struct AuditOptions {
    /// The database file.
    pub path: PathBuf,
    pub durability: AuditSync,
    /// Names of arguments whose values are secrets, beside the built-in ones.
    pub secret_names: Vec<String>,
    /// Secrets themselves, such as the values of named environment variables. Shorter than six characters they are
    /// ignored: they would blacken ordinary words.
    pub secret_values: Vec<String>,
    pub flush_after: Duration,
    pub anchor_every: Duration,
    pub lock_wait: Duration,
}

impl AuditOptions {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: AuditSync::default(),
            secret_names: Vec::new(),
            secret_values: Vec::new(),
            flush_after: FLUSH_AFTER,
            anchor_every: ANCHOR_EVERY,
            lock_wait: LOCK_WAIT,
        }
    }
}

impl fmt::Debug for AuditOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuditOptions").field("path", &self.path).finish_non_exhaustive()
    }
}
