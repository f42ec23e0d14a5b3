//! What is between a valid call and its effect.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Access, ApprovalReason, CallContext, CallRecord, Change, RelativePath, Root, Target, ToolCall,
    ToolDefinition, ToolError, Visibility,
};

/// The gates of the router, in the order a call meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    State,
    Policy,
    Guardian,
    Approval,
}

/// What a gate is shown.
#[derive(Clone, Copy, Debug)]
pub struct GateRequest<'a> {
    /// Distinguishes this call from every other one of its router; ids of callers may repeat.
    pub serial: u64,
    pub call: &'a ToolCall,
    pub definition: &'a ToolDefinition,
    pub context: &'a CallContext,
    /// What the call would touch, with paths that are normal already.
    pub targets: &'a [Target],
    /// The files of the project as the call would leave them, once that is known and a gate wants to know it.
    pub proposed: Option<&'a [Change]>,
}

/// What a gate says. The strictest verdict of all gates wins.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The gate has nothing against it.
    Allow { rule: String },
    /// A person must approve the call first.
    Ask(ApprovalReason),
    /// The call does not happen.
    Deny { rule: String, error: ToolError },
}

/// Whether a file may be accessed so. It must be quick: a search asks for thousands of files.
pub type FileFilter = Arc<dyn Fn(Root, &RelativePath, Access) -> bool + Send + Sync>;

/// One gate. An evaluation that fails must be a [`Verdict::Deny`]; there is no other way to report it.
#[async_trait]
pub trait Gate: Send + Sync {
    fn stage(&self) -> Stage;
    fn name(&self) -> &str;
    async fn judge(&self, request: GateRequest<'_>) -> Verdict;

    /// Judges files that a running call turned out to change: what a command or a forged tool wrote. They are the
    /// targets of the request, and nothing of them has taken effect. A gate that does not check files lets them pass.
    async fn judge_changes(&self, _request: GateRequest<'_>) -> Verdict {
        Verdict::Allow { rule: "none".to_owned() }
    }

    /// Judges the files of packages that a running call puts in place. They are the targets of the request, and the directory
    /// that they are in was judged by [`Gate::judge_changes`]. Packages come from an index, so what a name usually means in a
    /// project does not count: a gate asks only what people have said of such paths.
    async fn judge_packages(&self, request: GateRequest<'_>) -> Verdict {
        self.judge_changes(request).await
    }

    /// Judges changes of files that run later, outside of any jail: hooks, pipelines, task lists, the next agent's
    /// instructions. They are the targets of the request. Where the verdict is to ask, a person has to see the change
    /// itself, whatever was agreed to beforehand.
    async fn judge_runs_later(&self, _request: GateRequest<'_>) -> Verdict {
        Verdict::Allow { rule: "none".to_owned() }
    }

    /// Judges what a running call does next, before it does it: the next stop of a redirect. The request has the
    /// arguments and the targets that a separate call would have. A gate that counts calls must not count one for it.
    async fn judge_further(&self, request: GateRequest<'_>) -> Verdict {
        self.judge(request).await
    }

    /// Judges once more, when a forged tool is done and before anything that it did takes effect. The targets of the request
    /// are its sources. For a gate whose answer may be another one by then; the others let it pass.
    async fn judge_commit(&self, _request: GateRequest<'_>) -> Verdict {
        Verdict::Allow { rule: "none".to_owned() }
    }

    /// Whether it judges the contents that a call would leave in the project. Then a write is tried without effect, and
    /// what would come of it is shown to [`Gate::judge_changes`] before the write may happen.
    async fn needs_proposed_files(&self, _request: GateRequest<'_>) -> bool {
        false
    }

    /// What else of the project a call's change would reach, for the user who is asked to approve it: as much of it as
    /// the caller may see.
    async fn blast_radius(&self, _request: GateRequest<'_>, _visible: &Visibility) -> Option<Value> {
        None
    }

    /// The error of its own denial as the caller may read it. A gate judges by files that the caller may not see; what
    /// it says of them must name none of them.
    async fn conceal(&self, _request: GateRequest<'_>, error: ToolError, _visible: &Visibility) -> ToolError {
        error
    }

    /// What a running call may see and touch in addition to what its arguments name: asked for every file that a
    /// search, a command or a forged tool comes across. `None` when the gate refuses no file. The targets of the
    /// request are those that a rule wanted to be asked about, and the user has agreed to.
    async fn file_filter(&self, _request: GateRequest<'_>) -> Option<FileFilter> {
        None
    }

    /// Whether it may have something against a file that a running call writes or deletes below a directory, whatever the
    /// file is called. Where no gate has, the files are not judged one by one. In doubt it may. With a target that is read, it
    /// is asked whether it may hide such a file from the call.
    async fn may_restrict_below(
        &self,
        request: GateRequest<'_>,
        _root: Root,
        _directory: &RelativePath,
    ) -> bool {
        self.file_filter(request).await.is_some()
    }

    /// Reports the result of a call that reached the gates, whether it ran, was refused or was cancelled. Must
    /// return soon: the caller waits, or is gone.
    fn on_finished(&self, _record: &CallRecord) {}
}
