//! Typed outcomes: how far a call's execution went is what its record says, and not what its verdicts suggest.

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::agent::{ModelChoice, SessionRequest, StopSignal};
use tgp::audit::AuditFilter;
use tgp::contract::{CallContext, Consent, ToolResult};
use tgp::gates::Caveats;
use tokio::sync::mpsc;

use crate::approval::{Asked, boot};
use crate::router::{call, context};
use crate::support::{Project, code, data, exec};

const INVARIANT: &str = "version: 1
invariants:
  - name: nothing-forbidden
    query: MATCH (f:File) WHERE f.name STARTS WITH 'forbidden' RETURN f.path
    expect: none
    severity: error
    message: There are no such files.
";
const ALLOW_ALL: &str = "  - {id: all, effect: allow, tools: '*', reason: everything may be tried}\n";

fn guarded(sequences: &str) -> Project {
    let project = Project::new();
    project.put(".sage/invariants.yml", INVARIANT);
    project.put("tgp.policy.yaml", &format!("version: 1\nrules:\n{ALLOW_ALL}{sequences}"));
    project
}

/// The last entry of a tool in the audit.
async fn recorded(kernel: &Kernel, project: &Project, tool: &str) -> Value {
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let filter = AuditFilter { tool: Some(tool.to_owned()), ..AuditFilter::default() };
    reader.tail(&filter, 1).unwrap().pop().unwrap().body
}

async fn write(kernel: &Kernel, context: CallContext, path: &str) -> ToolResult {
    kernel.call_with(call("fs_write", json!({ "path": path, "content": "x" })), context).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_guardian_veto_consumed_a_call_of_the_token() {
    let project = guarded("");
    let kernel = project.kernel(json!({})).await;
    let token = kernel.mint_token(&Caveats { calls: Some(1), ..Caveats::default() }).await.unwrap();
    let with_token = || CallContext { token: Some(token.clone()), ..context(Consent::Given) };
    for _ in 0..3 {
        let vetoed = write(&kernel, with_token(), "forbidden.md").await;
        assert!(!vetoed.is_ok(), "{vetoed:?}");
        let entry = recorded(&kernel, &project, "fs_write").await;
        assert_eq!((&entry["verdict"], &entry["execution"]), (&json!("denied"), &json!("not_started")));
    }
    data(&write(&kernel, with_token(), "good.md").await);
    assert_eq!(code(&write(&kernel, with_token(), "more.md").await), "EPOLICY", "its only call is spent");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_guardian_veto_counted_for_sequence_rules() {
    let project = guarded("sequences:\n  - {id: few, at_most: 1, of: {tools: fs_write}}\n");
    let kernel = project.kernel(json!({})).await;
    for _ in 0..3 {
        assert!(!write(&kernel, context(Consent::Given), "forbidden.md").await.is_ok());
    }
    data(&write(&kernel, context(Consent::Given), "good.md").await);
    assert_eq!(code(&write(&kernel, context(Consent::Given), "more.md").await), "EPOLICY");
    kernel.shutdown().await;
    // The same past, read from the audit by another kernel.
    let kernel = project.kernel(json!({})).await;
    assert_eq!(code(&write(&kernel, context(Consent::Given), "more.md").await), "EPOLICY");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_guardian_veto_was_reported_to_the_model_as_a_call_that_ran() {
    let project = guarded("");
    let kernel = project.kernel(json!({})).await;
    let turns = json!([
        [{ "type": "tool_call", "toolName": "fs_write", "callId": "c",
           "arguments": { "path": "forbidden.md", "content": "x" } }],
        [{ "type": "text", "value": "done" }]
    ]);
    project.put("model.json", &turns.to_string());
    let request = SessionRequest {
        model: ModelChoice { provider: Some("script:model.json".to_owned()), ..ModelChoice::default() },
        consent: Consent::Given,
        ..SessionRequest::new("write")
    };
    let (sender, mut events) = mpsc::channel(16);
    let (_handle, stop) = StopSignal::new();
    let drained = async { while events.recv().await.is_some() {} };
    let session = tokio::join!(kernel.run_session(request, sender, stop), drained).0.unwrap().session;
    let lines = kernel.sessions().lines(&session).unwrap();
    let text = lines
        .iter()
        .map(tgp::agent::TranscriptLine::encode)
        .find(|line| line.contains("\"type\":\"result\""))
        .unwrap();
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&line["verdict"], &line["execution"]), (&json!("denied"), &json!("not_started")), "{text}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_say_how_far_the_execution_of_a_call_went() {
    let project = Project::new();
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: no-secret, effect: deny, tools: fs_write, where: {path: 'secret/**'}}\n",
    );
    project.tool("fails.ts", "export default () => { throw new Error('no'); };");
    project.tool("writes.ts", "export default async () => tgp.write_file('out/a.txt', 'x');");
    project.tool("denied.ts", "export default async () => { await tgp.write_file('secret/a.txt', 'x'); };");
    let kernel = project.kernel(json!({ "fs": { "allowedDirs": ["out", "secret"] } })).await;
    let execution = async |tool: &str| recorded(&kernel, &project, tool).await["execution"].clone();

    assert_eq!(code(&kernel.call("fs_read", json!({})).await), "EVALIDATION");
    assert_eq!(execution("fs_read").await, "not_started");
    assert_eq!(code(&kernel.call("fs_read", json!({ "path": "absent" })).await), "ENOTFOUND");
    assert_eq!(execution("fs_read").await, "rolled_back");
    data(&kernel.call("fs_exists", json!({ "path": "absent" })).await);
    assert_eq!(execution("fs_exists").await, "done");
    data(&exec(&kernel, "tools/writes.ts", json!({})).await);
    assert_eq!(execution("exec_tool").await, "done");
    assert!(!exec(&kernel, "tools/fails.ts", json!({})).await.is_ok());
    assert_eq!(execution("exec_tool").await, "rolled_back");
    // The gates deny what the run has written: it ran, and nothing of it is kept.
    let denied = exec(&kernel, "tools/denied.ts", json!({})).await;
    assert!(!denied.is_ok() && !project.file("secret/a.txt").exists(), "{denied:?}");
    assert_eq!(execution("exec_tool").await, "rolled_back");
    kernel.shutdown().await;
}

/// Ids of a person's rules may begin like those of the defaults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_rule_named_like_a_default_counted_as_no_rule() {
    let project = Project::new();
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: default-ask-sql, effect: ask, tools: exec_sql, reason: ask the team}\n",
    );
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, json!({}), &approver).await;
    let statement = json!({ "sql": "CREATE TABLE t (x)" });
    assert_eq!(
        code(&kernel.call_with(call("exec_sql", statement.clone()), context(Consent::Ask)).await),
        "EAPPROVAL"
    );
    let shown = approver.take();
    assert!(shown[0].preview.is_none(), "nothing runs before the answer: {shown:?}");
    // A dry run of the statement runs it as well.
    let dry = CallContext { dry_run: true, ..context(Consent::Ask) };
    assert_eq!(code(&kernel.call_with(call("exec_sql", statement), dry).await), "EAPPROVAL");
    kernel.shutdown().await;
}
