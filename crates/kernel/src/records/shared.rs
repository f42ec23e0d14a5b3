//! The audit as the recorder of every call.

use std::sync::Arc;

use async_trait::async_trait;
use tgp_audit::Audit;
use tgp_contract::{CallRecord, Recorder, ToolError};
use tgp_router::gates::PolicyGate;

/// The audit where rules depend on earlier calls: a call is in the record before its caller learns how it ended, so
/// that the next one counts it, whichever process judges that.
pub(crate) struct SharedRecord {
    pub(crate) audit: Arc<Audit>,
    pub(crate) policy: Arc<PolicyGate>,
}

#[async_trait]
impl Recorder for SharedRecord {
    async fn record(&self, record: CallRecord) -> Result<(), ToolError> {
        self.audit.record(record).await?;
        // Rules that cannot be read allow nothing, so there is nothing to count.
        if self.policy.looks_back().await.unwrap_or_default() {
            self.audit.settle().await?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ToolError> {
        self.audit.check()
    }

    async fn ready(&self) -> Result<(), ToolError> {
        self.audit.ready().await
    }

    fn record_cancelled(&self, record: CallRecord) {
        self.audit.record_cancelled(record);
    }
}
