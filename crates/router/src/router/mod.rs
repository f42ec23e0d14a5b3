//! One door for every call.

mod approval;
mod approval_prompt;
mod approval_refusal;
mod approval_run;
mod approver;
mod authorized_call;
mod call_future;
mod consent;
mod contents;
mod derived_schema;
mod fanout_recorder;
mod in_flight_call;
mod lifecycle;
mod pass_gates;
mod preview;
mod recent;
mod registered;
mod runs_later;
mod schema;
mod tool;
mod typed;
mod unknown_tool;
mod usual_arguments;
mod waiting;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tgp_contract::{
    Access, ApprovalReason, Approver, BeforeEffectHook, CallContext, CallRecord, Cancellation, Code,
    FileFilter, Gate, GateDecision, GateRequest, GateVerdict, Recorder, RelativePath, Root, Target, ToolCall,
    ToolDefinition, ToolError, ToolResult, Visibility, chronicled, is_chronicle_tree_directory,
};
use tracing::Instrument;

use crate::Workspace;
use approval::previews;
pub use approver::DenyAll;
use authorized_call::AuthorizedCall;
use call_future::CallFuture;
pub use call_future::CallsInFlight;
pub use fanout_recorder::FanoutRecorder;
use in_flight_call::{CallTrace, InFlightCall};
use lifecycle::CallLifecycle;
pub use lifecycle::{InnerCall, OuterCall, PointOfNoReturn};
pub use preview::{ApprovedSnapshot, FileDiff};
pub use preview::{FileSnapshot, Preview};
pub use recent::RecentCalls;
use registered::Registered;
pub use schema::LazySchema;
pub use tool::{DynTool, Invocation, ToolOutcome};
pub use typed::{Tool, ToolSpec, typed};
use usual_arguments::with_usual_arguments;

/// A gate asks for approval.
#[derive(Clone)]
struct ApprovalRequirement {
    reason: ApprovalReason,
    /// Files that run later, which only an answer to this very question lets change.
    later: Vec<RelativePath>,
}

impl ApprovalRequirement {
    fn is_rule(&self) -> bool {
        self.reason.origin.is_rule()
    }
}

/// What the gates are asked.
#[derive(Clone, Copy)]
enum GatePhase {
    /// Whether a call may happen.
    Call,
    /// Whether a call that runs may change these files.
    Changes,
    /// Whether a call that runs may make or remove these directories. They have no contents, so only gates that judge by
    /// names are asked.
    Directories,
    /// Whether a call that runs may put these files of packages in place. As for directories, only names are judged.
    Packages,
    /// Whether a call that runs may continue with these targets.
    Further,
    /// Whether a write, which was tried, may leave these contents. Only gates that judge contents are asked.
    Contents,
    /// Whether a run that is over may take effect.
    Commit,
}

/// A name that represents every name which no rule mentions.
const PROBE: &str = "any-name-4f1c9e7a";

/// How deep tools may call tools.
const MAX_DEPTH: u32 = 8;

/// What a call works on, and how far it has come.
#[derive(Clone, Copy)]
struct CallEnv<'a> {
    workspace: &'a Workspace,
    lifecycle: &'a Arc<CallLifecycle>,
}

/// Takes every call through the same stages.
pub struct Router {
    tools: BTreeMap<String, Registered>,
    aliases: BTreeMap<String, String>,
    gates: Vec<Arc<dyn Gate>>,
    approver: Arc<dyn Approver>,
    recorder: Arc<dyn Recorder>,
    workspace: Workspace,
    /// How many calls there were.
    calls: AtomicU64,
    in_flight: CallsInFlight,
    detached: CallsInFlight,
}

/// Why a set of tools cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    #[error("two tools are called `{0}`")]
    Duplicate(String),
    #[error("the input schema of `{tool}` is not a valid JSON Schema: {reason}")]
    Schema { tool: String, reason: String },
}

impl std::fmt::Debug for Router {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Router").field("tools", &self.tools.keys()).finish_non_exhaustive()
    }
}

impl Router {
    /// # Errors
    /// When two tools share a name or alias, or a schema is broken.
    pub fn new(
        tools: Vec<Arc<dyn DynTool>>,
        mut gates: Vec<Arc<dyn Gate>>,
        approver: Arc<dyn Approver>,
        recorder: Arc<dyn Recorder>,
        workspace: Workspace,
    ) -> Result<Self, RouterError> {
        let mut by_name = BTreeMap::new();
        let mut aliases = BTreeMap::new();
        for tool in tools {
            let definition = tool.definition();
            let name = definition.name.as_str().to_owned();
            let schema = LazySchema::default();
            if !tool.has_derived_schema()
                && let Err(reason) = schema.compile(&definition.input_schema)
            {
                return Err(RouterError::Schema { tool: name, reason: reason.to_owned() });
            }
            for alias in &definition.aliases {
                if aliases.insert(alias.clone(), name.clone()).is_some() {
                    return Err(RouterError::Duplicate(alias.clone()));
                }
            }
            if by_name.insert(name.clone(), Registered { tool, schema }).is_some() {
                return Err(RouterError::Duplicate(name));
            }
        }
        if let Some(shadowed) = aliases.keys().find(|alias| by_name.contains_key(*alias)) {
            return Err(RouterError::Duplicate(shadowed.clone()));
        }
        gates.sort_by_key(|gate| gate.stage());
        Ok(Self {
            tools: by_name,
            aliases,
            gates,
            approver,
            recorder,
            workspace,
            // Zero is the number of no call: of a question about one that is not made.
            calls: AtomicU64::new(1),
            in_flight: CallsInFlight::default(),
            detached: CallsInFlight::default(),
        })
    }

    /// The JSON Schema of a tool's results; none where there is no such tool, or its results can be anything.
    #[must_use]
    pub fn output_schema(&self, name: &str) -> Option<serde_json::Value> {
        self.find(name).ok()?.tool.output_schema()
    }

    /// Every tool's definition, sorted by name.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.values().map(|registered| registered.tool.definition())
    }

    /// Runs one call on the router's own workspace.
    pub async fn call(self: &Arc<Self>, call: ToolCall, context: CallContext) -> ToolResult {
        self.begin(call, context, &self.workspace, self.outermost(None)).await.result
    }

    /// The same, and answers the record that the call has left, with its result.
    pub async fn call_recorded(self: &Arc<Self>, call: ToolCall, context: CallContext) -> CallRecord {
        self.begin(call, context, &self.workspace, self.outermost(None)).await
    }

    /// The same for a call that may be cancelled. When `cancelled` completes before the call takes effect, it is
    /// rolled back: its command is ended, its transaction undone, and its record says so. Later it is waited for,
    /// and its record says what it did. `witness` is called before it takes effect.
    pub async fn call_cancellable(
        self: &Arc<Self>,
        call: ToolCall,
        context: CallContext,
        mut cancelled: Cancellation<'_>,
        witness: Option<BeforeEffectHook>,
    ) -> CallRecord {
        let mut running = self.begin(call, context, &self.workspace, self.outermost(witness));
        tokio::select! {
            biased;
            record = &mut running => return record,
            () = &mut cancelled => running.cancel(),
        }
        running.await
    }

    /// Waits for calls that took effect when their callers went away: they continue by themselves until they
    /// are recorded. Returns whether all have ended in time.
    pub async fn wait_for_detached(&self, patience: Duration) -> bool {
        self.detached.wait(patience).await
    }

    /// All calls that have not left their record, those inside others included.
    #[must_use]
    pub fn calls_in_flight(&self) -> CallsInFlight {
        self.in_flight.clone()
    }

    /// Runs one call that a running one makes, on its view of the files: a tool's own call sees what its run has written
    /// so far.
    pub async fn call_in(
        self: &Arc<Self>,
        call: ToolCall,
        context: CallContext,
        workspace: &Workspace,
        place: InnerCall,
    ) -> ToolResult {
        self.begin(call, context, workspace, place.0).await.result
    }

    fn outermost(&self, witness: Option<BeforeEffectHook>) -> Arc<CallLifecycle> {
        Arc::new(CallLifecycle::new(witness, &self.approver, &self.recorder))
    }

    fn begin(
        self: &Arc<Self>,
        call: ToolCall,
        context: CallContext,
        workspace: &Workspace,
        lifecycle: Arc<CallLifecycle>,
    ) -> CallFuture {
        // One span for each call; the audit adds the sequence number of its entry.
        let span = tracing::info_span!(
            target: "call",
            "call",
            id = call.id.as_str(),
            tool = call.tool.as_str(),
            session = context.session.as_str(),
            depth = context.depth,
            seq = tracing::field::Empty,
        );
        let whole = Arc::clone(self)
            .run_and_record(call, context, workspace.clone(), Arc::clone(&lifecycle))
            .instrument(span);
        CallFuture::new(whole, lifecycle, &self.in_flight, self.detached.clone())
    }

    /// A call from its entry to its record. It owns what it works on, so that it can outlive its caller.
    async fn run_and_record(
        self: Arc<Self>,
        call: ToolCall,
        context: CallContext,
        workspace: Workspace,
        lifecycle: Arc<CallLifecycle>,
    ) -> CallRecord {
        let serial = self.calls.fetch_add(1, Ordering::Relaxed);
        let workspace = workspace.recorded_for(&context);
        let call = match self.find(&call.tool) {
            Ok(registered) => with_usual_arguments(call, registered.tool.definition(), &workspace),
            Err(_) => call,
        };
        let mut open =
            InFlightCall::new(serial, call, context, &self.gates, self.recorder.as_ref(), &lifecycle);
        let InFlightCall { call, context, trace, .. } = &mut open;
        let env = CallEnv { workspace: &workspace, lifecycle: &lifecycle };
        let result = tokio::select! {
            biased;
            () = lifecycle.cancelled() => None,
            result = self.run_pipeline(serial, call, context, env, trace) => Some(result),
        };
        let Some(result) = result else { return open.cancel() };
        let result = lifecycle.settle(call, result);
        // A caller that goes away now does not drop its record.
        lifecycle.end();
        // An error never repeats a long argument, neither to the caller nor in the record.
        let record = open.close(result.map_err(ToolError::bounded).into());
        log_ending(&record);
        match self.recorder.record(record.clone()).await {
            Ok(()) => record,
            Err(error) => record.unrecorded(error),
        }
    }

    async fn run_pipeline(
        self: &Arc<Self>,
        serial: u64,
        call: &ToolCall,
        context: &CallContext,
        env: CallEnv<'_>,
        trace: &mut CallTrace,
    ) -> Result<serde_json::Value, ToolError> {
        let registered = self.find(&call.tool)?;
        let definition = registered.tool.definition();
        trace.tool = Some((definition.name.to_string(), definition.effect));
        self.recorder.ready().await?;
        registered.schema.check(definition, &call.arguments)?;
        if context.depth > MAX_DEPTH {
            return Err(ToolError::new(
                Code::Runtime,
                format!("tools call tools more than {MAX_DEPTH} levels deep"),
            )
            .help("call the inner tool directly, or import it instead of executing it"));
        }
        if context.dry_run && !definition.dry_run {
            return Err(ToolError::new(Code::Validation, format!("`{}` has no dry run", definition.name))
                .help("call it without dry_run"));
        }
        let definition = registered.definition_of(&call.arguments);
        if let Cow::Owned(own) = &definition {
            trace.tool = Some((own.name.to_string(), own.effect));
        }
        let definition = &*definition;
        trace.targets = registered.tool.targets_in(&call.arguments, env.workspace).await?;
        if context.dry_run {
            // A preview shows what is in the file.
            trace.targets.extend(previews(&trace.targets));
        }
        let request = GateRequest { serial, call, definition, context, targets: &[], proposed: None };
        trace.targets.extend(self.found_targets(AuthorizedCall { registered, request, env }).await);
        let targets = trace.targets.clone();
        let request = GateRequest { targets: &targets, ..request };
        let requirements = self.pass_gates(request, GatePhase::Call, &mut trace.verdicts).await?;
        if let Some(answer) = env.lifecycle.answered(call)? {
            trace.verdicts.push(GateVerdict::approval(GateDecision::Approved, "journal"));
            return answer.into_result();
        }
        let outcome =
            self.run_judged(AuthorizedCall { registered, request, env }, requirements, trace).await?;
        if !context.dry_run {
            trace.files = outcome.files;
        }
        trace.rows_changed = outcome.rows_changed;
        trace.exit_code = outcome.exit_code;
        Ok(outcome.data)
    }

    /// What the gates would be shown of a call: the call with the arguments that the tool knows, the tool, and what the
    /// call would touch. No gate is asked.
    ///
    /// # Errors
    /// When there is no such tool or the arguments do not fit.
    pub async fn examine(
        self: &Arc<Self>,
        call: &ToolCall,
        context: &CallContext,
    ) -> Result<(ToolCall, Cow<'_, ToolDefinition>, Vec<Target>), ToolError> {
        let registered = self.find(&call.tool)?;
        let definition = registered.tool.definition();
        let call = with_usual_arguments(call.clone(), definition, &self.workspace);
        registered.schema.check(definition, &call.arguments)?;
        let definition = registered.definition_of(&call.arguments);
        let mut targets = registered.tool.targets_in(&call.arguments, &self.workspace).await?;
        let lifecycle = Arc::new(CallLifecycle::default());
        let env = CallEnv { workspace: &self.workspace, lifecycle: &lifecycle };
        let request = GateRequest {
            serial: 0,
            call: &call,
            definition: &definition,
            context,
            targets: &[],
            proposed: None,
        };
        targets.extend(self.found_targets(AuthorizedCall { registered, request, env }).await);
        Ok((call, definition, targets))
    }

    /// What every gate would say of a call now, until one denies it. Nothing runs, and no record is left.
    ///
    /// # Errors
    /// When there is no such tool or the arguments do not fit.
    pub async fn evaluate_gates(
        self: &Arc<Self>,
        call: &ToolCall,
        context: &CallContext,
    ) -> Result<Vec<GateVerdict>, ToolError> {
        let (call, definition, targets) = self.examine(call, context).await?;
        let serial = self.calls.fetch_add(1, Ordering::Relaxed);
        let request = GateRequest {
            serial,
            call: &call,
            definition: &definition,
            context,
            targets: &targets,
            proposed: None,
        };
        let mut verdicts = Vec::new();
        // A denial is among the verdicts.
        if self.pass_gates(request, GatePhase::Call, &mut verdicts).await.is_ok() {
            let _ = self.judge_runs_later(request, &runs_later::always(&targets), &mut verdicts).await;
        }
        // Gates that count calls have counted this one; it is given back as a call that did not start.
        let error = ToolError::new(Code::Runtime, "only asked about");
        let record = CallRecord {
            serial,
            tool: Some(definition.name.to_string()),
            effect: Some(definition.effect),
            targets,
            verdicts: verdicts.clone(),
            ..CallRecord::not_begun(call, context.clone(), error)
        };
        self.gates.iter().for_each(|gate| gate.on_finished(&record));
        Ok(verdicts)
    }

    /// What a running call may see and touch in addition to what its arguments name; `None` when that is
    /// everything.
    pub async fn file_filter(&self, invocation: Invocation<'_>) -> Option<FileFilter> {
        let Invocation { serial, call, definition, context, granted: targets, .. } = invocation;
        self.filter_for(GateRequest { serial, call, definition, context, targets, proposed: None }).await
    }

    /// The filters of all gates together. The targets of the request are what the user has agreed to.
    async fn filter_for(&self, request: GateRequest<'_>) -> Option<FileFilter> {
        let mut filters = Vec::new();
        for gate in &self.gates {
            filters.extend(gate.file_filter(request).await);
        }
        (!filters.is_empty()).then(|| -> FileFilter {
            Arc::new(move |root, path, access| {
                let passes = |path: &RelativePath| filters.iter().all(|filter| filter(root, path, access));
                // A chronicle describes its file, so a caller that may not see the one may not see the other.
                !is_chronicle_tree_directory(path)
                    && passes(path)
                    && chronicled(path).is_none_or(|file| passes(&file))
            })
        })
    }

    /// What a call of this tool by this caller may see of the project and of the tool repository: what no gate hides,
    /// and nothing that is protected. Tools that read otherwise than by the files that their arguments name keep to it.
    ///
    /// # Errors
    /// When there is no such tool.
    pub async fn visibility(&self, call: &ToolCall, context: &CallContext) -> Result<Visibility, ToolError> {
        let definition = self.find(&call.tool)?.tool.definition();
        let request = GateRequest { serial: 0, call, definition, context, targets: &[], proposed: None };
        Ok(self.workspace.visibility(self.filter_for(request).await))
    }

    /// Whether a gate may have something against a file that a running call leaves below a directory.
    pub async fn may_restrict_below(
        &self,
        invocation: Invocation<'_>,
        root: Root,
        directory: &RelativePath,
    ) -> bool {
        self.restricts_below(invocation, &[], root, directory).await
    }

    /// Whether a gate may hide a file below a directory from a call, whatever the file is called.
    pub async fn may_hide_below(
        &self,
        invocation: Invocation<'_>,
        root: Root,
        directory: &RelativePath,
    ) -> bool {
        // What holds for every name holds for this one; the gates know of patterns that mean some names alone.
        let probes = [PROBE.to_owned(), format!("{PROBE}/{PROBE}")];
        let filter = self.file_filter(invocation).await;
        let is_hidden = |name: &String| {
            let path = directory.join(name);
            path.is_ok_and(|path| filter.as_ref().is_some_and(|filter| !filter(root, &path, Access::Read)))
        };
        if probes.iter().any(is_hidden) {
            return true;
        }
        let read = Target::File { root, path: directory.clone(), access: Access::Read };
        self.restricts_below(invocation, std::slice::from_ref(&read), root, directory).await
    }

    async fn restricts_below(
        &self,
        invocation: Invocation<'_>,
        targets: &[Target],
        root: Root,
        directory: &RelativePath,
    ) -> bool {
        let Invocation { serial, call, definition, context, .. } = invocation;
        let request = GateRequest { serial, call, definition, context, targets, proposed: None };
        for gate in &self.gates {
            if gate.may_restrict_below(request, root, directory).await {
                return true;
            }
        }
        false
    }

    /// The same without what the caller's token narrows: for what the configuration has chosen, and not the caller.
    pub async fn file_filter_without_token(&self, invocation: Invocation<'_>) -> Option<FileFilter> {
        let context = CallContext { token: None, ..invocation.context.clone() };
        self.file_filter(Invocation { context: &context, ..invocation }).await
    }

    fn find(&self, name: &str) -> Result<&Registered, ToolError> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.tools.get(name).ok_or_else(|| {
            let (tools, aliases) = (self.tools.keys(), self.aliases.keys());
            unknown_tool::error(name, tools.map(String::as_str), aliases.map(String::as_str))
        })
    }
}

/// Logs the result of a call in one line.
fn log_ending(record: &CallRecord) {
    tracing::info!(
        target: "router",
        verdict = ?record.verdict(),
        execution = ?record.execution,
        code = record.result.error().map(|error| error.code.as_str()),
        ms = record.duration_us / 1000,
        "ended"
    );
    if let Some(error) = record.result.error() {
        tracing::debug!(target: "router", "{}", error.message);
    }
}
