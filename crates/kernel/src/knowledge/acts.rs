//! What a person has the Guardian do. Each act is recorded like a call.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_agent::{Assertion, Delegator, Finding, PlanReport};
use tgp_contract::{
    CallContext, CallRecord, Cancellation, Plan, ToolCall, ToolCaller, ToolDefinition, ToolError, canonical,
};
use tgp_tools::Router;

use super::inspect;
use crate::Kernel;

/// The router, as the Delegator sees it.
struct Door(Arc<Router>);

#[async_trait]
impl ToolCaller for Door {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.0.definitions().cloned().collect()
    }

    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord {
        self.0.call_cancellable(call, context, cancelled).await
    }
}

impl Kernel {
    /// Has a plan reviewed, and carries it out step by step through the router if nothing stands against it.
    ///
    /// # Errors
    /// When the plan could not be judged; everything else is in the report.
    pub async fn carry_out(&self, plan: &Plan, context: CallContext) -> Result<PlanReport, ToolError> {
        let (router, ..) = self.session_parts();
        let delegator = Delegator::new(Arc::clone(self.knowledge().guardian()), Arc::new(Door(router)));
        let report = delegator.execute(plan, context, Box::pin(std::future::pending())).await;
        let whole = serde_json::to_value(plan).unwrap_or_default();
        let arguments = json!({ "plan": plan.id, "planHash": canonical::hash(&whole).ok() });
        let told = match &report {
            Ok(report) => match &report.error {
                Some(error) => Err(error.clone()),
                None => Ok(json!({ "outcome": report.outcome })),
            },
            Err(error) => Err(error.clone()),
        };
        self.record_act("guardian_run", arguments, told.into()).await?;
        report
    }

    /// Checks the invariants, the chronicle against the graph, and these assertions.
    ///
    /// # Errors
    /// `EHALT` with what is broken; then no tool but those that read works until it is reconciled.
    pub async fn assert_invariants(&self, assertions: &[Assertion]) -> Result<(), ToolError> {
        let checked = self.knowledge().guardian().bullet_wound_check(assertions).await;
        let queries: Vec<&str> = assertions.iter().map(|assertion| assertion.cypher.as_str()).collect();
        let told = checked.clone().map(|()| Value::Null);
        self.record_act("guardian_assert", json!({ "assertions": queries }), told.into()).await?;
        checked
    }

    /// Compares graph, chronicle, registry, audit and work tree with each other.
    ///
    /// # Errors
    /// When an inquiry could not be made at all.
    pub async fn inquire(&self) -> Result<Vec<Finding>, ToolError> {
        let (library, audit) = self.inquiry_parts();
        let sources = inspect::sources(library, audit, &self.knowledge().chronicle, self.root());
        self.knowledge().guardian().self_inquiry(&sources).await
    }
}
