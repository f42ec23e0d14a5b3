//! Find, validate, gates, approval, execute, record.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{
    Actor, ApprovalAnswer, ApprovalOrigin, ApprovalReason, ApprovalRequest, Approver, CallContext,
    CallRecord, Code, Consent, Effect, ExecutionPath, Gate, GateDecision, GateRequest, Recorder, Stage,
    Target, ToolCall, ToolDefinition, ToolError, ToolName, ToolResult, Verdict,
};
use tgp_router::files::ToolDirectories;
use tgp_router::{DenyAll, DynTool, Invocation, RecentCalls, Router, RouterError, ToolOutcome, Workspace};

use crate::effect_gate::EffectGate;

struct Probe {
    definition: ToolDefinition,
    runs: Arc<AtomicUsize>,
    dry_runs: Arc<AtomicUsize>,
}

#[async_trait]
impl DynTool for Probe {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, _arguments: &Value) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        let counter = if invocation.context.dry_run { &self.dry_runs } else { &self.runs };
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(invocation.call.arguments.clone().into())
    }
}

fn definition(name: &str, effect: Effect) -> ToolDefinition {
    ToolDefinition {
        name: ToolName::new(name).unwrap(),
        aliases: vec![format!("{name}.alias")],
        description: "a probe".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": { "n": { "type": "integer" } },
            "required": ["n"],
            "additionalProperties": false
        }),
        effect,
        path: ExecutionPath::Fast,
        dry_run: effect == Effect::Write,
    }
}

/// A gate with a fixed verdict that remembers when it was asked.
struct FixedGate {
    stage: Stage,
    name: &'static str,
    verdict: Verdict,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl Gate for FixedGate {
    fn stage(&self) -> Stage {
        self.stage
    }

    fn name(&self) -> &str {
        self.name
    }

    async fn judge(&self, _request: GateRequest<'_>) -> Verdict {
        self.asked.lock().unwrap().push(self.name);
        self.verdict.clone()
    }
}

/// Answers always the same, to what it was shown.
struct Answer(ApprovalAnswer);

#[async_trait]
impl Approver for Answer {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        match self.0.clone() {
            ApprovalAnswer::Approved { by, .. } => ApprovalAnswer::Approved { by, hash: request.hash },
            refused => refused,
        }
    }
}

struct BrokenRecorder;

#[async_trait]
impl Recorder for BrokenRecorder {
    async fn record(&self, _record: CallRecord) -> Result<(), ToolError> {
        Err(ToolError::new(Code::Integrity, "the record cannot be kept"))
    }

    fn record_cancelled(&self, _record: CallRecord) {}
}

struct House {
    router: Arc<Router>,
    records: Arc<RecentCalls>,
    runs: Arc<AtomicUsize>,
    dry_runs: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<&'static str>>>,
    _folder: tempfile::TempDir,
}

fn workspace() -> (Workspace, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".tgp")).unwrap();
    let project = folder.path().canonicalize().unwrap();
    (Workspace::open(&project, &project.join(".tgp"), ToolDirectories::default(), &[]).unwrap(), folder)
}

fn house(gates: &[(Stage, &'static str, Verdict)], approver: Arc<dyn Approver>) -> House {
    let (runs, dry_runs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let records = Arc::new(RecentCalls::new(3));
    let tools: Vec<Arc<dyn DynTool>> =
        [("reader", Effect::Read), ("writer", Effect::Write), ("runner", Effect::Execute)]
            .map(|(name, effect)| Probe {
                definition: definition(name, effect),
                runs: Arc::clone(&runs),
                dry_runs: Arc::clone(&dry_runs),
            })
            .map(|probe| Arc::new(probe) as Arc<dyn DynTool>)
            .to_vec();
    let mut list: Vec<Arc<dyn Gate>> = vec![Arc::new(EffectGate)];
    for (stage, name, verdict) in gates {
        let gate = FixedGate { stage: *stage, name, verdict: verdict.clone(), asked: Arc::clone(&asked) };
        list.push(Arc::new(gate));
    }
    let (workspace, folder) = workspace();
    let router = Router::new(tools, list, approver, Arc::clone(&records) as _, workspace).unwrap();
    House { router: Arc::new(router), records, runs, dry_runs, asked, _folder: folder }
}

fn context(consent: Consent) -> CallContext {
    CallContext {
        actor: Actor::Agent("test".to_owned()),
        session: "s".to_owned(),
        consent,
        dry_run: false,
        depth: 0,
        token: None,
    }
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments }
}

fn code(result: &ToolResult) -> Option<Code> {
    result.error().map(|error| error.code)
}

fn allow() -> Verdict {
    Verdict::Allow { rule: "ok".to_owned() }
}

fn deny(code: Code) -> Verdict {
    Verdict::Deny { rule: "no".to_owned(), error: ToolError::new(code, "no") }
}

fn ask() -> Verdict {
    Verdict::Ask(ApprovalReason {
        origin: ApprovalOrigin::Rule("ask".to_owned()),
        reason: "because".to_owned(),
    })
}

#[tokio::test]
async fn a_valid_read_runs_and_is_recorded_under_its_own_name() {
    let house = house(&[], Arc::new(DenyAll));
    let result = house.router.call(call("reader.alias", json!({ "n": 1 })), context(Consent::Ask)).await;
    assert_eq!(result, ToolResult::Done(json!({ "n": 1 })));
    let records = house.records.all();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].tool.as_deref(), Some("reader"));
    assert_eq!(records[0].call.tool, "reader.alias");
    assert_eq!(records[0].verdicts[0].verdict, GateDecision::Allow);
}

#[tokio::test]
async fn nothing_runs_and_no_gate_is_asked_when_the_call_is_wrong() {
    let house = house(&[(Stage::State, "state", allow())], Arc::new(DenyAll));
    for (tool, arguments, expected) in [
        ("missing", json!({}), Code::NotFound),
        ("reader", json!({}), Code::Validation),
        ("reader", json!({ "n": "1" }), Code::Validation),
        ("reader", json!({ "n": 1, "extra": true }), Code::Validation),
        ("reader", json!([1]), Code::Validation),
        ("reader", Value::Null, Code::Validation),
    ] {
        let result = house.router.call(call(tool, arguments.clone()), context(Consent::Given)).await;
        assert_eq!(code(&result), Some(expected), "{tool} {arguments}");
    }
    assert_eq!(house.runs.load(Ordering::SeqCst), 0);
    assert!(house.asked.lock().unwrap().is_empty());
    assert_eq!(house.records.all().len(), 3, "refusals are recorded too, and the memory is bounded");
}

#[tokio::test]
async fn gates_are_asked_in_order_and_the_first_denial_ends_the_call() {
    let house = house(
        &[
            (Stage::Guardian, "guardian", allow()),
            (Stage::Policy, "policy", deny(Code::Policy)),
            (Stage::State, "state", allow()),
        ],
        Arc::new(DenyAll),
    );
    let result = house.router.call(call("reader", json!({ "n": 1 })), context(Consent::Given)).await;
    assert_eq!(code(&result), Some(Code::Policy), "consent does not overrule a denial");
    assert_eq!(*house.asked.lock().unwrap(), ["state", "policy"]);
    assert_eq!(house.runs.load(Ordering::SeqCst), 0);
    let words: Vec<_> =
        house.records.all()[0].verdicts.iter().map(|verdict| verdict.verdict.to_string()).collect();
    assert_eq!(words, ["allow", "allow", "deny"]);
}

#[tokio::test]
async fn approval_is_sought_where_a_gate_asks() {
    for (consent, answer, expected) in [
        (Consent::Given, ApprovalAnswer::Refused { reason: "not reached".to_owned() }, None),
        (Consent::Ask, ApprovalAnswer::Approved { by: "ada".to_owned(), hash: String::new() }, None),
        (Consent::Ask, ApprovalAnswer::Refused { reason: "no".to_owned() }, Some(Code::Approval)),
    ] {
        for tool in ["writer", "runner"] {
            let house = house(&[], Arc::new(Answer(answer.clone())));
            let result = house.router.call(call(tool, json!({ "n": 1 })), context(consent)).await;
            assert_eq!(code(&result), expected, "{tool} {consent:?} {answer:?}");
            assert_eq!(house.runs.load(Ordering::SeqCst), usize::from(expected.is_none()));
            // Before the answer and after it, and only where the user is asked about a write.
            let asked = if consent == Consent::Ask && tool == "writer" { 1 } else { 0 };
            let previews = asked * if expected.is_none() { 2 } else { 1 };
            assert_eq!(house.dry_runs.load(Ordering::SeqCst), previews, "{tool} {consent:?} {answer:?}");
            assert_eq!(house.records.all()[0].verdicts.last().unwrap().stage, Stage::Approval);
        }
    }
    let house = house(&[(Stage::Guardian, "guardian", ask())], Arc::new(DenyAll));
    let result = house.router.call(call("reader", json!({ "n": 1 })), context(Consent::Ask)).await;
    assert_eq!(code(&result), Some(Code::Approval), "a gate can ask for a read, too");
}

#[tokio::test]
async fn a_dry_run_needs_no_approval_and_only_tools_that_have_one_take_it() {
    let house = house(&[], Arc::new(DenyAll));
    let dry = CallContext { dry_run: true, ..context(Consent::Ask) };
    assert!(house.router.call(call("writer", json!({ "n": 1 })), dry.clone()).await.is_ok());
    let result = house.router.call(call("runner", json!({ "n": 1 })), dry).await;
    assert_eq!(code(&result), Some(Code::Validation));
    let counted = (house.runs.load(Ordering::SeqCst), house.dry_runs.load(Ordering::SeqCst));
    assert_eq!(counted, (0, 1));
}

#[tokio::test]
async fn tools_that_call_tools_stop_at_the_depth_cap() {
    let house = house(&[], Arc::new(DenyAll));
    let deep = CallContext { depth: 9, ..context(Consent::Given) };
    assert_eq!(code(&house.router.call(call("reader", json!({ "n": 1 })), deep).await), Some(Code::Runtime));
}

#[tokio::test]
async fn a_call_whose_record_cannot_be_kept_has_failed() {
    let (workspace, _folder) = workspace();
    let probe = Probe {
        definition: definition("reader", Effect::Read),
        runs: Arc::default(),
        dry_runs: Arc::default(),
    };
    let router =
        Router::new(vec![Arc::new(probe)], vec![], Arc::new(DenyAll), Arc::new(BrokenRecorder), workspace)
            .unwrap();
    let result = Arc::new(router).call(call("reader", json!({ "n": 1 })), context(Consent::Given)).await;
    assert_eq!(code(&result), Some(Code::Integrity));
}

#[tokio::test]
async fn bug_a_call_that_took_effect_and_was_not_recorded_looked_as_if_it_had_failed() {
    let (workspace, folder) = workspace();
    let tools = tgp_builtins::project_tools().unwrap();
    let router = Router::new(tools, vec![], Arc::new(DenyAll), Arc::new(BrokenRecorder), workspace);
    let write = call("fs_write", json!({ "path": "a.txt", "content": "a" }));
    let result = Arc::new(router.unwrap()).call(write, context(Consent::Given)).await;
    let ToolResult::Failed(error) = result else { panic!("it is not recorded") };
    assert!(folder.path().join("a.txt").exists());
    assert_eq!(error.details["outcome"], "done", "{error}");
    assert!(error.message.contains("took effect"), "{error}");
}

/// A recorder that is closed once it has been asked `.0` times.
struct ClosingRecorder(AtomicUsize);

#[async_trait]
impl Recorder for ClosingRecorder {
    async fn record(&self, _record: CallRecord) -> Result<(), ToolError> {
        Err(ToolError::new(Code::Internal, "the audit has been closed"))
    }

    fn check(&self) -> Result<(), ToolError> {
        let open =
            self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if open { Ok(()) } else { Err(ToolError::new(Code::Internal, "the audit has been closed")) }
    }

    fn record_cancelled(&self, _record: CallRecord) {}
}

#[tokio::test]
async fn bug_a_call_whose_record_could_not_be_kept_took_effect() {
    // Closed before the call, and closed while it runs: right before it writes, it is asked again.
    for checks in [0, 1] {
        let (workspace, folder) = workspace();
        let recorder = Arc::new(ClosingRecorder(AtomicUsize::new(checks)));
        let router = Router::new(
            tgp_builtins::project_tools().unwrap(),
            vec![],
            Arc::new(DenyAll),
            recorder,
            workspace,
        );
        let write = call("fs_write", json!({ "path": "a.txt", "content": "a" }));
        let result = Arc::new(router.unwrap()).call(write, context(Consent::Given)).await;
        assert_eq!(code(&result), Some(Code::Internal));
        assert!(!folder.path().join("a.txt").exists(), "written without a record, after {checks} checks");
    }
}

/// A tool that never comes back.
struct Endless(ToolDefinition);

#[async_trait]
impl DynTool for Endless {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn targets(&self, _arguments: &Value) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, _invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_leaves_a_record_all_the_same() {
    let (workspace, _folder) = workspace();
    let records = Arc::new(RecentCalls::new(3));
    let tool = Arc::new(Endless(definition("endless", Effect::Read)));
    let gates: Vec<Arc<dyn Gate>> = vec![Arc::new(EffectGate)];
    let router =
        Router::new(vec![tool], gates, Arc::new(DenyAll), Arc::clone(&records) as _, workspace).unwrap();
    let router = Arc::new(router);
    let mut pending = Box::pin(router.call(call("endless", json!({ "n": 1 })), context(Consent::Given)));
    assert!(futures_poll(&mut pending).is_none());
    drop(pending);
    let kept = records.all();
    assert_eq!(kept.len(), 1);
    assert_eq!(code(&kept[0].result), Some(Code::Runtime));
    assert_eq!(kept[0].verdicts.len(), 1, "what the gates had said is kept too");
}

/// One poll of a future, without waiting.
fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn a_dry_run_of_a_tool_that_runs_something_still_asks() {
    let house = house(&[], Arc::new(DenyAll));
    let mut dry = definition("dry", Effect::Execute);
    dry.dry_run = true;
    let (workspace, _folder) = workspace();
    let probe = Arc::new(Probe { definition: dry, runs: Arc::clone(&house.runs), dry_runs: Arc::default() });
    let gates: Vec<Arc<dyn Gate>> = vec![Arc::new(EffectGate)];
    let router =
        Router::new(vec![probe], gates, Arc::new(DenyAll), Arc::new(RecentCalls::new(0)), workspace).unwrap();
    let context = CallContext { dry_run: true, ..context(Consent::Ask) };
    let result = Arc::new(router).call(call("dry", json!({ "n": 1 })), context).await;
    assert_eq!(code(&result), Some(Code::Approval));
}

#[test]
fn names_and_schemas_are_checked_when_tools_are_registered() {
    let probe = |name: &str, alias: &str, schema: Value| {
        let mut definition = definition(name, Effect::Read);
        definition.aliases = vec![alias.to_owned()];
        definition.input_schema = schema;
        Arc::new(Probe { definition, runs: Arc::default(), dry_runs: Arc::default() }) as Arc<dyn DynTool>
    };
    let build = |tools: Vec<Arc<dyn DynTool>>| {
        let (workspace, _folder) = workspace();
        Router::new(tools, vec![], Arc::new(DenyAll), Arc::new(RecentCalls::new(1)), workspace).map(|_| ())
    };
    let object = || json!({ "type": "object" });
    assert!(matches!(
        build(vec![probe("a", "x", object()), probe("a", "y", object())]),
        Err(RouterError::Duplicate(_))
    ));
    assert!(matches!(
        build(vec![probe("a", "x", object()), probe("b", "x", object())]),
        Err(RouterError::Duplicate(_))
    ));
    assert!(matches!(
        build(vec![probe("a", "b", object()), probe("b", "y", object())]),
        Err(RouterError::Duplicate(_))
    ));
    assert!(matches!(build(vec![probe("a", "x", json!({ "type": 5 }))]), Err(RouterError::Schema { .. })));
}
