//! Approvals that wait for a person: one store for every way to reach a kernel. A question that no person could answer at
//! once is kept here; `tgp approve` answers it, and the run that asked starts again.

mod record;
mod store;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{ApprovalAnswer, ApprovalRequest, ApprovalStore, Approver};

use crate::boot::BootOptions;
pub use record::{ApprovalState, KeptQuestion};
pub use store::{Approvals, Grant, MAX_TIMES};

/// The approver of a kernel: the embedding program's, and a store for what it cannot answer at once.
struct KeepingApprover {
    approver: Arc<dyn Approver>,
    store: Approvals,
}

#[async_trait]
impl Approver for KeepingApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        self.approver.ask(request).await
    }

    fn store(&self) -> Option<&dyn ApprovalStore> {
        Some(&self.store)
    }
}

/// The approver of these options with the store of the user. Without a home, or with one inside the project, nothing is
/// kept, and what cannot be answered at once is refused.
pub(crate) fn keeping(options: &BootOptions, project: &Path) -> Arc<dyn Approver> {
    match Approvals::of_user(&options.environment, project) {
        Ok(Some(store)) => Arc::new(KeepingApprover { approver: Arc::clone(&options.approver), store }),
        Ok(None) | Err(_) => Arc::clone(&options.approver),
    }
}
