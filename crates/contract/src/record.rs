//! The one record each call leaves.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    CallContext, CallVerdict, Effect, Execution, GateDecision, RelativePath, Root, Stage, Target, ToolCall,
    ToolDefinition, ToolError, ToolResult,
};

/// What one gate decided about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateVerdict {
    pub stage: Stage,
    pub gate: String,
    pub verdict: GateDecision,
    pub rule: String,
}

impl GateVerdict {
    /// The verdict of the approval stage.
    #[must_use]
    pub fn approval(decision: GateDecision, rule: impl Into<String>) -> Self {
        Self { stage: Stage::Approval, gate: "approval".to_owned(), verdict: decision, rule: rule.into() }
    }
}

/// A file that a call changed, with the SHA-256 of its bytes before and after (`None`: it did not exist).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffect {
    pub root: Root,
    pub path: RelativePath,
    pub before: Option<String>,
    pub after: Option<String>,
    /// SHA-256 of the unified diff, where the tool that changed the file has seen both contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Whether the file can be executed afterwards, where the call has changed that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// The id of the chronicle's event about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

impl FileEffect {
    /// A change of which no event is written yet.
    #[must_use]
    pub fn new(root: Root, path: RelativePath, before: Option<String>, after: Option<String>) -> Self {
        Self { root, path, before, after, diff: None, executable: None, event: None }
    }
}

/// Request, verdicts and outcome of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The number under which the gates have judged the call; it means nothing outside its router.
    #[serde(skip)]
    pub serial: u64,
    pub call: ToolCall,
    /// The tool's own name, when `call.tool` was an alias.
    pub tool: Option<String>,
    pub effect: Option<Effect>,
    pub context: CallContext,
    /// What the call would touch; empty when its arguments did not fit.
    pub targets: Vec<Target>,
    pub verdicts: Vec<GateVerdict>,
    pub files: Vec<FileEffect>,
    /// Rows that the call's statements inserted, updated or deleted.
    pub rows_changed: Option<u64>,
    /// How a process that the call started ended.
    pub exit_code: Option<i32>,
    /// How far the execution went.
    pub execution: Execution,
    /// Its caller cancelled it, or the kernel ended, before it had a result.
    pub cancelled: bool,
    pub result: ToolResult,
    /// Milliseconds since the epoch at which the call entered the router.
    pub started_ms: u64,
    /// Without the time the user took to answer.
    pub duration_us: u64,
}

impl CallRecord {
    /// The record of a call that could not be recorded, or not completely: it has failed, whatever it has done. A caller
    /// that knew only that it failed would make it again, so the error says when it took effect.
    #[must_use]
    pub fn unrecorded(mut self, error: ToolError) -> Self {
        let changes = self.effect != Some(Effect::Read) && !self.context.dry_run;
        self.result = ToolResult::Failed(match self.execution {
            Execution::Done if changes => {
                let message =
                    format!("the call took effect, but it is not recorded completely: {}", error.message);
                error.with_message(message).after_effect()
            }
            Execution::Unknown => {
                let before =
                    self.result.error().map_or_else(String::new, |error| format!("{}; ", error.message));
                let message = format!("{before}it is not recorded completely: {}", error.message);
                error.with_message(message).of_unknown_outcome()
            }
            Execution::Done | Execution::NotStarted | Execution::RolledBack => error,
        });
        self
    }

    /// What the gates decided about a call that ended.
    #[must_use]
    pub fn verdict(&self) -> CallVerdict {
        let has = |decision| self.verdicts.iter().any(|verdict| verdict.verdict == decision);
        if self.cancelled {
            CallVerdict::Cancelled
        } else if has(GateDecision::Deny) {
            CallVerdict::Denied
        } else if has(GateDecision::Refused) {
            CallVerdict::Refused
        } else if self.verdicts.is_empty() && !self.result.is_ok() {
            CallVerdict::Invalid
        } else if has(GateDecision::Approved) {
            CallVerdict::Approved
        } else {
            CallVerdict::Allowed
        }
    }

    /// The record of a call that did not start.
    #[must_use]
    pub fn not_begun(call: ToolCall, context: CallContext, error: ToolError) -> Self {
        let record = Self::ended(call, context, ToolResult::Failed(error));
        Self { execution: Execution::NotStarted, ..record }
    }

    /// The record of a call that ran to its end, with nothing in it but its result.
    #[must_use]
    pub fn ended(call: ToolCall, context: CallContext, result: ToolResult) -> Self {
        Self {
            serial: 0,
            call,
            tool: None,
            effect: None,
            context,
            targets: Vec::new(),
            verdicts: Vec::new(),
            files: Vec::new(),
            rows_changed: None,
            exit_code: None,
            execution: if result.is_ok() { Execution::Done } else { Execution::RolledBack },
            cancelled: false,
            result,
            started_ms: 0,
            duration_us: 0,
        }
    }
}

/// Keeps records. A call whose record cannot be kept has failed.
#[async_trait]
pub trait Recorder: Send + Sync {
    /// # Errors
    /// When the record cannot be kept.
    async fn record(&self, record: CallRecord) -> Result<(), ToolError>;

    /// Whether records are still kept at all. A call whose record could not be kept does not take effect.
    ///
    /// # Errors
    /// Why none can be kept.
    fn check(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// The same before a call begins, where there is time to try again what has failed before.
    ///
    /// # Errors
    /// As [`Recorder::check`].
    async fn ready(&self) -> Result<(), ToolError> {
        self.check()
    }

    /// Keeps the record of a call that was cancelled: its future was dropped, so no caller can wait. Must return at
    /// once.
    fn record_cancelled(&self, record: CallRecord);
}

/// Completes when a call is not wanted any more; `Box::pin(std::future::pending())` for one that is never
/// cancelled.
pub type Cancellation<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Called right before a call takes effect, and before whatever cannot be undone; perhaps more than once. When it
/// fails, the call does not take effect.
pub type BeforeEffectHook = Arc<dyn Fn() -> Result<(), ToolError> + Send + Sync>;

/// Takes calls through all gates: the router, as an agent sees it.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Every tool, sorted by name.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Makes one call and waits for it. The record is the one that was kept, with the result in it. When `cancelled`
    /// completes before the call takes effect, it is rolled back and its record is `cancelled`; later it is carried
    /// out all the same.
    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord;

    /// The same for a caller who must know after a crash whether the call may have taken effect. An implementation that
    /// does not know when that begins calls the hook at once.
    async fn call_witnessed(
        &self,
        call: ToolCall,
        context: CallContext,
        cancelled: Cancellation<'_>,
        witness: BeforeEffectHook,
    ) -> CallRecord {
        match witness() {
            Ok(()) => self.call(call, context, cancelled).await,
            Err(error) => CallRecord::not_begun(call, context, error),
        }
    }
}
