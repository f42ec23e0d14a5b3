//! Writes that are judged by what they would leave: tried without effect, judged, and carried out as they were judged.

use std::sync::{Arc, Mutex};

use tgp_contract::{Access, CallContext, Code, Effect, GateRequest, GateVerdict, Root, Target, ToolError};

use super::authorized_call::{AuthorizedCall, MAX_ROUNDS, keeps_changing};
use super::in_flight_call::CallTrace;
use super::preview::{ApprovedSnapshot, Preview};
use super::{ApprovalRequirement, GatePhase, Router, ToolOutcome};

/// A write tried without effect, when that is first needed: one call is tried once, however many gates read its
/// contents.
#[derive(Default)]
pub(super) struct DryRun(Option<ToolOutcome>);

impl DryRun {
    /// The files as they were when they were judged; nothing where they were not read.
    pub(super) fn agreement(self) -> Option<Arc<ApprovedSnapshot>> {
        ApprovedSnapshot::to(&Preview::from(self.0?)).map(Arc::new)
    }
}

/// The result of running a call as it was judged.
pub(super) enum Attempt {
    Done(ToolOutcome),
    /// A file was not any more as it was judged, so nothing was done.
    Changed,
}

impl Attempt {
    /// The attempt that ended with `outcome`.
    pub(super) fn to_run(
        passed: AuthorizedCall<'_>,
        outcome: Result<ToolOutcome, ToolError>,
        agreement: Option<&Arc<ApprovedSnapshot>>,
    ) -> Result<Self, ToolError> {
        if agreement.is_some_and(|agreement| agreement.is_broken()) {
            passed.env.lifecycle.reopen();
            return Ok(Self::Changed);
        }
        outcome.map(Self::Done)
    }
}

impl Router {
    /// Runs a call that has passed the gates. Where one of them judges what the call would leave, what is written is what
    /// was judged: a file that changes in between is judged again.
    pub(super) async fn run_judged(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        requirements: Vec<ApprovalRequirement>,
        trace: &mut CallTrace,
    ) -> Result<ToolOutcome, ToolError> {
        let veiled = self.is_veiled(passed, &requirements).await;
        for _ in 0..MAX_ROUNDS {
            let mut dry_run = DryRun::default();
            if !veiled {
                self.judge_contents(passed, &[], &mut dry_run, trace).await?;
            }
            let later = self.named_files_run_later(passed, veiled, &mut dry_run, trace).await?;
            let judged = dry_run.agreement();
            let all: Vec<ApprovalRequirement> = requirements.iter().cloned().chain(later).collect();
            if let Attempt::Done(outcome) = self.run_agreed(passed, &all, judged.as_ref(), trace).await? {
                return Ok(outcome);
            }
        }
        Err(keeps_changing(passed.request, Code::Conflict, &mut trace.verdicts))
    }

    /// Whether a gate judges the contents that a call would leave.
    pub(super) async fn needs_proposed_files(&self, request: GateRequest<'_>) -> bool {
        for gate in &self.gates {
            if gate.needs_proposed_files(request).await {
                return true;
            }
        }
        false
    }

    /// Shows the gates what a write to the project would leave there, where one of them judges that. The write is tried
    /// without effect, and only the gates see the result.
    pub(super) async fn judge_contents(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        granted: &[Target],
        dry_run: &mut DryRun,
        trace: &mut CallTrace,
    ) -> Result<(), ToolError> {
        let request = passed.request;
        let changes = |target: &Target| {
            let changes = |access| matches!(access, Access::Write | Access::Delete);
            target.file().is_some_and(|(root, _, access)| root == Root::Project && changes(access))
        };
        let writes = request.definition.effect == Effect::Write && request.definition.dry_run;
        if !writes || !request.targets.iter().any(changes) || !self.needs_proposed_files(request).await {
            return Ok(());
        }
        let outcome = self.try_without_effect(passed, granted, dry_run).await?;
        let request = GateRequest { proposed: Some(&outcome.proposed), ..request };
        let mut said = Vec::new();
        let passed = self.pass_gates(request, GatePhase::Contents, &mut said).await;
        // A gate that has judged the contents has judged the call by them. It has one verdict about the call: what is said
        // a second time is about files that the running call changes.
        for verdict in said {
            let same =
                |before: &&mut GateVerdict| (before.stage, &before.gate) == (verdict.stage, &verdict.gate);
            match trace.verdicts.iter_mut().find(same) {
                Some(before) => *before = verdict,
                None => trace.verdicts.push(verdict),
            }
        }
        passed.map(|_| ())
    }

    /// Tries a write without effect, unless that was done: what it would leave.
    pub(super) async fn try_without_effect<'d>(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        granted: &[Target],
        dry_run: &'d mut DryRun,
    ) -> Result<&'d ToolOutcome, ToolError> {
        let outcome = match dry_run.0.take() {
            Some(outcome) => outcome,
            None => {
                let context = CallContext { dry_run: true, ..passed.request.context.clone() };
                let findings = Mutex::default();
                let trial = self.invocation(passed, &context, &findings, None, granted);
                passed.registered.tool.run(trial).await?
            }
        };
        Ok(dry_run.0.insert(outcome))
    }
}
