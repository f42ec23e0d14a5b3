//! Approvals through a whole kernel: everything that is not a read asks, shows what it would do, and does nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp::contract::{
    Actor, ApprovalAnswer, ApprovalOrigin, ApprovalReason, ApprovalRequest, Approver, CallContext, Consent,
    Database, Effect, Gate, GateRequest, SqlAccess, SqlTransaction, Stage, Target, TddState, ToolDefinition,
    ToolError, Verdict,
};
use tgp::gates::{Caveats, Scope};
use tgp::{BootOptions, Kernel};
use tgp_router::{DynTool, Invocation, Preview, Router, ToolOutcome};
use tokio::runtime::Handle;

use crate::gates::files;
use crate::router::{arguments, call, context, furnish, tools, went_well};
use crate::support::{Forgetful, Project, Records, code, data, error, result};

/// What the user was shown.
#[derive(Clone, Debug)]
pub struct Shown {
    pub tool: String,
    pub targets: Vec<Target>,
    pub preview: Option<Value>,
    reasons: Vec<String>,
    hash: String,
}

impl Shown {
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub fn preview(&self) -> &Value {
        self.preview.as_ref().unwrap_or_else(|| panic!("no preview: {self:?}"))
    }
}

/// Whether the user agrees, by the number of earlier questions; it may do other things meanwhile.
type Thought = Box<dyn Fn(usize, &Shown) -> bool + Send + Sync>;

/// Remembers what it was shown.
pub struct Asked {
    thought: Thought,
    shown: Mutex<Vec<Shown>>,
}

impl Asked {
    pub fn new(thought: impl Fn(usize, &Shown) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { thought: Box::new(thought), shown: Mutex::default() })
    }

    pub fn take(&self) -> Vec<Shown> {
        std::mem::take(&mut *self.shown.lock().unwrap())
    }
}

#[async_trait]
impl Approver for Asked {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let ApprovalRequest { definition, targets, preview, reasons, no_preview, hash, .. } = request;
        let mut reasons: Vec<String> = reasons.into_iter().map(|reason| reason.reason).collect();
        reasons.extend(no_preview.map(|why| format!("there is no preview: {why}")));
        let (tool, targets) = (definition.name.to_string(), targets.to_vec());
        let shown = Shown { tool, targets, preview, reasons, hash };
        let before = self.shown.lock().unwrap().len();
        self.shown.lock().unwrap().push(shown.clone());
        if (self.thought)(before, &shown) {
            return ApprovalAnswer::Approved { by: "ada".to_owned(), hash: shown.hash };
        }
        ApprovalAnswer::Refused { reason: "no".to_owned() }
    }
}

pub async fn boot(project: &Project, config: Value, approver: &Arc<Asked>) -> Kernel {
    let mut config = config;
    config["sandbox"] = json!({ "cpuMs": 5_000, "wallMs": 30_000 });
    project.put("tgp.config.json", &config.to_string());
    Kernel::boot(BootOptions { approver: Arc::clone(approver) as _, ..project.options() }).await.unwrap()
}

/// The files, and the head of the tool repository.
fn everything(project: &Project) -> (Vec<(String, String)>, Option<String>) {
    (files(project), project.text(".tgp/.git/refs/heads/main"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_but_a_read_asks_and_a_refusal_leaves_everything_as_it_was() {
    let project = Project::new();
    furnish(&project);
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({ "tdd": { "command": "true" } }), &approver).await;
    let mut asked = 0;
    for definition in kernel.definitions().cloned().collect::<Vec<_>>() {
        let tool = definition.name.as_str();
        let before = everything(&project);
        let answer = kernel.call_with(call(tool, arguments(tool)), context(Consent::Ask)).await;
        let shown = approver.take();
        if definition.effect == Effect::Read {
            assert!(shown.is_empty() && went_well(tool, &answer), "{tool}: {answer:?}");
            continue;
        }
        asked += 1;
        assert_eq!(code(&answer), "EAPPROVAL", "{tool}: {answer:?}");
        assert_eq!(everything(&project), before, "{tool}: a refused call has changed something");
        let [shown] = &shown[..] else { panic!("{tool}: {shown:?}") };
        assert_eq!(shown.tool, tool);
        assert!(shown.hash.len() == 64 && !shown.reasons.is_empty(), "{tool}: {shown:?}");
        match tool {
            "write_file" | "patch_file" | "fs_write" | "fs_edit" | "fs_delete" => {
                assert!(shown.preview()["diff"].as_str().is_some_and(|diff| !diff.is_empty()), "{shown:?}");
            }
            "git_commit" | "undo_session" => {
                assert!(
                    shown.preview()["changes"][0]["diff"].as_str().is_some_and(|diff| !diff.is_empty()),
                    "{shown:?}"
                );
            }
            "exec_sql" => assert_eq!(shown.preview()["changed"], 0),
            "exec_tool" => assert_eq!(shown.preview()["source"], "export default () => 1;"),
            "exec_code" => assert_eq!(shown.preview()["source"], "return 1;"),
            "test_tool" => assert_eq!(shown.preview()["tests"], json!(["tools/one.test.ts"])),
            "test_run" => assert_eq!(shown.preview()["command"], "true"),
            // The file that its command line names.
            "shell_exec" => assert_eq!(shown.preview()["files"][0]["path"], "notes.md"),
            // Their arguments say it all, and nothing of them may run before the answer.
            "package_install" | "fetch" | "call_host" | "call_upstream" | "sync" | "reconcile" => {
                assert_eq!(shown.preview, None, "{tool}")
            }
            "chronicle_append" => assert!(shown.preview()["eventId"].is_string(), "{shown:?}"),
            other => panic!("`{other}` is new: say here what is shown of it"),
        }
    }
    assert!(asked >= 11, "{asked}");
    kernel.shutdown().await;
}

/// Asks for everything, as the defaults do.
struct AskForAll;

#[async_trait]
impl Gate for AskForAll {
    fn stage(&self) -> Stage {
        Stage::Policy
    }

    fn name(&self) -> &str {
        "all"
    }

    async fn judge(&self, _request: GateRequest<'_>) -> Verdict {
        let origin = ApprovalOrigin::Default("default/all".to_owned());
        Verdict::Ask(ApprovalReason { origin, reason: "everything asks".to_owned() })
    }
}

/// A tool whose file is changed after the last preview and before the effect.
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

    async fn found_targets(&self, invocation: Invocation<'_>) -> Vec<Target> {
        self.inner.found_targets(invocation).await
    }

    async fn preview(&self, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let preview = self.inner.preview(invocation).await;
        if self.previews.fetch_add(1, Ordering::SeqCst) == 1 {
            (self.meddle)();
        }
        preview
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        self.inner.run(invocation).await
    }
}

/// Tools are bound as the files of the project are: also against a change after the router's very last check, and a
/// tool that is executed with everything it imports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_changes_after_the_answer_is_asked_for_again() {
    const OUTER: &str = "import one from './one.ts';\nexport default () => one() + 1;";
    for (tool, arguments, stands) in [
        (
            "write_file",
            json!({ "path": "tools/one.ts", "content": "export default () => 2;" }),
            "export default () => 2;",
        ),
        (
            "patch_file",
            json!({ "path": "tools/one.ts", "search": "7", "replace": "8" }),
            "export default () => 80;",
        ),
        ("exec_tool", json!({ "path": "tools/outer.ts" }), "export default () => 70;"),
    ] {
        let project = Project::new();
        project.tool("one.ts", "export default () => 7;").tool("outer.ts", OUTER);
        let (known, workspace) = tools(&project).await;
        let inner = known.into_iter().find(|known| known.definition().name.as_str() == tool).unwrap();
        let file = project.file(".tgp/tools/one.ts");
        let meddle = Box::new(move || std::fs::write(&file, "export default () => 70;").unwrap());
        let meddled = Arc::new(Meddled { inner, previews: AtomicUsize::new(0), meddle });
        let (approver, records) = (Asked::new(|_, _| true), Arc::new(Records::default()));
        let gates: Vec<Arc<dyn Gate>> = vec![Arc::new(AskForAll)];
        let router = Router::new(
            vec![meddled],
            gates,
            Arc::clone(&approver) as _,
            Arc::clone(&records) as _,
            workspace,
        );
        let answer = Arc::new(router.unwrap()).call(call(tool, arguments), context(Consent::Ask)).await;
        assert!(answer.is_ok(), "{tool}: {answer:?}");
        let shown = approver.take();
        assert_eq!(shown.len(), 2, "{tool}: {shown:?}");
        assert_ne!(shown[0].hash, shown[1].hash, "{tool}");
        assert_eq!(project.text(".tgp/tools/one.ts").as_deref(), Some(stands), "{tool}");
        if tool == "exec_tool" {
            assert_eq!(result(&answer), json!(71));
            let found: Vec<&Value> = shown[1].preview()["found"].as_array().unwrap().iter().collect();
            assert_eq!(found.len(), 2, "the tool and what it imports: {found:?}");
        } else {
            assert!(shown[1].preview()["diff"].as_str().unwrap().contains("=> 70;"), "{tool}: {shown:?}");
        }
        let left = records.take();
        let words: Vec<&str> = left[0]
            .verdicts
            .iter()
            .filter(|verdict| verdict.stage == Stage::Approval)
            .map(|verdict| verdict.verdict.as_str())
            .collect();
        assert_eq!((left.len(), words), (1, vec!["approved", "ask", "approved"]), "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_changes_each_time_is_not_written_and_a_refusal_gives_the_token_back() {
    let project = Project::new();
    project.tool("one.ts", "export default () => 1;");
    let file = project.file(".tgp/tools/one.ts");
    let approver = Asked::new(move |before, _| {
        // The first call changes each time, the second until it is refused.
        if before < 4 {
            std::fs::write(&file, format!("export default () => 1; // {before}")).unwrap();
        }
        before != 4
    });
    let kernel = boot(&project, json!({}), &approver).await;
    let caveats = Caveats { calls: Some(1), ..Caveats::default() };
    let token = kernel.mint_token(&caveats).await.unwrap();
    let narrow = || CallContext { token: Some(token.clone()), ..context(Consent::Ask) };
    let patch = || call("patch_file", json!({ "path": "tools/one.ts", "search": "=> 1", "replace": "=> 2" }));
    let answer = kernel.call_with(patch(), narrow()).await;
    assert_eq!(code(&answer), "EAPPROVAL");
    assert!(error(&answer).message.contains("keeps changing"), "{answer:?}");
    assert_eq!(project.text(".tgp/tools/one.ts").as_deref(), Some("export default () => 1; // 2"));
    let answer = kernel.call_with(patch(), narrow()).await;
    assert_eq!((code(&answer), approver.shown.lock().unwrap().len()), ("EAPPROVAL", 5), "{answer:?}");
    let log = kernel.call("log", json!({ "path": "tools/one.ts" })).await;
    assert_eq!(data(&log)["versions"], json!([]), "nothing was committed");
    let answer = kernel.call_with(patch(), narrow()).await;
    assert!(answer.is_ok(), "what was not done was not counted: {answer:?}");
    assert_eq!(code(&kernel.call_with(patch(), narrow()).await), "EPOLICY", "and now it is used up");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_shown_with_the_rows_it_would_change_and_executed_once() {
    let project = Project::new();
    let approver = Asked::new(|_, shown| !shown.reasons.iter().any(|reason| reason.contains("Ann")));
    let kernel = boot(&project, json!({}), &approver).await;
    let ask = async |sql: &str| {
        kernel.call_with(call("exec_sql", json!({ "sql": sql })), context(Consent::Ask)).await
    };
    assert!(ask("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a INTEGER)").await.is_ok());
    approver.take();
    // Keys and chance differ from run to run; that is not another effect.
    let answer = ask("INSERT INTO t (a) VALUES (random()), (random()) RETURNING id, a").await;
    assert_eq!(data(&answer)["changed"], 2, "{answer:?}");
    let shown = approver.take();
    assert_eq!((shown.len(), &shown[0].preview()["changed"]), (1, &json!(2)), "{shown:?}");
    let count = kernel.call("exec_sql", json!({ "sql": "SELECT count(*) AS n FROM t" })).await;
    assert_eq!(data(&count)["rows"][0]["n"], 2, "once");
    assert_eq!(code(&ask("INSERT INTO absent VALUES (1)").await), "ESQL");
    assert!(approver.take().is_empty(), "what fails anyway is not asked for");
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: ask-sql, effect: ask, tools: exec_sql, reason: ask Ann first}\n",
    );
    assert_eq!(code(&ask("DELETE FROM t").await), "EAPPROVAL");
    let shown = approver.take();
    assert_eq!(shown[0].preview, None, "a rule is asked before anything runs, also a dry run");
    assert!(shown[0].reasons.iter().any(|reason| reason.contains("no preview")), "{shown:?}");
    let count = kernel.call("exec_sql", json!({ "sql": "SELECT count(*) AS n FROM t" })).await;
    assert_eq!(data(&count)["rows"][0]["n"], 2);
    kernel.shutdown().await;
}

/// A server that counts how many requests it got.
struct Server(Arc<AtomicUsize>);

#[async_trait]
impl Database for Server {
    fn dialect(&self) -> &str {
        "postgresql"
    }

    async fn begin(&self, _access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(ToolError::new(tgp::contract::Code::Sql, "this server answers nobody"))
    }
}

/// Nothing that a rollback might not reach runs before the user has agreed: neither for a preview nor as a dry run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_reaches_a_server_before_somebody_has_agreed() {
    let project = Project::new();
    let begun = Arc::new(AtomicUsize::new(0));
    let approver = Asked::new(|before, _| before > 5);
    let options = BootOptions {
        approver: Arc::clone(&approver) as _,
        database: Some(Arc::new(Server(Arc::clone(&begun)))),
        ..project.options()
    };
    let kernel = Kernel::boot(options).await.unwrap();
    let dry = || CallContext { dry_run: true, ..context(Consent::Ask) };
    for sql in ["SELECT nextval('s')", "DELETE FROM t", "DO $$ BEGIN END $$"] {
        for context in [context(Consent::Ask), dry()] {
            let answer = kernel.call_with(call("exec_sql", json!({ "sql": sql })), context).await;
            assert_eq!(code(&answer), "EAPPROVAL", "{sql}: {answer:?}");
        }
    }
    assert_eq!(begun.load(Ordering::SeqCst), 0);
    for shown in approver.shown.lock().unwrap().iter() {
        assert_eq!(shown.preview, None);
        assert!(shown.reasons.iter().any(|reason| reason.contains("would have to run")), "{shown:?}");
    }
    for context in [context(Consent::Ask), dry()] {
        let answer = kernel.call_with(call("exec_sql", json!({ "sql": "DELETE FROM t" })), context).await;
        assert_eq!(code(&answer), "ESQL", "now it runs: {answer:?}");
    }
    assert_eq!((begun.load(Ordering::SeqCst), approver.take().len()), (2, 8));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_dry_run_read_the_database_without_an_approval() {
    let project = Project::new();
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({}), &approver).await;
    for sql in ["CREATE TABLE users (id INTEGER, hash TEXT)", "INSERT INTO users VALUES (1, 'secret')"] {
        data(&kernel.call("exec_sql", json!({ "sql": sql })).await);
    }
    for sql in ["SELECT * FROM users", "UPDATE users SET id = 2 RETURNING *", "DELETE FROM users"] {
        for dry_run in [false, true] {
            let context = CallContext { dry_run, ..context(Consent::Ask) };
            let answer = kernel.call_with(call("exec_sql", json!({ "sql": sql })), context).await;
            assert_eq!(code(&answer), "EAPPROVAL", "{sql}: {answer:?}");
        }
    }
    assert_eq!(approver.take().len(), 6);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_statement_leaves_a_sequence_of_postgresql_untouched() {
    let Ok(url) = std::env::var("TGP_TEST_POSTGRES_URL") else {
        println!("skipped: postgresql (TGP_TEST_POSTGRES_URL is not set)");
        return;
    };
    let project = Project::new();
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({ "db": { "url": url } }), &approver).await;
    let name = format!("sequence_{}", std::process::id());
    let sql = async |text: String| data(&kernel.call("exec_sql", json!({ "sql": text })).await).clone();
    sql(format!("CREATE SEQUENCE {name}")).await;
    let next = || call("exec_sql", json!({ "sql": format!("SELECT nextval('{name}')") }));
    let dry = CallContext { dry_run: true, ..context(Consent::Ask) };
    for context in [context(Consent::Ask), dry] {
        assert_eq!(code(&kernel.call_with(next(), context).await), "EAPPROVAL");
    }
    let stands = sql(format!("SELECT is_called FROM {name}")).await;
    sql(format!("DROP SEQUENCE {name}")).await;
    assert_eq!(stands["rows"], json!([{ "is_called": false }]));
    assert_eq!(approver.take().len(), 2);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_rule_forbids_to_read_is_not_shown() {
    let project = Project::new();
    project.put("vault/secret.txt", "topsecret\n");
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: private, effect: deny, where: {path: {glob: 'vault/**', access: read}}, reason: not yours}\n",
    );
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, json!({}), &approver).await;
    let write = call("fs_write", json!({ "path": "vault/secret.txt", "content": "new\n" }));
    assert!(kernel.call_with(write, context(Consent::Ask)).await.is_ok());
    let shown = approver.take();
    assert_eq!((shown.len(), &shown[0].preview), (1, &None));
    assert!(shown[0].reasons.iter().any(|reason| reason.contains("no preview")), "{shown:?}");
    assert!(!format!("{shown:?}").contains("topsecret"));
    kernel.shutdown().await;
}

const ASK_FOR_OUTPUT: &str = "version: 1\nrules:\n  - {id: output, effect: ask, tools: [fs_write, fs_delete], where: {path: 'tmp/**'}, reason: look at it}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_a_tool_has_written_are_shown_before_they_count() {
    let project = Project::new();
    project.put("tgp.policy.yaml", ASK_FOR_OUTPUT).put("tmp/a.txt", "old\n");
    project.tool(
        "change.ts",
        "export default async () => { await tgp.write_file('tmp/a.txt', 'new\\n'); await tgp.write_file('tmp/b.txt', 'made\\n'); };",
    );
    let file = project.file("tmp/a.txt");
    // The call itself is the first question of each run, its files are the others.
    let approver = Asked::new(move |before, _| match before {
        1 => std::fs::write(&file, "old, and more\n").is_ok(),
        4 => false,
        _ => true,
    });
    let kernel = boot(&project, json!({}), &approver).await;
    let run = async || {
        let exec = call("exec_tool", json!({ "path": "tools/change.ts" }));
        kernel.call_with(exec, context(Consent::Ask)).await
    };
    let answer = run().await;
    assert!(answer.is_ok(), "{answer:?}");
    let shown = approver.shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 3, "the tool, its files, and the files again: {shown:?}");
    assert!(shown[0].preview()["source"].is_string());
    for (place, diff) in [(1, "-old\n+new\n"), (2, "-old, and more\n+new\n")] {
        let changes = &shown[place].preview()["changes"];
        assert_eq!((&changes[0]["path"], &changes[0]["change"]), (&json!("tmp/a.txt"), &json!("changed")));
        assert!(changes[0]["diff"].as_str().unwrap().contains(diff), "{changes}");
        assert_eq!((&changes[1]["path"], &changes[1]["change"]), (&json!("tmp/b.txt"), &json!("created")));
        assert!(shown[place].reasons.iter().any(|reason| reason.contains("look at it")));
    }
    assert_eq!(project.text("tmp/a.txt").as_deref(), Some("new\n"));
    project.put("tmp/a.txt", "old\n");
    std::fs::remove_file(project.file("tmp/b.txt")).unwrap();
    assert_eq!(code(&run().await), "EAPPROVAL");
    assert_eq!((project.text("tmp/a.txt").as_deref(), project.text("tmp/b.txt")), (Some("old\n"), None));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_a_command_has_changed_are_shown_before_they_count() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = Project::new();
    project.put("tgp.policy.yaml", ASK_FOR_OUTPUT).put("tmp/a.txt", "old\n").put("tmp/gone.txt", "bye\n");
    let file = project.file("tmp/a.txt");
    let approver = Asked::new(move |before, _| {
        // While the files of the second command are read, one of them changes.
        if before == 3 {
            std::fs::write(&file, "somebody else\n").unwrap();
        }
        true
    });
    let kernel = boot(&project, json!({}), &approver).await;
    let shell = async |command: &str| {
        kernel.call_with(call("shell_exec", json!({ "command": command })), context(Consent::Ask)).await
    };
    let answer = shell("echo new > tmp/a.txt; rm tmp/gone.txt").await;
    assert!(answer.is_ok(), "{answer:?}");
    let shown = approver.shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 2, "{shown:?}");
    let named = shown[0].preview()["files"].as_array().unwrap();
    let named: Vec<_> = named.iter().map(|file| (&file["path"], &file["begins"])).collect();
    assert_eq!(json!(named), json!([["tmp/a.txt", "old\n"], ["tmp/gone.txt", "bye\n"]]));
    let changes = shown[1].preview()["changes"].to_string();
    for text in ["-old\\n+new\\n", "-bye\\n", "\"deleted\"", "\"changed\""] {
        assert!(changes.contains(text), "{text}: {changes}");
    }
    assert_eq!((project.text("tmp/a.txt").as_deref(), project.text("tmp/gone.txt")), (Some("new\n"), None));
    let answer = shell("echo newer > tmp/a.txt").await;
    assert_eq!(code(&answer), "ECONFLICT", "{answer:?}");
    assert_eq!(project.text("tmp/a.txt").as_deref(), Some("somebody else\n"));
    kernel.shutdown().await;
}

const CSV: &str = "/** Converts an array of objects to CSV text with a header row. */\nexport default (args: { rows: Record<string, string>[] }): string => Object.keys(args.rows[0] ?? {}).join(',');\n";
const TWIN: &str = "/** Converts a list of objects to CSV text with a header row. */\nexport default (args: { items: object[] }): string => String(args.items.length);\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_reuses_or_says_what_does_not_do() {
    let project = Project::new();
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, json!({}), &approver).await;
    let as_agent = |consent| context(consent);
    let as_person = || CallContext { actor: Actor::Person("ann".to_owned()), ..context(Consent::Given) };
    let write = |path: &str, despite: Option<Value>| {
        let mut arguments = json!({ "path": path, "content": TWIN });
        if let Some(despite) = despite {
            arguments["despite"] = despite;
        }
        call("write_file", arguments)
    };
    let first = call("write_file", json!({ "path": "tools/to_csv.ts", "content": CSV }));
    assert!(kernel.call_with(first, as_agent(Consent::Given)).await.is_ok());
    let before = everything(&project);
    let dry = CallContext { dry_run: true, ..as_agent(Consent::Ask) };
    let inner = CallContext {
        actor: Actor::Tool(tgp::contract::RelativePath::new("tools/to_csv.ts").unwrap()),
        ..as_agent(Consent::Given)
    };
    for (despite, context) in [
        (None, as_agent(Consent::Given)),
        (None, as_agent(Consent::Ask)),
        (None, dry),
        (None, inner),
        (Some(json!([])), as_agent(Consent::Given)),
        (Some(json!(["tools/other.ts"])), as_agent(Consent::Given)),
    ] {
        let refused = kernel.call_with(write("tools/csv_export.ts", despite.clone()), context.clone()).await;
        assert_eq!(code(&refused), "EPOLICY", "{despite:?} {context:?}");
        let similar = &error(&refused).details["similar"];
        assert_eq!((similar.as_array().unwrap().len(), &similar[0]["path"]), (1, &json!("tools/to_csv.ts")));
        assert!(similar[0]["score"].as_f64().unwrap() >= 0.85, "{similar}");
        for field in ["description", "why", "signature"] {
            assert!(similar[0][field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {similar}");
        }
        let help = error(&refused).help_of().unwrap();
        for text in ["exec_tool", "patch", "override_similar", "tools/to_csv.ts"] {
            assert!(help.contains(text), "{text}: {help}");
        }
    }
    assert_eq!(everything(&project), before, "a refused tool has left something");
    assert!(approver.take().is_empty(), "what is refused anyway is not asked for");
    let outside = kernel.call_with(write("tools/x.ts", Some(json!(["../x.ts"]))), as_agent(Consent::Given));
    assert_eq!(code(&outside.await), "ESECURITY");
    let named = Some(json!(["tools/other.ts", "./tools/to_csv.ts"]));
    let made = kernel.call_with(write("tools/csv_export.ts", named), as_agent(Consent::Ask)).await;
    assert_eq!(data(&made)["similar"][0]["path"], "tools/to_csv.ts", "{made:?}");
    assert_eq!(approver.take().len(), 1);
    let again = kernel.call_with(write("tools/csv_export.ts", None), as_agent(Consent::Given)).await;
    assert!(again.is_ok(), "a tool that is there is only changed: {again:?}");
    // Now there are two of them, and both have to be named.
    let half = kernel.call_with(
        write("tools/csv_third.ts", Some(json!(["tools/csv_export.ts"]))),
        as_agent(Consent::Given),
    );
    let half = half.await;
    assert_eq!(error(&half).details["similar"].as_array().unwrap().len(), 2, "{half:?}");
    let person = kernel.call_with(write("tools/csv_third.ts", None), as_person()).await;
    assert!(data(&person)["similar"].as_array().is_some_and(|similar| !similar.is_empty()), "{person:?}");
    kernel.shutdown().await;
    for (choice, despite, expected) in
        [("warn", None, None), ("refuse", Some(json!(["tools/to_csv.ts"])), Some("EPOLICY"))]
    {
        let project = Project::new();
        let kernel = boot(&project, json!({ "registry": { "onDuplicate": choice } }), &approver).await;
        let first = call("write_file", json!({ "path": "tools/to_csv.ts", "content": CSV }));
        assert!(kernel.call_with(first, as_agent(Consent::Given)).await.is_ok());
        let second = kernel.call_with(write("tools/csv_export.ts", despite), as_agent(Consent::Given)).await;
        assert_eq!(second.error().map(|error| error.code.as_str()), expected, "{choice}: {second:?}");
        kernel.shutdown().await;
    }
}

/// Gates around a call without a question make no preview: a tool that cannot make one runs all the same.
struct NoPreview(Arc<dyn DynTool>);

#[async_trait]
impl DynTool for NoPreview {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        self.0.targets(arguments)
    }

    async fn found_targets(&self, invocation: Invocation<'_>) -> Vec<Target> {
        self.0.found_targets(invocation).await
    }

    async fn preview(&self, _invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        panic!("a preview was made for nobody")
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        self.0.run(invocation).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_and_nothing_is_shown_with_consent_or_in_a_dry_run() {
    let project = Project::new();
    furnish(&project);
    let (known, workspace) = tools(&project).await;
    let known = known.into_iter().map(|tool| Arc::new(NoPreview(tool)) as Arc<dyn DynTool>).collect();
    let approver = Asked::new(|_, _| false);
    let gates: Vec<Arc<dyn Gate>> = vec![Arc::new(AskForAll)];
    let router = Router::new(known, gates, Arc::clone(&approver) as _, Arc::new(Forgetful), workspace);
    let router = Arc::new(router.unwrap());
    for definition in router.definitions().cloned().collect::<Vec<_>>() {
        let tool = definition.name.as_str();
        // The dry run of a statement shows rows, so it is asked for.
        if definition.dry_run && definition.effect == Effect::Write && tool != "exec_sql" {
            let dry = CallContext { dry_run: true, ..context(Consent::Ask) };
            assert!(router.call(call(tool, arguments(tool)), dry).await.is_ok(), "{tool}");
        }
        let answer = router.call(call(tool, arguments(tool)), context(Consent::Given)).await;
        assert!(went_well(tool, &answer), "{tool}: {answer:?}");
    }
    assert!(approver.take().is_empty());
}

/// The last call of a run is refused and caught, so the run ends well; meanwhile a person has halted the project or the tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_run_that_was_halted_meanwhile_took_effect() {
    const INNER: &str = "export default () => tgp.exec_sql('CREATE TABLE t (a)');";
    const SOURCE: &str = "export default async () => {
        await tgp.exec_tool('tools/inner.ts', {});
        try { await tgp.exec_sql('DROP TABLE t'); } catch { /* refused */ }
        return 'done';
    };";
    const RULES: &str = "version: 1\nrules:\n  - {id: look, effect: ask, tools: exec_sql, where: {statement: drop}, reason: look first}\n";
    for halted in [None, Some("project"), Some("tools/writer.ts"), Some("tools/inner.ts")] {
        let project = Project::new();
        project.tool("writer.ts", SOURCE).tool("inner.ts", INNER).put("tgp.policy.yaml", RULES);
        let other = Arc::new(project.boot().await.unwrap());
        let (halting, scope) = (Arc::clone(&other), halted.map(|scope| Scope::parse(scope).unwrap()));
        let asked = Asked::new(move |_, shown: &Shown| {
            if let ("exec_sql", Some(scope)) = (shown.tool.as_str(), &scope) {
                let halt = || Handle::current().block_on(halting.set_state(scope, TddState::Halted));
                tokio::task::block_in_place(halt).unwrap();
            }
            shown.tool != "exec_sql"
        });
        let options = BootOptions { approver: asked.clone(), ..project.options() };
        let kernel = Kernel::boot(options).await.unwrap();
        let run = call("exec_tool", json!({ "path": "tools/writer.ts", "args": {} }));
        let answer = kernel.call_with(run, context(Consent::Ask)).await;
        assert_eq!(
            asked.take().last().map(|shown| shown.tool.clone()).as_deref(),
            Some("exec_sql"),
            "{answer:?}"
        );
        if let Some(scope) = halted {
            assert_eq!(code(&answer), "ESTATE", "{scope}");
            other.set_state(&Scope::parse(scope).unwrap(), TddState::Idle).await.unwrap();
        } else {
            assert_eq!(result(&answer), "done");
        }
        let rows = "SELECT count(*) AS n FROM sqlite_schema WHERE name = 't'";
        let rows = other.call("exec_sql", json!({ "sql": rows })).await;
        assert_eq!(data(&rows)["rows"][0]["n"], i64::from(halted.is_none()), "{halted:?}: {rows:?}");
    }
}

/// An answer may come long after the question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_call_that_was_approved_after_a_halt_took_effect() {
    let calls = [
        ("exec_sql", json!({ "sql": "CREATE TABLE t (a)" })),
        ("fs_write", json!({ "path": "notes.txt", "content": "a" })),
        (
            "write_file",
            json!({ "path": "tools/new_one.ts", "content": "/** One. */\nexport default () => 1;\n" }),
        ),
        ("shell_exec", json!({ "command": "echo 'all:' > Makefile" })),
    ];
    for (tool, arguments) in calls {
        if tool == "shell_exec" && !tgp::sandbox::process_support().complete() {
            println!("skipped: no jail for commands");
            continue;
        }
        let project = Project::new();
        let other = Arc::new(project.boot().await.unwrap());
        let halting = Arc::clone(&other);
        let asked = Asked::new(move |_, _| {
            let halt = || Handle::current().block_on(halting.set_state(&Scope::Project, TddState::Halted));
            tokio::task::block_in_place(halt).unwrap();
            true
        });
        let kernel =
            Kernel::boot(BootOptions { approver: asked.clone(), ..project.options() }).await.unwrap();
        let answer = kernel.call_with(call(tool, arguments), context(Consent::Ask)).await;
        assert_eq!(code(&answer), "ESTATE", "{tool}: {answer:?}");
        assert_eq!(asked.take().len(), 1, "{tool}");
        for file in ["notes.txt", ".tgp/tools/new_one.ts", "Makefile"] {
            assert!(!project.file(file).exists(), "{tool}: {file}");
        }
    }
}
