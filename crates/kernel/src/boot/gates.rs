//! The record that every call leaves, and the gates it passes.

use std::sync::Arc;

use tgp_audit::Audit;
use tgp_contract::{Gate, Recorder, ToolError};
use tgp_router::gates::{
    PolicyGate, RuleFileCheck, RuleFiles, StateGate, TddView, TokenAuthority, TokenGate,
};
use tgp_router::{DynTool, FanoutRecorder, Workspace};
use tgp_tdd::{Store, Tdd, TddOptions};
use tgp_tool_runtime::ToolRuntime;

use super::{BootContext, BootOptions};
use crate::project_place::tdd_store;
use crate::records::{Past, SharedRecord, audit_options};
use crate::settings::{policy_settings, tools_in_project};
use crate::trust::confirmed_rules;

/// Opens the audit, and verifies what came since it was last verified.
pub(super) async fn audit(ground: &BootContext) -> Result<Arc<Audit>, ToolError> {
    Ok(Arc::new(Audit::open(audit_options(ground), ground.access.state().audit_anchor())?))
}

/// The audit, and the recorder of the embedding program.
pub(super) fn recorder(
    audit: &Arc<Audit>,
    policy: &Arc<PolicyGate>,
    other: Option<Arc<dyn Recorder>>,
) -> Arc<dyn Recorder> {
    let audit = Arc::new(SharedRecord { audit: Arc::clone(audit), policy: Arc::clone(policy) }) as _;
    match other {
        Some(other) => Arc::new(FanoutRecorder(audit, other)),
        None => audit,
    }
}

/// The state of test-driven work.
pub(super) fn state(ground: &BootContext, options: &BootOptions) -> Result<Arc<StateGate>, ToolError> {
    let config = &ground.config.tdd;
    let mut wanted = TddOptions {
        mode: options.tdd_mode.unwrap_or(config.mode),
        layout: ground.config.chronicle.layout,
        ..TddOptions::default()
    };
    if let Some(tests) = &config.tests {
        wanted.test_patterns.clone_from(tests);
    }
    if let Some(exempt) = &config.exempt {
        wanted.exempt_patterns.clone_from(exempt);
    }
    if let Some(place) = tools_in_project(ground) {
        wanted.tool_root = place;
    }
    let store = Store::open(&tdd_store(ground)?)?;
    let tdd = Tdd::open(store, &wanted)?;
    Ok(Arc::new(StateGate::new(tdd, &ground.project, &ground.root)))
}

/// The gates in force.
pub(super) struct Gates {
    pub(super) policy: Arc<PolicyGate>,
    pub(super) tokens: Arc<TokenAuthority>,
    pub(super) gates: Vec<Arc<dyn Gate>>,
}

/// What the gates work with.
pub(super) struct GateParts<'a> {
    pub(super) forge: &'a Arc<ToolRuntime>,
    pub(super) tools: Vec<Arc<dyn DynTool>>,
    pub(super) state: &'a Arc<StateGate>,
    pub(super) audit: &'a Arc<Audit>,
    pub(super) tokens: Arc<TokenAuthority>,
    pub(super) check: Arc<RuleFileCheck>,
}

/// Loads the rules and puts the gates together; those of the embedding program can only tighten.
pub(super) async fn arm(
    ground: &BootContext,
    options: &BootOptions,
    workspace: &Workspace,
    parts: GateParts<'_>,
) -> Result<Gates, ToolError> {
    let GateParts { forge, tools, state, audit, tokens, check } = parts;
    let files = RuleFiles {
        tool_root: ground.root.clone(),
        project: ground.project.clone(),
        files: ground.config.policy.files.clone(),
        check,
        settings: policy_settings(ground, options, workspace),
        trust: confirmed_rules(&options.trust, &ground.project),
    };
    let known =
        |tool: &Arc<dyn DynTool>| (tool.definition().name.to_string(), tool.definition().aliases.clone());
    let aliases = tools.iter().map(known).collect();
    let past = Arc::new(Past::new(audit, ground.access.state(), aliases));
    let view = Arc::clone(state) as Arc<dyn TddView>;
    let policy =
        PolicyGate::open(files, Arc::<ToolRuntime>::clone(forge), tools, Arc::clone(&view), past).await?;
    let policy = Arc::new(policy);
    let mut gates: Vec<Arc<dyn Gate>> = vec![
        Arc::clone(state) as _,
        Arc::new(TokenGate::new(Arc::clone(&tokens), view)),
        Arc::clone(&policy) as _,
    ];
    gates.extend(ground.access.gate());
    gates.extend(options.gates.iter().cloned());
    state.keep_hidden(gates.get(1..).unwrap_or_default());
    Ok(Gates { policy, tokens, gates })
}
