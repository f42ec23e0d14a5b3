//! What the rules say: those of files, those over a session's history, and extensions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use tgp_contract::{
    Access, CallContext, CallRecord, Code, Effect, FileFilter, Gate, GateRequest, RelativePath, Root,
    SourceLocation, Stage, Target, TddMode, TddState, ToolError, Verdict,
};
use tgp_policy::{
    HistoryReservation, PastCall, PastOutcome, PolicyDecision, PolicyExplanation, PolicyRequest, RuleEffect,
    RuleSummary, SessionHistory,
};

use super::extension;
use super::file_tools::{FileCall, FileTools};
use super::histories::{Histories, PastCalls, counted};
use super::predicates::PredicateCompiler;
use super::rule_files::{RuleFileCheck, UnreadRuleFile};
use super::rules::{ForeignRules, RuleFiles, RuleStore, Rules};
use crate::router::DynTool;

/// Tools whose answers name forged tools that the caller may run.
const OFFERING_TOOLS: [&str; 2] = ["search", "write_file"];

/// The state of test-driven work, for rules that use it.
pub trait TddView: Send + Sync {
    fn mode(&self) -> TddMode;
    /// Of the piece of work that these targets belong to.
    fn state(&self, targets: &[Target]) -> TddState;
}

/// What is in force in addition to the built-in rules.
#[derive(Clone, Debug, Serialize)]
pub struct RuleListing {
    pub rules: Vec<ListedRule>,
    pub extensions: Vec<String>,
    /// Every file that was read.
    pub sources: Vec<RuleSource>,
}

/// A file of rules, and how many it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleSource {
    pub file: String,
    pub rules: usize,
}

/// One rule of a file.
#[derive(Clone, Debug, Serialize)]
pub struct ListedRule {
    pub id: String,
    pub effect: RuleEffect,
    pub reason: String,
    pub place: SourceLocation,
    pub is_sequence: bool,
    /// False for an `allow` rule that waits for `tgp policy trust`.
    pub has_effect: bool,
    /// Its own examples, all of which hold: otherwise it would not have been loaded.
    pub examples: usize,
}

/// Denies, asks or allows by rules.
pub struct PolicyGate {
    rules: RuleStore,
    check: Arc<RuleFileCheck>,
    file_tools: Arc<FileTools>,
    tdd: Arc<dyn TddView>,
    histories: Histories,
    /// By the call's number: itself, and the files it changes.
    open: Mutex<BTreeMap<u64, Vec<OpenCall>>>,
}

/// A call that was let through and has not ended.
struct OpenCall {
    ticket: HistoryReservation,
    call: PastCall,
}

impl PolicyGate {
    /// Reads the rules. `tools` complete their examples.
    ///
    /// # Errors
    /// `ECONFIG` with every problem of every file.
    pub async fn open(
        files: RuleFiles,
        predicates: Arc<dyn PredicateCompiler>,
        tools: Vec<Arc<dyn DynTool>>,
        tdd: Arc<dyn TddView>,
        past: Arc<dyn PastCalls>,
    ) -> Result<Self, ToolError> {
        let file_tools = Arc::new(FileTools::among(&tools));
        let check = Arc::clone(&files.check);
        let rules = RuleStore::open(files, predicates, tools).await?;
        Ok(Self { rules, check, file_tools, tdd, histories: Histories::new(past), open: Mutex::default() })
    }

    /// Why a call would be judged as it would be, rule by rule.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub async fn explain(&self, request: GateRequest<'_>) -> Result<PolicyExplanation, ToolError> {
        let rules = self.rules.current().await?;
        let judged = PolicyContext::new(self.tdd.as_ref(), &request);
        let question = judged.question(&request);
        let session = counted(request.context);
        self.histories.catch_up(&rules, session).await?;
        let mut explanation =
            self.histories.with(&rules, session, |history| rules.policy.explain(&question, history))?;
        explanation.decision = self.ask_extensions(&rules, &question, explanation.decision).await;
        Ok(explanation)
    }

    /// The rules of files and the extensions in force.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub async fn listing(&self) -> Result<RuleListing, ToolError> {
        let rules = self.rules.current().await?;
        let listed = |rule: RuleSummary<'_>| ListedRule {
            id: rule.id.to_owned(),
            effect: rule.effect,
            reason: rule.reason.to_owned(),
            place: rule.place.clone(),
            is_sequence: rule.is_sequence,
            has_effect: rule.has_effect,
            examples: rule.matching + rule.not_matching,
        };
        let listed: Vec<ListedRule> = rules.policy.rules().map(listed).collect();
        let count = |file: &String| listed.iter().filter(|rule| rule.place.file == *file).count();
        let sources =
            rules.files.iter().map(|file| RuleSource { file: file.clone(), rules: count(file) }).collect();
        let extensions = rules.extensions.iter().map(|(name, _)| name.clone()).collect();
        Ok(RuleListing { rules: listed, extensions, sources })
    }

    /// Files that look like rules, invariants, personas or configuration, and that nothing reads. While there is one, no call
    /// has an effect.
    ///
    /// # Errors
    /// When a directory that may hold one cannot be listed.
    pub fn unread_files(&self) -> Result<Vec<UnreadRuleFile>, ToolError> {
        self.check.unread()
    }

    /// Refuses everything while there is such a file.
    ///
    /// # Errors
    /// `ECONFIG` with its name and the next step.
    pub fn check_files(&self) -> Result<(), ToolError> {
        self.check.check_all()
    }

    /// The refusal of a call with an effect while a rule file is not read.
    fn refuse_unread(&self, request: &GateRequest<'_>) -> Option<Verdict> {
        if request.definition.effect == Effect::Read {
            return None;
        }
        let error = self.check.check_all().err()?;
        Some(Verdict::Deny { rule: "builtin/rule-files".to_owned(), error })
    }

    /// The files of rules that are not the project's own, which only tighten until a person confirms them.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub async fn foreign(&self) -> Result<ForeignRules, ToolError> {
        Ok(self.rules.current().await?.foreign.clone())
    }

    /// Whether a rule depends on earlier calls, so that other processes have to find each call in the record.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub async fn looks_back(&self) -> Result<bool, ToolError> {
        Ok(self.rules.current().await?.look_back)
    }

    /// Rules whose tool patterns match no tool at all, whose kinds no statement has, or whose commands are written as globs:
    /// most likely mistakes; one sentence each.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub async fn doubts(&self, names: &[&str]) -> Result<Vec<String>, ToolError> {
        let rules = self.rules.current().await?;
        let kinds: Vec<String> = tgp_sql::all_kinds().collect();
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let policy = &rules.policy;
        let problems = policy.idle_patterns(names).into_iter();
        let problems = problems.chain(policy.unknown_kinds(&kinds)).chain(policy.command_wildcards());
        Ok(problems.map(|problem| problem.to_string()).collect())
    }

    async fn decide(&self, request: &GateRequest<'_>) -> Result<PolicyDecision, ToolError> {
        let rules = self.rules.current().await?;
        let judged = PolicyContext::for_rules(&rules, self.tdd.as_ref(), request);
        let question = judged.question(request);
        let decision = if !rules.look_back {
            // Without sequence rules the past is not read.
            rules.policy.preview(&question, &SessionHistory::new(&rules.policy))
        } else {
            let session = counted(request.context);
            self.histories.catch_up(&rules, session).await?;
            let ruling =
                self.histories.with(&rules, session, |history| rules.policy.judge(&question, history))?;
            if let Some(ticket) = ruling.ticket {
                let call = judged.past_call(request);
                self.open_calls().entry(request.serial).or_default().push(OpenCall { ticket, call });
            }
            ruling.decision
        };
        Ok(self.ask_extensions(&rules, &question, decision).await)
    }

    async fn ask_extensions(
        &self,
        rules: &Rules,
        question: &PolicyRequest<'_>,
        decision: PolicyDecision,
    ) -> PolicyDecision {
        let mut decision = decision;
        for (name, extension) in &rules.extensions {
            if decision.effect == RuleEffect::Deny {
                break;
            }
            let verdict = extension::ask(&**extension, question).await;
            decision = decision.with_extension(name, verdict);
        }
        decision
    }

    /// The strictest of what is said of the changed files.
    async fn decide_changes(&self, request: &GateRequest<'_>) -> Result<Option<PolicyDecision>, ToolError> {
        let rules = self.rules.current().await?;
        let before = self.past_before(&rules, request).await?;
        let mut strictest: Option<PolicyDecision> = None;
        for target in request.targets {
            let decision = self.decide_change(&rules, &before, request, target).await?;
            let decision = named(decision, target);
            strictest = Some(match strictest {
                Some(before) => before.stricter(decision),
                None => decision,
            });
        }
        Ok(strictest)
    }

    /// One changed file, as if a tool for files had been called. What sequence rules count is reserved for the call.
    /// A rule may also name the tool that is called, and the file: `before` is what the session had done before the call.
    async fn decide_change(
        &self,
        rules: &Arc<Rules>,
        before: &SessionHistory,
        request: &GateRequest<'_>,
        target: &Target,
    ) -> Result<PolicyDecision, ToolError> {
        let one = GateRequest { targets: std::slice::from_ref(target), ..*request };
        let judged = PolicyContext::for_rules(rules, self.tdd.as_ref(), &one);
        let file_call = self.file_tools.call_for(target);
        let question = file_call.question(judged.question(&one));
        let session = counted(request.context);
        // What others have done was read when the call itself was judged; a call may change thousands of files.
        self.histories.load(rules, session).await?;
        let ruling = self.histories.with(rules, session, |history| rules.policy.judge(&question, history))?;
        if let Some(ticket) = ruling.ticket.filter(|_| rules.look_back) {
            let call = file_call.past_call(judged.past_call(&one));
            self.open_calls().entry(request.serial).or_default().push(OpenCall { ticket, call });
        }
        let decision = self.ask_extensions(rules, &question, ruling.decision).await;
        // A user who agreed to the command agreed to what no rule covers.
        let by_default = decision.effect == RuleEffect::Ask && decision.is_default;
        let decision =
            if by_default { PolicyDecision { effect: RuleEffect::Allow, ..decision } } else { decision };
        Ok(match rules.policy.restriction_by_path(&judged.question(&one), before) {
            Some(of_caller) => decision.stricter(of_caller),
            None => decision,
        })
    }

    /// The strictest of what people's rules and extensions say of the paths of packages. The built-in rules are about files
    /// that a project makes by itself; they have judged the directory.
    async fn decide_packages(&self, request: &GateRequest<'_>) -> Result<Option<PolicyDecision>, ToolError> {
        let rules = self.rules.current().await?;
        let before = self.past_before(&rules, request).await?;
        let unnamed = PolicyDecision::unnamed();
        let mut strictest: Option<PolicyDecision> = None;
        for target in request.targets {
            let one = GateRequest { targets: std::slice::from_ref(target), ..*request };
            let judged = PolicyContext::for_rules(&rules, self.tdd.as_ref(), &one);
            let of_caller = judged.question(&one);
            let file_call = self.file_tools.call_for(target);
            let of_file = file_call.question(judged.question(&one));
            let found = [&of_caller, &of_file].map(|call| rules.policy.restriction_by_path(call, &before));
            let decision =
                found.into_iter().flatten().reduce(PolicyDecision::stricter).unwrap_or(unnamed.clone());
            let decision = named(self.ask_extensions(&rules, &of_file, decision).await, target);
            strictest = Some(match strictest {
                Some(before) => before.stricter(decision),
                None => decision,
            });
        }
        Ok(strictest)
    }

    /// What the session had done before this call, as it is now: the call does not count for the files it comes across,
    /// because it was judged without itself, too.
    async fn past_before(
        &self,
        rules: &Arc<Rules>,
        request: &GateRequest<'_>,
    ) -> Result<SessionHistory, ToolError> {
        let session = counted(request.context);
        self.histories.load(rules, session).await?;
        let mut history = self.histories.with(rules, session, |history| history.clone())?;
        if let Some(open) = self.open_calls().get(&request.serial) {
            for OpenCall { ticket, call } in open {
                history.settle(&rules.policy, *ticket, &call.as_question(), PastOutcome::DidNotRun);
            }
        }
        Ok(history)
    }

    fn open_calls(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<OpenCall>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Gate for PolicyGate {
    fn stage(&self) -> Stage {
        Stage::Policy
    }

    fn name(&self) -> &str {
        "policy"
    }

    async fn judge(&self, request: GateRequest<'_>) -> Verdict {
        if let Some(verdict) = self.refuse_unread(&request) {
            return verdict;
        }
        self.decide(&request).await.map_or_else(unreadable, PolicyDecision::into_verdict)
    }

    async fn judge_changes(&self, request: GateRequest<'_>) -> Verdict {
        self.decide_changes(&request).await.map_or_else(unreadable, |decision| {
            decision.map_or_else(|| Verdict::Allow { rule: "none".to_owned() }, PolicyDecision::into_verdict)
        })
    }

    async fn judge_packages(&self, request: GateRequest<'_>) -> Verdict {
        self.decide_packages(&request).await.map_or_else(unreadable, |decision| {
            decision.map_or_else(|| Verdict::Allow { rule: "none".to_owned() }, PolicyDecision::into_verdict)
        })
    }

    async fn judge_runs_later(&self, request: GateRequest<'_>) -> Verdict {
        let rules = match self.rules.current().await {
            Ok(rules) => rules,
            Err(error) => return unreadable(error),
        };
        let judged = PolicyContext::for_rules(&rules, self.tdd.as_ref(), &request);
        let mut strictest: Option<PolicyDecision> = None;
        for target in request.targets {
            let one = GateRequest { targets: std::slice::from_ref(target), ..request };
            let question = judged.question(&one);
            let file_call = self.file_tools.call_for(target);
            // A rule may name the tool that is called, or mean the file however it is written.
            let mut decision = rules.policy.judge_runs_later(&question);
            if decision.effect == RuleEffect::Ask {
                decision = rules.policy.judge_runs_later(&file_call.question(question));
            }
            strictest = Some(match strictest {
                Some(before) => before.stricter(decision),
                None => decision,
            });
        }
        strictest.map_or_else(|| Verdict::Allow { rule: "none".to_owned() }, PolicyDecision::into_verdict)
    }

    async fn file_filter(&self, request: GateRequest<'_>) -> Option<FileFilter> {
        // Rules that cannot be read show nothing.
        let Ok(rules) = self.rules.current().await else { return Some(Arc::new(|_, _, _| false)) };
        // The built-in rules are kept by the file systems themselves.
        rules.policy.rules().next()?;
        // What the session has done decides about a file as it decides about a call that names the file.
        let Ok(history) = self.past_before(&rules, &request).await else {
            return Some(Arc::new(|_, _, _| false));
        };
        let context = request.context.clone();
        let about_none = GateRequest { targets: &[], ..request };
        let PolicyContext { mode, state } = PolicyContext::for_rules(&rules, self.tdd.as_ref(), &about_none);
        let granted = request.targets.iter().filter_map(Target::file);
        let granted: BTreeSet<_> = granted.map(|(root, path, _)| (root, path.clone())).collect();
        let offers = OFFERING_TOOLS.contains(&request.definition.name.as_str());
        let file_tools = Arc::clone(&self.file_tools);
        // A rule may deny a file to the searching tool alone.
        let own = (request.definition.effect == Effect::Read)
            .then(|| (request.definition.clone(), request.call.arguments.clone()));
        Some(Arc::new(move |root, path, access| {
            let target = Target::File { root, path: path.clone(), access };
            let decide = |file_call: FileCall<'_>| {
                let call = question_by(&context, std::slice::from_ref(&target), mode, state);
                rules.policy.preview(&file_call.question(call), &history)
            };
            let decision = decide(file_tools.call_for(&target));
            // The user cannot be asked about each of a thousand files, but was asked about what the call
            // names.
            let is_granted = || decision.effect == RuleEffect::Ask && granted.contains(&(root, path.clone()));
            // A tool that must not be run is not offered.
            let is_offered = || {
                let is_tool = offers && root == Root::Tools;
                !is_tool || decide(file_tools.run_of(&target)).effect != RuleEffect::Deny
            };
            let is_denied = || {
                own.as_ref().is_some_and(|(definition, arguments)| {
                    let call = question_by(&context, std::slice::from_ref(&target), mode, state);
                    let (tool, aliases) = (definition.name.as_str(), &definition.aliases);
                    let question = PolicyRequest { tool, aliases, arguments, ..call };
                    let found = rules.policy.restriction_by_path(&question, &history);
                    found.is_some_and(|decision| decision.effect == RuleEffect::Deny)
                })
            };
            let is_shown = decision.effect == RuleEffect::Allow || decision.is_default;
            (is_shown || is_granted()) && !is_denied() && is_offered()
        }))
    }

    async fn may_restrict_below(
        &self,
        request: GateRequest<'_>,
        root: Root,
        directory: &RelativePath,
    ) -> bool {
        let Ok(rules) = self.rules.current().await else { return true };
        // The targets say when it is about reading. What an extension says of a file that is written is unknown.
        let reads = request.targets.iter().filter_map(Target::file).any(|file| file.2 == Access::Read);
        if !reads && !rules.extensions.is_empty() {
            return true;
        }
        let PolicyContext { mode, state } = PolicyContext::for_rules(&rules, self.tdd.as_ref(), &request);
        let accesses: &[Access] = if reads { &[Access::Read] } else { &[Access::Write, Access::Delete] };
        accesses.iter().any(|access| {
            let target = Target::File { root, path: directory.clone(), access: *access };
            let call = question_by(request.context, std::slice::from_ref(&target), mode, state);
            let file_call = self.file_tools.call_for(&target);
            let of_file = file_call.question(call);
            if reads {
                return rules.policy.may_restrict_by_path_below(&of_file, root, directory);
            }
            let of_caller = PolicyRequest {
                tool: request.definition.name.as_str(),
                aliases: &request.definition.aliases,
                effect: request.definition.effect,
                arguments: &request.call.arguments,
                ..call
            };
            rules.policy.may_restrict_below(&of_file, root, directory)
                || rules.policy.may_restrict_by_path_below(&of_caller, root, directory)
        })
    }

    fn on_finished(&self, record: &CallRecord) {
        let open = self.open_calls().remove(&record.serial).unwrap_or_default();
        if open.is_empty() {
            return;
        }
        let ran = record.execution.has_started();
        let ended = open.into_iter().enumerate().map(|(place, OpenCall { ticket, call })| {
            // The first is the call itself; the others are files, which count when the call has kept them.
            let counts = if place == 0 { ran } else { ran && record.result.is_ok() };
            (ticket, call, if counts { PastOutcome::Ran } else { PastOutcome::DidNotRun })
        });
        self.histories.settle(counted(&record.context), ended);
    }
}

/// What a question about a file says in addition to the tool that represents the access.
fn question_by<'a>(
    context: &'a CallContext,
    targets: &'a [Target],
    mode: TddMode,
    state: TddState,
) -> PolicyRequest<'a> {
    PolicyRequest {
        tool: "",
        aliases: &[],
        effect: Effect::Read,
        arguments: &Value::Null,
        targets,
        actor: &context.actor,
        session: &context.session,
        mode,
        state,
    }
}

/// Says which of many files a decision is about.
fn named(decision: PolicyDecision, target: &Target) -> PolicyDecision {
    match target.file() {
        Some((_, path, _)) if decision.effect > RuleEffect::Allow => {
            PolicyDecision { reason: format!("`{path}`: {}", decision.reason), ..decision }
        }
        _ => decision,
    }
}

/// Rules that cannot be read deny everything: there is no moment without rules.
fn unreadable(error: ToolError) -> Verdict {
    let message = format!("the rules cannot be used, so nothing is allowed: {}", error.message);
    let error = error.with_code(Code::Policy).with_message(message);
    Verdict::Deny { rule: "unreadable".to_owned(), error }
}

/// A request with what else the rules see.
pub(super) struct PolicyContext {
    mode: TddMode,
    state: TddState,
}

impl PolicyContext {
    pub(super) fn new(tdd: &dyn TddView, request: &GateRequest<'_>) -> Self {
        Self { mode: tdd.mode(), state: tdd.state(request.targets) }
    }

    /// The same without a look at the state where no rule depends on it.
    fn for_rules(rules: &Rules, tdd: &dyn TddView, request: &GateRequest<'_>) -> Self {
        if rules.need_state {
            Self::new(tdd, request)
        } else {
            Self { mode: tdd.mode(), state: TddState::Idle }
        }
    }

    pub(super) fn question<'a>(&self, request: &GateRequest<'a>) -> PolicyRequest<'a> {
        PolicyRequest {
            tool: request.definition.name.as_str(),
            aliases: &request.definition.aliases,
            effect: request.definition.effect,
            arguments: &request.call.arguments,
            targets: request.targets,
            actor: &request.context.actor,
            session: &request.context.session,
            mode: self.mode,
            state: self.state,
        }
    }

    fn past_call(&self, request: &GateRequest<'_>) -> PastCall {
        PastCall {
            tool: request.definition.name.to_string(),
            aliases: request.definition.aliases.clone(),
            effect: request.definition.effect,
            arguments: request.call.arguments.clone(),
            targets: request.targets.to_vec(),
            actor: request.context.actor.clone(),
            session: request.context.session.clone(),
            mode: self.mode,
            state: self.state,
        }
    }
}
