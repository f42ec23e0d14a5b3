//! Approvals that wait for a person: the run ends and is rolled back, a person answers, and the run starts again.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tgp::approvals::{ApprovalState, Approvals, Grant, KeptQuestion};
use tgp::contract::{
    ApprovalAnswer, ApprovalRequest, Approver, CallContext, Code, Consent, ToolCall, ToolResult,
};
use tgp::{BootOptions, Kernel};

use crate::support::{Project, code, data, error, recorded, result};

/// No person can be asked.
pub(crate) struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _request: ApprovalRequest<'_>) -> ApprovalAnswer {
        ApprovalAnswer::Later { reason: "no person is here".to_owned() }
    }
}

/// A project, the home of its user, and a kernel with a rule that asks before rows are inserted.
struct Place {
    project: Project,
    home: TempDir,
    kernel: Kernel,
}

const POLICY: &str = "version: 1\nrules:\n  - {id: ask-inserts, effect: ask, tools: [exec_sql], where: {statement: [insert]}, reason: rows are precious}\n";

impl Place {
    async fn new(config: Value) -> Self {
        Self::with(config, POLICY).await
    }

    async fn with(config: Value, policy: &str) -> Self {
        let (project, home) = (Project::new(), tempfile::tempdir().unwrap());
        project.put("tgp.policy.yaml", policy).put("tgp.config.json", &config.to_string());
        let kernel = Kernel::boot(options(&project, home.path())).await.unwrap();
        data(&kernel.call("exec_sql", json!({ "sql": "CREATE TABLE notes (text TEXT)" })).await);
        Self { project, home, kernel }
    }

    fn approvals(&self) -> Approvals {
        self.kernel.approvals().unwrap().unwrap()
    }

    fn waiting(&self) -> Vec<KeptQuestion> {
        let mut all = self.approvals().list().unwrap();
        all.retain(|question| question.state() == ApprovalState::Pending);
        all
    }

    /// Agrees to what a failed call waits for.
    #[track_caller]
    fn approve(&self, answer: &ToolResult, times: u32) {
        let question = self.question(answer);
        let grant = Grant { by: "ada".to_owned(), times };
        self.approvals().grant(&question.id, question.hash(), grant, recorded()).unwrap();
    }

    #[track_caller]
    fn question(&self, answer: &ToolResult) -> KeptQuestion {
        let question = self.approvals().find(&id(answer)).unwrap();
        assert_eq!(error(answer).details["needs_approval"]["hash"], json!(question.hash()));
        question
    }

    async fn run(&self, tool: &str, args: Value) -> ToolResult {
        self.kernel.call("exec_tool", json!({ "path": format!("tools/{tool}.ts"), "args": args })).await
    }

    async fn rows(&self) -> Value {
        let found = self.kernel.call("exec_sql", json!({ "sql": "SELECT count(*) AS n FROM notes" })).await;
        data(&found)["rows"][0]["n"].clone()
    }

    fn files(&self) -> Vec<PathBuf> {
        let directory = self.home.path().join("approvals");
        let inside = std::fs::read_dir(directory).unwrap().flatten().flat_map(|project| {
            std::fs::read_dir(project.path()).unwrap().flatten().map(|entry| entry.path())
        });
        inside.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
    }
}

fn options(project: &Project, home: &Path) -> BootOptions {
    let home = home.to_str().unwrap().to_owned();
    BootOptions {
        approver: Arc::new(Away),
        environment: Arc::new(move |name| (name == "TGP_HOME").then(|| home.clone())),
        ..project.options()
    }
}

#[track_caller]
fn id(answer: &ToolResult) -> String {
    assert_eq!(code(answer), "EAPPROVAL", "{answer:?}");
    error(answer).details["needs_approval"]["id"].as_str().unwrap().to_owned()
}

/// A server that counts its requests and answers with their number; `/moved` leads to the same server by another name.
fn counting_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let elsewhere = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let requests = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&requests);
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let (mut first, mut line) = (String::new(), String::new());
            let _ = reader.read_line(&mut first);
            while reader.read_line(&mut line).is_ok_and(|read| read > 0) && line.trim() != "" {
                line.clear();
            }
            let number = counted.fetch_add(1, Ordering::SeqCst).to_string();
            let status = match first.contains("/moved") {
                true => format!("302 Found\r\nlocation: {elsewhere}"),
                false => "200 OK".to_owned(),
            };
            let length = number.len();
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            let _ = connection.write_all(format!("{head}{number}").as_bytes());
        }
    });
    (origin, requests)
}

fn network(origin: &str) -> Value {
    json!({ "allowedFetchUrls": [origin], "sandbox": { "cpuMs": 5_000, "wallMs": 60_000 } })
}

const INSERT: &str = "await tgp.exec_sql('INSERT INTO notes VALUES (?)', [text]);";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_waits_and_starts_again_without_repeating_its_requests() {
    let (origin, requests) = counting_server();
    let place = Place::new(network(&origin)).await;
    place.project.tool(
        "note.ts",
        &format!(
            "export default async ({{ text, url }}: {{ text: string; url: string }}) => {{\n  \
               const posted = await (await tgp.fetch(url, {{ method: 'POST', body: text }})).text();\n  \
               const got = await (await tgp.fetch(url)).text();\n  \
               await tgp.write_file('tmp/left.txt', posted);\n  {INSERT}\n  \
               const later = await (await tgp.fetch(url)).text();\n  return {{ posted, got, later }};\n}};"
        ),
    );
    let args = json!({ "text": "one", "url": format!("{origin}/") });
    let first = place.run("note", args.clone()).await;
    let asked = error(&first);
    assert_eq!(asked.code, Code::Approval);
    assert!(asked.help_of().unwrap().contains(&format!("tgp approve {}", id(&first))), "{asked:?}");
    assert_eq!((requests.load(Ordering::SeqCst), place.rows().await), (2, json!(0)));
    assert_eq!(place.project.text("tmp/left.txt"), None, "the run was not rolled back");

    // The same again asks the same question.
    let again = place.run("note", args.clone()).await;
    assert_eq!(id(&again), id(&first));
    assert_eq!(requests.load(Ordering::SeqCst), 2, "a request was repeated");

    place.approve(&first, 1);
    let done = place.run("note", args.clone()).await;
    assert_eq!(result(&done), json!({ "posted": "0", "got": "1", "later": "2" }));
    assert_eq!((requests.load(Ordering::SeqCst), place.rows().await), (3, json!(1)));
    assert_eq!(place.project.text("tmp/left.txt").as_deref(), Some("0"));
    assert!(place.files().is_empty(), "what was granted outlives its run: {:?}", place.files());

    // A new run has a journal and a question of its own.
    let next = place.run("note", args).await;
    assert_eq!((code(&next), requests.load(Ordering::SeqCst)), ("EAPPROVAL", 5));
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_catches_the_refusal_is_rolled_back_nevertheless() {
    let place = Place::new(json!({})).await;
    place.project.tool(
        "sly.ts",
        &format!(
            "export default async ({{ text }}: {{ text: string }}) => {{\n  \
               await tgp.write_file('tmp/left.txt', text);\n  \
               try {{ {INSERT} }} catch {{ /* go on */ }}\n  \
               let second = 'none';\n  \
               try {{ await tgp.exec_sql('SELECT 1'); }} catch (error) {{ second = error.code; }}\n  \
               await tgp.write_file('tmp/more.txt', second);\n  return second;\n}};"
        ),
    );
    let answer = place.run("sly", json!({ "text": "one" })).await;
    assert_eq!(code(&answer), "EAPPROVAL");
    assert_eq!(place.project.text("tmp/left.txt"), None);
    assert_eq!(place.project.text("tmp/more.txt"), None);
    place.approve(&answer, 1);
    assert_eq!(result(&place.run("sly", json!({ "text": "one" })).await), json!("none"));
    assert_eq!(place.rows().await, json!(1));
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_call_at_the_place_of_a_request_ends_the_run() {
    let (origin, requests) = counting_server();
    let place = Place::new(network(&origin)).await;
    place.project.tool(
        "random.ts",
        &format!(
            "export default async ({{ text, url }}: {{ text: string; url: string }}) => {{\n  \
               await tgp.fetch(`${{url}}?${{Math.random()}}`, {{ method: 'POST' }});\n  {INSERT}\n  return 1;\n}};"
        ),
    );
    let args = json!({ "text": "one", "url": format!("{origin}/") });
    let first = place.run("random", args.clone()).await;
    place.approve(&first, 1);
    let second = place.run("random", args).await;
    assert_eq!(code(&second), "ECONFLICT", "{second:?}");
    assert_eq!((requests.load(Ordering::SeqCst), place.rows().await), (1, json!(0)));
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_holds_for_its_number_of_calls_in_its_own_run_and_for_nothing_else() {
    let place = Place::new(json!({})).await;
    place.project.tool(
        "often.ts",
        &format!(
            "export default async ({{ text, times }}: {{ text: string; times: number }}) => {{\n  \
               for (let i = 0; i < times; i++) {{ {INSERT} }}\n  return times;\n}};"
        ),
    );
    let args = json!({ "text": "one", "times": 3 });
    let first = place.run("often", args.clone()).await;
    place.approve(&first, 2);
    let second = place.run("often", args.clone()).await;
    assert_eq!((code(&second), place.rows().await), ("EAPPROVAL", json!(0)));
    assert_eq!(id(&second), id(&first), "the third is the same question");
    assert!(error(&second).help_of().unwrap().contains("--times"), "{second:?}");
    place.approve(&second, 3);
    // Another run, another caller and another session ask for themselves.
    let other = place.run("often", json!({ "text": "two", "times": 3 })).await;
    assert_ne!(id(&other), id(&first));
    let foreign = CallContext { session: "another".to_owned(), ..embedded() };
    let call = ToolCall {
        id: "1".to_owned(),
        tool: "exec_tool".to_owned(),
        arguments: json!({ "path": "tools/often.ts", "args": args.clone() }),
    };
    assert_eq!(code(&place.kernel.call_with(call, foreign).await), "EAPPROVAL");
    assert_eq!(result(&place.run("often", args.clone()).await), json!(3));
    assert_eq!(place.rows().await, json!(3));
    assert_eq!(code(&place.run("often", args).await), "EAPPROVAL", "the grant ended with its run");
    place.kernel.shutdown().await;
}

fn embedded() -> CallContext {
    CallContext {
        actor: tgp::contract::Actor::Agent("embedded".to_owned()),
        session: "embedded".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_is_told_and_stays() {
    let place = Place::new(json!({})).await;
    let insert = json!({ "sql": "INSERT INTO notes VALUES ('x')" });
    let ask = async || {
        let call = ToolCall { id: "1".to_owned(), tool: "exec_sql".to_owned(), arguments: insert.clone() };
        place.kernel.call_with(call, CallContext { consent: Consent::Ask, ..embedded() }).await
    };
    let first = ask().await;
    let deny =
        |id: &str, hash: &str| place.approvals().deny(id, hash, "ada".to_owned(), "not today".to_owned());
    let question = place.question(&first);
    deny(&question.id, question.hash()).unwrap();
    for _ in 0..2 {
        let answer = ask().await;
        assert_eq!(code(&answer), "EAPPROVAL");
        assert!(error(&answer).message.contains("ada has denied it: not today"), "{answer:?}");
        assert!(!error(&answer).details.contains_key("needs_approval"));
        assert!(error(&answer).help_of().unwrap().contains("do without it"), "{answer:?}");
    }
    assert_eq!(place.rows().await, json!(0));
    // A person may change a denial; what is granted cannot be answered again, and what was never asked not at all.
    let question = place.approvals().find(&id(&first)).unwrap();
    let grant = Grant { by: "ada".to_owned(), times: 1 };
    place.approvals().grant(&question.id, question.hash(), grant, recorded()).unwrap();
    assert_eq!(deny(&question.id, question.hash()).unwrap_err().code, Code::Conflict);
    assert_eq!(deny("000000000000", "00").unwrap_err().code, Code::NotFound);
    assert!(ask().await.is_ok());
    assert_eq!(place.rows().await, json!(1));
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_after_the_answer_is_asked_again() {
    let place = Place::new(json!({})).await;
    place.project.put("notes.md", "old\n");
    let write = async || {
        let arguments = json!({ "path": "notes.md", "content": "new\n" });
        let call = ToolCall { id: "1".to_owned(), tool: "fs_write".to_owned(), arguments };
        place.kernel.call_with(call, CallContext { consent: Consent::Ask, ..embedded() }).await
    };
    let first = write().await;
    place.approve(&first, 1);
    place.project.put("notes.md", "somebody else was here\n");
    let second = write().await;
    assert_ne!(id(&second), id(&first), "an answer holds for what was shown");
    assert_eq!(place.project.text("notes.md").as_deref(), Some("somebody else was here\n"));
    place.approve(&second, 1);
    data(&write().await);
    assert_eq!(place.project.text("notes.md").as_deref(), Some("new\n"));
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_attempts_at_the_same_time_use_a_grant_once() {
    let place = Place::new(json!({})).await;
    place.project.tool(
        "slow.ts",
        &format!(
            "export default async ({{ text }}: {{ text: string }}) => {{\n  {INSERT}\n  \
               await new Promise((done) => setTimeout(done, 700));\n  return 1;\n}};"
        ),
    );
    let args = json!({ "text": "one" });
    let first = place.run("slow", args.clone()).await;
    place.approve(&first, 1);
    let attempts = futures_util::future::join_all((0..4).map(|_| place.run("slow", args.clone()))).await;
    let done = attempts.iter().filter(|attempt| attempt.is_ok()).count();
    assert_eq!((done, place.rows().await), (1, json!(1)), "{attempts:?}");
    for failed in attempts.iter().filter(|attempt| !attempt.is_ok()) {
        assert!(matches!(code(failed), "ECONFLICT" | "EAPPROVAL"), "{failed:?}");
    }
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_have_a_bound_and_an_end() {
    let place = Place::new(json!({})).await;
    let ask = async |number: usize| {
        let arguments = json!({ "sql": "INSERT INTO notes VALUES (?)", "params": [number] });
        let call = ToolCall { id: "1".to_owned(), tool: "exec_sql".to_owned(), arguments };
        let session = format!("session {}", number / 50);
        place.kernel.call_with(call, CallContext { consent: Consent::Ask, session, ..embedded() }).await
    };
    for number in 0..50 {
        id(&ask(number).await);
    }
    // The session has as many as one may have; others have room.
    let one_more = json!({ "sql": "INSERT INTO notes VALUES ('one more')" });
    let call = ToolCall { id: "1".to_owned(), tool: "exec_sql".to_owned(), arguments: one_more };
    let session = "session 0".to_owned();
    let context = CallContext { consent: Consent::Ask, session, ..embedded() };
    let refused = place.kernel.call_with(call, context).await;
    assert!(error(&refused).message.contains("calls of this session wait"), "{refused:?}");
    for number in 50..100 {
        id(&ask(number).await);
    }
    assert_eq!(place.waiting().len(), 100);
    let refused = ask(100).await;
    assert_eq!(code(&refused), "EAPPROVAL");
    assert!(!error(&refused).details.contains_key("needs_approval"), "{refused:?}");
    assert!(error(&refused).message.contains("wait for an approval already"), "{refused:?}");
    // One that waits already is not one more.
    id(&ask(7).await);

    for file in place.files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut record: Value = serde_json::from_str(&text).unwrap();
        record["questions"][0]["expires_ms"] = json!(1);
        std::fs::write(&file, record.to_string()).unwrap();
    }
    assert!(place.waiting().is_empty(), "an expired question cannot be answered");
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 60 * 60);
    for file in place.files() {
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(yesterday).unwrap();
    }
    id(&ask(100).await);
    assert_eq!(place.files().len(), 1, "expired questions are removed");
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_others_can_write_is_not_believed() {
    let place = Place::new(json!({})).await;
    place.project.tool(
        "note.ts",
        &format!("export default async ({{ text }}: {{ text: string }}) => {{ {INSERT} }};"),
    );
    let first = place.run("note", json!({ "text": "one" })).await;
    place.approve(&first, 1);
    let [file] = &place.files()[..] else { panic!("{:?}", place.files()) };
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let answer = place.run("note", json!({ "text": "one" })).await;
    assert_eq!(code(&answer), "ESECURITY", "{answer:?}");
    assert_eq!(place.rows().await, json!(0));
    std::fs::remove_file(file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", file).unwrap();
    assert!(!place.run("note", json!({ "text": "one" })).await.is_ok());
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_kept_where_agents_write() {
    let project = Project::new();
    project.put("tgp.policy.yaml", POLICY);
    let home = project.file("home");
    let kernel = Kernel::boot(options(&project, &home)).await.unwrap();
    project.put("notes.md", "old\n");
    let arguments = json!({ "path": "notes.md", "content": "new\n" });
    let call = ToolCall { id: "1".to_owned(), tool: "fs_write".to_owned(), arguments };
    let answer = kernel.call_with(call, CallContext { consent: Consent::Ask, ..embedded() }).await;
    assert_eq!(code(&answer), "EAPPROVAL");
    assert!(!error(&answer).details.contains_key("needs_approval") && !home.exists(), "{answer:?}");
    assert_eq!(kernel.approvals().unwrap_err().code, Code::Security);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_answer_to_a_default_was_taken_for_one_to_a_rule() {
    let place = Place::new(json!({})).await;
    let write = async |kernel: &Kernel| {
        let arguments = json!({ "path": "notes.md", "content": "new\n" });
        let call = ToolCall { id: "1".to_owned(), tool: "fs_write".to_owned(), arguments };
        kernel.call_with(call, CallContext { consent: Consent::Ask, ..embedded() }).await
    };
    let first = write(&place.kernel).await;
    place.approve(&first, 1);
    place.kernel.shutdown().await;
    let rule = "  - {id: ask-notes, effect: ask, tools: [fs_write], reason: notes are precious}\n";
    place.project.put("tgp.policy.yaml", &format!("{POLICY}{rule}"));
    let kernel = Kernel::boot(options(&place.project, place.home.path())).await.unwrap();
    let second = write(&kernel).await;
    assert_ne!(id(&second), id(&first));
    let question = kernel.approvals().unwrap().unwrap().find(&id(&second)).unwrap();
    assert_eq!(question.request().reasons[0].reason, "notes are precious");
    assert_eq!(place.project.text("notes.md"), None);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_one_approval_sent_a_request_as_often_as_its_run_was_cancelled() {
    let (origin, requests) = counting_server();
    let place = Place::new(network(&origin)).await;
    place.project.tool(
        "send.ts",
        "export default async ({ url }: { url: string }) => {\n  \
           const sent = await (await tgp.fetch(url, { method: 'POST' })).text();\n  \
           await new Promise((done) => setTimeout(done, 1_500));\n  return sent;\n};",
    );
    let run = async || {
        let args = json!({ "path": "tools/send.ts", "args": { "url": format!("{origin}/") } });
        let call = ToolCall { id: "1".to_owned(), tool: "exec_tool".to_owned(), arguments: args };
        place.kernel.call_with(call, CallContext { consent: Consent::Ask, ..embedded() }).await
    };
    let first = run().await;
    place.approve(&first, 1);
    let sent = async {
        while requests.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        answer = run() => panic!("it was not interrupted: {answer:?}"),
        () = sent => {}
    }
    // Whether its answer had arrived or not, the request is not sent again.
    let second = run().await;
    assert_eq!(requests.load(Ordering::SeqCst), 1, "{second:?}");
    if second.is_ok() {
        assert_eq!(result(&second), json!("0"));
    } else {
        let message = &error(&second).message;
        let is_told = message.contains("was interrupted") || message.contains("had sent something");
        assert!(is_told, "{second:?}");
    }
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beside_each_other_may_come_in_another_order() {
    let (origin, requests) = counting_server();
    let place = Place::new(network(&origin)).await;
    place.project.tool(
        "chains.ts",
        &format!(
            "export default async ({{ text, url }}: {{ text: string; url: string }}) => {{\n  \
               const chain = async (name: string) => {{\n    \
                 for (const step of [1, 2, 3]) await tgp.fetch(`${{url}}${{name}}${{step}}`, {{ method: 'POST' }});\n  }};\n  \
               await Promise.all(['a', 'b', 'c', 'd'].map(chain));\n  {INSERT}\n  return 1;\n}};"
        ),
    );
    let args = json!({ "text": "one", "url": format!("{origin}/") });
    let first = place.run("chains", args.clone()).await;
    place.approve(&first, 1);
    assert_eq!(result(&place.run("chains", args).await), json!(1));
    assert_eq!((requests.load(Ordering::SeqCst), place.rows().await), (12, json!(1)));
    place.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_that_a_rule_asks_about_is_followed_after_the_answer() {
    let (origin, requests) = counting_server();
    let elsewhere = origin.replace("127.0.0.1", "localhost");
    let mut config = network(&origin);
    config["allowedFetchUrls"] = json!([origin, elsewhere]);
    let rule = "version: 1\nrules:\n  - {id: ask-host, effect: ask, tools: [fetch], where: {host: [localhost]}, reason: another name}\n";
    let place = Place::with(config, rule).await;
    place.project.tool(
        "follow.ts",
        "export default async ({ url }: { url: string }) => await (await tgp.fetch(url)).text();",
    );
    let args = json!({ "url": format!("{origin}/moved") });
    let first = place.run("follow", args.clone()).await;
    assert!(error(&first).message.contains("another name"), "{first:?}");
    place.approve(&first, 1);
    assert_eq!(
        result(&place.run("follow", args).await),
        json!("2"),
        "the first stop is asked again, and then the second"
    );
    assert_eq!(requests.load(Ordering::SeqCst), 3);
    place.kernel.shutdown().await;
}
