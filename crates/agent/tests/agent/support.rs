//! A world for the loop: a scripted model, tools that count their effects, a journal that can die, a clock that obeys.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_agent::{
    AgentClock, AgentEvent, AgentLimits, AgentOptions, AgentPorts, Budgets, LineDurability, RecoveredOutcome,
    Recovery, Replayed, ResumeOptions, StopHandle, StopLevel, StopSignal, Summary, TddStateSource,
    TranscriptJournal, TranscriptLine, replay, resume, run,
};
use tgp_contract::{
    Block, CallContext, CallRecord, Cancellation, ChatOptions, Code, Consent, Effect, EventStream, Execution,
    ExecutionPath, FileEffect, GateVerdict, Message, ModelInfo, ModelProvider, RelativePath, Role, Root,
    Stage, StreamEvent, TddMode, TddState, ToolCall, ToolCaller, ToolDefinition, ToolError, ToolName,
    ToolResult, Usage,
};
use tokio::sync::{Notify, mpsc};

/// A turn of the scripted model.
#[derive(Clone, Debug)]
pub(crate) enum Play {
    Events(Vec<StreamEvent>),
    /// Says so much, and then nothing forever.
    Hang(Vec<StreamEvent>),
    /// Nothing of the turn was received.
    Refuse(ToolError),
    /// One of these each time that the turn is asked for, the last one from then on.
    Again(Vec<Vec<StreamEvent>>),
}

/// Where a process dies at a call that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    BeforeTheEffect,
    BeforeTheRecord,
    AfterTheRecord,
}

/// A wish that comes at a certain call, by its id.
#[derive(Clone, Debug)]
pub(crate) struct WishAt {
    pub(crate) call: String,
    pub(crate) wish: StopLevel,
    /// Whether the call never ends by itself.
    pub(crate) hangs: bool,
}

/// Everything outside the loop, over all runs of one session.
pub(crate) struct Fixture {
    pub(crate) plays: Vec<Play>,
    /// What `exec_tool` answers.
    pub(crate) answer: Value,
    pub(crate) requests: Mutex<Vec<ChatOptions>>,
    pub(crate) lines: Mutex<Vec<TranscriptLine>>,
    pub(crate) safeties: Mutex<Vec<LineDurability>>,
    /// Lines after which the journal dies.
    pub(crate) journal_dies_after: AtomicUsize,
    pub(crate) effects: Mutex<Vec<String>>,
    pub(crate) made: Mutex<Vec<(ToolCall, CallContext)>>,
    pub(crate) records: Mutex<BTreeMap<String, Value>>,
    pub(crate) death: Mutex<Option<(String, Death)>>,
    pub(crate) died: Notify,
    pub(crate) clock: AtomicU64,
    pub(crate) clock_step: AtomicU64,
    /// Tokens that the provider counts for a thousand bytes; it counts nothing at 0.
    pub(crate) tokens_a_thousand_bytes: AtomicU64,
    pub(crate) state: Mutex<TddState>,
    pub(crate) wish_at: Mutex<Option<WishAt>>,
    pub(crate) wish_at_turn: Mutex<Option<u64>>,
    pub(crate) handle: Mutex<Option<StopHandle>>,
    pub(crate) reads_at_once: AtomicUsize,
    pub(crate) most_reads_at_once: AtomicUsize,
}

impl Fixture {
    pub(crate) fn new(plays: Vec<Play>) -> Self {
        Self {
            plays,
            answer: json!({ "result": 1 }),
            requests: Mutex::default(),
            lines: Mutex::default(),
            safeties: Mutex::default(),
            journal_dies_after: AtomicUsize::new(usize::MAX),
            effects: Mutex::default(),
            made: Mutex::default(),
            records: Mutex::default(),
            death: Mutex::default(),
            died: Notify::new(),
            clock: AtomicU64::new(1_000_000),
            clock_step: AtomicU64::new(7),
            tokens_a_thousand_bytes: AtomicU64::new(0),
            state: Mutex::new(TddState::Idle),
            wish_at: Mutex::default(),
            wish_at_turn: Mutex::default(),
            handle: Mutex::default(),
            reads_at_once: AtomicUsize::new(0),
            most_reads_at_once: AtomicUsize::new(0),
        }
    }

    pub(crate) fn said(turns: Vec<Vec<StreamEvent>>) -> Self {
        Self::new(turns.into_iter().map(Play::Events).collect())
    }

    pub(crate) fn ports(&self) -> AgentPorts<'_> {
        AgentPorts { provider: self, tools: self, journal: self, clock: self, standing: self, recovery: self }
    }

    pub(crate) fn lines(&self) -> Vec<TranscriptLine> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> Vec<ChatOptions> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    pub(crate) fn kill_after(&self, lines: usize) {
        self.journal_dies_after.store(lines, Ordering::SeqCst);
    }

    pub(crate) async fn run(&self, options: AgentOptions) -> (Result<Summary, ToolError>, Vec<AgentEvent>) {
        let (sender, receiver) = mpsc::channel(4);
        let session = run(options, self.ports(), sender, self.signal());
        tokio::join!(session, collect(receiver))
    }

    pub(crate) async fn resume(
        &self,
        options: ResumeOptions,
    ) -> (Result<Summary, ToolError>, Vec<AgentEvent>) {
        let (sender, receiver) = mpsc::channel(4);
        let session = resume(self.lines(), options, self.ports(), sender, self.signal());
        tokio::join!(session, collect(receiver))
    }

    /// Runs until the process dies at a call.
    pub(crate) async fn run_until_death(&self, options: AgentOptions) {
        tokio::select! {
            ended = self.run(options) => panic!("it should have died: {:?}", ended.0),
            () = self.died.notified() => {}
        }
        *self.death.lock().unwrap() = None;
    }

    fn signal(&self) -> StopSignal {
        let (handle, signal) = StopSignal::new();
        *self.handle.lock().unwrap() = Some(handle);
        signal
    }

    fn wish(&self, wish: StopLevel) {
        self.handle.lock().unwrap().as_ref().unwrap().request(wish);
    }

    async fn die(&self) {
        self.died.notify_one();
        std::future::pending::<()>().await;
    }

    async fn die_at(&self, call: &str, death: Death) {
        let planned = self.death.lock().unwrap().clone();
        if planned.is_some_and(|(at, how)| at == call && how == death) {
            self.die().await;
        }
    }

    async fn perform(&self, call: &ToolCall) -> (Result<Value, ToolError>, Vec<FileEffect>) {
        let arguments = &call.arguments;
        let word = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match call.tool.as_str() {
            "look" | "eye.look" => {
                let now = self.reads_at_once.fetch_add(1, Ordering::SeqCst) + 1;
                self.most_reads_at_once.fetch_max(now, Ordering::SeqCst);
                // Later reads end earlier, so that the order of results is not an accident.
                for _ in 0..arguments.get("slow").and_then(Value::as_u64).unwrap_or(0) {
                    tokio::task::yield_now().await;
                }
                self.reads_at_once.fetch_sub(1, Ordering::SeqCst);
                let size = arguments.get("size").and_then(Value::as_u64).unwrap_or(8);
                let is_lines = arguments.get("lines").and_then(Value::as_bool).unwrap_or(false);
                let piece = if is_lines { "0123456789\n\"def\n" } else { "0123456789abcdef" };
                let text = piece.repeat(usize::try_from(size).unwrap() / 16 + 1);
                (Ok(json!({ "effects": self.effects().len(), "text": text })), Vec::new())
            }
            "fail" => {
                // Succeeds each so many times.
                let count = self.made.lock().unwrap().iter().filter(|(made, _)| made.tool == "fail").count();
                if arguments
                    .get("each")
                    .and_then(Value::as_u64)
                    .is_some_and(|each| (count as u64).is_multiple_of(each))
                {
                    return (Ok(json!({ "count": count })), Vec::new());
                }
                let code = Code::ALL.iter().copied().find(|code| code.as_str() == word("code"));
                let long = arguments.get("long").and_then(Value::as_u64).unwrap_or(0);
                let why = format!("it failed: {}{}", word("why"), "x".repeat(usize::try_from(long).unwrap()));
                let error = ToolError::new(code.unwrap_or(Code::Runtime), why)
                    .help("try something else")
                    .detail("state", word("state"));
                // A person has halted the work meanwhile.
                if let Some(state) = TddState::parse(&word("state")) {
                    *self.state.lock().unwrap() = state;
                }
                (Err(error), Vec::new())
            }
            "change" | "write_file" => {
                self.die_at(&call.id, Death::BeforeTheEffect).await;
                self.effects.lock().unwrap().push(call.id.clone());
                if let Some(state) = TddState::parse(&word("state")) {
                    *self.state.lock().unwrap() = state;
                }
                let path = word("path");
                let path = RelativePath::new(if path.is_empty() { "notes.txt" } else { &path }).unwrap();
                let before = arguments.get("before").and_then(Value::as_str).map(str::to_owned);
                let root = if call.tool == "change" { Root::Project } else { Root::Tools };
                let file = FileEffect::new(root, path, before, Some("aa".to_owned()));
                // How long their names are.
                let wide = arguments.get("wide").and_then(Value::as_u64).unwrap_or(0);
                let wide = usize::try_from(wide).unwrap();
                let many = arguments.get("files").and_then(Value::as_u64).unwrap_or(1);
                let files = (0..many).map(|number| FileEffect {
                    path: if number == 0 {
                        file.path.clone()
                    } else {
                        RelativePath::new(&format!("f/{number}{}", "y".repeat(wide))).unwrap()
                    },
                    ..file.clone()
                });
                (Ok(json!({ "changed": call.id })), files.collect())
            }
            "exec_tool" => (Ok(self.answer.clone()), Vec::new()),
            "test_run" => {
                let mut data = json!({ "passed": 3, "failed": 0 });
                data.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
                (Ok(data), Vec::new())
            }
            other => (Err(ToolError::new(Code::NotFound, format!("there is no tool `{other}`"))), Vec::new()),
        }
    }
}

pub(crate) async fn collect(mut receiver: mpsc::Receiver<AgentEvent>) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    events
}

impl AgentClock for Fixture {
    fn now_ms(&self) -> u64 {
        self.clock.fetch_add(self.clock_step.load(Ordering::SeqCst), Ordering::SeqCst)
    }
}

impl TranscriptJournal for Fixture {
    fn append(&self, line: &TranscriptLine, safety: LineDurability) -> Result<(), ToolError> {
        let mut lines = self.lines.lock().unwrap();
        if lines.len() >= self.journal_dies_after.load(Ordering::SeqCst) {
            return Err(ToolError::new(Code::Internal, "the power is gone"));
        }
        // What is resumed and replayed is what a reader of the file gets.
        lines.push(TranscriptLine::parse(&line.encode()).unwrap());
        self.safeties.lock().unwrap().push(safety);
        Ok(())
    }
}

impl TddStateSource for Fixture {
    fn state(&self) -> TddState {
        *self.state.lock().unwrap()
    }
}

#[async_trait]
impl Recovery for Fixture {
    async fn fate(&self, session: &str, call_id: &str) -> Result<RecoveredOutcome, ToolError> {
        assert_eq!(session, "s1");
        let record = self.records.lock().unwrap().get(call_id).cloned();
        Ok(record.map_or(RecoveredOutcome::Unknown, |outcome| RecoveredOutcome::Recorded { outcome }))
    }
}

#[async_trait]
impl ModelProvider for Fixture {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn chat(&self, options: ChatOptions) -> Result<EventStream, ToolError> {
        let turn = usize::try_from(options.turn).unwrap();
        let bytes = request_bytes(&options) as u64;
        let counted = bytes * self.tokens_a_thousand_bytes.load(Ordering::SeqCst) / 1000;
        let asked = {
            let mut requests = self.requests.lock().unwrap();
            let before = requests.iter().filter(|request| request.turn == options.turn).count();
            requests.push(options);
            before
        };
        if *self.wish_at_turn.lock().unwrap() == Some(turn as u64) {
            self.wish(StopLevel::AfterCall);
        }
        let play = self.plays.get(turn).cloned();
        let stream = |events: Vec<StreamEvent>| futures_util::stream::iter(events);
        match play.unwrap_or_else(|| Play::Events(vec![text("the end"), end()])) {
            Play::Events(events) if counted > 0 => {
                Ok(Box::pin(stream([vec![usage(counted, 10)], events].concat())))
            }
            Play::Events(events) => Ok(Box::pin(stream(events))),
            Play::Hang(events) => {
                use futures_util::StreamExt;
                Ok(Box::pin(stream(events).chain(futures_util::stream::pending())))
            }
            Play::Refuse(error) => Err(error),
            Play::Again(times) => Ok(Box::pin(stream(times[asked.min(times.len() - 1)].clone()))),
        }
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        Ok(vec![ModelInfo { name: "m".to_owned() }])
    }
}

#[async_trait]
impl ToolCaller for Fixture {
    fn definitions(&self) -> Vec<ToolDefinition> {
        definitions()
    }

    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord {
        self.made.lock().unwrap().push((call.clone(), context.clone()));
        let mut is_taken_back = false;
        let wish = self.wish_at.lock().unwrap().clone().filter(|wish| wish.call == call.id);
        if let Some(wish) = wish {
            *self.wish_at.lock().unwrap() = None;
            self.wish(wish.wish);
            if wish.hangs {
                cancelled.await;
                is_taken_back = true;
            }
        }
        let known = definitions()
            .into_iter()
            .find(|tool| tool.name.as_str() == call.tool || tool.aliases.contains(&call.tool));
        let denied = call.arguments.get("deny").is_some();
        let refused = call.arguments.get("refuse").is_some();
        // It runs, and then a gate refuses what it wants to change.
        let unapplied = call.arguments.get("unapplied").is_some();
        // The stand-in for the router's first stages: unknown tools, arguments that are not an object, a
        // gate.
        let (result, files) = if is_taken_back {
            (Err(ToolError::new(Code::Runtime, "it was cancelled").of_cancellation()), Vec::new())
        } else if known.is_some() && !call.arguments.is_object() {
            (Err(ToolError::new(Code::Validation, "the arguments are no object")), Vec::new())
        } else if denied || refused {
            (Err(ToolError::new(Code::Policy, "a rule forbids it")), Vec::new())
        } else {
            self.perform(&call).await
        };
        let is_valid = known.is_some() && call.arguments.is_object();
        let (result, files) = if unapplied {
            (Err(ToolError::new(Code::Policy, "that is not to be changed")), Vec::new())
        } else {
            (result, files)
        };
        let verdict = |stage: Stage, gate: &str, verdict: &str| GateVerdict {
            stage,
            gate: gate.to_owned(),
            verdict: serde_json::from_value(json!(verdict)).unwrap(),
            rule: "default".to_owned(),
        };
        let verdicts = [
            Some(verdict(Stage::Policy, "policy", if denied { "deny" } else { "allow" })),
            refused.then(|| verdict(Stage::Approval, "approval", "ask")),
            refused.then(|| verdict(Stage::Approval, "approval", "refused")),
            unapplied.then(|| verdict(Stage::Policy, "policy", "deny")),
        ];
        let verdicts = verdicts.into_iter().flatten().filter(|_| is_valid).collect();
        if call.tool == "change" {
            self.die_at(&call.id, Death::BeforeTheRecord).await;
        }
        let code = result.as_ref().err().map(|error| error.code.as_str());
        let outcome = json!({ "ok": result.is_ok(), "errorCode": code, "message": null, "files": files, "durationUs": 5 });
        let entry = json!({ "auditEntry": 7, "verdict": if denied { "denied" } else { "allowed" }, "outcome": outcome });
        self.records.lock().unwrap().insert(call.id.clone(), entry);
        if call.tool == "change" {
            self.die_at(&call.id, Death::AfterTheRecord).await;
        }
        // An order that a gate let pass runs; what it wants to change may be denied afterwards.
        let started = is_valid && !denied && !refused && !is_taken_back;
        let record = CallRecord::ended(call, context, ToolResult::from(result));
        let execution = if started { record.execution } else { Execution::NotStarted };
        CallRecord {
            tool: known.as_ref().map(|tool| tool.name.to_string()),
            effect: known.as_ref().map(|tool| tool.effect),
            verdicts,
            files,
            execution,
            cancelled: is_taken_back,
            duration_us: 1500,
            ..record
        }
    }
}

pub(crate) fn definitions() -> Vec<ToolDefinition> {
    let tool = |name: &str, aliases: &[&str], effect: Effect| ToolDefinition {
        name: ToolName::new(name).unwrap(),
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        description: format!("The tool {name}. It has a second sentence."),
        input_schema: json!({ "type": "object" }),
        effect,
        path: ExecutionPath::Fast,
        dry_run: false,
    };
    let mut tools = vec![
        tool("change", &[], Effect::Write),
        tool("exec_tool", &[], Effect::Execute),
        tool("fail", &[], Effect::Read),
        tool("look", &["eye.look"], Effect::Read),
        tool("test_run", &[], Effect::Execute),
        tool("write_file", &[], Effect::Write),
    ];
    let mut any = tool("zz_any", &[], Effect::Write);
    any.input_schema = json!(true);
    tools.push(any);
    tools
}

pub(crate) fn options() -> AgentOptions {
    AgentOptions {
        session: "s1".to_owned(),
        actor: "agent".to_owned(),
        task: "THE TASK: do it".to_owned(),
        model: "m".to_owned(),
        system: "THE SYSTEM PROMPT".to_owned(),
        mode: TddMode::Strict,
        budgets: budgets(),
        limits: limits(),
        consent: Consent::Ask,
        token: None,
    }
}

pub(crate) fn limits() -> AgentLimits {
    AgentLimits { context_tokens: 100_000, max_output_tokens: None, temperature: Some(0.1), prices: None }
}

/// A context of another size.
pub(crate) fn context(context_tokens: u64) -> AgentLimits {
    AgentLimits { context_tokens, ..limits() }
}

pub(crate) fn budgets() -> Budgets {
    Budgets { max_steps: 200, max_tokens: None, max_seconds: None, max_cost: None }
}

pub(crate) fn resumption() -> ResumeOptions {
    ResumeOptions {
        model: None,
        budgets: budgets(),
        limits: limits(),
        message: None,
        consent: Consent::Ask,
        token: None,
    }
}

pub(crate) fn text(value: &str) -> StreamEvent {
    StreamEvent::Text { value: value.to_owned() }
}

pub(crate) fn end() -> StreamEvent {
    StreamEvent::End { reason: None }
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64) -> StreamEvent {
    StreamEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() })
}

pub(crate) fn call(tool: &str, id: &str, arguments: Value) -> StreamEvent {
    StreamEvent::ToolCall { tool_name: tool.to_owned(), call_id: id.to_owned(), arguments }
}

/// The last results a request holds, in their order.
pub(crate) fn last_results(request: &ChatOptions) -> Vec<(String, String, bool)> {
    let blocks = &request.messages.last().unwrap().blocks;
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolResult { call_id, content, is_error } => {
                Some((call_id.clone(), content.clone(), *is_error))
            }
            _ => None,
        })
        .collect()
}

/// What the last message says in addition to results.
pub(crate) fn last_text(request: &ChatOptions) -> String {
    let blocks = &request.messages.last().unwrap().blocks;
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Bytes of a request as a provider would be sent it, at least.
pub(crate) fn request_bytes(request: &ChatOptions) -> usize {
    let block = |block: &Block| match block {
        Block::Text { text } => text.len(),
        Block::ToolCall { arguments, .. } => arguments.to_string().len(),
        Block::ToolResult { content, .. } => content.len(),
        Block::Opaque { value, .. } => value.to_string().len(),
    };
    let said: usize = request.messages.iter().flat_map(|message| &message.blocks).map(block).sum();
    said + request.system.len() + serde_json::to_string(&request.tools).unwrap().len()
}

/// What every provider demands of a request.
pub(crate) fn check_request(request: &ChatOptions) {
    let messages = &request.messages;
    assert_eq!(messages.first().unwrap().role, Role::User);
    assert_eq!(messages.last().unwrap().role, Role::User);
    assert!(messages.iter().all(|message| !message.blocks.is_empty()));
    assert!(messages.windows(2).all(|pair| pair[0].role != pair[1].role), "roles alternate");
    let Block::Text { text } = &messages[0].blocks[0] else { panic!("the task comes first") };
    assert!(text.starts_with("THE TASK"));
    let mut ids = std::collections::BTreeSet::new();
    for pair in messages.windows(2) {
        let called = ids_of(&pair[0], Role::Assistant);
        assert_eq!(
            called,
            ids_of(&pair[1], Role::User),
            "each call has its result in the next message, in order"
        );
        for id in called {
            assert!(!id.is_empty() && ids.insert(id), "ids are unique");
        }
    }
    for message in messages {
        for block in &message.blocks {
            match block {
                Block::Text { text } => assert!(!text.trim().is_empty()),
                Block::ToolCall { tool_name, .. } => assert!(ToolName::new(tool_name.clone()).is_ok()),
                Block::ToolResult { .. } | Block::Opaque { .. } => {}
            }
        }
    }
}

/// The calls of a message of the model, or the results of one to it. The other kind must not be there.
fn ids_of(message: &Message, role: Role) -> Vec<String> {
    if message.role != role {
        return Vec::new();
    }
    message
        .blocks
        .iter()
        .filter_map(|block| match (block, role) {
            (Block::ToolCall { call_id, .. }, Role::Assistant)
            | (Block::ToolResult { call_id, .. }, Role::User) => Some(call_id.clone()),
            (Block::ToolCall { .. } | Block::ToolResult { .. }, _) => panic!("a block in the wrong role"),
            _ => None,
        })
        .collect()
}

pub(crate) async fn assert_same(lines: &[TranscriptLine]) {
    let replayed = replay(lines).await.unwrap();
    assert_eq!(replayed, Replayed::Same { lines: lines.len() as u64 });
}
