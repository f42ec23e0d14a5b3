//! What the host does for the kernel: each part of the kernel's contracts that it has offered in `initialize`.

mod approver;
mod database;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tgp::Kernel;
use tgp_contract::{Approver, Database, ToolError};

use super::peer::Peer;
use super::protocol::HostParams;

/// How long a host may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same where a person answers.
const APPROVAL_PATIENCE: Duration = Duration::from_secs(60 * 60);

/// What a kernel for a host is booted with.
pub struct HostParts {
    pub approver: Arc<dyn Approver>,
    pub database: Option<Arc<dyn Database>>,
}

impl std::fmt::Debug for HostParts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HostParts").finish_non_exhaustive()
    }
}

impl HostParts {
    pub(crate) fn new(peer: &Peer, params: &HostParams) -> Self {
        let approver = approver::HostApprover::new(params.approves.then(|| peer.clone()));
        let database = params.sql.as_ref().map(|sql| database::HostDatabase::shared(peer.clone(), sql));
        Self { approver: Arc::new(approver), database }
    }
}

/// Boots the kernel that a host has asked for.
#[async_trait]
pub trait HostBoot: Send + Sync {
    /// # Errors
    /// Why there is no kernel.
    async fn boot(&self, params: &HostParams, parts: HostParts) -> Result<Kernel, ToolError>;
}
