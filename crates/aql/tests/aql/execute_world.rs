//! A world for runs: tools, agents, tokens, a journal, a cache and records, all of them scripted and all of them counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tgp_aql::{
    AttemptScope, Cache, EarlierOutcome, JournalLine, QueryHost, QueryJournal, QueryPlan, QueryPorts,
    RunEvent, RunOptions, RunReport, TokenUsage, run,
};
use tgp_contract::{
    Actor, AgentFailure, AgentResult, AgentRunner, AgentTask, BeforeEffectHook, CallContext, CallRecord,
    Cancellation, CapabilityToken, Code, Consent, Effect, Execution, ExecutionPath, ToolCall, ToolCaller,
    ToolDefinition, ToolError, ToolName, ToolResult, Usage,
};
use tokio::sync::mpsc;

/// What a tool does with a call.
pub struct Reply {
    pub delay: Duration,
    pub result: Result<Value, ToolError>,
    /// Continues although it was cancelled.
    pub is_stubborn: bool,
    pub effect: Takes,
}

/// When a call takes effect.
#[derive(Clone, Copy, PartialEq)]
pub enum Takes {
    /// As its tool is said to: one that reads never, every other at its end.
    AtTheEnd,
    /// Before it takes its time.
    AtOnce,
    Never,
}

pub fn reply(value: Value) -> Reply {
    Reply { delay: Duration::from_millis(1), result: Ok(value), is_stubborn: false, effect: Takes::AtTheEnd }
}

pub fn refuse(code: Code) -> Reply {
    Reply {
        delay: Duration::from_millis(1),
        result: Err(ToolError::new(code, "it was refused")),
        is_stubborn: false,
        effect: Takes::Never,
    }
}

impl Reply {
    pub fn taking(mut self, effect: Takes) -> Self {
        self.effect = effect;
        self
    }

    pub fn after(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    pub fn stubborn(mut self) -> Self {
        self.is_stubborn = true;
        self
    }
}

type Tool = Box<dyn Fn(&ToolCall) -> Reply + Send + Sync>;
type Agent = Box<dyn Fn(&AgentTask, usize) -> Result<AgentResult, AgentFailure> + Send + Sync>;

/// One fake for all ports.
pub struct Fake {
    tool: Tool,
    agent: Agent,
    agent_delay: Duration,
    began: tokio::time::Instant,
    pub calls: Mutex<Vec<(ToolCall, CallContext)>>,
    pub tasks: Mutex<Vec<AgentTask>>,
    pub scopes: Mutex<Vec<AttemptScope>>,
    pub lines: Mutex<Vec<JournalLine>>,
    /// Lines after which the journal takes no more.
    pub journal_room: Mutex<usize>,
    pub cache: Mutex<HashMap<String, Value>>,
    pub fates: Mutex<BTreeMap<String, EarlierOutcome>>,
    /// That of all other calls.
    pub usual_fate: Mutex<EarlierOutcome>,
    pub witnesses: Mutex<Vec<BeforeEffectHook>>,
    pub version: Mutex<Option<String>>,
    pub model: Mutex<Option<String>>,
    /// Ids of calls that have taken effect, in order.
    pub effects: Mutex<Vec<String>>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl Fake {
    pub fn new(tool: impl Fn(&ToolCall) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            tool: Box::new(tool),
            agent: Box::new(|task, _| Ok(said(&format!("done: {}", task.prompt)))),
            agent_delay: Duration::from_millis(5),
            began: tokio::time::Instant::now(),
            calls: Mutex::default(),
            tasks: Mutex::default(),
            scopes: Mutex::default(),
            lines: Mutex::default(),
            journal_room: Mutex::new(usize::MAX),
            cache: Mutex::default(),
            fates: Mutex::default(),
            usual_fate: Mutex::new(EarlierOutcome::Unknown),
            witnesses: Mutex::default(),
            version: Mutex::new(Some("v1".to_owned())),
            model: Mutex::new(Some("m1".to_owned())),
            effects: Mutex::default(),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        }
    }

    /// A tool that answers with what it was given.
    pub fn echo() -> Self {
        Self::new(|call| reply(call.arguments.clone()))
    }

    /// The closure's number counts all work of all agents.
    pub fn with_agent(
        mut self,
        agent: impl Fn(&AgentTask, usize) -> Result<AgentResult, AgentFailure> + Send + Sync + 'static,
    ) -> Self {
        self.agent = Box::new(agent);
        self
    }

    pub fn ids(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(call, _)| call.id.clone()).collect()
    }

    pub fn lines(&self) -> Vec<JournalLine> {
        self.lines.lock().unwrap().clone()
    }

    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    pub fn most_running(&self) -> usize {
        self.most_running.load(Ordering::SeqCst)
    }

    fn enter(&self) -> Running<'_> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(now, Ordering::SeqCst);
        Running(self)
    }
}

struct Running<'a>(&'a Fake);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

pub fn said(answer: &str) -> AgentResult {
    let usage = tgp_contract::Usage { input_tokens: 7, output_tokens: 3, ..tgp_contract::Usage::default() };
    AgentResult { answer: answer.to_owned(), steps: 1, calls: 2, usage, files: Vec::new() }
}

pub fn cancelled() -> ToolError {
    ToolError::new(Code::Runtime, "taken back").of_cancellation()
}

#[async_trait]
impl ToolCaller for Fake {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let one = |name: &str, effect| ToolDefinition {
            name: ToolName::new(name).unwrap(),
            aliases: Vec::new(),
            description: format!("the tool {name}"),
            input_schema: json!({ "type": "object", "properties": { "path": { "type": "string" } }, "additionalProperties": false }),
            effect,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        vec![
            one("exec_sql", Effect::Write),
            one("exec_tool", Effect::Execute),
            one("fs_read", Effect::Read),
            one("fs_write", Effect::Write),
            one("graph_query", Effect::Read),
        ]
    }

    async fn call(&self, _: ToolCall, _: CallContext, _: Cancellation<'_>) -> CallRecord {
        panic!("a run makes no call without a witness");
    }

    async fn call_witnessed(
        &self,
        call: ToolCall,
        context: CallContext,
        cancellation: Cancellation<'_>,
        witness: BeforeEffectHook,
    ) -> CallRecord {
        let _running = self.enter();
        self.calls.lock().unwrap().push((call.clone(), context.clone()));
        self.witnesses.lock().unwrap().push(witness.clone());
        let Reply { delay, result, is_stubborn, effect } = (self.tool)(&call);
        let reads = matches!(call.tool.as_str(), "fs_read" | "graph_query");
        let take_effect = || {
            witness()?;
            self.effects.lock().unwrap().push(call.id.clone());
            // An effect has parts, and each asks.
            witness()
        };
        let at_once = if effect == Takes::AtOnce { take_effect() } else { Ok(()) };
        let result = if is_stubborn {
            tokio::time::sleep(delay).await;
            result
        } else {
            tokio::select! {
                biased;
                () = cancellation => Err(cancelled()),
                () = tokio::time::sleep(delay) => result,
            }
        };
        let result = match at_once {
            Ok(()) if effect == Takes::AtTheEnd && !reads && result.is_ok() => take_effect().and(result),
            at_once => at_once.and(result),
        };
        let unknown = result.as_ref().is_err_and(ToolError::is_of_unknown_outcome);
        let record = CallRecord::ended(call, context, ToolResult::from(result));
        if unknown { CallRecord { execution: Execution::Unknown, ..record } } else { record }
    }
}

#[async_trait]
impl AgentRunner for Fake {
    async fn work(
        &self,
        task: AgentTask,
        cancellation: Cancellation<'_>,
    ) -> Result<AgentResult, AgentFailure> {
        let _running = self.enter();
        let number = {
            let mut tasks = self.tasks.lock().unwrap();
            tasks.push(task.clone());
            tasks.len()
        };
        tokio::select! {
            biased;
            () = cancellation => {
                let usage = Usage { input_tokens: 2, output_tokens: 0, ..Usage::default() };
                Err(AgentFailure { usage, ..cancelled().into() })
            }
            () = tokio::time::sleep(self.agent_delay) => (self.agent)(&task, number),
        }
    }
}

impl TokenUsage for Fake {
    fn attenuated(&self, scope: &AttemptScope) -> Result<Option<CapabilityToken>, ToolError> {
        self.scopes.lock().unwrap().push(scope.clone());
        Ok(Some(CapabilityToken::new(format!("{}:{}", scope.step, scope.tools.join(",")))))
    }
}

impl QueryJournal for Fake {
    fn append(&self, line: &JournalLine) -> Result<(), ToolError> {
        let mut lines = self.lines.lock().unwrap();
        if lines.len() >= *self.journal_room.lock().unwrap() {
            return Err(ToolError::new(Code::Internal, "the disk is full"));
        }
        // What is kept must be possible to read again, and be the same then.
        let text = serde_json::to_string(line).unwrap();
        lines.push(serde_json::from_str(&text).unwrap());
        assert_eq!(lines.last(), Some(line));
        Ok(())
    }
}

impl Cache for Fake {
    fn get(&self, key: &str) -> Option<Value> {
        self.cache.lock().unwrap().get(key).cloned()
    }

    fn put(&self, key: &str, value: &Value) {
        self.cache.lock().unwrap().insert(key.to_owned(), value.clone());
    }
}

#[async_trait]
impl QueryHost for Fake {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    async fn tools_version(&self) -> Option<String> {
        self.version.lock().unwrap().clone()
    }

    async fn graph_version(&self, commit: Option<&str>) -> Option<String> {
        let version = self.version.lock().unwrap().clone()?;
        Some(format!("{version}:{}", commit.unwrap_or("latest")))
    }

    async fn model_version(&self, model: Option<&str>) -> Option<String> {
        let version = self.model.lock().unwrap().clone()?;
        Some(format!("{version}:{}", model.unwrap_or("usual")))
    }

    async fn fate(&self, _session: &str, call: &str) -> Result<EarlierOutcome, ToolError> {
        let usual = self.usual_fate.lock().unwrap().clone();
        Ok(self.fates.lock().unwrap().get(call).cloned().unwrap_or(usual))
    }
}

pub fn ports(fake: &Arc<Fake>) -> QueryPorts {
    QueryPorts {
        tools: fake.clone(),
        agents: fake.clone(),
        tokens: fake.clone(),
        journal: fake.clone(),
        cache: fake.clone(),
        world: fake.clone(),
    }
}

pub fn options() -> RunOptions {
    RunOptions {
        id: "r1".to_owned(),
        actor: Actor::Person("ada".to_owned()),
        consent: Consent::Given,
        inputs: Map::new(),
        history: Vec::new(),
        again: Vec::new(),
        shuffle: None,
    }
}

pub fn never() -> Cancellation<'static> {
    Box::pin(std::future::pending())
}

/// Runs a plan, takes all of its events, and finds nothing running afterwards.
pub async fn watch(fake: &Arc<Fake>, plan: &QueryPlan, options: RunOptions) -> (RunReport, Vec<RunEvent>) {
    watch_until(fake, plan, options, never()).await
}

pub async fn watch_until(
    fake: &Arc<Fake>,
    plan: &QueryPlan,
    options: RunOptions,
    cancellation: Cancellation<'_>,
) -> (RunReport, Vec<RunEvent>) {
    let (sender, mut receiver) = mpsc::channel(1);
    let ports = ports(fake);
    let listen = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    let (report, events) = tokio::join!(run(plan, options, &ports, sender, cancellation), listen);
    assert_eq!(fake.running(), 0, "something went on after the run had ended");
    let report = report.unwrap();
    assert_eq!(events.last(), Some(&RunEvent::End { report: Box::new(report.clone()) }));
    check_order(&events);
    (report, events)
}

pub async fn go(fake: &Arc<Fake>, plan: &QueryPlan) -> RunReport {
    watch(fake, plan, options()).await.0
}

/// What begins ends once, and nothing is said of a step after it is done.
fn check_order(events: &[RunEvent]) {
    assert!(matches!(events.first(), Some(RunEvent::Run { .. })));
    let mut states: BTreeMap<&str, &str> = BTreeMap::new();
    for event in events {
        let (step, from, to): (&str, &[&str], &str) = match event {
            RunEvent::Run { .. } | RunEvent::End { .. } => continue,
            RunEvent::Begun { step, .. } => (step, &["", "again"], "begun"),
            RunEvent::Done { step, how: tgp_aql::ValueSource::Ran, .. } => (step, &["begun"], "done"),
            RunEvent::Done { step, .. } => (step, &[""], "done"),
            RunEvent::Failed { step, again: true, .. } => (step, &["begun"], "again"),
            RunEvent::Failed { step, .. } => (step, &["begun"], "failed"),
            RunEvent::Excused { step, .. } => (step, &["failed"], "done"),
        };
        let state = states.entry(step).or_insert("");
        assert!(from.contains(state), "{step} went from {state:?} to {to:?}");
        *state = to;
    }
}
