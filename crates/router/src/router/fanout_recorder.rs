//! Two recorders as one.

use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{CallRecord, Recorder, ToolError};

/// Records to both, the first one first. A call that either cannot keep has failed.
pub struct FanoutRecorder(pub Arc<dyn Recorder>, pub Arc<dyn Recorder>);

#[async_trait]
impl Recorder for FanoutRecorder {
    async fn record(&self, record: CallRecord) -> Result<(), ToolError> {
        self.0.record(record.clone()).await?;
        self.1.record(record).await
    }

    fn check(&self) -> Result<(), ToolError> {
        self.0.check()?;
        self.1.check()
    }

    async fn ready(&self) -> Result<(), ToolError> {
        self.0.ready().await?;
        self.1.ready().await
    }

    fn record_cancelled(&self, record: CallRecord) {
        self.0.record_cancelled(record.clone());
        self.1.record_cancelled(record);
    }
}
