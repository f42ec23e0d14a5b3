//! The Delegator: it carries out a plan that the Guardian has approved, step by step through the router.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::Shared;
use serde::Serialize;
use serde_json::{Value, json};
use tgp_contract::{
    CallContext, Cancellation, Code, Decision, Plan, RelativePath, ToolCall, ToolCaller, ToolError,
    ToolResult, Visibility, canonical,
};

use crate::planned_actions::{MAX_STEPS, PlannedAction, Replacement};
use crate::review::Assessed;
use crate::{Guardian, Review};

/// Pages of a file that is renamed: as many as a file of the largest size has.
const MAX_PAGES: usize = 1_000;

/// How far a step came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Done,
    Failed,
    NotRun,
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepReport {
    /// Counted from 1.
    pub step: usize,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(rename = "filePath", skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub status: StepStatus,
    /// The ids of its calls, under which the audit has them.
    pub calls: Vec<String>,
    /// What its last call answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

/// How a plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanOutcome {
    /// Every step is done.
    Completed,
    /// The Guardian vetoed it; not one call was made.
    Denied,
    /// Something does not hold that must; the steps before it are done.
    Halted,
    /// A step failed, and none was taken after it.
    Failed,
    Cancelled,
    /// It would have been carried out, were it not a dry run.
    Approved,
}

/// The result of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanReport {
    pub plan: String,
    pub outcome: PlanOutcome,
    pub review: Review,
    pub steps: Vec<StepReport>,
    /// Why it did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

/// Carries out plans.
pub struct Delegator {
    guardian: Arc<Guardian>,
    tools: Arc<dyn ToolCaller>,
}

/// What all calls of a plan share.
struct Run<'a> {
    tools: &'a dyn ToolCaller,
    context: &'a CallContext,
    cancelled: Shared<Cancellation<'a>>,
    plan: &'a str,
}

impl Delegator {
    #[must_use]
    pub fn new(guardian: Arc<Guardian>, tools: Arc<dyn ToolCaller>) -> Self {
        Self { guardian, tools }
    }

    /// Has the plan reviewed as `visible` shows the project, checks that what must hold holds, and takes the steps in order until one fails. What a
    /// step finds in its file must be what the review has seen. In a dry run nothing is called.
    ///
    /// # Errors
    /// When the plan could not be judged; then nothing was called. Everything else is in the report.
    pub async fn execute(
        &self,
        plan: &Plan,
        context: CallContext,
        visible: &Visibility,
        cancelled: Cancellation<'_>,
    ) -> Result<PlanReport, ToolError> {
        let (review, assessed) = self.guardian.assess(plan, visible).await?;
        let mut report = PlanReport::new(plan, review);
        if let Decision::Deny { reason } = &report.review.decision {
            let error = ToolError::new(Code::Policy, format!("the plan is denied: {reason}"))
                .help("change the plan so that no finding stands, and have it reviewed again");
            return Ok(report.ended(PlanOutcome::Denied, Some(error)));
        }
        if context.dry_run {
            let wound = match self.guardian.wound().await? {
                Some(wound) => Some(self.guardian.concealed_halt(wound, visible).await),
                None => None,
            };
            let outcome = if wound.is_some() { PlanOutcome::Halted } else { PlanOutcome::Approved };
            return Ok(report.ended(outcome, wound));
        }
        match self.guardian.bullet_wound_check(&[]).await {
            // What is undecided is in the review.
            Ok(_) => {}
            Err(error) if error.code == Code::Halt => {
                let error = self.guardian.concealed_halt(error, visible).await;
                return Ok(report.ended(PlanOutcome::Halted, Some(error)));
            }
            Err(error) => return Err(error),
        }
        let run = Run {
            tools: self.tools.as_ref(),
            context: &context,
            cancelled: cancelled.shared(),
            plan: &plan.id,
        };
        // A plan that was approved has an act for each step.
        for (step, assessed) in report.steps.iter_mut().zip(&assessed) {
            if run.is_cancelled() {
                return Ok(report.ended(PlanOutcome::Cancelled, Some(was_cancelled())));
            }
            match run.take(step, assessed).await {
                Ok(data) => {
                    step.status = StepStatus::Done;
                    step.data = Some(data);
                }
                Err(error) => {
                    step.status = StepStatus::Failed;
                    step.error = Some(error.clone());
                    let outcome = match error.code {
                        Code::Halt | Code::Integrity => PlanOutcome::Halted,
                        _ if error.is_of_cancellation() => PlanOutcome::Cancelled,
                        _ => PlanOutcome::Failed,
                    };
                    return Ok(report.ended(outcome, Some(error)));
                }
            }
        }
        Ok(report.ended(PlanOutcome::Completed, None))
    }
}

impl PlanReport {
    fn new(plan: &Plan, review: Review) -> Self {
        let steps = (1..).zip(&plan.steps).map(|(step, planned)| StepReport {
            step,
            kind: planned.kind.clone(),
            file: planned.file_path.clone(),
            status: StepStatus::NotRun,
            calls: Vec::new(),
            data: None,
            error: None,
        });
        let steps = steps.take(MAX_STEPS).collect();
        Self { plan: plan.id.clone(), outcome: PlanOutcome::Denied, review, steps, error: None }
    }

    fn ended(self, outcome: PlanOutcome, error: Option<ToolError>) -> Self {
        Self { outcome, error, ..self }
    }
}

impl Run<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.clone().now_or_never().is_some()
    }

    async fn take(&self, step: &mut StepReport, assessed: &Assessed) -> Result<Value, ToolError> {
        let expected = assessed.expected.as_deref();
        match &assessed.act {
            PlannedAction::Create { path, content } => {
                let arguments = json!({ "path": path, "content": content });
                self.call(step, "fs_write", arguments).await
            }
            PlannedAction::Write { path, content } => {
                let arguments = bound(json!({ "path": path, "content": content }), expected);
                self.call(step, "fs_write", arguments).await
            }
            PlannedAction::Edit { path, edits } => {
                let edits: Vec<Value> = edits
                    .iter()
                    .map(|Replacement { search, replace, all }| {
                        json!({ "search": search, "replace": replace, "all": all })
                    })
                    .collect();
                let arguments = bound(json!({ "path": path, "edits": edits }), expected);
                self.call(step, "fs_edit", arguments).await
            }
            PlannedAction::Delete { path, .. } => {
                self.call(step, "fs_delete", bound(json!({ "path": path }), expected)).await
            }
            PlannedAction::Rename { path, to } => self.rename(step, path, to, expected).await,
            PlannedAction::Call { tool, arguments } => self.call(step, tool, arguments.clone()).await,
        }
    }

    /// Reads a file, writes it elsewhere and deletes it, each through the gates. Nothing is written unless all of it was
    /// read.
    async fn rename(
        &self,
        step: &mut StepReport,
        path: &RelativePath,
        to: &RelativePath,
        expected: Option<&str>,
    ) -> Result<Value, ToolError> {
        let mut content = String::new();
        let mut offset = json!(1);
        for _ in 0..MAX_PAGES {
            let page = self.call(step, "fs_read", json!({ "path": path, "offset": offset })).await?;
            content.push_str(page.get("content").and_then(Value::as_str).unwrap_or_default());
            match page.get("nextOffset") {
                Some(next) => offset = next.clone(),
                None => break,
            }
        }
        let read = canonical::sha256_hex(content.as_bytes());
        if expected != Some(read.as_str()) {
            let message = format!("`{path}` could not be read whole, or is not what was reviewed any more");
            return Err(ToolError::new(Code::Conflict, message)
                .detail("path", path.as_str())
                .help("have the plan reviewed again; lines that are cut off in a page cannot be renamed"));
        }
        self.call(step, "fs_write", json!({ "path": to, "content": content })).await?;
        self.call(step, "fs_delete", json!({ "path": path, "expected_sha256": read })).await
    }

    async fn call(&self, step: &mut StepReport, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        let id = format!("{}-{}-{}", self.plan, step.step, step.calls.len() + 1);
        step.calls.push(id.clone());
        let call = ToolCall { id, tool: tool.to_owned(), arguments };
        let record = self.tools.call(call, self.context.clone(), Box::pin(self.cancelled.clone())).await;
        match record.result {
            ToolResult::Done(data) => Ok(data),
            ToolResult::Failed(error) => Err(error),
        }
    }
}

/// Binds a change to the content that was reviewed.
fn bound(mut arguments: Value, expected: Option<&str>) -> Value {
    if let (Some(expected), Some(fields)) = (expected, arguments.as_object_mut()) {
        fields.insert("expected_sha256".to_owned(), json!(expected));
    }
    arguments
}

fn was_cancelled() -> ToolError {
    ToolError::new(Code::Runtime, "the plan was cancelled before its next step")
        .of_cancellation()
        .help("the steps that are done stay done; plan the rest again")
}
