//! Errors of calls that are not approved: why they do not happen, and what can be done.

use serde_json::json;
use tgp_contract::{
    CallContext, Code, GateDecision, GateVerdict, PendingApproval, RelativePath, Target, ToolCall,
    ToolDefinition, ToolError,
};

use super::ApprovalRequirement;
use super::approval_run::{ApprovalRun, Known};
use super::runs_later;

/// Why a call that was not approved does not happen.
pub(super) fn refusal(
    definition: &ToolDefinition,
    reason: &str,
    requirements: &[ApprovalRequirement],
    hosts: &[&str],
) -> ToolError {
    let later: Vec<&RelativePath> = requirements.iter().flat_map(|requirement| &requirement.later).collect();
    if !later.is_empty() {
        return runs_later::refused(definition, reason, &later);
    }
    let made_by_somebody: Vec<&str> = requirements
        .iter()
        .filter(|requirement| requirement.is_rule())
        .map(|requirement| requirement.reason.reason.as_str())
        .collect();
    let because = match made_by_somebody.join("; ") {
        because if because.is_empty() => String::new(),
        because => format!(" (a rule asks: {because})"),
    };
    let about = match hosts {
        [] => String::new(),
        hosts => format!(" for the host `{}`", hosts.join("`, `")),
    };
    let message = format!("`{}` was not approved{about}: {reason}{because}", definition.name);
    ToolError::new(Code::Approval, message)
        .help("nothing was changed; do without it, or say why it is needed and ask again")
}

/// Hosts that a question is about and that the arguments of the call do not show: the caller could not tell which.
pub(super) fn unnamed_hosts<'t>(call: &ToolCall, targets: &'t [Target]) -> Vec<&'t str> {
    let arguments = call.arguments.to_string();
    let hosts = targets.iter().filter_map(|target| match target {
        Target::Host { host } => Some(host.as_str()),
        _ => None,
    });
    hosts.filter(|host| !arguments.contains(host)).collect()
}

/// Why a run asks once more after a person has agreed to something.
pub(super) fn asked_again(
    known: &Known,
    run: &ApprovalRun,
    call: &ToolCall,
    context: &CallContext,
) -> Option<String> {
    match known {
        Known::UsedUp { times } => Some(format!(
            "the run makes exactly this call more often than the {times} that were agreed to: `--times N` agrees to N of them"
        )),
        // Tool and arguments are those of the run, so they are the same as before.
        Known::Nothing if run.has_unused_grant() && run.is_outermost(call, context) => Some(
            "a person has agreed to another question of this call: the arguments are the same, but another rule asks now \
             (`--yes` leaves out the defaults), or what the call would change is different"
                .to_owned(),
        ),
        Known::Nothing if run.has_unused_grant() => Some(
            "this differs from what a person has agreed to: a run that uses times or random values asks anew each time, so \
             pass them as arguments"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Why a call does not happen that a person has denied before.
pub(super) fn denied(
    by: &str,
    reason: &str,
    definition: &ToolDefinition,
    requirements: &[ApprovalRequirement],
    hosts: &[&str],
    verdicts: &mut Vec<GateVerdict>,
) -> ToolError {
    verdicts.push(GateVerdict::approval(GateDecision::Refused, reason));
    refusal(definition, &format!("{by} has denied it: {reason}"), requirements, hosts)
        .detail("denied_by", by)
        .help("nothing was changed; a person has decided: do without it")
}

/// The same for a call that may be made once a person has agreed.
pub(super) fn waiting(
    refused: ToolError,
    pending: &PendingApproval,
    definition: &ToolDefinition,
    requirements: &[ApprovalRequirement],
) -> ToolError {
    let mut help = format!(
        "nothing was changed; when a person has agreed with `tgp approve {}` at a terminal, make the same call again",
        pending.id
    );
    if let Some(path) = requirements.iter().flat_map(|requirement| &requirement.later).next() {
        help.push_str("; or ");
        help.push_str(&runs_later::way_out(&definition.name, path));
    }
    refused.detail("needs_approval", json!(pending)).help(help)
}
