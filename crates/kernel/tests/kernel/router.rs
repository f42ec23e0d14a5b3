//! Every tool passes every stage of the router and leaves one record.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp::contract::{
    Actor, ApprovalAnswer, ApprovalRequest, Approver, CallContext, Code, Consent, Effect, Gate, GateRequest,
    Stage, Target, ToolCall, ToolError, ToolResult, Verdict,
};
use tgp::gates::Caveats;
use tgp::{BootOptions, Kernel};
use tgp_builtins::kernel_tools;
use tgp_fetch::{AllowList, FetchClient, FetchLimits};
use tgp_git::{Author, Remote, ToolRepoOptions};
use tgp_net::Secret;
use tgp_registry::{Calibration, Searcher};
use tgp_router::files::ToolDirectories;
use tgp_router::{DynTool, Router, Workspace};
use tgp_sandbox::{RunLimits, Sandbox, SandboxOptions, WorkerCommand};
use tgp_sql::{DatabaseUrl, SqlOptions};
use tgp_tool_runtime::{BytecodeCache, DuplicatePolicy, ToolLibrary, ToolRuntime, ToolRuntimeOptions};
use tgp_upstream::{UpstreamOptions, UpstreamStore, Upstreams, ValueProvider};

use crate::approval::{Asked, boot};
use crate::support::{Project, Records, WORKER, code, data, error};

/// Arguments that every kernel tool takes; a new tool must be added here.
pub fn arguments(tool: &str) -> Value {
    match tool {
        "list_files" => json!({ "dir": "tools" }),
        "read_file" | "check_tool" | "exec_tool" => json!({ "path": "tools/one.ts" }),
        "exec_code" => json!({ "code": "return 1;" }),
        "audit_tail" => json!({ "last": 1 }),
        "write_file" => json!({ "path": "tools/two.ts", "content": "export default () => 2;" }),
        // Nothing is listed, so it runs as far as the list.
        "fetch" => json!({ "url": "http://127.0.0.1:9/" }),
        // No program offers a function, and no server was added, so they run as far as that.
        "call_host" => json!({ "module": "none", "name": "any" }),
        "call_upstream" => json!({ "server": "none", "tool": "any" }),
        "search" => json!({ "query": "one" }),
        "sync" | "log" => json!({}),
        "exec_sql" => json!({ "sql": "SELECT 1 AS one" }),
        "patch_file" => json!({ "path": "tools/one.ts", "search": "1", "replace": "3" }),
        "fs_read" => json!({ "path": "notes.md" }),
        // An expression: others write it into files of code.
        "fs_write" => json!({ "path": "notes.md", "content": "fresh" }),
        "fs_edit" => json!({ "path": "notes.md", "search": "old", "replace": "new" }),
        "fs_delete" => json!({ "path": "notes.md" }),
        "fs_list" => json!({ "path": "" }),
        "fs_exists" => json!({ "path": "notes.md" }),
        "search_grep" => json!({ "pattern": "old" }),
        "search_glob" => json!({ "pattern": "**/*.md" }),
        "shell_exec" => json!({ "command": "echo new > notes.md" }),
        "test_run" => json!({}),
        // The project has no manifest, so it runs as far as that.
        "package_install" => json!({ "packages": ["left-pad"] }),
        "test_tool" => json!({ "path": "tools/one.test.ts" }),
        // The call belongs to no agent's session, so it runs as far as that.
        "recall" => json!({ "id": "r1.1" }),
        // Nothing was ingested, so it runs as far as that.
        "graph_query" => json!({ "query": "MATCH (f:File) RETURN f.path" }),
        "graph_ingest" => json!({ "commit": "WORKTREE" }),
        "chronicle_append" => json!({ "path": ".sage/notes.sage", "event": {
            "type": "NOTE", "timestamp": "2026-11-15T12:00:00Z", "actor": { "agent": "test", "id": "one" }
        } }),
        "chronicle_read" => json!({ "path": ".sage/notes.sage" }),
        "review_plan" => json!({ "plan": { "id": "p", "steps": [{ "type": "RUN_TESTS" }] } }),
        "reconcile" => json!({ "path": "notes.md" }),
        "git_status" | "git_diff" | "git_log" => json!({}),
        "git_commit" => json!({ "message": "A note", "paths": ["notes.md"], "branch": "side" }),
        "undo_session" => json!({ "session": UNDOABLE }),
        other => panic!("`{other}` is new: say here how it is called"),
    }
}

/// OpenAI and Anthropic refuse a whole request for one schema of these kinds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_schema_is_one_that_providers_of_models_take() {
    fn arrays_without_items(schema: &Value, place: &str, found: &mut Vec<String>) {
        let is_array = |kind: &Value| kind == "array";
        let kind = &schema["type"];
        let is_list = is_array(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_array));
        if is_list && schema.get("items").is_none() {
            found.push(place.to_owned());
        }
        match schema {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, inner)| arrays_without_items(inner, &format!("{place}.{name}"), found));
            }
            Value::Array(inner) => inner.iter().for_each(|inner| arrays_without_items(inner, place, found)),
            _ => {}
        }
    }
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    for definition in kernel.definitions() {
        let (name, schema) = (&definition.name, &definition.input_schema);
        assert_eq!(schema["type"], "object", "{name}");
        for keyword in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref", "if"] {
            assert!(schema.get(keyword).is_none(), "`{name}` has `{keyword}` at the top of its schema");
        }
        let mut found = Vec::new();
        arrays_without_items(schema, name.as_str(), &mut found);
        assert!(found.is_empty(), "lists without `items`: {found:?}");
        assert!(definition.description.len() <= 1024, "`{name}` has a description that is too long");
    }
    kernel.shutdown().await;
}

/// A session that has made a file.
const UNDOABLE: &str = "20261101-120000-undo";

/// The files of that session.
fn furnish_session(project: &Project) {
    let folder = format!(".tgp/.state/sessions/{UNDOABLE}");
    let head = json!({
        "id": UNDOABLE, "task": "make a file", "provider": "script", "baseUrl": null, "model": "m", "createdMs": 1
    });
    let made = tgp::contract::canonical::sha256_hex(b"made");
    let change = json!({
        "type": "change", "batch": "1", "root": "project", "path": "made.txt",
        "before": { "kind": "absent", "missingParents": 0 }, "after": made
    });
    let ended = json!({ "type": "ended", "batch": "1", "made": true });
    project
        .put("made.txt", "made")
        .put(&format!("{folder}/session.json"), &head.to_string())
        .put(&format!("{folder}/transcript.ndjson"), "")
        .put(&format!("{folder}/undo/changes.ndjson"), &format!("{change}\n{ended}\n"));
}

/// Makes the project a git repository with one commit.
fn furnish_repository(project: &Project) {
    if project.file(".git").exists() {
        return;
    }
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["config", "user.name", "Ann"],
        &["config", "user.email", "ann@example.org"],
        &["-c", "commit.gpgsign=false", "commit", "--quiet", "--allow-empty", "--message", "First"],
    ] {
        let done = std::process::Command::new("git").args(arguments).current_dir(project.path()).status();
        assert!(done.unwrap().success(), "git {arguments:?}");
    }
}

/// What the arguments above need to be there.
pub fn furnish(project: &Project) {
    furnish_repository(project);
    furnish_session(project);
    project.tool("one.ts", "export default () => 1;");
    project.tool("one.test.ts", "import { test, expect } from '@tgp/test';\nimport one from './one.ts';\ntest('one', () => expect(one()).toBe(1));");
    project.put("notes.md", "old");
}

pub fn went_well(tool: &str, answer: &ToolResult) -> bool {
    match tool {
        "fetch" => code(answer) == "ESECURITY",
        "recall" => code(answer) == "EPERMISSION",
        "call_host" | "call_upstream" | "package_install" => code(answer) == "ENOTFOUND",
        _ => answer.is_ok(),
    }
}

pub fn context(consent: Consent) -> CallContext {
    CallContext {
        actor: Actor::Agent("a".to_owned()),
        session: "s".to_owned(),
        consent,
        dry_run: false,
        depth: 0,
        token: None,
    }
}

pub fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall { id: format!("call-{tool}"), tool: tool.to_owned(), arguments }
}

/// Counts how often it was asked, and denies what it is set to deny.
struct Counting {
    stage: Stage,
    asked: Mutex<Vec<String>>,
    deny: bool,
}

impl Counting {
    fn new(stage: Stage, deny: bool) -> Arc<Self> {
        Arc::new(Self { stage, asked: Mutex::default(), deny })
    }
}

#[async_trait]
impl Gate for Counting {
    fn stage(&self) -> Stage {
        self.stage
    }

    fn name(&self) -> &str {
        "counting"
    }

    async fn judge(&self, request: GateRequest<'_>) -> Verdict {
        self.asked.lock().unwrap().push(request.call.tool.clone());
        let rule = "counted".to_owned();
        if self.deny {
            return Verdict::Deny { rule, error: ToolError::new(Code::Policy, "no") };
        }
        Verdict::Allow { rule }
    }
}

/// Agrees to everything, and counts.
#[derive(Default)]
pub struct Agreeable(AtomicUsize);

#[async_trait]
impl Approver for Agreeable {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        self.0.fetch_add(1, Ordering::Relaxed);
        ApprovalAnswer::Approved { by: "a test".to_owned(), hash: request.hash }
    }
}

/// The kernel tools on a project, without a kernel around them.
pub async fn tools(project: &Project) -> (Vec<Arc<dyn DynTool>>, Workspace) {
    let (tools, workspace, _) = tools_with_remote(project, None).await;
    (tools, workspace)
}

/// The same with a remote for the tools, and the library that keeps them.
pub async fn tools_with_remote(
    project: &Project,
    remote: Option<&std::path::Path>,
) -> (Vec<Arc<dyn DynTool>>, Workspace, Arc<ToolLibrary>) {
    let worker = WorkerCommand { program: PathBuf::from(WORKER), arguments: Vec::new() };
    let limits = RunLimits { cpu: std::time::Duration::from_secs(5), ..RunLimits::default() };
    let sandbox =
        Arc::new(Sandbox::new(SandboxOptions { worker, pool_size: 1, limits, ceiling: limits }).unwrap());
    let root = project.file(".tgp");
    let options = ToolRuntimeOptions {
        project: project.path().to_owned(),
        tool_root: Some(root.clone()),
        allowed_imports: Vec::new(),
        foreign: None,
        limits,
        ceiling: limits,
        seed: None,
        frozen_clock_ms: None,
    };
    let fetch = Arc::new(FetchClient::new(AllowList::default(), FetchLimits::default()));
    let cache = Arc::new(BytecodeCache::new(None, std::path::Path::new(WORKER)));
    let forge = Arc::new(ToolRuntime::new(sandbox, cache, options));
    let database = DatabaseUrl::sqlite(root.join("data.sqlite"));
    let database = tgp_sql::connect(SqlOptions::new(database)).await.unwrap();
    let writable = ["tmp".to_owned()];
    let directories = ToolDirectories { writable: &writable, ..ToolDirectories::default() };
    let workspace = Workspace::open(project.path(), &root, directories, &[]).unwrap().with_database(database);
    let author = Author { name: "a test".to_owned(), email: "test@example.com".to_owned() };
    let (library, _) = ToolLibrary::open(
        Arc::clone(&forge),
        Searcher::new(None, Calibration::builtin(), None),
        DuplicatePolicy::Warn,
        |derived| ToolRepoOptions {
            remote: remote.map(|remote| Remote::Url(remote.display().to_string())),
            ..ToolRepoOptions::new(&root, author, derived)
        },
        &root.join(".state"),
        None,
    )
    .await
    .unwrap();
    let library = Arc::new(library);
    let upstream = Arc::new(Upstreams::new(UpstreamOptions {
        store: UpstreamStore::new(project.path().join("no-servers")),
        homes: project.path().join("no-servers"),
        writable: Vec::new(),
        values: Arc::new(NoValues),
        shared_pins: None,
    }));
    (kernel_tools(&forge, &fetch, &library, &upstream, None).unwrap(), workspace, library)
}

struct NoValues;

#[async_trait]
impl ValueProvider for NoValues {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    async fn secret(&self, name: &str) -> Result<Secret, ToolError> {
        Err(ToolError::new(Code::Config, name))
    }

    async fn header_secret(&self, name: &str, _header: &str, _url: &url::Url) -> Result<Secret, ToolError> {
        Err(ToolError::new(Code::Config, name))
    }
}

async fn router(project: &Project, gates: Vec<Arc<dyn Gate>>, records: &Arc<Records>) -> Arc<Router> {
    let (tools, workspace) = tools(project).await;
    let approver = Arc::new(Agreeable::default());
    Arc::new(Router::new(tools, gates, approver, Arc::clone(records) as _, workspace).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_passes_every_gate_and_is_recorded_once() {
    let project = Project::new();
    furnish(&project);
    let records = Arc::new(Records::default());
    let gates = [
        Counting::new(Stage::Guardian, false),
        Counting::new(Stage::State, false),
        Counting::new(Stage::Policy, false),
    ];
    let router =
        router(&project, gates.iter().map(|gate| Arc::clone(gate) as Arc<dyn Gate>).collect(), &records)
            .await;
    let definitions: Vec<_> = router.definitions().cloned().collect();
    assert!(definitions.len() >= 6);
    for definition in &definitions {
        let name = definition.name.as_str();
        for spelling in std::iter::once(name).chain(definition.aliases.iter().map(String::as_str)) {
            project.tool("one.ts", "export default () => 1;");
            let answer = router.call(call(spelling, arguments(name)), context(Consent::Ask)).await;
            assert!(went_well(name, &answer), "{spelling}: {answer:?}");
            for gate in &gates {
                assert_eq!(std::mem::take(&mut *gate.asked.lock().unwrap()), [spelling], "{:?}", gate.stage);
            }
            let left = records.take();
            assert_eq!(left.len(), 1, "{spelling}");
            assert_eq!((left[0].tool.as_deref(), left[0].effect), (Some(name), Some(definition.effect)));
            let stages: Vec<Stage> = left[0].verdicts.iter().map(|verdict| verdict.stage).collect();
            assert_eq!(stages, [Stage::State, Stage::Policy, Stage::Guardian], "in the order of the design");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_call_changes_nothing_and_is_recorded() {
    let project = Project::new();
    project.tool("one.ts", "export default () => 1;");
    let records = Arc::new(Records::default());
    let gates = [Counting::new(Stage::State, true), Counting::new(Stage::Policy, false)];
    let router =
        router(&project, gates.iter().map(|gate| Arc::clone(gate) as Arc<dyn Gate>).collect(), &records)
            .await;
    for name in router.definitions().map(|definition| definition.name.to_string()).collect::<Vec<_>>() {
        let answer = router.call(call(&name, arguments(&name)), context(Consent::Given)).await;
        assert_eq!(code(&answer), "EPOLICY", "{name}: consent does not lift a denial");
        let left = records.take();
        assert_eq!(left.len(), 1, "{name}");
        assert_eq!(left[0].verdicts.last().unwrap().verdict, tgp::contract::GateDecision::Deny, "{name}");
        assert!(gates[1].asked.lock().unwrap().is_empty(), "{name}: the first denial ends the call");
    }
    assert!(!project.file(".tgp/tools/two.ts").exists());
    assert_eq!(project.text(".tgp/tools/one.ts").as_deref(), Some("export default () => 1;"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_asks_before_effects_and_records_inner_calls() {
    let project = Project::new();
    let (records, approver) = (Arc::new(Records::default()), Arc::new(Agreeable::default()));
    let config = json!({ "sandbox": { "cpuMs": 5_000 }, "tdd": { "command": "true" } });
    project.put("tgp.config.json", &config.to_string());
    let options = BootOptions {
        recorder: Some(Arc::clone(&records) as _),
        approver: Arc::clone(&approver) as _,
        ..project.options()
    };
    let kernel = Kernel::boot(options).await.unwrap();
    for definition in kernel.definitions().cloned().collect::<Vec<_>>() {
        furnish(&project);
        let asked = approver.0.load(Ordering::Relaxed);
        let name = definition.name.as_str();
        let answer = kernel.call_with(call(name, arguments(name)), context(Consent::Ask)).await;
        assert!(went_well(name, &answer), "{name}: {answer:?}");
        let expected = usize::from(definition.effect != Effect::Read);
        assert_eq!(approver.0.load(Ordering::Relaxed) - asked, expected, "{name}");
        let left = records.take();
        assert_eq!((left.len(), left[0].tool.as_deref()), (1, Some(name)));
        assert!(
            left[0].verdicts.iter().any(|verdict| verdict.stage == Stage::Policy),
            "{name}: no policy verdict"
        );
    }
    project.tool("inner.ts", "export default () => tgp.write_file('tmp/x', 'x');");
    project.tool("outer.ts", "export default () => tgp.exec_tool('tools/inner.ts');");
    let answer = kernel.call("exec_tool", json!({ "path": "tools/outer.ts" })).await;
    assert!(answer.is_ok(), "{answer:?}");
    let left = records.take();
    let depths: Vec<u32> = left.iter().map(|record| record.context.depth).collect();
    assert_eq!(depths, [1, 0], "the inner call has a record of its own, and ends first");
    assert!(matches!(&left[0].context.actor, Actor::Tool(path) if path.as_str() == "tools/outer.ts"));
    assert_eq!(left[1].files.len(), 1, "the outer run changed one file: {:?}", left[1].files);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_calls_run_nothing_and_are_recorded() {
    let project = Project::new();
    let records = Arc::new(Records::default());
    let kernel = Kernel::boot(BootOptions { recorder: Some(Arc::clone(&records) as _), ..project.options() })
        .await
        .unwrap();
    for (tool, arguments, expected) in [
        ("no_such_tool", json!({}), "ENOTFOUND"),
        ("exec_tool", json!({}), "EVALIDATION"),
        ("exec_tool", json!({ "path": 5 }), "EVALIDATION"),
        ("exec_tool", json!({ "path": "tools/x.ts", "extra": 1 }), "EVALIDATION"),
        ("exec_tool", json!("tools/x.ts"), "EVALIDATION"),
        ("exec_tool", json!({ "path": "tools/none.ts" }), "ENOTFOUND"),
        ("exec_tool", json!({ "path": "../x.ts" }), "ESECURITY"),
        ("read_file", json!({ "path": "none.txt" }), "ENOTFOUND"),
        ("read_file", json!({ "path": ".git/config" }), "EPOLICY"),
        ("write_file", json!({ "path": "tools/x.ts" }), "EVALIDATION"),
        ("write_file", json!({ "path": ".git/hooks/pre-commit", "content": "x" }), "EPOLICY"),
        ("write_file", json!({ "path": "/etc/x", "content": "x" }), "ESECURITY"),
        ("patch_file", json!({ "path": ".gitignore", "search": "absent", "replace": "" }), "EVALIDATION"),
        ("check_tool", json!({ "path": "tools/none.ts" }), "ENOTFOUND"),
        ("list_files", json!({ "dir": "none" }), "ENOTFOUND"),
    ] {
        let answer = kernel.call(tool, arguments.clone()).await;
        assert_eq!(code(&answer), expected, "{tool} {arguments}");
        assert!(error(&answer).help_of().is_some(), "{tool} {arguments}: no help");
        assert_eq!(records.take().len(), 1, "{tool} {arguments}");
    }
    // There is no user to ask, so nothing but a read happens.
    let refused = kernel
        .call_with(call("write_file", json!({ "path": "x", "content": "x" })), context(Consent::Ask))
        .await;
    assert_eq!(code(&refused), "EAPPROVAL");
    assert!(!project.file(".tgp/x").exists());
    kernel.shutdown().await;
}

/// A remote without a server: what would be sent there is known without it.
const NOWHERE: &str = "http://127.0.0.1:1/team/tools.git";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_tool_is_pushed_is_part_of_the_question() {
    let project = Project::new();
    project.tool("one.ts", "export default () => 1;");
    let approver = Asked::new(|_, shown| shown.tool != "sync");
    let secret = NOWHERE.replace("http://", "http://ann:hunter2-hunter2@");
    let kernel = boot(&project, json!({ "git": { "url": secret } }), &approver).await;
    let host = Target::Host { host: "127.0.0.1".to_owned() };
    let write = json!({ "path": "tools/two.ts", "content": "export default () => 2;" });
    let patch = json!({ "path": "tools/two.ts", "search": "2", "replace": "3" });
    for (tool, arguments) in [("write_file", write), ("patch_file", patch)] {
        let dry = CallContext { dry_run: true, ..context(Consent::Ask) };
        let foretold = kernel.call_with(call(tool, arguments.clone()), dry).await;
        assert_eq!(data(&foretold)["remote"], NOWHERE, "{tool}");
        assert!(approver.take().is_empty(), "{tool}: a dry run sends nothing, and asks nobody");
        let answer = kernel.call_with(call(tool, arguments), context(Consent::Ask)).await;
        assert_eq!(data(&answer)["pushed"], false, "{tool}: {answer:?}");
        let [shown] = &approver.take()[..] else { panic!("{tool}") };
        assert!(shown.targets.contains(&host) && shown.targets.len() == 2, "{tool}: {shown:?}");
        assert_eq!(shown.preview()["remote"], NOWHERE, "{tool}");
        assert!(!format!("{shown:?}").contains("hunter2"), "{tool}: {shown:?}");
    }
    assert_eq!(code(&kernel.call_with(call("sync", json!({})), context(Consent::Ask)).await), "EAPPROVAL");
    let [shown] = &approver.take()[..] else { panic!("one question") };
    assert_eq!(shown.targets, [host]);
    let preview = shown.preview();
    assert_eq!((&preview["remote"], &preview["branch"]), (&json!(NOWHERE), &json!("main")));
    let log = kernel.call("log", json!({})).await;
    let versions = data(&log)["versions"].as_array().unwrap().clone();
    assert_eq!(preview["ahead"], versions.len(), "{preview}");
    let commits = preview["commits"].as_array().unwrap();
    assert!(commits.len() >= 2, "{preview}");
    for (commit, version) in commits.iter().zip(&versions) {
        assert_eq!((&commit["commit"], &commit["subject"]), (&version["commit"], &version["subject"]));
    }
    kernel.shutdown().await;
}

/// The remote is one of the targets, and neither a path of a token nor an allowing rule has to name it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_takes_nothing_from_tokens_and_rules_that_are_about_other_things() {
    let project = Project::new();
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, json!({ "git": { "url": NOWHERE } }), &approver).await;
    let write = |name: &str| {
        call("write_file", json!({ "path": format!("tools/{name}.md"), "content": format!("{name}\n") }))
    };
    let caveats = Caveats { paths: Some(vec!["tools:tools/**".to_owned()]), ..Caveats::default() };
    let token = kernel.mint_token(&caveats).await.unwrap();
    let narrow = || CallContext { token: Some(token.clone()), ..context(Consent::Given) };
    let answer = kernel.call_with(write("token"), narrow()).await;
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(code(&kernel.call_with(call("sync", json!({})), narrow()).await), "EPOLICY");
    let rule = |effect: &str, rest: &str| {
        format!("version: 1\nrules:\n  - {{id: one, effect: {effect}, reason: because, {rest}}}\n")
    };
    project.put("tgp.policy.yaml", &rule("allow", "tools: write_file, where: {path: 'tools/**'}"));
    assert!(kernel.call_with(write("allowed"), context(Consent::Ask)).await.is_ok());
    assert!(approver.take().is_empty(), "the rule has lifted the question");
    // A rule that forbids the host forbids what is sent there.
    project.put("tgp.policy.yaml", &rule("deny", "where: {host: '127.0.0.1'}"));
    assert_eq!(code(&kernel.call_with(write("denied"), context(Consent::Given)).await), "EPOLICY");
    project.put("tgp.policy.yaml", &rule("deny", "where: {host: 'example.org'}"));
    assert!(kernel.call_with(write("other"), context(Consent::Given)).await.is_ok());
    // With a rule that asks there still is a preview: nothing has to run for it.
    project.put("tgp.policy.yaml", &rule("ask", "tools: write_file"));
    assert!(kernel.call_with(write("asked"), context(Consent::Ask)).await.is_ok());
    let [shown] = &approver.take()[..] else { panic!("one question") };
    assert_eq!(shown.preview()["remote"], NOWHERE);
    kernel.shutdown().await;
}

/// What models write from habit, and what an earlier release called otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_have_the_names_and_forms_that_models_write() {
    let project = Project::new();
    project.put("notes.txt", "hello");
    let kernel = project.boot().await.unwrap();
    let place = project.path().canonicalize().unwrap();
    for arguments in [
        json!({ "file_path": "notes.txt" }),
        json!({ "path": place.join("notes.txt") }),
        json!({ "file_path": place.join("notes.txt") }),
    ] {
        let read = kernel.call("fs_read", arguments.clone()).await;
        assert!(data(&read).to_string().contains("hello"), "{arguments}: {read:?}");
    }
    let listed = kernel.call("fs_list", json!({ "path": place })).await;
    assert!(
        data(&listed).to_string().contains("notes.txt"),
        "bug: the project's own path was refused: {listed:?}"
    );
    let outside = kernel.call("fs_read", json!({ "path": "/etc/hostname" })).await;
    assert_eq!(code(&outside), "ESECURITY");
    let both = kernel.call("fs_read", json!({ "path": "notes.txt", "file_path": "other.txt" })).await;
    assert_eq!(code(&both), "EVALIDATION");
    let source = "/** One. */\nexport default () => 1;\n";
    for name in ["despite", "override_similar"] {
        let path = format!("tools/{name}.ts");
        let written = json!({ "path": path, "content": source, name: ["tools/despite.ts"] });
        data(&kernel.call("write_file", written).await);
    }
}

/// An explanation that sees other arguments than the call has explains another call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_explanation_judged_arguments_as_they_were_written() {
    let project = Project::new();
    project.put("notes/a.txt", "hello").put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: notes, effect: deny, tools: fs_read, where: {arguments: {path: notes/a.txt}}, reason: none}\n",
    );
    let kernel = project.boot().await.unwrap();
    let place = project.path().canonicalize().unwrap();
    for arguments in [
        json!({ "path": "notes/a.txt" }),
        json!({ "file_path": "notes/a.txt" }),
        json!({ "path": place.join("notes/a.txt") }),
        json!({ "file_path": place.join("notes/a.txt") }),
    ] {
        let call = ToolCall { id: "x".to_owned(), tool: "fs_read".to_owned(), arguments };
        let asked = context(Consent::Given);
        let explained = kernel.explain(&call, &asked).await.unwrap();
        assert_eq!(explained.decision.rule, "notes", "{call:?}");
        assert_eq!(code(&kernel.call_with(call, asked).await), "EPOLICY");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_project_path_landed_in_the_tool_repository() {
    let project = Project::new();
    project.put("src/app.ts", "export const a = 1;\n");
    let kernel = project.boot().await.unwrap();
    for (tool, arguments) in [
        ("write_file", json!({ "path": "src/app.ts", "content": "x" })),
        ("patch_file", json!({ "path": "src/app.ts", "search": "1", "replace": "2" })),
    ] {
        let refused = kernel.call(tool, arguments).await;
        assert_eq!(code(&refused), "EVALIDATION", "{tool}");
        let help = error(&refused).help_of().unwrap_or_default().to_owned();
        assert!(help.contains("`fs_write`") && help.contains("src/app.ts"), "{help}");
    }
    assert!(!project.file(".tgp/src").exists());
}
