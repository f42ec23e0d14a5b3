//! Policy, state, tokens and the audit, through a whole kernel.

use serde_json::{Value, json};
use tgp::audit::AuditFilter;
use tgp::contract::{CallContext, Consent, TddState, ToolResult};
use tgp::gates::{Caveats, Scope};
use tgp::{BootOptions, Kernel};

use crate::router::{arguments, call, context, furnish, went_well};
use crate::support::{Project, code, data, error};

const DENY_ALL: &str =
    "version: 1\nrules:\n  - {id: nothing, effect: deny, tools: '*', reason: nothing at all}\n";

/// What the audit holds of the calls since it was last asked.
async fn recorded(kernel: &Kernel, project: &Project, tool: &str) -> Vec<Value> {
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let filter = AuditFilter { tool: Some(tool.to_owned()), ..AuditFilter::default() };
    reader.tail(&filter, 1000).unwrap().into_iter().map(|entry| entry.body).collect()
}

fn all_tools(kernel: &Kernel) -> Vec<String> {
    kernel.definitions().map(|definition| definition.name.to_string()).collect()
}

/// The files of the project and of the tool repository, without the kernel's own state.
pub fn files(project: &Project) -> Vec<(String, String)> {
    fn collect(folder: &std::path::Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name == ".state" || name == ".git" || name.starts_with("data.sqlite") {
                continue;
            }
            if path.is_dir() {
                collect(&path, found);
            } else {
                let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                found.push((
                    path.display().to_string(),
                    tgp::contract::canonical::sha256_hex(content.as_bytes()),
                ));
            }
        }
    }
    let mut found = Vec::new();
    collect(project.path(), &mut found);
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_is_refused_by_a_deny_all_policy_and_audited() {
    let project = Project::new();
    furnish(&project);
    project.put("tgp.policy.yaml", DENY_ALL);
    let kernel = project.boot().await.unwrap();
    let before = files(&project);
    for tool in all_tools(&kernel) {
        for consent in [Consent::Given, Consent::Ask] {
            let answer = kernel.call_with(call(&tool, arguments(&tool)), context(consent)).await;
            assert_eq!(code(&answer), "EPOLICY", "{tool}");
            assert_eq!(error(&answer).details["rule"], "nothing", "{tool}");
        }
        let entries = recorded(&kernel, &project, &tool).await;
        assert_eq!(entries.len(), 2, "{tool}: one entry a call");
        for entry in entries {
            assert_eq!(entry["verdict"], "denied", "{tool}: {entry}");
            assert_eq!(entry["outcome"]["errorCode"], "EPOLICY", "{tool}");
            let rules: Vec<&Value> =
                entry["verdicts"].as_array().unwrap().iter().map(|v| &v["rule"]).collect();
            assert!(rules.contains(&&json!("nothing")), "{tool}: {rules:?}");
        }
    }
    assert_eq!(files(&project), before, "a refused call changed a file");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_is_refused_in_a_state_that_forbids_it_and_audited() {
    let project = Project::new();
    furnish(&project);
    let kernel = project.boot().await.unwrap();
    let before = files(&project);
    kernel.set_state(&Scope::Project, TddState::Halted).await.unwrap();
    for tool in all_tools(&kernel) {
        let answer = kernel.call_with(call(&tool, arguments(&tool)), context(Consent::Given)).await;
        assert_eq!(code(&answer), "ESTATE", "{tool}: {answer:?}");
        let entries = recorded(&kernel, &project, &tool).await;
        assert_eq!(entries.len(), 1, "{tool}");
        assert_eq!(entries[0]["verdict"], "denied", "{tool}");
        assert_eq!(entries[0]["outcome"]["errorCode"], "ESTATE", "{tool}");
    }
    assert_eq!(files(&project), before, "a refused call changed a file");
    kernel.set_state(&Scope::Project, TddState::Idle).await.unwrap();
    assert_eq!(recorded(&kernel, &project, "state_set").await.len(), 2, "what a person does is recorded too");
    assert!(kernel.call("fs_read", arguments("fs_read")).await.is_ok(), "lifting the halt lifts it");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_defaults_read_and_ask() {
    let project = Project::new();
    furnish(&project);
    // No question is asked about tests that do not exist.
    let kernel = project.kernel(json!({ "tdd": { "command": "true" } })).await;
    for definition in kernel.definitions().cloned().collect::<Vec<_>>() {
        let tool = definition.name.as_str();
        let answer = kernel.call_with(call(tool, arguments(tool)), context(Consent::Ask)).await;
        let reads = definition.effect == tgp::contract::Effect::Read;
        if reads {
            assert!(went_well(tool, &answer), "{tool}: {answer:?}");
        } else {
            assert_eq!(code(&answer), "EAPPROVAL", "{tool}");
        }
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_change_while_the_kernel_runs_and_never_vanish() {
    let project = Project::new();
    furnish(&project);
    let kernel = project.boot().await.unwrap();
    let read = || async { kernel.call("fs_read", json!({ "path": "notes.md" })).await };
    assert!(read().await.is_ok());
    let rule = |glob: &str| {
        format!(
            "version: 1\nrules:\n  - {{id: notes, effect: deny, where: {{path: '{glob}'}}, reason: private}}\n"
        )
    };
    std::fs::create_dir_all(project.file(".tgp/policy")).unwrap();
    project.put(".tgp/policy/one.yaml", &rule("notes.md"));
    assert_eq!(code(&read().await), "EPOLICY", "a new file counts with the next call");
    project.put(".tgp/policy/one.yaml", "version: 1\nrules: [{id: notes, effect: never}]\n");
    let broken = read().await;
    assert_eq!(code(&broken), "EPOLICY", "broken rules deny everything");
    assert!(error(&broken).place_of().is_some_and(|place| place.file.ends_with("one.yaml")), "{broken:?}");
    project.put(".tgp/policy/one.yaml", &rule("other.md"));
    assert!(read().await.is_ok(), "mended rules are in force again");
    // A directory that was not changed for two seconds is not listed again.
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    assert!(read().await.is_ok());
    for round in 0..3 {
        project.put(".tgp/policy/two.yaml", &rule("notes.md").replace("id: notes", "id: second"));
        assert_eq!(code(&read().await), "EPOLICY", "a second file, round {round}");
        std::fs::remove_file(project.file(".tgp/policy/two.yaml")).unwrap();
        assert!(read().await.is_ok(), "it is gone, round {round}");
    }
    std::fs::rename(project.file(".tgp/policy"), project.file(".tgp/kept")).unwrap();
    assert!(read().await.is_ok(), "without a directory there are no rules");
    std::fs::rename(project.file(".tgp/kept"), project.file(".tgp/policy")).unwrap();
    kernel.shutdown().await;
    project.put(".tgp/policy/one.yaml", "rules: [");
    let error = tgp::contract::ToolError::from(project.boot().await.unwrap_err());
    assert_eq!(error.code.as_str(), "ECONFIG", "a kernel does not boot on broken rules");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extension_rules_can_only_tighten() {
    let project = Project::new();
    furnish(&project);
    let kernel = project.boot().await.unwrap();
    let extension = |body: &str| {
        project.put(".tgp/policy/guard.ts", &format!("export default (call: any) => {{ {body} }};"));
    };
    let ask = || async {
        kernel.call_with(call("fs_read", json!({ "path": "notes.md" })), context(Consent::Ask)).await
    };
    for (body, expected) in [
        ("", None),
        ("return true;", None),
        ("return 'allow';", None),
        (
            "return call.tool === 'fs_read' && call.targets[0].path === 'notes.md' ? 'deny' : null;",
            Some("EPOLICY"),
        ),
        ("return { effect: 'deny', reason: 'not on Fridays' };", Some("EPOLICY")),
        ("return { effect: 'ask', reason: 'sure?' };", Some("EAPPROVAL")),
        ("throw new Error('broken');", Some("EPOLICY")),
        ("for (;;) {}", Some("EPOLICY")),
        ("return new Array(1e9).fill('x').join('');", Some("EPOLICY")),
        ("return 7;", Some("EPOLICY")),
        ("return { effect: 'maybe' };", Some("EPOLICY")),
        ("return tgp.read_file('tools/one.ts');", Some("EPOLICY")),
        ("return new Promise(() => {});", Some("EPOLICY")),
    ] {
        extension(body);
        let answer = ask().await;
        let got = answer.error().map(|error| error.code.as_str());
        assert_eq!(got, expected, "`{body}`: {answer:?}");
    }
    extension("return true;");
    let write = call("fs_write", json!({ "path": "notes.md", "content": "x" }));
    let answer = kernel.call_with(write, context(Consent::Ask)).await;
    assert_eq!(code(&answer), "EAPPROVAL", "an extension's consent lifts nothing");
    extension("this is not TypeScript");
    assert_eq!(code(&ask().await), "EPOLICY", "one that does not compile denies");
    kernel.shutdown().await;
}

fn in_session(session: &str) -> CallContext {
    CallContext { session: session.to_owned(), ..context(Consent::Given) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequence_rules_look_at_the_session_also_after_a_restart() {
    let project = Project::new();
    furnish(&project);
    project.put(
        "tgp.policy.yaml",
        "version: 1\nsequences:\n  - {id: no-leak, after: {tool: exec_sql, match: secret_rows}, deny: fetch, reason: rows must not leave}\n  - {id: few, at_most: 2, of: {tools: [fs_exists]}, reason: enough}\n",
    );
    let kernel = project.boot().await.unwrap();
    let fetch = || json!({ "url": "http://127.0.0.1:9/" });
    let step = async |kernel: &Kernel, session: &str, tool: &str, arguments: Value| -> ToolResult {
        kernel.call_with(call(tool, arguments), in_session(session)).await
    };
    assert_eq!(
        code(&step(&kernel, "a", "fetch", fetch()).await),
        "ESECURITY",
        "the list refuses, not the rule"
    );
    step(&kernel, "a", "exec_sql", json!({ "sql": "SELECT 1 AS secret_rows" })).await;
    assert_eq!(code(&step(&kernel, "a", "fetch", fetch()).await), "EPOLICY");
    assert_eq!(
        code(&step(&kernel, "b", "fetch", fetch()).await),
        "ESECURITY",
        "another session has not asked"
    );
    for expected in [true, true, false, false] {
        let answer = step(&kernel, "a", "fs_exists", json!({ "path": "x" })).await;
        assert_eq!(answer.is_ok(), expected, "{answer:?}");
    }
    kernel.shutdown().await;
    let kernel = project.boot().await.unwrap();
    assert_eq!(code(&step(&kernel, "a", "fetch", fetch()).await), "EPOLICY", "a restart forgot the past");
    assert_eq!(code(&step(&kernel, "a", "fs_exists", json!({ "path": "x" })).await), "EPOLICY");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_narrows_and_nothing_widens_it() {
    let project = Project::new();
    furnish(&project);
    let kernel = project.boot().await.unwrap();
    let token = kernel
        .mint_token(&Caveats {
            tools: Some(vec!["fs_*".to_owned()]),
            paths: Some(vec!["project:notes.md".to_owned()]),
            ..Caveats::default()
        })
        .await
        .unwrap();
    let with = |token: &tgp::contract::CapabilityToken| CallContext {
        token: Some(token.clone()),
        ..context(Consent::Given)
    };
    let read = |path: &str| call("fs_read", json!({ "path": path }));
    project.put("other.md", "x");
    assert!(kernel.call_with(read("notes.md"), with(&token)).await.is_ok());
    assert_eq!(code(&kernel.call_with(read("other.md"), with(&token)).await), "EPOLICY");
    assert_eq!(code(&kernel.call_with(call("log", json!({})), with(&token)).await), "EPOLICY");
    let once =
        tgp::gates::attenuate_token(&token, &Caveats { calls: Some(1), ..Caveats::default() }).unwrap();
    assert!(kernel.call_with(read("notes.md"), with(&once)).await.is_ok());
    assert_eq!(code(&kernel.call_with(read("notes.md"), with(&once)).await), "EPOLICY", "used up");
    let wider =
        tgp::gates::attenuate_token(&once, &Caveats { calls: Some(100), ..Caveats::default() }).unwrap();
    assert_eq!(code(&kernel.call_with(read("notes.md"), with(&wider)).await), "EPOLICY", "still used up");
    let late =
        tgp::gates::attenuate_token(&token, &Caveats { expires_ms: Some(1), ..Caveats::default() }).unwrap();
    assert_eq!(code(&kernel.call_with(read("notes.md"), with(&late)).await), "EPOLICY", "expired");
    assert!(kernel.call_with(read("notes.md"), with(&token)).await.is_ok(), "the parent goes on");
    let other = Project::new();
    let stranger = other.boot().await.unwrap();
    let foreign = stranger.mint_token(&Caveats::default()).await.unwrap();
    assert_eq!(
        code(&kernel.call_with(read("notes.md"), with(&foreign)).await),
        "EPOLICY",
        "of another kernel"
    );
    for entry in recorded(&kernel, &project, "fs_read").await {
        assert!(!entry.to_string().contains("tgp1."), "a token stands in the record: {entry}");
    }
    stranger.shutdown().await;
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_joins_request_verdicts_and_outcome() {
    let project = Project::new();
    furnish(&project);
    let kernel = Kernel::boot(BootOptions { ..project.options() }).await.unwrap();
    let answer = kernel.call("fs_write", json!({ "path": "notes.md", "content": "new" })).await;
    let hash = data(&answer)["sha256"].clone();
    kernel.call("exec_sql", json!({ "sql": "CREATE TABLE t (a TEXT)" })).await;
    kernel.call("exec_sql", json!({ "sql": "INSERT INTO t VALUES (?), (?)", "params": ["x", "y"] })).await;
    kernel.call("fs_read", json!({ "path": "absent", "limit": 1 })).await;
    kernel
        .call("fs_write", json!({ "path": "docs/a.md", "content": "the key is sk-ant-REDACTED0123456789" }))
        .await;
    let write = recorded(&kernel, &project, "fs_write").await;
    let file = &write[0]["outcome"]["files"][0];
    assert_eq!(
        (&file["root"], &file["path"], &file["after"]),
        (&json!("project"), &json!("notes.md"), &hash)
    );
    assert!(file["before"].is_string(), "the hash of what was there before");
    let gates: Vec<&str> = write[0]["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| verdict["gate"].as_str().unwrap())
        .collect();
    assert_eq!(gates, ["tdd", "token", "policy", "guardian", "approval"]);
    assert!(!write[1].to_string().contains("sk-ant-api03"), "a key stands in the record: {}", write[1]);
    let sql = recorded(&kernel, &project, "exec_sql").await;
    assert_eq!(sql[1]["outcome"]["rowsChanged"], 2);
    let read = recorded(&kernel, &project, "fs_read").await;
    assert_eq!(read[0]["outcome"]["errorCode"], "ENOTFOUND");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_what_the_gates_would_say_counts_for_nothing_and_leaves_no_trace() {
    let project = Project::new();
    furnish(&project);
    project.put(
        "tgp.policy.yaml",
        "version: 1\nsequences:\n  - {id: few, at_most: 2, of: {tools: [fs_exists]}, reason: enough}\n",
    );
    let kernel = project.boot().await.unwrap();
    let source = "query X {\n  a: tool(fs_exists) { path: \"a\" }\n  b: tool(fs_write) { path: \"b\", content: \"x\" }\n}\n";
    let compiled = kernel.compile_queries("x.aql", source).unwrap();
    let plan = tgp::aql::choose_query(&compiled, None).unwrap();
    let asking = CallContext { session: "s".to_owned(), ..context(Consent::Ask) };
    for _ in 0..5 {
        let explained = kernel.explain_query(&plan, &asking).await;
        assert_eq!(explained.steps[0].planned[0].gates, []);
        assert_eq!(explained.steps[1].planned[0].gates[0].verdict, "ask");
    }
    let exists = async || {
        let call = call("fs_exists", json!({ "path": "a" }));
        kernel.call_with(call, CallContext { session: "s".to_owned(), ..context(Consent::Given) }).await
    };
    assert!(exists().await.is_ok() && exists().await.is_ok(), "both are still there");
    assert_eq!(code(&exists().await), "EPOLICY");
    let explained = kernel.explain_query(&plan, &asking).await;
    assert_eq!(explained.steps[0].planned[0].gates[0].verdict, "deny");
    assert!(!project.file("b").exists());
}

/// The Guardian judges a write twice, without and with its contents. The second verdict was taken for the end of the call's
/// own verdicts, so that the approval after it did not count and neither did the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_sequence_rules_count_writes_in_a_project_with_invariants() {
    let project = Project::new();
    project
        .put("tgp.policy.yaml", "version: 1\nsequences:\n  - {id: few, at_most: 2, of: {tools: fs_write}}\n");
    project.put(
        ".sage/invariants.yml",
        "version: 1\ninvariants:\n  - name: no-web\n    query: MATCH (a:File)-[:IMPORTS]->(b:File) RETURN a.path\n    expect: none\n    severity: error\n    message: nothing imports anything\n",
    );
    let kernel = project.kernel(json!({})).await;
    for number in 0..2 {
        data(&kernel.call("fs_write", json!({ "path": format!("n{number}.md"), "content": "" })).await);
    }
    assert_eq!(code(&kernel.call("fs_write", json!({ "path": "n2.md", "content": "" })).await), "EPOLICY");
    kernel.shutdown().await;
}
