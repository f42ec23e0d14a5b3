//! What a built-in tool is.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use tgp_contract::{
    CallContext, Change, Code, Effect, FileEffect, FileSystem, GateVerdict, RelativePath, Root, Target,
    ToolCall, ToolDefinition, ToolError, Visibility,
};

use super::Router;
use super::lifecycle::{CallLifecycle, OuterCall, PointOfNoReturn};
use super::preview::{ApprovedSnapshot, Preview};
use crate::Workspace;

/// What a running call turns out to touch, and what the gates say of it.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) targets: Vec<Target>,
    pub(super) verdicts: Vec<GateVerdict>,
}

/// One call that has passed all gates.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    pub(super) serial: u64,
    /// Its arguments fit the tool's schema.
    pub call: &'a ToolCall,
    pub definition: &'a ToolDefinition,
    pub context: &'a CallContext,
    pub workspace: &'a Workspace,
    /// What the gates were shown.
    pub targets: &'a [Target],
    pub router: &'a Arc<Router>,
    /// What the call turns out to touch while it runs.
    pub(super) findings: &'a Mutex<Findings>,
    /// What the user has agreed to, when approval was required.
    pub(super) agreement: Option<&'a Arc<ApprovedSnapshot>>,
    /// What the call names, where a rule wanted to be asked about it and the user has agreed: what a rule only asks
    /// about is not hidden from this call then.
    pub(super) granted: &'a [Target],
    pub(super) lifecycle: &'a Arc<CallLifecycle>,
}

impl<'a> Invocation<'a> {
    /// The same call on another view of the files.
    #[must_use]
    pub fn on<'b>(self, workspace: &'b Workspace) -> Invocation<'b>
    where
        'a: 'b,
    {
        Invocation { workspace, ..self }
    }

    /// The workspace with what the gates let this call see, for tools that come across files that the call has
    /// not named.
    pub async fn filtered_workspace(&self) -> Workspace {
        self.workspace.filtered(self.router.file_filter(*self).await)
    }

    /// What the caller may see, for tools that read otherwise than by the files that their arguments name.
    pub async fn visibility(&self) -> Visibility {
        self.workspace.visibility(self.router.file_filter(*self).await)
    }

    /// The tool repository as the caller may see it.
    pub async fn visible_tools(&self) -> Arc<dyn FileSystem> {
        self.workspace.tools_seen_by(self.visibility().await)
    }

    /// Returns the number of this call, which no other call of this process has.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What the user has agreed to, for the last check of the files before the effect.
    pub fn agreement(&self) -> Option<Arc<ApprovedSnapshot>> {
        self.agreement.map(Arc::clone)
    }

    /// For the code that is about to cause the call's effect.
    #[must_use]
    pub fn point_of_no_return(&self) -> PointOfNoReturn {
        PointOfNoReturn(Arc::clone(self.lifecycle))
    }

    /// For code that does something that no cancellation can undo, before the call as a whole takes effect: a request
    /// that is sent, a command with the network.
    ///
    /// # Errors
    /// When a witness of the call fails; then it must not happen.
    pub fn testify(&self) -> Result<(), ToolError> {
        self.lifecycle.expose()
    }

    /// For code that asks something outside of this machine. When the run around it starts again, the call is answered as it was.
    pub fn reach_outside(&self) {
        self.lifecycle.reach_outside();
    }

    /// For the calls that this one makes while it runs.
    pub fn as_outer(&self) -> OuterCall {
        self.lifecycle.run().identify(self.call, self.context);
        OuterCall(Arc::clone(self.lifecycle))
    }

    /// Whether the gates have judged a file as a target of this call.
    pub fn has_judged(&self, root: Root, path: &RelativePath) -> bool {
        let is_it = |(known, name, _)| known == root && name == path;
        self.targets.iter().filter_map(Target::file).any(is_it)
    }
}

/// What a tool gives back.
#[derive(Clone, Debug, Default)]
pub struct ToolOutcome<T = Value> {
    /// The result.
    pub data: T,
    /// Files of the tool root or the project that changed; in a dry run, those that would.
    pub files: Vec<FileEffect>,
    /// In a dry run, the files of the project as they would be.
    pub proposed: Vec<Change>,
    /// Rows that its statements inserted, updated or deleted.
    pub rows_changed: Option<u64>,
    /// How the process it started ended.
    pub exit_code: Option<i32>,
}

impl<T> From<T> for ToolOutcome<T> {
    fn from(data: T) -> Self {
        Self { data, files: Vec::new(), proposed: Vec::new(), rows_changed: None, exit_code: None }
    }
}

impl<T: Serialize> ToolOutcome<T> {
    /// The same with the result as a caller gets it.
    ///
    /// # Errors
    /// `EINTERNAL` when the result has no JSON form, such as a map whose keys are not texts.
    pub fn into_json(self) -> Result<ToolOutcome, ToolError> {
        let Self { data, files, proposed, rows_changed, exit_code } = self;
        let data = serde_json::to_value(data)
            .map_err(|error| ToolError::new(Code::Internal, format!("a result has no JSON form: {error}")))?;
        Ok(ToolOutcome { data, files, proposed, rows_changed, exit_code })
    }
}

/// A tool as the router calls it, whatever its types are. [`typed`](super::typed()) makes one of a [`Tool`](super::Tool).
#[async_trait]
pub trait DynTool: Send + Sync {
    /// What the tool says of itself.
    fn definition(&self) -> &ToolDefinition;

    /// Whether its input schema was derived from a type, which always gives a valid one.
    fn has_derived_schema(&self) -> bool {
        false
    }

    /// The JSON Schema of its results; none where they can be anything.
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// See [`Tool::effect_of`](super::Tool::effect_of).
    fn effect_of(&self, _arguments: &Value) -> Effect {
        self.definition().effect
    }

    /// See [`Tool::targets`](super::Tool::targets).
    ///
    /// # Errors
    /// When an argument names what cannot be touched at all.
    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError>;

    /// See [`Tool::targets_in`](super::Tool::targets_in).
    ///
    /// # Errors
    /// As [`DynTool::targets`].
    async fn targets_in(&self, arguments: &Value, _workspace: &Workspace) -> Result<Vec<Target>, ToolError> {
        self.targets(arguments)
    }

    /// See [`Tool::found_targets`](super::Tool::found_targets).
    async fn found_targets(&self, _invocation: Invocation<'_>) -> Vec<Target> {
        Vec::new()
    }

    /// See [`Tool::preview`](super::Tool::preview).
    ///
    /// # Errors
    /// As the call itself would fail.
    async fn preview(&self, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let definition = self.definition();
        if definition.effect == Effect::Write && definition.dry_run {
            return self.run(invocation).await.map(Preview::from);
        }
        Ok(Preview::default())
    }

    /// See [`Tool::run`](super::Tool::run).
    ///
    /// # Errors
    /// What went wrong, with a code.
    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError>;
}
