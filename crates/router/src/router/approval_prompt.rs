//! What is shown of a call before it is agreed to, and the hash that an agreement is bound to.

use serde_json::{Value, json};
use tgp_contract::{GateRequest, Target, canonical};

use super::ApprovalRequirement;
use super::preview::Preview;

/// What the approver is shown.
pub(super) struct ApprovalPrompt {
    pub(super) targets: Vec<Target>,
    pub(super) preview: Preview,
    pub(super) shown: Option<Value>,
    pub(super) hash: String,
}

impl ApprovalPrompt {
    pub(super) fn new(
        request: GateRequest<'_>,
        requirements: &[ApprovalRequirement],
        targets: Vec<Target>,
        preview: Preview,
    ) -> Self {
        let shown = preview.to_value();
        let hash = hash(request, requirements, &targets, shown.as_ref());
        Self { targets, preview, shown, hash }
    }
}

/// SHA-256 of everything that decides the effect, of who wants it, and of what asks: an answer to a default is none to a rule
/// that asks meanwhile.
fn hash(
    request: GateRequest<'_>,
    requirements: &[ApprovalRequirement],
    targets: &[Target],
    preview: Option<&Value>,
) -> String {
    let mut rules: Vec<&str> =
        requirements.iter().map(|requirement| requirement.reason.origin.rule()).collect();
    rules.sort_unstable();
    rules.dedup();
    canonical::hash_exact(json!({
        "tool": request.definition.name,
        "arguments": request.call.arguments,
        "targets": targets,
        "preview": preview,
        "actor": request.context.actor,
        "session": request.context.session,
        "rules": rules,
    }))
}
