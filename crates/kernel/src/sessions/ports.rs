//! What the loop learns from this kernel: tools, time, the state of the work, the fate of calls.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_agent::{AgentClock, AuditRange, RecoveredOutcome, Recovery, TddStateSource};
use tgp_audit::{AuditFilter, MAX_TAIL};
use tgp_contract::{
    CallContext, CallRecord, Cancellation, Effect, Root, SharedBudget, Target, TddState, ToolCall,
    ToolCaller, ToolDefinition, ToolError, background,
};
use tgp_router::gates::{StateGate, TddView};

use crate::Kernel;
use crate::state_directory::StateDirectory;

/// Tools that a session is offered only where it names its tools: an agent of the kernel stores what it runs, and its
/// transcript has its calls. Functions of other programs are called from forged tools, and a session is undone by others.
const FOR_CLIENTS: [&str; 5] = ["audit_tail", "call_host", "call_upstream", "exec_code", "undo_session"];
/// The tool whose runs are about the whole project.
const PROJECT_TESTS: &str = "test_run";

/// The system time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl AgentClock for SystemClock {
    fn now_ms(&self) -> u64 {
        tgp_text::now_ms()
    }
}

/// Time that does not advance, for scripts whose output is to be the same each time.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrozenClock(pub(super) u64);

impl AgentClock for FrozenClock {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

/// The router as the loop sees it, and the state of the work that it was last called for.
pub(super) struct SessionTools {
    door: Arc<dyn ToolCaller>,
    state: Arc<StateGate>,
    /// Calls take no time when the clock does not advance.
    timeless: bool,
    /// The only tools that the model sees, where not all are meant for it.
    only: Option<BTreeSet<String>>,
    /// What its calls are taken from, where they are a part of something larger.
    allowance: Option<SharedBudget>,
    last: Mutex<Vec<Target>>,
}

impl SessionTools {
    pub(super) fn new(kernel: &Kernel, timeless: bool, only: Option<BTreeSet<String>>) -> Self {
        let (_, state, _) = kernel.session_parts();
        Self { door: kernel.tool_caller(), state, timeless, only, allowance: None, last: Mutex::default() }
    }

    /// No call is made beyond this.
    pub(super) fn within(self, allowance: Option<SharedBudget>) -> Self {
        Self { allowance, ..self }
    }

    /// Reading a file does not make it what the work is about.
    fn notice(&self, record: &CallRecord) {
        let is_project = record.tool.as_deref() == Some(PROJECT_TESTS);
        let works = record.effect.is_some_and(|effect| effect != Effect::Read);
        let files: Vec<Target> = record
            .targets
            .iter()
            .filter(|target| target.file().is_some_and(|(root, ..)| root != Root::Host))
            .cloned()
            .collect();
        if is_project || (works && !files.is_empty()) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = files;
        }
    }
}

#[async_trait]
impl ToolCaller for SessionTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let mut definitions = self.door.definitions();
        definitions.retain(|definition| {
            let name = definition.name.as_str();
            self.only.as_ref().map_or_else(|| !FOR_CLIENTS.contains(&name), |only| only.contains(name))
        });
        definitions
    }

    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord {
        if let Some(Err(error)) = self.allowance.as_ref().map(SharedBudget::take_call) {
            return CallRecord::not_begun(call, context, error);
        }
        let mut record = self.door.call(call, context, cancelled).await;
        if self.timeless {
            (record.duration_us, record.started_ms) = (0, 0);
        }
        self.notice(&record);
        record
    }
}

impl TddStateSource for SessionTools {
    fn state(&self) -> TddState {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        TddView::state(self.state.as_ref(), &last)
    }
}

/// The audit as the memory of calls whose process was killed.
#[derive(Clone)]
pub(crate) struct AuditRecovery {
    state: StateDirectory,
}

impl AuditRecovery {
    pub(crate) fn new(state: &StateDirectory) -> Self {
        Self { state: state.clone() }
    }

    /// The entries that belong to a session.
    pub(super) fn range(&self, session: &str) -> Result<Option<AuditRange>, ToolError> {
        let Some(reader) = self.state.audit_reader_if_any()? else { return Ok(None) };
        Ok(reader.range(session)?.map(|(first, last)| AuditRange { first, last }))
    }
}

#[async_trait]
impl Recovery for AuditRecovery {
    async fn fate(&self, session: &str, call_id: &str) -> Result<RecoveredOutcome, ToolError> {
        let (recovery, session, call_id) = (self.clone(), session.to_owned(), call_id.to_owned());
        background::run(move || recovery.read_fate(session, &call_id)).await
    }
}

impl AuditRecovery {
    fn read_fate(&self, session: String, call_id: &str) -> Result<RecoveredOutcome, ToolError> {
        let Some(reader) = self.state.audit_reader_if_any()? else { return Ok(RecoveredOutcome::Unknown) };
        let filter = AuditFilter { session: Some(session), ..AuditFilter::default() };
        let entries = reader.tail(&filter, MAX_TAIL)?;
        // What a forged tool has called for its part bears the same id one level down.
        let is_it = |body: &Value| {
            body.get("callId").and_then(Value::as_str) == Some(call_id)
                && body.get("depth").and_then(Value::as_u64) == Some(0)
        };
        let found = entries.into_iter().rev().find(|entry| is_it(&entry.body));
        Ok(found.map_or(RecoveredOutcome::Unknown, |entry| {
            let part = |name: &str| entry.body.get(name).cloned().unwrap_or_default();
            RecoveredOutcome::Recorded {
                outcome: json!({
                    "auditEntry": entry.sequence,
                    "verdict": part("verdict"),
                    "execution": part("execution"),
                    "outcome": part("outcome"),
                }),
            }
        }))
    }
}
