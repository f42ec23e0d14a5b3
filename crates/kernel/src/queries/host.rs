//! What a run asks this kernel for in addition to calls: tokens, versions, the results of calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use tgp_agent::{AgentClock, RecoveredOutcome, Recovery};
use tgp_aql::{AttemptScope, EarlierOutcome, QueryHost, TokenUsage};
use tgp_contract::{
    CapabilityToken, EntryKind, Execution, FileSystem, Graph, GraphQuery, RelativePath, ToolError, canonical,
};
use tgp_fs::DiskFs;
use tgp_policy::{Caveats, attenuate};

use crate::Kernel;
use crate::sessions::{AuditRecovery, ModelChoice, StepRunner, SystemClock};
use crate::tokens::only_tools;

/// Where forged tools are, below the agent's root.
const TOOLS: &str = "tools";
/// More are not hashed for each step; nothing of them is cached then.
const MAX_TOOLS: usize = 5_000;
const MAX_TOOLS_BYTES: u64 = 64 << 20;
/// A question whose answer is the same for every graph; what matters is the commit it is about.
const ANYTHING: &str = "RETURN 1 AS one";

/// Narrows the token of a run for each of its steps.
pub(super) struct StepTokens(pub(super) CapabilityToken);

impl TokenUsage for StepTokens {
    fn attenuated(&self, scope: &AttemptScope) -> Result<Option<CapabilityToken>, ToolError> {
        let caveats = Caveats {
            session: Some(scope.session.clone()),
            note: Some(format!("step {}", scope.step)),
            ..only_tools(scope.tools.clone())
        };
        attenuate(&self.0, &caveats).map(Some)
    }
}

/// The kernel as a run sees it.
pub(super) struct KernelQueryHost {
    root: PathBuf,
    graph: Arc<dyn Graph>,
    recovery: AuditRecovery,
    /// Knows which model does a step.
    agents: Arc<StepRunner>,
}

impl KernelQueryHost {
    /// `model` is what holds where an agent names no model, or only the name of one.
    pub(super) fn new(kernel: &Kernel, model: ModelChoice) -> Self {
        Self {
            root: kernel.root().to_owned(),
            graph: kernel.knowledge().graph(),
            recovery: AuditRecovery::new(kernel.state_directory()),
            agents: Arc::new(StepRunner::new(kernel, model)),
        }
    }
}

#[async_trait]
impl QueryHost for KernelQueryHost {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms()
    }

    async fn tools_version(&self) -> Option<String> {
        let root = self.root.clone();
        tokio::task::spawn_blocking(move || contents(&root)).await.ok()?
    }

    async fn graph_version(&self, commit: Option<&str>) -> Option<String> {
        let mut question = GraphQuery::new(ANYTHING);
        question.commit = commit.map(str::to_owned);
        let standing = self.graph.query(question).await.ok()?.standing;
        Some(standing.commit).filter(|commit| !commit.is_empty() && !standing.draft)
    }

    async fn model_version(&self, model: Option<&str>) -> Option<String> {
        let (agents, model) = (Arc::clone(&self.agents), model.map(str::to_owned));
        tokio::task::spawn_blocking(move || agents.model_version(model.as_deref())).await.ok()?
    }

    async fn fate(&self, session: &str, call: &str) -> Result<EarlierOutcome, ToolError> {
        Ok(match self.recovery.fate(session, call).await? {
            RecoveredOutcome::Unknown => EarlierOutcome::Unknown,
            RecoveredOutcome::Recorded { outcome } => {
                let verdict = outcome.get("verdict").and_then(Value::as_str).unwrap_or_default();
                let done = outcome.pointer("/outcome/ok").and_then(Value::as_bool).unwrap_or_default();
                let entry = outcome.get("auditEntry").and_then(Value::as_u64).unwrap_or_default();
                match outcome.get("execution").map(Execution::deserialize) {
                    Some(Ok(Execution::Done)) => EarlierOutcome::CarriedOut { entry },
                    Some(Ok(Execution::NotStarted | Execution::RolledBack)) => EarlierOutcome::NotCarriedOut,
                    Some(Ok(Execution::Unknown)) => EarlierOutcome::Unknown,
                    // An entry of format 1 has no `execution`.
                    Some(Err(_)) | None if done && matches!(verdict, "allowed" | "approved") => {
                        EarlierOutcome::CarriedOut { entry }
                    }
                    Some(Err(_)) | None => EarlierOutcome::NotCarriedOut,
                }
            }
        })
    }
}

/// The hash of all forged tools: whatever one of them imports is among them. `None` where there are too many to read.
fn contents(root: &Path) -> Option<String> {
    let files = DiskFs::open(root).ok()?;
    let mut hashes = Vec::new();
    let mut bytes = 0;
    for entry in files.list(&RelativePath::new(TOOLS).ok()?).ok()? {
        if entry.kind != EntryKind::File {
            continue;
        }
        bytes += entry.size;
        if hashes.len() >= MAX_TOOLS || bytes > MAX_TOOLS_BYTES {
            return None;
        }
        let content = files.read(&entry.path).ok()?;
        hashes.push(format!("{} {}", entry.path, canonical::sha256_hex(&content)));
    }
    Some(canonical::sha256_hex(hashes.join("\n").as_bytes()))
}
