//! What a person has the Guardian do. Each act is recorded like a call.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_agent::{Assertion, Delegator, Finding, PlanReport};
use tgp_contract::{CallContext, Plan, ToolError, canonical};

use super::inspect;
use crate::Kernel;

impl Kernel {
    /// Has a plan reviewed, and carries it out step by step through the router if nothing stands against it.
    ///
    /// # Errors
    /// When the plan could not be judged; everything else is in the report.
    pub async fn carry_out(&self, plan: &Plan, context: CallContext) -> Result<PlanReport, ToolError> {
        let delegator = Delegator::new(Arc::clone(self.knowledge().guardian()), self.tool_caller());
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
