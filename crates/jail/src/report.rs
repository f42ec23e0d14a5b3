//! What was locked and what could not be, for the worker's handshake and for `tgp doctor`.

use serde::{Deserialize, Serialize};

/// What a lock achieved, or what [`probe`](crate::probe) found on this machine.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct LockReport {
    /// Whether set-user-id programs and file capabilities are without effect.
    pub no_new_privileges: bool,
    /// The kernel's Landlock version, when Landlock is there.
    pub landlock_abi: Option<u32>,
    /// Whether system calls are (or can be) filtered.
    pub seccomp: bool,
    /// The namespaces that were left: `user`, `network`, `ipc`, `pid`, `mount`, `uts`.
    pub namespaces: Vec<String>,
    /// What this platform lacks, one plain sentence each.
    pub missing: Vec<String>,
}
