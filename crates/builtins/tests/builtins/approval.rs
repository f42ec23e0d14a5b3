//! An answer holds for what was shown, and for nothing else.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_builtins::project_tools;
use tgp_contract::{
    Access, Actor, ApprovalAnswer, ApprovalRequest, Approver, CallContext, Code, Consent, Effect,
    ExecutionPath, FileFilter, Gate, GateRequest, RelativePath, Root, Stage, Target, ToolCall,
    ToolDefinition, ToolError, ToolName, ToolResult, Verdict,
};
use tgp_router::files::ToolDirectories;
use tgp_router::{DynTool, Invocation, Preview, RecentCalls, Router, ToolOutcome, Workspace};

use crate::effect_gate::EffectGate;

/// What the user was shown.
#[derive(Clone, Debug)]
struct Shown {
    preview: Option<Value>,
    reasons: Vec<String>,
    hash: String,
}

impl Shown {
    fn diff(&self) -> &str {
        self.preview.as_ref().unwrap()["diff"].as_str().unwrap()
    }
}

/// What happens while the user decides, by the number of earlier questions, and the hash of the answer.
type Thought = Box<dyn Fn(usize, &Shown) -> Option<String> + Send + Sync>;

/// Agrees, after something has happened.
struct Thoughtful {
    thought: Thought,
    shown: Mutex<Vec<Shown>>,
}

#[async_trait]
impl Approver for Thoughtful {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let ApprovalRequest { preview, reasons, no_preview, hash, .. } = request;
        let mut reasons: Vec<String> = reasons.into_iter().map(|reason| reason.reason).collect();
        reasons.extend(no_preview.map(|why| format!("there is no preview: {why}")));
        let shown = Shown { preview, reasons, hash };
        let before = self.shown.lock().unwrap().len();
        self.shown.lock().unwrap().push(shown.clone());
        match (self.thought)(before, &shown) {
            Some(hash) => ApprovalAnswer::Approved { by: "ada".to_owned(), hash },
            None => ApprovalAnswer::Refused { reason: "no".to_owned() },
        }
    }
}

/// Makes unreadable what it names.
struct Blind(&'static str);

#[async_trait]
impl Gate for Blind {
    fn stage(&self) -> Stage {
        Stage::Guardian
    }

    fn name(&self) -> &str {
        "blind"
    }

    async fn judge(&self, _request: GateRequest<'_>) -> Verdict {
        Verdict::Allow { rule: "none".to_owned() }
    }

    async fn file_filter(&self, _request: GateRequest<'_>) -> Option<FileFilter> {
        let name = self.0;
        Some(Arc::new(move |_, path, access| access != Access::Read || path.as_str() != name))
    }
}

/// A tool whose file is changed after the last preview and before the write.
struct Meddled {
    inner: Arc<dyn DynTool>,
    previews: AtomicUsize,
    meddle: Box<dyn Fn() + Send + Sync>,
}

#[async_trait]
impl DynTool for Meddled {
    fn definition(&self) -> &ToolDefinition {
        self.inner.definition()
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        self.inner.targets(arguments)
    }

    async fn preview(&self, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let preview = self.inner.preview(invocation).await;
        // The first is shown, the second confirms it.
        if self.previews.fetch_add(1, Ordering::SeqCst) == 1 {
            (self.meddle)();
        }
        preview
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        self.inner.run(invocation).await
    }
}

struct Room {
    router: Arc<Router>,
    records: Arc<RecentCalls>,
    approver: Arc<Thoughtful>,
    folder: tempfile::TempDir,
}

impl Room {
    fn new(thought: impl FnOnce(PathBuf) -> Thought) -> Self {
        Self::with(thought, Vec::new(), |_, tools| tools)
    }

    fn with(
        thought: impl FnOnce(PathBuf) -> Thought,
        mut gates: Vec<Arc<dyn Gate>>,
        tools: impl FnOnce(PathBuf, Vec<Arc<dyn DynTool>>) -> Vec<Arc<dyn DynTool>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        std::fs::create_dir(project.join(".tgp")).unwrap();
        std::fs::write(project.join("notes.md"), "old\nline\n").unwrap();
        let workspace =
            Workspace::open(&project, &project.join(".tgp"), ToolDirectories::default(), &[]).unwrap();
        let approver =
            Arc::new(Thoughtful { thought: thought(project.join("notes.md")), shown: Mutex::default() });
        let records = Arc::new(RecentCalls::new(8));
        gates.push(Arc::new(EffectGate));
        let tools = tools(project.join("notes.md"), project_tools().unwrap());
        let router =
            Router::new(tools, gates, Arc::clone(&approver) as _, Arc::clone(&records) as _, workspace);
        Self { router: Arc::new(router.unwrap()), records, approver, folder }
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_as(tool, arguments, "s", "test").await
    }

    async fn call_as(&self, tool: &str, arguments: Value, session: &str, actor: &str) -> ToolResult {
        let call = ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments };
        let context = CallContext {
            actor: Actor::Agent(actor.to_owned()),
            session: session.to_owned(),
            consent: Consent::Ask,
            dry_run: false,
            depth: 0,
            token: None,
        };
        self.router.call(call, context).await
    }

    fn notes(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join("notes.md")).ok()
    }

    fn shown(&self) -> Vec<Shown> {
        self.approver.shown.lock().unwrap().clone()
    }

    /// The answers in the record of the last call.
    fn answers(&self) -> Vec<(String, String)> {
        let record = self.records.all().pop().unwrap();
        let answers = record.verdicts.into_iter().filter(|verdict| verdict.stage == Stage::Approval);
        answers.map(|verdict| (verdict.verdict.to_string(), verdict.rule)).collect()
    }
}

fn agree() -> Thought {
    Box::new(|_, shown| Some(shown.hash.clone()))
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(verdict, rule)| ((*verdict).to_owned(), (*rule).to_owned())).collect()
}

/// Changes of one file, and what it holds when the change met another content than the first.
fn changes() -> [(&'static str, Value, Option<&'static str>); 3] {
    [
        ("fs_write", json!({ "path": "notes.md", "content": "new\n" }), Some("new\n")),
        (
            "fs_edit",
            json!({ "path": "notes.md", "search": "old", "replace": "new" }),
            Some("new, and more\n"),
        ),
        ("fs_delete", json!({ "path": "notes.md" }), None),
    ]
}

#[tokio::test]
async fn who_is_asked_sees_the_difference_and_the_answer_stands_in_the_record() {
    for (tool, arguments, _) in changes() {
        let room = Room::new(|_| agree());
        let result = room.call(tool, arguments.clone()).await;
        assert!(result.is_ok(), "{tool}: {result:?}");
        let [shown] = &room.shown()[..] else { panic!("{tool}: {:?}", room.shown()) };
        assert!(shown.diff().contains("-old\n"), "{tool}: {}", shown.diff());
        let found = &shown.preview.as_ref().unwrap()["found"][0];
        assert_eq!((&found["root"], &found["path"]), (&json!("project"), &json!("notes.md")), "{tool}");
        assert_eq!(found["sha256"], tgp_contract::canonical::sha256_hex(b"old\nline\n"), "{tool}");
        assert_eq!(room.answers(), pairs(&[("approved", "ada")]), "{tool}");
        assert_eq!(room.records.all().len(), 1, "{tool}: a preview is not a call of its own");
        assert_eq!(room.records.all()[0].files.len(), 1, "{tool}");
    }
    for (tool, arguments, _) in changes() {
        let room = Room::new(|_| Box::new(|_, _| None));
        assert_eq!(room.call(tool, arguments).await.error().unwrap().code, Code::Approval, "{tool}");
        assert_eq!(room.notes().as_deref(), Some("old\nline\n"), "{tool}");
        assert_eq!(room.answers(), pairs(&[("refused", "no")]), "{tool}");
    }
}

#[tokio::test]
async fn a_file_that_changes_while_somebody_thinks_is_asked_for_again() {
    for (tool, arguments, expected) in changes() {
        let room = Room::new(|notes| {
            Box::new(move |before, shown| {
                if before == 0 {
                    std::fs::write(&notes, "old, and more\n").unwrap();
                }
                Some(shown.hash.clone())
            })
        });
        let result = room.call(tool, arguments).await;
        assert!(result.is_ok(), "{tool}: {result:?}");
        let shown = room.shown();
        assert_eq!(shown.len(), 2, "{tool}");
        assert!(shown[0].diff().contains("-old\n"), "{tool}: {}", shown[0].diff());
        assert!(shown[1].diff().contains("-old, and more\n"), "{tool}: {}", shown[1].diff());
        assert_ne!(shown[0].hash, shown[1].hash, "{tool}");
        assert_eq!(room.notes().as_deref(), expected, "{tool}");
        let answers = [("approved", "ada"), ("ask", "it changed meanwhile"), ("approved", "ada")];
        assert_eq!(room.answers(), pairs(&answers), "{tool}");
    }
}

#[tokio::test]
async fn what_changes_each_time_is_given_up_and_nothing_is_written() {
    for (tool, arguments, _) in changes() {
        let room = Room::new(|notes| {
            Box::new(move |before, shown| {
                std::fs::write(&notes, format!("old, version {before}\n")).unwrap();
                Some(shown.hash.clone())
            })
        });
        let result = room.call(tool, arguments).await;
        let error = result.error().unwrap();
        assert_eq!(error.code, Code::Approval, "{tool}");
        assert!(error.message.contains("keeps changing") && error.help_of().is_some(), "{tool}: {error:?}");
        assert_eq!(room.shown().len(), 3, "{tool}");
        assert_eq!(room.notes().as_deref(), Some("old, version 2\n"), "{tool}");
        assert_eq!(room.answers().pop().unwrap(), ("refused".to_owned(), "it keeps changing".to_owned()));
        assert!(room.records.all()[0].files.is_empty(), "{tool}");
    }
}

/// Another program writes after the last comparison; the tool itself finds out.
#[tokio::test]
async fn a_change_at_the_last_moment_is_found_by_whoever_writes() {
    let content = |notes: PathBuf| -> Box<dyn Fn() + Send + Sync> {
        Box::new(move || std::fs::write(&notes, "old, and more\n").unwrap())
    };
    let directory = |notes: PathBuf| -> Box<dyn Fn() + Send + Sync> {
        Box::new(move || {
            std::fs::remove_file(&notes).unwrap();
            std::fs::create_dir(&notes).unwrap();
        })
    };
    type Meddling<'a> = &'a dyn Fn(PathBuf) -> Box<dyn Fn() + Send + Sync>;
    let mut cases: Vec<(&str, Value, Option<&str>, Meddling<'_>)> = Vec::new();
    cases.extend(changes().map(|(tool, arguments, expected)| (tool, arguments, expected, &content as _)));
    cases.push(("fs_delete", json!({ "path": "notes.md" }), None, &directory));
    for (tool, arguments, expected, meddling) in cases {
        let room = Room::with(
            |_| agree(),
            Vec::new(),
            |notes, tools| {
                let inner = tools.into_iter().find(|known| known.definition().name.as_str() == tool).unwrap();
                let previews = AtomicUsize::new(0);
                vec![Arc::new(Meddled { inner, previews, meddle: meddling(notes) })]
            },
        );
        let result = room.call(tool, arguments).await;
        assert!(result.is_ok(), "{tool}: {result:?}");
        let shown = room.shown();
        assert_eq!(shown.len(), 2, "{tool}: {shown:?}");
        assert_ne!(shown[0].preview, shown[1].preview, "{tool}");
        assert_eq!(room.notes().as_deref(), expected, "{tool}");
        assert!(!room.folder.path().join("notes.md").is_dir(), "{tool}");
    }
}

#[tokio::test]
async fn an_answer_for_something_else_is_no_answer() {
    let wrong: [fn(&str) -> String; 4] =
        [|_| String::new(), |_| "0".repeat(64), str::to_uppercase, |hash| hash[..63].to_owned()];
    for wrong in wrong {
        let room = Room::new(|_| Box::new(move |_, shown| Some(wrong(&shown.hash))));
        let result = room.call("fs_write", json!({ "path": "notes.md", "content": "new" })).await;
        assert_eq!(result.error().unwrap().code, Code::Approval);
        assert_eq!(room.notes().as_deref(), Some("old\nline\n"));
        assert_eq!(room.answers(), pairs(&[("refused", "the answer was for something else")]));
        assert_eq!(room.shown().len(), 1);
    }
    // An agreement to the first version is none to the second.
    let first = Arc::new(Mutex::new(None));
    let room = Room::new(|notes| {
        Box::new(move |_, shown| {
            std::fs::write(&notes, "old, and more\n").unwrap();
            first.lock().unwrap().get_or_insert_with(|| shown.hash.clone()).clone().into()
        })
    });
    let result = room.call("fs_delete", json!({ "path": "notes.md" })).await;
    assert_eq!(result.error().unwrap().code, Code::Approval);
    assert_eq!(room.notes().as_deref(), Some("old, and more\n"));
}

#[tokio::test]
async fn what_would_fail_anyway_is_not_asked_for() {
    let stale = "0".repeat(64);
    for (tool, arguments, code) in [
        ("fs_edit", json!({ "path": "notes.md", "search": "absent", "replace": "" }), Code::Validation),
        ("fs_edit", json!({ "path": "none.md", "search": "a", "replace": "" }), Code::NotFound),
        ("fs_delete", json!({ "path": "none.md" }), Code::NotFound),
        ("fs_write", json!({ "path": ".git/config", "content": "" }), Code::Security),
        ("fs_write", json!({ "path": "notes.md", "content": "", "expected_sha256": stale }), Code::Conflict),
    ] {
        let room = Room::new(|_| agree());
        let result = room.call(tool, arguments.clone()).await;
        assert_eq!(result.error().unwrap().code, code, "{tool} {arguments}");
        assert!(room.shown().is_empty(), "{tool} {arguments}");
        assert_eq!(room.answers(), pairs(&[("refused", "would-fail")]), "{tool} {arguments}");
    }
    // It may also begin to fail while the user decides.
    let room = Room::new(|notes| {
        Box::new(move |_, shown| {
            std::fs::write(&notes, "another text\n").unwrap();
            Some(shown.hash.clone())
        })
    });
    let edit = json!({ "path": "notes.md", "search": "old", "replace": "new" });
    assert_eq!(room.call("fs_edit", edit).await.error().unwrap().code, Code::Validation);
    assert_eq!(room.shown().len(), 1);
    assert_eq!(room.notes().as_deref(), Some("another text\n"));
}

#[tokio::test]
async fn what_the_caller_may_not_read_is_not_shown_and_that_is_said() {
    let room = Room::with(|_| agree(), vec![Arc::new(Blind("notes.md"))], |_, tools| tools);
    let result = room.call("fs_write", json!({ "path": "notes.md", "content": "new" })).await;
    assert!(result.is_ok(), "{result:?}");
    let shown = room.shown();
    assert_eq!((shown.len(), &shown[0].preview), (1, &None));
    assert!(shown[0].reasons.iter().any(|reason| reason.contains("no preview")), "{:?}", shown[0].reasons);
    assert_eq!(shown[0].hash.len(), 64);
    assert_eq!(room.notes().as_deref(), Some("new"));
    let result = room.call("fs_write", json!({ "path": "other.md", "content": "new" })).await;
    assert!(result.is_ok() && room.shown()[1].preview.is_some());
}

/// Takes anything, and touches what it is given.
struct Anything(ToolDefinition);

#[async_trait]
impl DynTool for Anything {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or("none");
        Ok(vec![Target::File { root: Root::Project, path: RelativePath::new(path)?, access: Access::Read }])
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        Ok(invocation.call.arguments.clone().into())
    }
}

#[tokio::test]
async fn the_hash_tells_every_two_requests_apart_and_nothing_else() {
    let definition = |name: &str, effect: Effect| ToolDefinition {
        name: ToolName::new(name).unwrap(),
        aliases: vec![format!("{name}.alias")],
        description: "anything".to_owned(),
        input_schema: json!({ "type": "object" }),
        effect,
        path: ExecutionPath::Fast,
        dry_run: true,
    };
    let tools: Vec<Arc<dyn DynTool>> = vec![
        Arc::new(Anything(definition("one", Effect::Execute))),
        Arc::new(Anything(definition("two", Effect::Network))),
    ];
    let room = Room::with(|_| agree(), Vec::new(), |_, _| tools);
    let different = [
        ("one", json!({}), "s", "a"),
        ("two", json!({}), "s", "a"),
        ("one", json!({}), "t", "a"),
        ("one", json!({}), "s", "b"),
        ("one", json!({ "path": "x" }), "s", "a"),
        // Integers that canonical JSON would round to the same number.
        ("one", json!({ "n": 9_007_199_254_740_992_u64 }), "s", "a"),
        ("one", json!({ "n": 9_007_199_254_740_993_u64 }), "s", "a"),
        ("one", json!({ "n": u64::MAX }), "s", "a"),
        ("one", json!({ "n": u64::MAX.to_string() }), "s", "a"),
        ("one", json!({ "n": i64::MIN }), "s", "a"),
    ];
    for (tool, arguments, session, actor) in &different {
        assert!(room.call_as(tool, arguments.clone(), session, actor).await.is_ok());
    }
    let mut hashes: Vec<String> = room.shown().into_iter().map(|shown| shown.hash).collect();
    assert!(hashes.iter().all(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())));
    let first = hashes[0].clone();
    let exact = hashes[6].clone();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), different.len());
    // The order of fields and the name it was called by decide nothing.
    room.call_as("one.alias", json!({}), "s", "a").await;
    assert_eq!(room.shown().pop().unwrap().hash, first);
    for text in [r#"{"n":9007199254740993,"m":{"b":1,"a":2}}"#, r#"{"m":{"a":2,"b":1},"n":9007199254740993}"#]
    {
        room.call_as("one", serde_json::from_str(text).unwrap(), "s", "a").await;
    }
    let shown = room.shown();
    let [.., one, other] = &shown[..] else { panic!("two calls") };
    assert_eq!(one.hash, other.hash);
    assert_ne!(one.hash, exact);
}
