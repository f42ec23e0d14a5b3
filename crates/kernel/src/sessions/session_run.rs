//! What one run of a session holds, and how it is closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tgp_agent::{AgentClock, AgentEvent, AgentPorts, Summary, TranscriptJournal};
use tgp_contract::{SharedBudget, ToolError, ToolResult, background, canonical};
use tokio::sync::mpsc;

use super::ports::{AuditRecovery, FrozenClock, SessionTools, SystemClock};
use super::provider::SelectedModel;
use super::store::TranscriptFile;
use crate::Kernel;

impl Kernel {
    /// Has the audit keep the hash of the transcript, so that it cannot be changed without a trace.
    async fn seal(&self, id: &str) -> Result<(), ToolError> {
        let bytes = self.sessions().bytes(id)?;
        let seal = json!({ "session": id, "bytes": bytes.len(), "sha256": canonical::sha256_hex(&bytes) });
        self.record_act(SEAL, seal, ToolResult::Done(Value::Null)).await?;
        self.flush().await
    }

    /// The record is on disk before the session is said to have ended.
    pub(super) async fn close_session(
        &self,
        id: &str,
        run: Result<Summary, ToolError>,
        events: &mpsc::Sender<AgentEvent>,
    ) -> Result<Summary, ToolError> {
        let sealed = self.seal(id).await;
        let mut summary = run?;
        sealed?;
        let (recovery, session) = (AuditRecovery::new(self.state_directory()), id.to_owned());
        summary.audit = background::run(move || recovery.range(&session)).await?;
        let _ = events.send(AgentEvent::End { summary: Box::new(summary.clone()) }).await;
        Ok(summary)
    }
}

/// The act of the audit that holds the hash of a transcript.
pub(super) const SEAL: &str = "session_seal";

/// What one run holds.
pub(super) struct Work<'a> {
    chosen: &'a SelectedModel,
    pub(super) clock: &'a dyn AgentClock,
    tools: SessionTools,
    journal: TranscriptFile,
    recovery: AuditRecovery,
}

impl<'a> Work<'a> {
    /// The model sees only the tools of these names, or all.
    pub(super) fn new(
        kernel: &Kernel,
        chosen: &'a SelectedModel,
        clock: &'a dyn AgentClock,
        journal: TranscriptFile,
        only: Option<BTreeSet<String>>,
    ) -> Self {
        Self {
            tools: SessionTools::new(kernel, chosen.frozen_ms.is_some(), only),
            recovery: AuditRecovery::new(kernel.state_directory()),
            chosen,
            clock,
            journal,
        }
    }

    /// No call is made beyond this.
    pub(super) fn within(self, allowance: Option<SharedBudget>) -> Self {
        Self { tools: self.tools.within(allowance), ..self }
    }

    pub(super) fn ports(&self) -> AgentPorts<'_> {
        AgentPorts {
            provider: self.chosen.provider.as_ref(),
            tools: &self.tools,
            journal: &self.journal as &dyn TranscriptJournal,
            clock: self.clock,
            standing: &self.tools,
            recovery: &self.recovery,
        }
    }
}

pub(super) fn clock_of(chosen: &SelectedModel) -> Arc<dyn AgentClock> {
    match chosen.frozen_ms {
        Some(moment) => Arc::new(FrozenClock(moment)),
        None => Arc::new(SystemClock),
    }
}
