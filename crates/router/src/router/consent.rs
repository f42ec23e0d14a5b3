//! Which approvals are settled before a call is made, and which ones a person has to give.

use tgp_contract::{Consent, Effect, GateDecision, GateRequest, GateVerdict, Target};

use super::ApprovalRequirement;
use crate::Workspace;

/// What the dry run of a write does to show its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DryRunSafety {
    /// It reads, and compares.
    Looks,
    /// It runs something, all of which is undone.
    Undone,
    /// It runs something whose effects cannot be undone for certain.
    Leaves,
}

impl DryRunSafety {
    /// By what a call touches.
    pub(super) fn of(targets: &[Target], workspace: &Workspace) -> Self {
        // A write shows what it would send to a host without sending it, and what a branch would have without moving it.
        let looks = |target: &Target| {
            matches!(target, Target::File { .. } | Target::Host { .. } | Target::Branch { .. })
        };
        let is_statement = |target: &Target| matches!(target, Target::Statement { .. });
        let mut others = targets.iter().filter(|target| !looks(target)).peekable();
        if others.peek().is_none() {
            Self::Looks
        } else if others.all(is_statement) && workspace.sql.undoes_everything() {
            Self::Undone
        } else {
            Self::Leaves
        }
    }
}

/// What an approval is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A call as its caller made it, and what a dry run of it does.
    Call(DryRunSafety),
    /// What a running call turned out to do. The user who agreed to the call has not seen it.
    Finding,
}

/// Whether a consent that was given before settles an approval.
fn settles(consent: Consent, subject: Subject, requirement: &ApprovalRequirement) -> bool {
    match (consent, subject) {
        (Consent::Everything, _) | (Consent::Given, Subject::Call(_)) => true,
        // A person who made a rule that asks is asked for what the rule means, whatever runs around it.
        (Consent::Given, Subject::Finding) | (Consent::Outer, _) => !requirement.is_rule(),
        (Consent::Ask, _) => false,
    }
}

/// Whether the user has to be asked. Where that is settled already, the record says by what.
pub(super) fn must_ask(
    request: GateRequest<'_>,
    subject: Subject,
    requirements: &[ApprovalRequirement],
    verdicts: &mut Vec<GateVerdict>,
) -> bool {
    if requirements.is_empty() {
        return false;
    }
    if requirements.iter().any(ApprovalRequirement::is_insistent) {
        return true;
    }
    // A preview of a write changes nothing, so there is nothing to agree to. One of a tool still runs the tool, one
    // of a statement shows rows or may leave something, and a rule that asks must be obeyed.
    let previews = matches!(request.definition.effect, Effect::Read | Effect::Write)
        && !matches!(subject, Subject::Call(DryRunSafety::Undone | DryRunSafety::Leaves));
    if request.context.dry_run && previews && !requirements.iter().any(ApprovalRequirement::is_rule) {
        note(verdicts, "dry-run");
        return false;
    }
    if requirements.iter().all(|requirement| settles(request.context.consent, subject, requirement)) {
        note(verdicts, "consent-given");
        return false;
    }
    true
}

/// Says by what an approval was settled; once, however often the contents of a call are judged.
fn note(verdicts: &mut Vec<GateVerdict>, by: &str) {
    let verdict = GateVerdict::approval(GateDecision::Approved, by);
    if verdicts.last() != Some(&verdict) {
        verdicts.push(verdict);
    }
}
