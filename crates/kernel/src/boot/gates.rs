//! The record that every call leaves, and the gates it passes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_audit::{Anchor, Audit, AuditOptions, AuditReader, Durability};
use tgp_contract::{Actor, Effect, Gate, Recorder, RelativePath, Root, TddMode, TddState, ToolError};
use tgp_policy::{PastCall, PolicySettings};
use tgp_tdd::{Store, Tdd, TddOptions};
use tgp_tools::{
    Forge, PastCalls, PolicyGate, RuleFiles, StateGate, TddView, Tee, TokenGate,
    Tokens, Tool, Workspace,
};

use super::anchor::AuditAnchor;
use super::{BootOptions, Ground};
use crate::settings::state_directory;
use crate::config::{AuditDurability, Config};

/// Calls of a session that sequence rules look back at.
const HISTORY: usize = 1_000;

/// The database of the audit.
pub(crate) fn audit_file(root: &Path) -> PathBuf {
    state_directory(root).join("audit.sqlite")
}

/// Where the head of the audit is kept besides the database.
pub(crate) fn audit_anchor(root: &Path) -> Arc<dyn Anchor> {
    Arc::new(AuditAnchor::new(root))
}

/// Opens the audit, and verifies what came since it was last verified.
pub(super) async fn audit(ground: &Ground, options: &BootOptions) -> Result<Arc<Audit>, ToolError> {
    Ok(Arc::new(Audit::open(audit_options(ground, options), audit_anchor(&ground.root))?))
}

/// How the audit is kept.
pub(crate) fn audit_options(ground: &Ground, options: &BootOptions) -> AuditOptions {
    let config = &ground.config.audit;
    let mut kept = AuditOptions::new(audit_file(&ground.root));
    kept.durability = match config.durability {
        AuditDurability::Batched => Durability::Batched,
        AuditDurability::Call => Durability::Call,
    };
    kept.secret_names.clone_from(&config.redact_names);
    kept.secret_values =
        config.redact_environment.iter().filter_map(|name| (options.environment)(name)).collect();
    kept.secret_values.extend(secrets(&ground.config));
    kept
}

/// Secrets that the configuration itself holds.
fn secrets(config: &Config) -> impl Iterator<Item = String> {
    let token = config.git.as_ref().and_then(|git| git.auth.token.clone());
    let key = config.registry.embeddings.as_ref().and_then(|embeddings| embeddings.api_key.clone());
    token.into_iter().chain(key)
}

/// The audit, and whoever else wants to be told.
pub(super) fn recorder(audit: &Arc<Audit>, other: Option<Arc<dyn Recorder>>) -> Arc<dyn Recorder> {
    let audit = Arc::clone(audit) as Arc<dyn Recorder>;
    match other {
        Some(other) => Arc::new(Tee(audit, other)),
        None => audit,
    }
}

/// Where test-driven work stands.
pub(super) fn state(ground: &Ground, options: &BootOptions) -> Result<Arc<StateGate>, ToolError> {
    let config = &ground.config.tdd;
    let mut wanted = TddOptions { mode: options.tdd_mode.unwrap_or(config.mode), ..TddOptions::default() };
    if let Some(tests) = &config.tests {
        wanted.test_patterns.clone_from(tests);
    }
    if let Some(exempt) = &config.exempt {
        wanted.exempt_patterns.clone_from(exempt);
    }
    if let Some(place) = tools_in_project(ground) {
        wanted.tool_root = place;
    }
    let store = Store::open(&state_directory(&ground.root).join("tdd.sqlite"))?;
    let tdd = Tdd::open(store, &wanted)?;
    Ok(Arc::new(StateGate::new(tdd, ground.project.clone(), ground.root.clone())))
}

/// The gates in force.
pub(super) struct Armed {
    pub(super) policy: Arc<PolicyGate>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) gates: Vec<Arc<dyn Gate>>,
}

/// Loads the rules and puts the gates together; those of the embedding program can only tighten.
pub(super) async fn arm(
    ground: &Ground,
    options: &BootOptions,
    forge: &Arc<Forge>,
    tools: Vec<Arc<dyn Tool>>,
    state: &Arc<StateGate>,
    workspace: &Workspace,
) -> Result<Armed, ToolError> {
    let files = RuleFiles {
        tool_root: ground.root.clone(),
        project: ground.project.clone(),
        files: ground.config.policy.files.clone(),
        settings: policy_settings(ground, options, workspace),
    };
    let known =
        |tool: &Arc<dyn Tool>| (tool.definition().name.to_string(), tool.definition().aliases.clone());
    let past = Arc::new(Past { root: ground.root.clone(), aliases: tools.iter().map(known).collect() });
    let view = Arc::clone(state) as Arc<dyn TddView>;
    let policy = PolicyGate::open(files, Arc::clone(forge), tools, Arc::clone(&view), past).await?;
    let policy = Arc::new(policy);
    let tokens = Arc::new(Tokens::new(state_directory(&ground.root)));
    let mut gates: Vec<Arc<dyn Gate>> = vec![
        Arc::clone(state) as _,
        Arc::new(TokenGate::new(Arc::clone(&tokens), view)),
        Arc::clone(&policy) as _,
    ];
    gates.extend(options.gates.iter().cloned());
    Ok(Armed { policy, tokens, gates })
}

fn tools_in_project(ground: &Ground) -> Option<RelativePath> {
    let place = ground.root.strip_prefix(&ground.project).ok()?;
    RelativePath::new(place.to_str()?).ok()
}

pub(crate) fn policy_settings(ground: &Ground, options: &BootOptions, workspace: &Workspace) -> PolicySettings {
    let own = ground.config.policy.files.iter().cloned();
    let named = options.config_file.as_ref().and_then(|file| Some(file.to_str()?.to_owned()));
    PolicySettings {
        tool_roots: tools_in_project(ground).map(|path| (Root::Project, path)).into_iter().collect(),
        allowed_host_directories: workspace.directories().to_vec(),
        protected_files: own
            .chain(named)
            .filter_map(|file| Some((Root::Project, RelativePath::new(&file).ok()?)))
            .collect(),
    }
}

/// What the audit knows of a session, for rules that look back.
struct Past {
    root: PathBuf,
    aliases: BTreeMap<String, Vec<String>>,
}

impl PastCalls for Past {
    fn of_session(&self, session: &str) -> Vec<PastCall> {
        // Without a record there is no past. A record that cannot be read has stopped the boot.
        let read = AuditReader::open(audit_file(&self.root), audit_anchor(&self.root))
            .and_then(|reader| reader.history(session, HISTORY));
        let ran = read.unwrap_or_default().into_iter().filter(|call| call.ran);
        ran.map(|call| PastCall {
            aliases: self.aliases.get(&call.tool).cloned().unwrap_or_default(),
            tool: call.tool,
            effect: call.effect.unwrap_or(Effect::Read),
            arguments: call.arguments,
            targets: call.targets,
            actor: Actor::Agent(String::new()),
            session: session.to_owned(),
            mode: TddMode::Strict,
            state: TddState::Idle,
        })
        .collect()
    }
}
