//! What the host does for the kernel: each part of the kernel's contracts that it has offered in `initialize`.

mod approver;
mod database;
mod files;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tgp::Kernel;
use tgp_contract::{Approver, Database, HostFiles, HostTools, ToolError};

use super::peer::Peer;
use super::protocol::{HostLogLevel, HostParams, LogParams, notification};

/// How long a host may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same where a person answers.
const APPROVAL_PATIENCE: Duration = Duration::from_secs(60 * 60);

/// What a kernel for a host is booted with.
pub struct HostParts {
    pub approver: Arc<dyn Approver>,
    pub database: Option<Arc<dyn Database>>,
    pub tools: Option<Arc<dyn HostTools>>,
    pub files: Option<Arc<dyn HostFiles>>,
    pub log: Option<HostLog>,
}

/// The host's log. A line for which there is no room is left out: a log holds nothing up.
#[derive(Debug)]
pub struct HostLog {
    pub level: HostLogLevel,
    peer: Peer,
}

impl HostLog {
    pub fn write(&self, line: &LogParams) {
        self.peer.try_notify(notification::LOG, line);
    }
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
        let log = params.log.map(|level| HostLog { level, peer: peer.clone() });
        let tools = tools::HostFunctions::shared(peer, &params.tools);
        let files = params.files.then(|| files::KeptFiles::shared(peer));
        Self { approver: Arc::new(approver), database, tools, files, log }
    }
}

/// Boots the kernel that a host has asked for.
#[async_trait]
pub trait HostBoot: Send + Sync {
    /// # Errors
    /// Why there is no kernel.
    async fn boot(&self, params: &HostParams, parts: HostParts) -> Result<Kernel, ToolError>;
}
