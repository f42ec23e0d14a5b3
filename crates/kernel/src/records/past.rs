//! What a session has done before, as the audit knows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_audit::{Audit, AuditReader};
use tgp_contract::{Access, Actor, Code, Effect, FileEffect, Target, TddMode, TddState, ToolError};
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
        let mut known = Vec::new();
        for call in past {
            let past_call = |tool: String, effect: Effect, arguments: Value, targets: Vec<Target>| PastCall {
                aliases: self.aliases.get(&tool).cloned().unwrap_or_default(),
                tool,
                effect,
                arguments,
                targets,
                actor: Actor::Agent(String::new()),
                session: session.to_owned(),
                mode: TddMode::Strict,
                state: TddState::Idle,
            };
            let effect = call.effect.unwrap_or(Effect::Read);
            // Files that the arguments name are the call itself; the others came on top.
            let is_named = |file: &FileEffect| {
                call.targets.iter().filter_map(Target::file).any(|(_, path, _)| *path == file.path)
            };
            let more: Vec<&FileEffect> = call.files.iter().filter(|file| !is_named(file)).collect();
            for FileEffect { root, path, after, .. } in more {
                let (tool, access) =
                    if after.is_some() { ("fs_write", Access::Write) } else { ("fs_delete", Access::Delete) };
                let target = Target::File { root: *root, path: path.clone(), access };
                known.push(past_call(tool.to_owned(), Effect::Write, json!({ "path": path }), vec![target]));
            }
            known.push(past_call(call.tool, effect, call.arguments, call.targets));
        }
        Ok(known)
    }
}
