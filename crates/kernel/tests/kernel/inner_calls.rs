//! What a call does while it runs is judged like a call: statements and requests of tools, the sources that a tool
//! imports, the stops of a redirect.

use std::time::Duration;

use serde_json::{Value, json};
use tgp::audit::AuditFilter;
use tgp::contract::{CallContext, Consent, Target};
use tgp::gates::Caveats;
use tgp::{BootOptions, Kernel};

use crate::approval::{Asked, boot};
use crate::router::{call, context};
use crate::server::Server;
use crate::support::{Project, code, data, error, result};

/// A tool that runs the statement it is given.
const SQL: &str = "export default async ({ s }: { s: string }) => (await tgp.exec_sql(s)).length;";
const NESTED: &str = "export default async ({ s }: { s: string }) => tgp.exec_tool('tools/sql.ts', { s });";
/// A rule of a person that asks, and one that lets tools run without being asked for.
const ASK_DROP: &str = "version: 1
rules:
  - {id: ask-drop, effect: ask, tools: exec_sql, where: {statement: [drop, delete]}, reason: dropping is asked for}
  - {id: run-tools, effect: allow, tools: [exec_tool, test_tool], reason: tools may run}
";

fn with_sql_tools() -> Project {
    let project = Project::new();
    project.tool("sql.ts", SQL).tool("nested.ts", NESTED).put("tgp.policy.yaml", ASK_DROP);
    project
}

async fn exec_as(kernel: &Kernel, consent: Consent, path: &str, args: Value) -> tgp::contract::ToolResult {
    kernel.call_with(call("exec_tool", json!({ "path": path, "args": args })), context(consent)).await
}

/// The last entry of a tool in the audit.
async fn recorded(kernel: &Kernel, project: &Project, tool: &str) -> Value {
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let filter = AuditFilter { tool: Some(tool.to_owned()), ..AuditFilter::default() };
    reader.tail(&filter, 1).unwrap().pop().unwrap().body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_asks_is_asked_for_calls_inside_a_tool() {
    let project = with_sql_tools();
    let approver = Asked::new(|_, shown| shown.tool != "exec_sql");
    let kernel = boot(&project, json!({}), &approver).await;
    let statement = |s: &str| json!({ "s": s });
    // Statements that no rule asks about are settled by the consent for the tool.
    for s in ["CREATE TABLE precious (x)", "INSERT INTO precious VALUES (1)", "SELECT * FROM precious"] {
        data(&exec_as(&kernel, Consent::Ask, "tools/sql.ts", statement(s)).await);
    }
    assert!(approver.take().is_empty(), "a rule lets tools run, and no rule asks about the statements");
    for consent in [Consent::Ask, Consent::Given, Consent::Outer] {
        for tool in ["tools/sql.ts", "tools/nested.ts"] {
            for s in ["DROP TABLE precious", "DELETE FROM precious"] {
                let answer = exec_as(&kernel, consent, tool, statement(s)).await;
                assert_eq!(code(&answer), "EAPPROVAL", "{consent:?} {tool} {s}: {answer:?}");
                let shown = approver.take();
                let [shown] = &shown[..] else { panic!("{consent:?} {tool} {s}: {shown:?}") };
                // The exact statement of the inner call, and not the tool around it.
                assert_eq!(shown.tool, "exec_sql");
                assert!(
                    matches!(&shown.targets[..], [Target::Statement { sql, .. }] if sql == s),
                    "{shown:?}"
                );
            }
        }
    }
    let entry = recorded(&kernel, &project, "exec_sql").await;
    assert_eq!((&entry["verdict"], &entry["outcome"]["errorCode"]), (&json!("refused"), &json!("EAPPROVAL")));
    // `--yes` agrees to everything, and the tool itself then drops the table.
    data(&exec_as(&kernel, Consent::Everything, "tools/sql.ts", statement("DROP TABLE precious")).await);
    assert!(approver.take().is_empty());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consent_to_one_run_is_no_consent_to_the_statements_of_the_next() {
    let project = with_sql_tools();
    project.put("tgp.policy.yaml", ASK_DROP.split("  - {id: run-tools").next().unwrap());
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, json!({}), &approver).await;
    for s in ["CREATE TABLE precious (x)", "DROP TABLE precious"] {
        data(&exec_as(&kernel, Consent::Ask, "tools/sql.ts", json!({ "s": s })).await);
    }
    let asked: Vec<String> = approver.take().into_iter().map(|shown| shown.tool).collect();
    assert_eq!(
        asked,
        ["exec_tool", "exec_tool", "exec_sql"],
        "each run, and the statement that a rule means"
    );
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_of_tools_and_dry_runs_are_no_way_around_a_rule_that_asks() {
    let project = with_sql_tools();
    project.tool(
        "sql.test.ts",
        "import { test, expect } from '@tgp/test';\ntest('drops', async () => { await tgp.exec_sql('DROP TABLE IF EXISTS precious'); expect(1).toBe(1); });",
    );
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({}), &approver).await;
    let tested = kernel
        .call_with(call("test_tool", json!({ "path": "tools/sql.test.ts" })), context(Consent::Ask))
        .await;
    assert_eq!(data(&tested)["failed"], 1, "{tested:?}");
    assert!(data(&tested).to_string().contains("EAPPROVAL"), "{tested:?}");
    let arguments = json!({ "path": "tools/sql.ts", "args": { "s": "DROP TABLE IF EXISTS precious" } });
    let dry = CallContext { dry_run: true, ..context(Consent::Ask) };
    assert_eq!(code(&kernel.call_with(call("exec_tool", arguments), dry).await), "EAPPROVAL");
    assert_eq!(approver.take().len(), 2);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_that_asks_is_asked_for_calls_inside_a_tool() {
    let project = with_sql_tools();
    let extension = "export default (call: any) => call.tool === 'exec_sql' ? 'ask' : undefined;";
    project.put(".tgp/policy/guard.ts", extension);
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({}), &approver).await;
    let answer = exec_as(&kernel, Consent::Given, "tools/sql.ts", json!({ "s": "CREATE TABLE t (x)" })).await;
    assert_eq!(
        code(&answer),
        "EAPPROVAL",
        "a default that asks does not hide an extension that asks: {answer:?}"
    );
    assert_eq!(approver.take().len(), 1);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_whose_id_begins_like_a_default_is_the_rule_of_a_person() {
    let project = with_sql_tools();
    project.put("tgp.policy.yaml", &ASK_DROP.replace("ask-drop", "default-execute"));
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({}), &approver).await;
    let answer =
        exec_as(&kernel, Consent::Given, "tools/sql.ts", json!({ "s": "DROP TABLE IF EXISTS t" })).await;
    assert_eq!(code(&answer), "EAPPROVAL", "{answer:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_clock_of_a_run_goes_on_while_a_person_reads() {
    let project = with_sql_tools();
    let approver = Asked::new(|_, _| {
        std::thread::sleep(Duration::from_millis(900));
        true
    });
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 2_000, "wallMs": 700 } }).to_string());
    let options = BootOptions { approver: std::sync::Arc::clone(&approver) as _, ..project.options() };
    let kernel = Kernel::boot(options).await.unwrap();
    for tool in ["tools/sql.ts", "tools/nested.ts"] {
        let answer = exec_as(&kernel, Consent::Ask, tool, json!({ "s": "DROP TABLE IF EXISTS t" })).await;
        assert_eq!(result(&answer), json!(0), "{tool}: {answer:?}");
        let wall = data(&answer)["stats"]["wall_ms"].as_f64().unwrap();
        assert!(wall < 700.0, "{tool}: the answer is not the run's time: {wall}");
    }
    assert_eq!(approver.take().len(), 2);
    // A run that does not wait for an answer has no more time than before.
    project.tool("slow.ts", "export default async () => new Promise((done) => setTimeout(done, 3000));");
    let answer = exec_as(&kernel, Consent::Ask, "tools/slow.ts", json!({})).await;
    assert_eq!(code(&answer), "ERR_ISOLATE_TIMEOUT", "{answer:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_asks_without_end_is_refused() {
    let project = with_sql_tools();
    project.tool(
        "nag.ts",
        "export default async () => { let n = 0; for (let i = 0; i < 130; i += 1) { try { await tgp.exec_sql('DROP TABLE t'); } catch (e: any) { n += 1; } } return n; };",
    );
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({}), &approver).await;
    assert_eq!(result(&exec_as(&kernel, Consent::Ask, "tools/nag.ts", json!({})).await), json!(130));
    assert_eq!(approver.take().len(), 100, "the questions have a bound, and beyond it all are refused");
    kernel.shutdown().await;
}

const DENY_W: &str = "version: 1
rules:
  - {id: no-w, effect: deny, tools: '*', where: {path: {glob: tools/w.ts, root: tools}}, reason: w is not run}
";

fn with_imports() -> Project {
    let project = Project::new();
    project
        .tool("w.ts", "export default () => 'ran w';\nexport const secret = 'canary';\n")
        .tool("good.ts", "export default () => 'good';")
        .tool("imp.ts", "import w from './w';\nexport default () => w();")
        .tool("lib.ts", "import w from '/lib/w.ts';\nexport default () => w();")
        .tool("named.ts", "export { default } from './w.ts';")
        .tool("deep.ts", "import imp from './imp.ts';\nexport default () => imp();")
        .tool("dynamic.ts", "export default async () => (await import('./w.ts')).default();")
        .tool("required.js", "const w = require('./w.ts');\nmodule.exports = () => w.default();")
        .tool("broken.ts", "import w from './w';\nimport nothing from './nothing-here';\nexport default () => w() + nothing;")
        .tool("wrong.ts", "import { missing } from './w';\nexport default () => missing;")
        .tool("outer.ts", "export default () => tgp.exec_tool('tools/imp.ts', {});")
        .tool("imp.test.ts", "import { test, expect } from '@tgp/test';\nimport imp from './imp.ts';\ntest('w', () => expect(imp()).toBe('ran w'));")
        .tool("good.test.ts", "import { test, expect } from '@tgp/test';\nimport good from './good.ts';\ntest('g', () => expect(good()).toBe('good'));");
    project
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_tool_does_not_run_by_import() {
    let project = with_imports();
    let kernel = project.kernel(json!({})).await;
    for tool in ["imp.ts", "lib.ts", "named.ts", "deep.ts", "dynamic.ts", "required.js", "outer.ts"] {
        let answer = exec_as(&kernel, Consent::Everything, &format!("tools/{tool}"), json!({})).await;
        assert_eq!(result(&answer), json!("ran w"), "{tool}: without the rule it runs");
    }
    project.put("tgp.policy.yaml", DENY_W);
    for tool in [
        "w.ts",
        "imp.ts",
        "lib.ts",
        "named.ts",
        "deep.ts",
        "dynamic.ts",
        "required.js",
        "outer.ts",
        "wrong.ts",
    ] {
        let path = format!("tools/{tool}");
        let answer = exec_as(&kernel, Consent::Everything, &path, json!({})).await;
        assert_eq!(code(&answer), "EPOLICY", "{tool}: {answer:?}");
        if tool == "outer.ts" {
            continue;
        }
        for kernel_tool in ["check_tool", "exec_tool"] {
            let arguments = call(kernel_tool, json!({ "path": path }));
            let answer = kernel.call_with(arguments, context(Consent::Everything)).await;
            assert_eq!(code(&answer), "EPOLICY", "{kernel_tool} {tool}: {answer:?}");
        }
    }
    // One that does not even resolve fails by itself, and says nothing of what is denied.
    let answer = exec_as(&kernel, Consent::Everything, "tools/broken.ts", json!({})).await;
    assert_eq!(code(&answer), "ENOTFOUND", "{answer:?}");
    assert!(!format!("{answer:?}").contains("canary"), "{answer:?}");
    let good = exec_as(&kernel, Consent::Everything, "tools/good.ts", json!({})).await;
    assert_eq!(result(&good), json!("good"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sources_of_a_tool_are_targets_for_the_record_the_person_and_the_token() {
    let project = with_imports();
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, json!({}), &approver).await;
    data(&exec_as(&kernel, Consent::Ask, "tools/deep.ts", json!({})).await);
    let shown = approver.take();
    let files: Vec<&str> =
        shown[0].targets.iter().filter_map(Target::file).map(|(_, path, _)| path.as_str()).collect();
    assert_eq!(files, ["tools/deep.ts", "tools/imp.ts", "tools/w.ts"]);
    let entry = recorded(&kernel, &project, "exec_tool").await;
    assert!(entry["targets"].to_string().contains("tools/w.ts"), "{entry}");
    // A rule that asks about an imported file asks for the tool that imports it.
    project.put("tgp.policy.yaml", &DENY_W.replace("deny", "ask").replace("no-w", "ask-w"));
    data(&exec_as(&kernel, Consent::Ask, "tools/imp.ts", json!({})).await);
    assert!(approver.take()[0].targets.len() == 2);
    project.put("tgp.policy.yaml", "version: 1\n");
    let paths = vec!["tools:tools/imp.ts".to_owned(), "tools:tools/good.ts".to_owned()];
    let caveats =
        Caveats { tools: Some(vec!["exec_tool".to_owned()]), paths: Some(paths), ..Caveats::default() };
    let token = kernel.mint_token(&caveats).await.unwrap();
    let with_token = CallContext { token: Some(token), ..context(Consent::Everything) };
    let imp =
        kernel.call_with(call("exec_tool", json!({ "path": "tools/imp.ts" })), with_token.clone()).await;
    assert_eq!(code(&imp), "EPOLICY", "the token does not name what the tool imports: {imp:?}");
    data(&kernel.call_with(call("exec_tool", json!({ "path": "tools/good.ts" })), with_token).await);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_of_a_denied_tool_are_not_run() {
    let project = with_imports();
    project.put("tgp.policy.yaml", DENY_W);
    let kernel = project.kernel(json!({})).await;
    let test = |path: &str| {
        kernel.call_with(call("test_tool", json!({ "path": path })), context(Consent::Everything))
    };
    assert_eq!(code(&test("tools/imp.test.ts").await), "EPOLICY");
    assert_eq!(code(&test("tools/imp.ts").await), "EPOLICY");
    // Of a directory the others run, and this one has failed.
    let all = test("tools").await;
    assert_eq!((&data(&all)["passed"], &data(&all)["failed"]), (&json!(1), &json!(1)), "{all:?}");
    let failed =
        data(&all)["files"].as_array().unwrap().iter().find(|file| file["path"] == "tools/imp.test.ts");
    assert_eq!(failed.unwrap()["error"]["code"], "EPOLICY", "{all:?}");
    assert!(failed.unwrap().get("toolSha256").is_none());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_reads_no_more_than_a_tool() {
    let project = Project::new();
    project
        .tool("r.test.ts", "import { test, expect } from '@tgp/test';\ntest('r', async () => { expect(await tgp.read_file('private/a.txt')).toBe('x'); });")
        .put("private/a.txt", "canary-7")
        .put("tgp.policy.yaml", "version: 1\nrules:\n  - {id: private, effect: deny, where: {path: 'private/**'}, reason: private}\n");
    let kernel = project.kernel(json!({ "fs": { "allowedDirs": ["."] } })).await;
    let answer = kernel.call("test_tool", json!({ "path": "tools/r.test.ts" })).await;
    assert!(!format!("{answer:?}").contains("canary-7"), "{answer:?}");
    kernel.shutdown().await;
}

/// Two names of one server.
fn hosts(server: &Server) -> Value {
    json!({ "allowedFetchUrls": [server.url("/api"), format!("http://localhost:{}/api", server.port)] })
}

const DENY_LOCALHOST: &str = "version: 1
rules:
  - {id: no-localhost, effect: deny, where: {host: localhost}, reason: not there}
  - {id: address, effect: allow, tools: fetch, where: {host: 127.0.0.1}, reason: the address is fine}
  - {id: run-tools, effect: allow, tools: exec_tool, reason: tools may run}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_does_not_lead_to_a_denied_host() {
    let (project, server) = (Project::new(), Server::start());
    project
        .put("tgp.policy.yaml", DENY_LOCALHOST)
        .tool("get.ts", "export default async ({ url }: { url: string }) => (await tgp.fetch(url)).text();");
    let kernel = project.kernel(hosts(&server)).await;
    let there = format!("http://localhost:{}/api/text", server.port);
    let url = server.url(&format!("/api/redirect?{there}"));
    let twice = server.url(&format!("/api/redirect?{}", server.url(&format!("/api/redirect?{there}"))));
    for consent in [Consent::Ask, Consent::Given, Consent::Everything] {
        for url in [&url, &twice, &server.url(&format!("/api/repeat?{there}"))] {
            let answer = kernel.call_with(call("fetch", json!({ "url": url })), context(consent)).await;
            assert_eq!(code(&answer), "EPOLICY", "{consent:?} {url}: {answer:?}");
            assert_eq!(error(&answer).details["rule"], "no-localhost");
        }
        let answer = exec_as(&kernel, consent, "tools/get.ts", json!({ "url": url })).await;
        assert_eq!(code(&answer), "EPOLICY", "by a tool: {answer:?}");
    }
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| !seen.starts_with("GET /api/text") && !seen.starts_with("POST /api/text")),
        "{:?}",
        server.seen()
    );
    let entry = recorded(&kernel, &project, "fetch").await;
    let targets = entry["targets"].to_string();
    assert!(
        targets.contains("127.0.0.1") && targets.contains("localhost"),
        "the record names each stop: {entry}"
    );
    assert_eq!(entry["verdict"], "denied");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_to_another_host_is_asked_for_like_a_call() {
    let (project, server) = (Project::new(), Server::start());
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: address, effect: allow, tools: fetch, where: {host: 127.0.0.1}, reason: fine}\n",
    );
    let approver = Asked::new(|asked, _| asked == 0);
    let kernel = boot(&project, hosts(&server), &approver).await;
    let there = format!("http://localhost:{}/api/text", server.port);
    let fetch = |url: String| kernel.call_with(call("fetch", json!({ "url": url })), context(Consent::Ask));
    // There was no question about the host that a rule allows, and its own redirects stay there.
    assert_eq!(data(&fetch(server.url("/api/in")).await)["status"], 200);
    assert!(approver.take().is_empty());
    let answer = fetch(server.url(&format!("/api/redirect?{there}"))).await;
    assert_eq!(data(&answer)["url"], json!(there), "agreed to");
    let shown = approver.take();
    assert!(matches!(&shown[0].targets[..], [Target::Host { host }] if host == "localhost"), "{shown:?}");
    let refuse = Asked::new(|_, _| false);
    kernel.shutdown().await;
    let kernel = boot(&project, hosts(&server), &refuse).await;
    let url = server.url(&format!("/api/redirect?{there}"));
    let answer = kernel.call_with(call("fetch", json!({ "url": url })), context(Consent::Ask)).await;
    assert_eq!(code(&answer), "EAPPROVAL", "{answer:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequence_rules_count_the_stops_of_a_redirect() {
    let (project, server) = (Project::new(), Server::start());
    project.put(
        "tgp.policy.yaml",
        "version: 1\nsequences:\n  - {id: few, at_most: 2, of: {tools: fetch, where: {host: localhost}}}\n",
    );
    let kernel = project.kernel(hosts(&server)).await;
    let there = format!("http://localhost:{}/api/text", server.port);
    let url = server.url(&format!("/api/redirect?{there}"));
    let fetch = || kernel.call_with(call("fetch", json!({ "url": url })), context(Consent::Everything));
    assert_eq!(data(&fetch().await)["status"], 200);
    assert_eq!(data(&fetch().await)["status"], 200);
    assert_eq!(code(&fetch().await), "EPOLICY");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_about_files_in_the_build_output_holds_for_builds() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let rules = |rule: &str| {
        format!("version: 1\nrules:\n  - {{id: out, effect: deny, {rule}, reason: not there}}\n")
    };
    let build = |command: &str| json!({ "command": command, "template": "build" });
    for (rule, command, file) in [
        (
            "where: {path: 'target/release/**'}",
            "mkdir -p target/release; echo x > target/release/app",
            "target/release/app",
        ),
        ("where: {path: '**/*.exe'}", "echo x > target/a.exe", "target/a.exe"),
        ("tools: fs_delete, where: {path: 'target/keep'}", "rm target/keep", "target/keep"),
        (
            "where: {path: {glob: '{src,target}/K*', access: [write, delete]}}",
            "echo changed > target/keep",
            "target/keep",
        ),
        ("tools: fs_write", "echo x > target/any", "target/any"),
    ] {
        let project = Project::new();
        project.put("target/keep", "kept").put("tgp.policy.yaml", &rules(rule));
        let before = project.text(file);
        let kernel = project.kernel(json!({})).await;
        let answer = kernel.call("shell_exec", build(command)).await;
        assert_eq!(code(&answer), "EPOLICY", "{rule}: {answer:?}");
        assert_eq!(project.text(file), before, "{rule}");
        kernel.shutdown().await;
    }
    // What a rule cannot match is written straight to the project, and is not in the list of changes.
    let project = Project::new();
    project.put("target/keep", "kept").put("tgp.policy.yaml", &rules("where: {path: ['src/**', '*.exe']}"));
    let kernel = project.kernel(json!({})).await;
    let answer = kernel.call("shell_exec", build("echo x > target/free")).await;
    assert_eq!(data(&answer)["changes"], json!([]), "{answer:?}");
    assert_eq!(project.text("target/free").as_deref(), Some("x\n"));
    kernel.shutdown().await;
    // A project's tests are not a way around it either.
    let project = Project::new();
    project.put("target/keep", "kept").put("tgp.policy.yaml", &rules("where: {path: 'target/**'}"));
    let kernel =
        project.kernel(json!({ "tdd": { "command": "echo x > target/keep; echo y > target/new" } })).await;
    kernel.call("test_run", json!({})).await;
    assert_eq!((project.text("target/keep").as_deref(), project.text("target/new")), (Some("kept"), None));
    kernel.shutdown().await;
}
