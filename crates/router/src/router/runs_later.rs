//! Changes of files that run later: which of them a person has to see, whatever was agreed to beforehand.

use std::sync::Arc;

use tgp_contract::{
    Access, Actor, ApprovalOrigin, ApprovalReason, CallContext, Code, Consent, Effect, EntryKind, FileEffect,
    FsError, GateDecision, GateRequest, GateVerdict, RUNS_LATER, RelativePath, Root, Target, ToolDefinition,
    ToolError, ToolName, Verdict, canonical,
};
use tgp_policy::{always_runs_later, may_run_later, runs_later};

use super::authorized_call::AuthorizedCall;
use super::contents::DryRun;
use super::in_flight_call::CallTrace;
use super::{ApprovalRequirement, Router, ToolOutcome};
use crate::Workspace;

/// How the verdicts are named in the record, apart from what the same gate has said of the call.
const VERDICT: &str = "runs-later";

/// Files that a message names; the rest is counted.
const MAX_NAMED: usize = 10;

/// Manifests that are larger are not read: a change of one counts.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

impl ApprovalRequirement {
    /// Whether only an answer to this very question will do.
    pub(super) fn is_insistent(&self) -> bool {
        !self.later.is_empty()
    }
}

impl Router {
    /// Asks the gates about files that run later, one by one. Returns the approval reason for those that a person
    /// has to see.
    pub(super) async fn judge_runs_later(
        &self,
        request: GateRequest<'_>,
        files: &[Target],
        verdicts: &mut Vec<GateVerdict>,
    ) -> Result<Option<ApprovalRequirement>, ToolError> {
        // What a dry run shows changes nothing.
        if request.context.dry_run || is_typed(request.context) {
            return Ok(None);
        }
        let mut later = Vec::new();
        for file in files {
            let Some((_, path, _)) = file.file() else { continue };
            let one = GateRequest { targets: std::slice::from_ref(file), ..request };
            for gate in &self.gates {
                let (decision, rule, denial) = match gate.judge_runs_later(one).await {
                    Verdict::Allow { rule } if rule == "none" => continue,
                    Verdict::Allow { rule } => (GateDecision::Allow, rule, None),
                    Verdict::Ask(reason) => (GateDecision::Ask, reason.origin.rule().to_owned(), None),
                    Verdict::Deny { rule, error } => (GateDecision::Deny, rule, Some(error)),
                };
                if decision == GateDecision::Ask && later.last() != Some(path) {
                    later.push(path.clone());
                }
                let verdict =
                    GateVerdict { stage: gate.stage(), gate: VERDICT.to_owned(), verdict: decision, rule };
                // One line for each rule, not for each of a thousand files.
                if !verdicts.contains(&verdict) {
                    verdicts.push(verdict);
                }
                if let Some(error) = denial {
                    return Err(error);
                }
            }
        }
        if later.is_empty() {
            return Ok(None);
        }
        let reason = format!("files that run later need a person's agreement: {}", named(&later));
        Ok(Some(ApprovalRequirement {
            reason: ApprovalReason { origin: ApprovalOrigin::RunsLater, reason },
            later,
        }))
    }

    /// The same for a call that names the files it changes.
    pub(super) async fn named_files_run_later(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        veiled: bool,
        dry_run: &mut DryRun,
        trace: &mut CallTrace,
    ) -> Result<Option<ApprovalRequirement>, ToolError> {
        let AuthorizedCall { request, env, .. } = passed;
        if request.context.dry_run || is_typed(request.context) {
            return Ok(None);
        }
        let mut files: Vec<Target> = request
            .targets
            .iter()
            .filter(|target| changed(target).is_some_and(may_run_later))
            .cloned()
            .collect();
        // Of a manifest only some fields count, so its contents are read, unless the caller may not see them yet.
        let is_tried = !veiled && request.definition.effect == Effect::Write && request.definition.dry_run;
        if is_tried && files.iter().filter_map(changed).any(|path| !always_runs_later(path)) {
            let outcome = self.try_without_effect(passed, &[], dry_run).await?;
            files.retain(|file| counts(file, outcome, env.workspace));
        }
        self.judge_runs_later(request, &files, &mut trace.verdicts).await
    }
}

/// The files among targets that run later whatever their contents are.
pub(super) fn always(targets: &[Target]) -> Vec<Target> {
    targets.iter().filter(|target| changed(target).is_some_and(always_runs_later)).cloned().collect()
}

/// What a person types for its own effect is not asked for: with this command that very person changes the file.
fn is_typed(context: &CallContext) -> bool {
    matches!(context.actor, Actor::Person(_)) && context.consent == Consent::Given && context.depth == 0
}

/// The file that a target writes or deletes.
fn changed(target: &Target) -> Option<&RelativePath> {
    let (_, path, access) = target.file()?;
    matches!(access, Access::Write | Access::Delete).then_some(path)
}

/// Whether a change of a file, as a dry run has made it, is one of what runs later. Where the contents are not known, or
/// are not any more those that the dry run has found, it is.
fn counts(file: &Target, tried: &ToolOutcome, workspace: &Workspace) -> bool {
    let Some((root, path, _)) = file.file() else { return false };
    let change = tried.proposed.iter().find(|change| root == Root::Project && change.path() == path);
    let (Some(change), Ok(before)) = (change, manifest(workspace, path)) else { return true };
    let hash = before.as_deref().map(canonical::sha256_hex);
    let found = |file: &FileEffect| file.root == root && file.path == *path && file.before == hash;
    !tried.files.iter().any(found) || runs_later(path, before.as_deref(), change.content())
}

/// A manifest as it is now.
fn manifest(workspace: &Workspace, path: &RelativePath) -> Result<Option<Vec<u8>>, FsError> {
    let files = workspace.project_files();
    match files.entry(path)? {
        None => Ok(None),
        Some(entry) if entry.kind == EntryKind::File && entry.size <= MAX_MANIFEST_BYTES => {
            files.read(path).map(Some)
        }
        Some(entry) => {
            Err(FsError::TooLarge { path: path.clone(), size: entry.size, limit: MAX_MANIFEST_BYTES })
        }
    }
}

/// Why a change of what runs later did not happen, and what lets it happen.
pub(super) fn refused(definition: &ToolDefinition, reason: &str, later: &[&RelativePath]) -> ToolError {
    let message = format!(
        "`{}` changes files that run later ({}), which was not approved: {reason}",
        definition.name,
        named(later)
    );
    ToolError::new(Code::Approval, message)
        .detail("rule", RUNS_LATER)
        .detail("files", later.iter().take(MAX_NAMED).map(|path| path.as_str()).collect::<Vec<_>>())
        .help(format!(
            "nothing was changed, and `--yes` does not cover it; let a person approve the change at a terminal, or {}",
            later.first().map(|path| way_out(&definition.name, path)).unwrap_or_default()
        ))
}

/// What lets a tool change a file without a question. The rule names the tool that asked: it opens nothing else.
pub(super) fn way_out(tool: &ToolName, path: &RelativePath) -> String {
    format!(
        "add a rule that names the tool and the file to `rules` in tgp.policy.yaml: - {{id: my-rule, effect: allow, \
         tools: [{tool}], where: {{path: \"{}\"}}}}",
        path.as_str().escape_default()
    )
}

fn named<P: std::borrow::Borrow<RelativePath>>(paths: &[P]) -> String {
    let shown: Vec<String> =
        paths.iter().take(MAX_NAMED).map(|path| format!("`{}`", path.borrow().as_str())).collect();
    let more = paths.len().saturating_sub(MAX_NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}
