//! What the rules say: those of files, those over a session's history, and extensions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, CallRecord, Code, Effect, FileFilter, Gate, GateRequest, Place, RelativePath, Root, Stage,
    Target, TddMode, TddState, ToolError, Verdict,
};
use tgp_policy::{
    Decision, Explanation, Outcome, PastCall, Question, RuleEffect, RuleSummary, SessionHistory, Ticket,
};

use super::extension;
use super::rules::{RuleFiles, RuleStore, Rules};
use crate::Forge;
use crate::router::Tool;

/// Sessions whose history is kept ready; that of another is read from the record when it is needed again.
const MAX_SESSIONS: usize = 256;

/// Names that agents' work on files has, whichever way a file is really written.
const READ_TOOL: &str = "fs_read";
const WRITE_TOOL: &str = "fs_write";
const DELETE_TOOL: &str = "fs_delete";

/// Where test-driven work stands, for rules that ask.
pub trait TddView: Send + Sync {
    fn mode(&self) -> TddMode;
    /// Of the piece of work that these targets belong to.
    fn state(&self, targets: &[Target]) -> TddState;
}

/// What a session has done before this kernel knew it.
#[async_trait]
pub trait PastCalls: Send + Sync {
    /// Calls of the session that ran, oldest first.
    ///
    /// # Errors
    /// When the past cannot be known; then nothing that depends on it is allowed.
    async fn of_session(&self, session: &str) -> Result<Vec<PastCall>, ToolError>;
}

/// What is in force besides the built-in rules.
#[derive(Clone, Debug, Serialize)]
pub struct RuleListing {
    pub rules: Vec<ListedRule>,
    pub extensions: Vec<String>,
}

/// One rule of a file.
#[derive(Clone, Debug, Serialize)]
pub struct ListedRule {
    pub id: String,
    pub effect: RuleEffect,
    pub reason: String,
    pub place: Place,
    pub is_sequence: bool,
    /// Its own examples, all of which hold: otherwise it would not have been loaded.
    pub examples: usize,
}

/// Denies, asks or allows by rules.
pub struct PolicyGate {
    rules: RuleStore,
    forge: Arc<Forge>,
    tdd: Arc<dyn TddView>,
    past: Arc<dyn PastCalls>,
    sessions: Mutex<BTreeMap<String, Session>>,
    /// By the call's number: itself, and the files it changes.
    open: Mutex<BTreeMap<u64, Vec<OpenCall>>>,
}

struct Session {
    history: SessionHistory,
    /// Those the history was made for.
    rules: Arc<Rules>,
    /// When it was last asked for, so that the oldest goes first.
    used: u64,
}

/// A call that was let through and has not ended.
struct OpenCall {
    ticket: Ticket,
    call: PastCall,
}

impl PolicyGate {
    /// Reads the rules. `tools` complete their examples.
    ///
    /// # Errors
    /// `ECONFIG` with every problem of every file.
    pub async fn open(
        files: RuleFiles,
        forge: Arc<Forge>,
        tools: Vec<Arc<dyn Tool>>,
        tdd: Arc<dyn TddView>,
        past: Arc<dyn PastCalls>,
    ) -> Result<Self, ToolError> {
        let rules = RuleStore::open(files, Arc::clone(&forge), tools).await?;
        Ok(Self { rules, forge, tdd, past, sessions: Mutex::default(), open: Mutex::default() })
    }

    /// Why a call would be judged as it would be, rule by rule.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub async fn explain(&self, request: GateRequest<'_>) -> Result<Explanation, ToolError> {
        let rules = self.rules.current().await?;
        let judged = Judged::new(self.tdd.as_ref(), &request);
        let question = judged.question(&request);
        self.remember(&rules, &request.context.session).await?;
        let mut explanation = self.with_history(&rules, &request.context.session, |history| {
            rules.policy.explain(&question, history)
        })?;
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
            examples: rule.matching + rule.not_matching,
        };
        Ok(RuleListing {
            rules: rules.policy.rules().map(listed).collect(),
            extensions: rules.extensions.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    /// Rules whose tool patterns match no tool at all, most likely misspelt; one sentence each.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub async fn doubts(&self, names: &[&str]) -> Result<Vec<String>, ToolError> {
        let rules = self.rules.current().await?;
        Ok(rules.policy.idle_patterns(names).iter().map(ToString::to_string).collect())
    }

    async fn decide(&self, request: &GateRequest<'_>) -> Result<Decision, ToolError> {
        let rules = self.rules.current().await?;
        let judged = Judged::new(self.tdd.as_ref(), request);
        let question = judged.question(request);
        let decision = if !rules.look_back {
            // Without sequence rules nobody looks at the past.
            rules.policy.preview(&question, &SessionHistory::new(&rules.policy))
        } else {
            self.remember(&rules, &request.context.session).await?;
            let ruling = self.with_history(&rules, &request.context.session, |history| {
                rules.policy.judge(&question, history)
            })?;
            if let Some(ticket) = ruling.ticket {
                let call = judged.past_call(request);
                self.open_calls().entry(request.serial).or_default().push(OpenCall { ticket, call });
            }
            ruling.decision
        };
        Ok(self.ask_extensions(&rules, &question, decision).await)
    }

    async fn ask_extensions(&self, rules: &Rules, question: &Question<'_>, decision: Decision) -> Decision {
        let mut decision = decision;
        for (name, extension) in &rules.extensions {
            if decision.effect == RuleEffect::Deny {
                break;
            }
            let verdict = extension::ask(&self.forge, extension, question).await;
            decision = decision.with_extension(name, verdict);
        }
        decision
    }

    /// Makes sure that a session's past is known under these rules.
    async fn remember(&self, rules: &Arc<Rules>, session: &str) -> Result<(), ToolError> {
        let is_known = |sessions: &BTreeMap<String, Session>| {
            sessions.get(session).is_some_and(|known| known.rules.generation == rules.generation)
        };
        if !rules.look_back || is_known(&self.sessions()) {
            return Ok(());
        }
        let past = self.past.of_session(session).await?;
        let mut sessions = self.sessions();
        // Somebody else may have been faster, and may have noted calls since.
        if is_known(&sessions) {
            return Ok(());
        }
        let history = match sessions.remove(session) {
            Some(known) => known.history.renewed(&rules.policy, past),
            None => SessionHistory::replay(&rules.policy, past),
        };
        if sessions.len() >= MAX_SESSIONS {
            let idle = |(_, session): &(&String, &Session)| session.history.in_flight() == 0;
            let oldest = sessions.iter().filter(idle).min_by_key(|(_, session)| session.used);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                sessions.remove(&name);
            }
        }
        let used = next_use(&sessions);
        sessions.insert(session.to_owned(), Session { history, rules: Arc::clone(rules), used });
        Ok(())
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a session's history under these rules. Where none of them looks back there is none.
    ///
    /// # Errors
    /// When the history was taken away in between: other rules came into force, or too many sessions.
    fn with_history<T>(
        &self,
        rules: &Rules,
        session: &str,
        work: impl FnOnce(&mut SessionHistory) -> T,
    ) -> Result<T, ToolError> {
        if !rules.look_back {
            return Ok(work(&mut SessionHistory::new(&rules.policy)));
        }
        let mut sessions = self.sessions();
        let used = next_use(&sessions);
        match sessions.get_mut(session) {
            Some(known) if known.rules.generation == rules.generation => {
                known.used = used;
                Ok(work(&mut known.history))
            }
            _ => Err(ToolError::new(Code::Policy, "the rules changed while the call was judged")
                .help("call it again")),
        }
    }

    /// One changed file, as if a tool for files had been called. What sequence rules count is reserved for the call.
    async fn decide_change(&self, request: &GateRequest<'_>, target: &Target) -> Result<Decision, ToolError> {
        let rules = self.rules.current().await?;
        let one = GateRequest { targets: std::slice::from_ref(target), ..*request };
        let judged = Judged::new(self.tdd.as_ref(), &one);
        let (tool, arguments) = as_file_tool(target);
        let question = Question {
            tool,
            aliases: &[],
            effect: Effect::Write,
            arguments: &arguments,
            ..judged.question(&one)
        };
        let session = &request.context.session;
        self.remember(&rules, session).await?;
        let ruling = self.with_history(&rules, session, |history| rules.policy.judge(&question, history))?;
        if let Some(ticket) = ruling.ticket.filter(|_| rules.look_back) {
            let call = PastCall {
                tool: tool.to_owned(),
                aliases: Vec::new(),
                arguments: arguments.clone(),
                effect: Effect::Write,
                ..judged.past_call(&one)
            };
            self.open_calls().entry(request.serial).or_default().push(OpenCall { ticket, call });
        }
        let decision = self.ask_extensions(&rules, &question, ruling.decision).await;
        // Whoever agreed to the command agreed to what nobody has made a rule of.
        let by_default = decision.effect == RuleEffect::Ask && decision.rule.starts_with("default/");
        Ok(if by_default { Decision { effect: RuleEffect::Allow, ..decision } } else { decision })
    }

    fn open_calls(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<OpenCall>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts up, so that the session that was asked for longest ago has the smallest number.
fn next_use(sessions: &BTreeMap<String, Session>) -> u64 {
    sessions.values().map(|session| session.used).max().unwrap_or_default() + 1
}

fn as_file_tool(target: &Target) -> (&'static str, Value) {
    match target.file() {
        Some((_, path, Access::Delete)) => (DELETE_TOOL, json!({ "path": path })),
        Some((_, path, Access::Read)) => (READ_TOOL, json!({ "path": path })),
        Some((_, path, Access::Write | Access::Append)) => (WRITE_TOOL, json!({ "path": path })),
        None => (WRITE_TOOL, Value::Null),
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
        self.decide(&request).await.map_or_else(unreadable, Decision::into_verdict)
    }

    async fn judge_changes(&self, request: GateRequest<'_>) -> Verdict {
        let mut strictest: Option<Decision> = None;
        for target in request.targets {
            match self.decide_change(&request, target).await {
                Ok(decision) => {
                    let decision = named(decision, target);
                    strictest = Some(match strictest {
                        Some(before) => before.stricter(decision),
                        None => decision,
                    });
                }
                Err(error) => return unreadable(error),
            }
        }
        strictest.map_or_else(|| Verdict::Allow { rule: "none".to_owned() }, Decision::into_verdict)
    }

    async fn file_filter(&self, request: GateRequest<'_>) -> Option<FileFilter> {
        // Rules that cannot be read show nothing.
        let Ok(rules) = self.rules.current().await else { return Some(Arc::new(|_, _, _| false)) };
        // The built-in rules are kept by the file systems themselves.
        rules.policy.rules().next()?;
        let (context, mode) = (request.context.clone(), self.tdd.mode());
        let state = self.tdd.state(request.targets);
        Some(Arc::new(move |root, path, access| {
            let target = Target::File { root, path: path.clone(), access };
            let (tool, arguments) = as_file_tool(&target);
            let effect = if access == Access::Read { Effect::Read } else { Effect::Write };
            let question = Question {
                tool,
                aliases: &[],
                effect,
                arguments: &arguments,
                targets: std::slice::from_ref(&target),
                actor: &context.actor,
                session: &context.session,
                mode,
                state,
            };
            let decision = rules.policy.preview(&question, &SessionHistory::new(&rules.policy));
            // Nobody can be asked about each of a thousand files.
            decision.effect == RuleEffect::Allow || decision.rule.starts_with("default/")
        }))
    }

    async fn may_restrict_below(
        &self,
        request: GateRequest<'_>,
        root: Root,
        directory: &RelativePath,
    ) -> bool {
        let Ok(rules) = self.rules.current().await else { return true };
        // Nobody can tell what an extension says of a file that is not there yet.
        if !rules.extensions.is_empty() {
            return true;
        }
        let (mode, state) = (self.tdd.mode(), self.tdd.state(request.targets));
        [Access::Write, Access::Delete].into_iter().any(|access| {
            let target = Target::File { root, path: directory.clone(), access };
            let (tool, arguments) = as_file_tool(&target);
            let question = Question {
                tool,
                aliases: &[],
                effect: Effect::Write,
                arguments: &arguments,
                targets: std::slice::from_ref(&target),
                actor: &request.context.actor,
                session: &request.context.session,
                mode,
                state,
            };
            rules.policy.may_restrict_below(&question, root, directory)
        })
    }

    fn settled(&self, record: &CallRecord) {
        let open = self.open_calls().remove(&record.serial).unwrap_or_default();
        if open.is_empty() {
            return;
        }
        let ran = was_let_through(record);
        let mut sessions = self.sessions();
        let Some(session) = sessions.get_mut(&record.context.session) else { return };
        for (place, OpenCall { ticket, call }) in open.into_iter().enumerate() {
            // The first is the call itself; the others are files, which count when the call has kept them.
            let counts = if place == 0 { ran } else { ran && record.result.is_ok() };
            let outcome = if counts { Outcome::Ran } else { Outcome::DidNotRun };
            // The rules may have changed meanwhile; the history knows the call by its ticket.
            session.history.settle(&session.rules.policy, ticket, &call.as_question(), outcome);
        }
    }
}

/// Says which of many files a decision is about.
fn named(decision: Decision, target: &Target) -> Decision {
    match target.file() {
        Some((_, path, _)) if decision.effect > RuleEffect::Allow => {
            Decision { reason: format!("`{path}`: {}", decision.reason), ..decision }
        }
        _ => decision,
    }
}

/// Rules that cannot be read deny everything: there is no moment without rules.
fn unreadable(error: ToolError) -> Verdict {
    let message = format!("the rules cannot be used, so nothing is allowed: {}", error.message);
    let error = ToolError { code: Code::Policy, message, ..error };
    Verdict::Deny { rule: "unreadable".to_owned(), error }
}

/// Whether a call passed every gate, so that it began to run. What a gate says a second time is about files that the
/// running call wanted to change, and so are the answers after that. Of several answers to the call itself the last
/// one counts: it was asked again because the call had changed.
pub(super) fn was_let_through(record: &CallRecord) -> bool {
    let mut heard = BTreeSet::new();
    let about_the_call = record.verdicts.iter().take_while(|verdict| {
        verdict.stage == Stage::Approval || heard.insert((verdict.stage, verdict.gate.as_str()))
    });
    let mut answer = "approved";
    for verdict in about_the_call {
        match (verdict.stage, verdict.verdict.as_str()) {
            (_, "deny") => return false,
            // Until somebody answers, a gate that asks is not passed.
            (Stage::Approval, word) | (_, word @ "ask") => answer = word,
            _ => {}
        }
    }
    answer == "approved"
}

/// A request with what the rules see besides it.
pub(super) struct Judged {
    mode: TddMode,
    state: TddState,
}

impl Judged {
    pub(super) fn new(tdd: &dyn TddView, request: &GateRequest<'_>) -> Self {
        Self { mode: tdd.mode(), state: tdd.state(request.targets) }
    }

    pub(super) fn question<'a>(&self, request: &GateRequest<'a>) -> Question<'a> {
        Question {
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
