//! The approval of a call: who is asked, what is shown, and that what was agreed to is what happens.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tgp_contract::{
    Access, ApprovalAnswer, ApprovalRequest, CallContext, Change, Code, Effect, GateDecision, GateRequest,
    GateVerdict, Target, ToolCall, ToolError,
};

use super::approval_prompt::ApprovalPrompt;
use super::approval_refusal::{asked_again, denied, refusal, unnamed_hosts, waiting};
use super::approval_run::Known;
use super::authorized_call::{AuthorizedCall, MAX_ROUNDS, keeps_changing};
use super::consent::{DryRunSafety, Subject, must_ask};
use super::contents::{Attempt, DryRun};
use super::in_flight_call::CallTrace;
use super::lifecycle::CallLifecycle;
use super::preview::{ApprovedSnapshot, Preview};
use super::tool::Findings;
use super::{ApprovalRequirement, CallEnv, GatePhase, Invocation, Router, ToolOutcome};

/// How long a preview may take; a database may have its own, longer patience. Then it is asked without one.
const PREVIEW_PATIENCE: Duration = Duration::from_secs(30);

/// Why nothing is shown of a statement that only the embedded database could try.
const WOULD_HAVE_TO_RUN: &str =
    "the statement would have to run, and a database server does not undo all that a statement can do";

/// Which approvals the user already gave, with the running call, for what it does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Covered {
    Nothing,
    /// Those that the defaults ask for.
    Defaults,
}

impl Router {
    /// Runs a call, after the user has agreed to it where a gate requires that. `judged` are the files as the gates saw
    /// them, where one of them has judged contents.
    pub(super) async fn run_agreed(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        requirements: &[ApprovalRequirement],
        judged: Option<&Arc<ApprovedSnapshot>>,
        trace: &mut CallTrace,
    ) -> Result<Attempt, ToolError> {
        let subject = Subject::Call(DryRunSafety::of(passed.request.targets, passed.env.workspace));
        if !must_ask(passed.request, subject, requirements, &mut trace.verdicts) {
            let outcome = self.run_tool(passed, requirements, judged, trace).await;
            return Attempt::to_run(passed, outcome, judged);
        }
        // Large, and seldom needed.
        Box::pin(self.ask_and_run(passed, requirements, judged, trace)).await
    }

    /// A call that has passed the gates, as its tool sees it.
    pub(super) fn invocation<'a>(
        self: &'a Arc<Self>,
        passed: AuthorizedCall<'a>,
        context: &'a CallContext,
        findings: &'a Mutex<Findings>,
        agreement: Option<&'a Arc<ApprovedSnapshot>>,
        granted: &'a [Target],
    ) -> Invocation<'a> {
        let AuthorizedCall { request: GateRequest { serial, call, definition, targets, .. }, env, .. } =
            passed;
        let CallEnv { workspace, lifecycle } = env;
        let router = self;
        Invocation {
            serial,
            call,
            definition,
            context,
            workspace,
            targets,
            router,
            findings,
            agreement,
            granted,
            lifecycle,
        }
    }

    /// What a call touches in addition to what its arguments name.
    pub(super) async fn found_targets(self: &Arc<Self>, passed: AuthorizedCall<'_>) -> Vec<Target> {
        let findings = Mutex::default();
        let invocation = self.invocation(passed, passed.request.context, &findings, None, &[]);
        passed.registered.tool.found_targets(invocation).await
    }

    /// Runs a call that needs no further approval. `requirements` were agreed to.
    async fn run_tool(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        requirements: &[ApprovalRequirement],
        agreement: Option<&Arc<ApprovedSnapshot>>,
        trace: &mut CallTrace,
    ) -> Result<ToolOutcome, ToolError> {
        // A dry run is not asked about, and so grants nothing.
        let by_rule = requirements.iter().any(ApprovalRequirement::is_rule);
        let granted = if by_rule { passed.request.targets } else { &[] };
        if !self.is_veiled(passed, requirements).await {
            return self.run_once(passed, granted, agreement, trace).await;
        }
        for _ in 0..MAX_ROUNDS {
            let mut dry_run = DryRun::default();
            self.judge_contents(passed, granted, &mut dry_run, trace).await?;
            let judged = dry_run.agreement();
            let outcome = self.run_once(passed, granted, judged.as_ref().or(agreement), trace).await;
            if let Attempt::Done(outcome) = Attempt::to_run(passed, outcome, judged.as_ref())? {
                return Ok(outcome);
            }
        }
        Err(keeps_changing(passed.request, Code::Conflict, &mut trace.verdicts))
    }

    async fn run_once(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        granted: &[Target],
        agreement: Option<&Arc<ApprovedSnapshot>>,
        trace: &mut CallTrace,
    ) -> Result<ToolOutcome, ToolError> {
        let findings = Mutex::default();
        let invocation = self.invocation(passed, passed.request.context, &findings, agreement, granted);
        passed.env.lifecycle.start();
        let outcome = passed.registered.tool.run(invocation).await;
        let Findings { targets, verdicts } = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
        trace.targets.extend(targets);
        trace.verdicts.extend(verdicts);
        outcome
    }

    /// Asks until what was agreed to is what would happen now, and then lets it happen. Where a gate has judged contents,
    /// it ends when they are not those any more: they are judged again before the user is asked again.
    async fn ask_and_run(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        requirements: &[ApprovalRequirement],
        judged: Option<&Arc<ApprovedSnapshot>>,
        trace: &mut CallTrace,
    ) -> Result<Attempt, ToolError> {
        let mut shown = self.approval_prompt(passed, requirements, trace).await?;
        for _ in 0..MAX_ROUNDS {
            if judged.is_some_and(|judged| !judged.is_to(&shown.preview)) {
                return Ok(Attempt::Changed);
            }
            self.ask(passed.request, passed.env.lifecycle, &shown, requirements, &mut trace.verdicts).await?;
            self.judge_again(passed.request, &mut trace.verdicts).await?;
            let now = self.approval_prompt(passed, requirements, trace).await?;
            if now.hash == shown.hash {
                let agreement = ApprovedSnapshot::to(&now.preview).map(Arc::new).or_else(|| judged.cloned());
                let outcome = self.run_tool(passed, requirements, agreement.as_ref(), trace).await;
                if let Attempt::Done(outcome) = Attempt::to_run(passed, outcome, agreement.as_ref())? {
                    return Ok(Attempt::Done(outcome));
                }
                shown = self.approval_prompt(passed, requirements, trace).await?;
            } else {
                shown = now;
            }
            trace.verdicts.push(GateVerdict::approval(GateDecision::Ask, "it changed meanwhile"));
            if judged.is_some() {
                return Ok(Attempt::Changed);
            }
        }
        Err(keeps_changing(passed.request, Code::Approval, &mut trace.verdicts))
    }

    /// What a call would do now. One that would fail anyway is not asked for: its error is the answer.
    async fn approval_prompt(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        requirements: &[ApprovalRequirement],
        trace: &mut CallTrace,
    ) -> Result<ApprovalPrompt, ToolError> {
        let made = async {
            let request = passed.request;
            // What the router has added for the preview of a dry run comes after the tool's own targets.
            let tool = &passed.registered.tool;
            let mut targets = tool.targets_in(&request.call.arguments, passed.env.workspace).await?;
            if request.context.dry_run {
                targets.extend(previews(&targets));
            }
            targets.extend(self.found_targets(passed).await);
            if targets.iter().any(|target| !request.targets.contains(target)) {
                return Err(changed_meanwhile(request));
            }
            let preview = self.preview(passed, requirements, &targets).await?;
            Ok(ApprovalPrompt::new(request, requirements, targets, preview))
        };
        let made: Result<ApprovalPrompt, ToolError> = made.await;
        made.inspect_err(|_| trace.verdicts.push(GateVerdict::approval(GateDecision::Refused, "would-fail")))
    }

    async fn preview(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        requirements: &[ApprovalRequirement],
        targets: &[Target],
    ) -> Result<Preview, ToolError> {
        let AuthorizedCall { registered, request, env } = passed;
        let context = CallContext { dry_run: true, ..request.context.clone() };
        let findings = Mutex::default();
        let invocation = self.invocation(passed, &context, &findings, None, &[]);
        if request.definition.effect == Effect::Write {
            let by_rule = requirements.iter().any(ApprovalRequirement::is_rule);
            match DryRunSafety::of(targets, env.workspace) {
                // Nothing permanent may happen before the user has agreed to it.
                DryRunSafety::Leaves => return Ok(Preview::missing(WOULD_HAVE_TO_RUN)),
                // A rule that asks before a statement is asked before its dry run, too.
                DryRunSafety::Undone if by_rule => {
                    let why = "a rule wants to be asked before anything runs, a dry run too";
                    return Ok(Preview::missing(why));
                }
                DryRunSafety::Undone | DryRunSafety::Looks => {}
            }
            if !self.may_read(invocation, targets).await {
                return Ok(Preview::missing("the caller may not read what it wants to change"));
            }
        }
        let made = tokio::time::timeout(PREVIEW_PATIENCE, registered.tool.preview(invocation)).await;
        made.unwrap_or_else(|_| {
            let seconds = PREVIEW_PATIENCE.as_secs();
            Ok(Preview::missing(format!("it was not made within {seconds} s")))
        })
    }

    /// Whether a call would change a file that it may not read before the user has agreed to it. Such a write is not
    /// tried before: whether it would fail depends on what is in the file.
    pub(super) async fn is_veiled(
        self: &Arc<Self>,
        passed: AuthorizedCall<'_>,
        requirements: &[ApprovalRequirement],
    ) -> bool {
        if !requirements.iter().any(ApprovalRequirement::is_rule) {
            return false;
        }
        let findings = Mutex::default();
        let invocation = self.invocation(passed, passed.request.context, &findings, None, &[]);
        !self.may_read(invocation, passed.request.targets).await
    }

    /// Whether the gates let a call read the files it would change: a preview shows them.
    async fn may_read(&self, invocation: Invocation<'_>, targets: &[Target]) -> bool {
        let Some(filter) = self.file_filter(invocation).await else { return true };
        let changed = targets.iter().filter_map(Target::file).filter(|(.., access)| *access != Access::Read);
        changed.into_iter().all(|(root, path, _)| filter(root, path, Access::Read))
    }

    /// Shows one prompt to the approver. The answer is in the record.
    async fn ask(
        &self,
        request: GateRequest<'_>,
        lifecycle: &CallLifecycle,
        shown: &ApprovalPrompt,
        requirements: &[ApprovalRequirement],
        verdicts: &mut Vec<GateVerdict>,
    ) -> Result<(), ToolError> {
        let GateRequest { call, definition, context, .. } = request;
        let question = ApprovalRequest {
            call,
            definition,
            context,
            targets: &shown.targets,
            reasons: requirements.iter().map(|requirement| requirement.reason.clone()).collect(),
            preview: shown.shown.clone(),
            no_preview: shown.preview.missing.clone(),
            reach: self.blast_radius(request).await,
            hash: shown.hash.clone(),
        };
        let hosts = unnamed_hosts(call, &shown.targets);
        let run = lifecycle.run();
        run.check()?;
        run.identify(call, context);
        let known = run.known(&shown.hash)?;
        let asked_again = asked_again(&known, run, call, context);
        let mut denial = None;
        let answer = match known {
            Known::Granted { by } => {
                lifecycle.grant(&shown.hash);
                ApprovalAnswer::Approved { by, hash: shown.hash.clone() }
            }
            Known::Denied { by, reason } if !run.is_of_person() => {
                return Err(denied(&by, &reason, definition, requirements, &hosts, verdicts));
            }
            Known::Denied { .. } | Known::UsedUp { .. } | Known::Nothing => {
                if let Known::Denied { by, reason } = known {
                    denial = Some((by, reason));
                }
                match lifecycle.wait().begin() {
                    Some(_waiting) => self.approver.ask(question.clone()).await,
                    None => ApprovalAnswer::Refused { reason: "the run has asked too often".to_owned() },
                }
            }
        };
        match (&answer, denial) {
            (ApprovalAnswer::Later { .. }, Some((by, reason))) => {
                return Err(denied(&by, &reason, definition, requirements, &hosts, verdicts));
            }
            (ApprovalAnswer::Approved { .. }, Some(_)) => run.lift(&shown.hash)?,
            _ => {}
        }
        let mut pending = None;
        let reason = match answer {
            ApprovalAnswer::Approved { by, hash } if hash == shown.hash => {
                verdicts.push(GateVerdict::approval(GateDecision::Approved, &by));
                return Ok(());
            }
            ApprovalAnswer::Approved { .. } => "the answer was for something else".to_owned(),
            ApprovalAnswer::Refused { reason } => reason,
            // What was sent already would be sent again.
            ApprovalAnswer::Later { reason } if lifecycle.is_exposed() => reason,
            ApprovalAnswer::Later { reason } => {
                pending = run.keep(&question)?;
                reason
            }
        };
        let rule = match &pending {
            Some(pending) => format!("pending {}", pending.id),
            None => reason.clone(),
        };
        verdicts.push(GateVerdict::approval(GateDecision::Refused, rule));
        let refused = refusal(definition, &reason, requirements, &hosts);
        let Some(pending) = pending else { return Err(refused) };
        let mut waits = waiting(refused, &pending, definition, requirements);
        if let Some(why) = asked_again {
            let help = format!("{}; {why}", waits.help_of().unwrap_or_default());
            waits = waits.help(help);
        }
        run.wait_for(&waits);
        Err(waits)
    }

    /// What else the change would reach, as the first gate that knows it says.
    async fn blast_radius(&self, request: GateRequest<'_>) -> Option<Value> {
        let visible =
            self.workspace.visibility(self.filter_for(GateRequest { targets: &[], ..request }).await);
        for gate in &self.gates {
            if let Some(reach) = gate.blast_radius(request, &visible).await {
                return Some(reach);
            }
        }
        None
    }

    /// Takes files that a running call is about to change past the gates, and asks where one of them requires it:
    /// `show` says what would change now, `propose` gives the contents for a gate that judges those, and `later` are
    /// those of the files that run later. What the gates say is in the call's record. Returns what was agreed to, when
    /// the user was asked.
    pub async fn judge_changes<P, S, F>(
        &self,
        invocation: Invocation<'_>,
        changes: &[Target],
        later: &[Target],
        propose: P,
        show: S,
    ) -> Result<Option<Arc<ApprovedSnapshot>>, ToolError>
    where
        P: FnOnce() -> Vec<Change> + Send,
        S: Fn() -> F + Send + Sync,
        F: Future<Output = Result<Preview, ToolError>> + Send,
    {
        if changes.is_empty() {
            return Ok(None);
        }
        let Invocation { serial, call, definition, context, .. } = invocation;
        let request = GateRequest { serial, call, definition, context, targets: changes, proposed: None };
        let proposed = if self.needs_proposed_files(request).await { Some(propose()) } else { None };
        let request = GateRequest { proposed: proposed.as_deref(), ..request };
        let mut verdicts = Vec::new();
        let passed = self.pass_changes(request, invocation.lifecycle, later, show, &mut verdicts).await;
        note(invocation, &[], verdicts);
        passed
    }

    async fn pass_changes<S, F>(
        &self,
        request: GateRequest<'_>,
        lifecycle: &CallLifecycle,
        later: &[Target],
        show: S,
        verdicts: &mut Vec<GateVerdict>,
    ) -> Result<Option<Arc<ApprovedSnapshot>>, ToolError>
    where
        S: Fn() -> F + Send + Sync,
        F: Future<Output = Result<Preview, ToolError>> + Send,
    {
        let mut requirements = self.pass_gates(request, GatePhase::Changes, verdicts).await?;
        requirements.extend(self.judge_runs_later(request, later, verdicts).await?);
        if !must_ask(request, Subject::Finding, &requirements, verdicts) {
            return Ok(None);
        }
        Box::pin(self.ask_about_changes(request, lifecycle, &requirements, show, verdicts)).await
    }

    /// Takes what a running call does next past the gates, as if it were a separate call: `call` is the call with the
    /// arguments that would lead there. The record of the running call names the targets. `covered` says that the
    /// approval of the running call showed as much as the default approvals ask for.
    ///
    /// # Errors
    /// What a gate has against it, or `EAPPROVAL`.
    pub async fn judge_further(
        &self,
        invocation: Invocation<'_>,
        call: &ToolCall,
        targets: &[Target],
        covered: bool,
    ) -> Result<(), ToolError> {
        let covered = if covered { Covered::Defaults } else { Covered::Nothing };
        let judged = self.judge_found(invocation, call, targets, GatePhase::Further, covered).await;
        note(invocation, targets, Vec::new());
        judged
    }

    /// Takes directories that a running call makes or removes past the gates that judge by names.
    ///
    /// # Errors
    /// What a gate has against one of them, or `EAPPROVAL`.
    pub async fn judge_directories(
        &self,
        invocation: Invocation<'_>,
        directories: &[Target],
    ) -> Result<(), ToolError> {
        if directories.is_empty() {
            return Ok(());
        }
        let question = GatePhase::Directories;
        self.judge_found(invocation, invocation.call, directories, question, Covered::Nothing).await
    }

    /// Takes the files of packages that a running call puts below a judged directory past the gates that judge by names. Only
    /// what people have said of such paths counts: a package may bring files that usually hold secrets, such as `cacert.pem`.
    ///
    /// # Errors
    /// What a gate has against one of them, or `EAPPROVAL`.
    pub async fn judge_packages(
        &self,
        invocation: Invocation<'_>,
        files: &[Target],
    ) -> Result<(), ToolError> {
        if files.is_empty() {
            return Ok(());
        }
        self.judge_found(invocation, invocation.call, files, GatePhase::Packages, Covered::Nothing).await
    }

    /// Asks again, before what a run has done takes effect, whether its sources may be executed: a person may have halted
    /// the project or the tool since it began.
    ///
    /// # Errors
    /// `ESTATE`.
    pub async fn judge_commit(
        &self,
        invocation: Invocation<'_>,
        sources: &[Target],
    ) -> Result<(), ToolError> {
        let Invocation { serial, call, definition, context, .. } = invocation;
        let request = GateRequest { serial, call, definition, context, targets: sources, proposed: None };
        let mut verdicts = Vec::new();
        let judged = self.judge_again(request, &mut verdicts).await;
        note(invocation, &[], verdicts);
        judged
    }

    /// An answer may take hours, in which a person may have halted the project.
    async fn judge_again(
        &self,
        request: GateRequest<'_>,
        verdicts: &mut Vec<GateVerdict>,
    ) -> Result<(), ToolError> {
        let mut again = Vec::new();
        let judged = self.pass_gates(request, GatePhase::Commit, &mut again).await;
        if judged.is_err() {
            verdicts.append(&mut again);
        }
        judged.map(drop)
    }

    async fn judge_found(
        &self,
        invocation: Invocation<'_>,
        call: &ToolCall,
        targets: &[Target],
        question: GatePhase,
        covered: Covered,
    ) -> Result<(), ToolError> {
        let Invocation { serial, definition, context, lifecycle, .. } = invocation;
        // `call` may be the next step of it.
        lifecycle.run().identify(invocation.call, context);
        let request = GateRequest { serial, call, definition, context, targets, proposed: None };
        let mut verdicts = Vec::new();
        let judged = async {
            let mut requirements = self.pass_gates(request, question, &mut verdicts).await?;
            if covered == Covered::Defaults {
                requirements.retain(ApprovalRequirement::is_rule);
            }
            if must_ask(request, Subject::Finding, &requirements, &mut verdicts) {
                let shown = ApprovalPrompt::new(request, &requirements, targets.to_vec(), Preview::default());
                // Large, and seldom needed.
                Box::pin(self.ask(request, lifecycle, &shown, &requirements, &mut verdicts)).await?;
                self.judge_again(request, &mut verdicts).await?;
            }
            Ok(())
        };
        let judged = judged.await;
        note(invocation, &[], verdicts);
        judged
    }

    async fn ask_about_changes<S, F>(
        &self,
        request: GateRequest<'_>,
        lifecycle: &CallLifecycle,
        requirements: &[ApprovalRequirement],
        show: S,
        verdicts: &mut Vec<GateVerdict>,
    ) -> Result<Option<Arc<ApprovedSnapshot>>, ToolError>
    where
        S: Fn() -> F + Send + Sync,
        F: Future<Output = Result<Preview, ToolError>> + Send,
    {
        let approval_prompt = async || {
            let made = show().await?;
            Ok::<_, ToolError>(ApprovalPrompt::new(request, requirements, request.targets.to_vec(), made))
        };
        let mut shown = approval_prompt().await?;
        for _ in 0..MAX_ROUNDS {
            self.ask(request, lifecycle, &shown, requirements, verdicts).await?;
            self.judge_again(request, verdicts).await?;
            let now = approval_prompt().await?;
            if now.hash == shown.hash {
                return Ok(ApprovedSnapshot::to(&now.preview).map(Arc::new));
            }
            shown = now;
            verdicts.push(GateVerdict::approval(GateDecision::Ask, "it changed meanwhile"));
        }
        Err(keeps_changing(request, Code::Approval, verdicts))
    }
}

/// Keeps what a running call turned out to touch, and what the gates said of it, for its record.
fn note(invocation: Invocation<'_>, targets: &[Target], mut verdicts: Vec<GateVerdict>) {
    let mut findings = invocation.findings.lock().unwrap_or_else(PoisonError::into_inner);
    findings.targets.extend_from_slice(targets);
    findings.verdicts.append(&mut verdicts);
}

/// A call that would touch something else than the gates have judged.
fn changed_meanwhile(request: GateRequest<'_>) -> ToolError {
    let message =
        format!("what `{}` would touch has changed since the rules judged it", request.definition.name);
    ToolError::new(Code::Conflict, message).help("nothing was changed; repeat the call")
}

/// What a dry run reads to show the difference it would make.
pub(super) fn previews(targets: &[Target]) -> Vec<Target> {
    let changed = targets.iter().filter_map(Target::file).filter(|(.., access)| *access != Access::Read);
    changed.map(|(root, path, _)| Target::File { root, path: path.clone(), access: Access::Read }).collect()
}
