//! The one record each call leaves.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    CallContext, Effect, RelativePath, Root, Stage, Target, ToolCall, ToolDefinition, ToolError, ToolResult,
};

/// What one gate said of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateVerdict {
    pub stage: Stage,
    pub gate: String,
    /// `allow`, `ask`, `deny`, `approved` or `refused`.
    pub verdict: String,
    pub rule: String,
}

/// A file that a call changed, with the SHA-256 of its bytes before and after (`None`: it did not exist).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffect {
    pub root: Root,
    pub path: RelativePath,
    pub before: Option<String>,
    pub after: Option<String>,
    /// SHA-256 of the unified diff, where whoever changed the file has seen both contents.
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
    pub result: ToolResult,
    /// Milliseconds since the epoch at which the call entered the router.
    pub started_ms: u64,
    /// Without the time that somebody has thought about it.
    pub duration_us: u64,
}

impl CallRecord {
    /// What became of a call that ended, in one word: `denied`, `refused`, `invalid`, `approved` or `allowed`.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        let said = |word: &str| self.verdicts.iter().any(|verdict| verdict.verdict == word);
        if said("deny") {
            "denied"
        } else if said("refused") {
            "refused"
        } else if self.verdicts.is_empty() && !self.result.is_ok() {
            "invalid"
        } else if said("approved") {
            "approved"
        } else {
            "allowed"
        }
    }
}

impl CallRecord {
    /// The record of a call that was not even begun.
    #[must_use]
    pub fn not_begun(call: ToolCall, context: CallContext, error: ToolError) -> Self {
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
            result: ToolResult::Failed(error),
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

    /// Keeps the record of a call that was cancelled: its future was dropped, so nobody can wait. Must return at once.
    fn record_cancelled(&self, record: CallRecord);
}

/// Completes when a call is not wanted any more; `Box::pin(std::future::pending())` for one that nobody cancels.
pub type Cancellation<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Called right before a call takes effect, and before whatever cannot be taken back; perhaps more than once. When it
/// fails, the call does not take effect.
pub type Witness = Arc<dyn Fn() -> Result<(), ToolError> + Send + Sync>;

/// Whoever takes calls through all gates: the router, as an agent sees it.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Every tool, sorted by name.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Makes one call and waits for it. The record is the one that was kept, with the result in it. When `cancelled`
    /// completes before the call takes effect, it is taken back and fails with `details.cancelled`; later it is carried
    /// out all the same.
    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord;

    /// The same for a caller who must know after a crash whether the call may have taken effect. Whoever cannot tell when
    /// that begins calls the witness at once.
    async fn call_witnessed(
        &self,
        call: ToolCall,
        context: CallContext,
        cancelled: Cancellation<'_>,
        witness: Witness,
    ) -> CallRecord {
        match witness() {
            Ok(()) => self.call(call, context, cancelled).await,
            Err(error) => CallRecord::not_begun(call, context, error),
        }
    }
}
