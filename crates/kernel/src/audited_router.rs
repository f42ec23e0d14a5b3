//! The router, as those above the tools see it.

use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{
    BeforeEffectHook, CallContext, CallRecord, Cancellation, Effect, ToolCall, ToolCaller, ToolDefinition,
};

use tgp_audit::Audit;
use tgp_router::Router;

use crate::Kernel;

/// One door for every call, with the record behind it.
struct Door {
    router: Arc<Router>,
    audit: Arc<Audit>,
}

#[async_trait]
impl ToolCaller for Door {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.router.definitions().cloned().collect()
    }

    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord {
        self.settled(self.router.call_cancellable(call, context, cancelled, None).await).await
    }

    async fn call_witnessed(
        &self,
        call: ToolCall,
        context: CallContext,
        cancelled: Cancellation<'_>,
        witness: BeforeEffectHook,
    ) -> CallRecord {
        self.settled(self.router.call_cancellable(call, context, cancelled, Some(witness)).await).await
    }
}

impl Door {
    /// A run resumed after a crash asks the audit for the result of a call, so its entry comes before its
    /// result.
    async fn settled(&self, record: CallRecord) -> CallRecord {
        if record.effect == Some(Effect::Read) {
            return record;
        }
        match self.audit.settle().await {
            Ok(()) => record,
            Err(error) => record.unrecorded(error),
        }
    }
}

impl Kernel {
    /// Takes calls through the router, for callers that make many of them: a plan, a query, a relay.
    #[must_use]
    pub fn tool_caller(&self) -> Arc<dyn ToolCaller> {
        let (router, _, audit) = self.session_parts();
        Arc::new(Door { router, audit })
    }
}
