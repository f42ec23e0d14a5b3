//! What a session has done before, as the audit knows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tgp_audit::{Audit, AuditReader};
use tgp_contract::{Actor, Code, Effect, TddMode, TddState, ToolError};
use tgp_policy::PastCall;
use tgp_tools::PastCalls;

use super::{audit_anchor, audit_file};

/// Calls of a session that sequence rules look back at.
const HISTORY: usize = 1_000;

/// What the audit knows of a session, for rules that look back.
pub(crate) struct Past {
    audit: Arc<Audit>,
    root: PathBuf,
    aliases: BTreeMap<String, Vec<String>>,
}

impl Past {
    pub(crate) fn new(audit: &Arc<Audit>, root: &Path, aliases: BTreeMap<String, Vec<String>>) -> Self {
        Self { audit: Arc::clone(audit), root: root.to_owned(), aliases }
    }
}

#[async_trait]
impl PastCalls for Past {
    async fn of_session(&self, session: &str) -> Result<Vec<PastCall>, ToolError> {
        self.audit.flush().await?;
        let reader = match AuditReader::open(audit_file(&self.root), audit_anchor(&self.root)) {
            // Nothing was ever recorded.
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let past = reader.history(session, HISTORY)?.into_iter().filter(|call| call.ran);
        let known = past.map(|call| PastCall {
            aliases: self.aliases.get(&call.tool).cloned().unwrap_or_default(),
            tool: call.tool,
            effect: call.effect.unwrap_or(Effect::Read),
            arguments: call.arguments,
            targets: call.targets,
            actor: Actor::Agent(String::new()),
            session: session.to_owned(),
            mode: TddMode::Strict,
            state: TddState::Idle,
        });
        Ok(known.collect())
    }
}
