//! A run is a transaction: its writes are there together when it returns, and none of them otherwise.

use std::time::Duration;

use serde_json::{Value, json};
use tgp::contract::{Actor, CallContext, Consent, ToolCall};

use crate::support::{Project, code, data, error, exec, result, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_seen_inside_and_committed_at_the_end() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.put("tmp/old.txt", "old");
    let source = "export default async () => {\n  await tgp.write_file('tmp/old.txt', 'new');\n  await tgp.write_file('tmp/made/x.txt', 'x');\n  await new Promise((resolve) => setTimeout(resolve, 300));\n  return [await tgp.read_file('tmp/old.txt'), await tgp.list_files('tmp')];\n};";
    project.tool("under_test.ts", source);
    let mut call = Box::pin(exec(&kernel, "tools/under_test.ts", json!({})));
    let early = tokio::time::timeout(Duration::from_millis(150), &mut call).await;
    if early.is_err() {
        assert_eq!(project.text("tmp/old.txt").as_deref(), Some("old"), "nothing is there before the end");
    }
    let answer = match early {
        Ok(answer) => answer,
        Err(_) => call.as_mut().await,
    };
    drop(call);
    assert_eq!(result(&answer), json!(["new", ["tmp/made/x.txt", "tmp/old.txt"]]));
    assert_eq!(project.text("tmp/old.txt").as_deref(), Some("new"));
    assert_eq!(project.text("tmp/made/x.txt").as_deref(), Some("x"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_leaves_no_write() {
    let project = Project::new();
    let kernel =
        project.kernel(json!({ "sandbox": { "cpuMs": 300, "wallMs": 1_000, "bridgeCalls": 50 } })).await;
    project.put("tmp/old.txt", "old");
    for (ending, expected) in [
        ("throw new Error('boom');", "ERUNTIME"),
        ("for (;;) {}", "ERR_ISOLATE_TIMEOUT"),
        ("new Array(1e9).join(); [].concat(new Array(4e9).reverse() as never);", "ERR_ISOLATE"),
        ("const kept: string[] = []; for (;;) kept.push('x'.repeat(1e6) + kept.length);", "ERR_ISOLATE"),
        ("await new Promise((resolve) => setTimeout(resolve, 60_000));", "ERR_ISOLATE_TIMEOUT"),
        ("await new Promise(() => {});", "ERUNTIME"),
        ("return 1n;", "ERUNTIME"),
        ("return 'x'.repeat(5_000_000);", "ERUNTIME"),
        ("for (;;) await tgp.list_files('tools');", "ERUNTIME"),
    ] {
        let source = format!(
            "export default async () => {{\n  await tgp.write_file('tmp/old.txt', 'new');\n  await tgp.write_file('tmp/made.txt', 'x');\n  {ending}\n}};"
        );
        let answer = run(&kernel, &project, &source, json!({})).await;
        assert!(code(&answer).starts_with(expected), "{ending}: {:?}", error(&answer));
        assert_eq!(project.text("tmp/old.txt").as_deref(), Some("old"), "{ending}");
        assert!(!project.file("tmp/made.txt").exists(), "{ending}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_nobody_waited_for_is_made_all_the_same() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for round in 0..10 {
        let source = format!(
            "export default () => {{\n  tgp.write_file('tmp/{round}.txt', 'first');\n  tgp.write_file('tmp/{round}.txt', 'last');\n  return 1;\n}};"
        );
        assert_eq!(result(&run(&kernel, &project, &source, json!({})).await), json!(1));
        assert_eq!(project.text(&format!("tmp/{round}.txt")).as_deref(), Some("last"), "round {round}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inner_runs_share_the_transaction_of_the_outer() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("inner.ts", "export default async ({ name, fail }: { name: string; fail?: boolean }) => {\n  const seen = await tgp.read_file('tmp/outer.txt').catch(() => 'nothing');\n  await tgp.write_file(`tmp/${name}.txt`, 'inner');\n  if (fail) throw new Error('inner');\n  return seen;\n};");
    let thrown = "export default async () => {\n  await tgp.exec_tool('tools/inner.ts', { name: 'dropped' });\n  throw new Error('outer');\n};";
    assert_eq!(code(&run(&kernel, &project, thrown, json!({})).await), "ERUNTIME");
    assert!(!project.file("tmp/dropped.txt").exists(), "the inner write goes with the outer run");
    let kept = "export default async () => {\n  await tgp.write_file('tmp/outer.txt', 'outer');\n  const seen = await tgp.exec_tool('tools/inner.ts', { name: 'kept' });\n  const failed = await tgp.exec_tool('tools/inner.ts', { name: 'lost', fail: true }).catch((e: { code: string }) => e.code);\n  return [seen, failed, await tgp.list_files('tmp')];\n};";
    let answer = run(&kernel, &project, kept, json!({})).await;
    assert_eq!(result(&answer), json!(["outer", "ERUNTIME", ["tmp/kept.txt", "tmp/outer.txt"]]));
    assert_eq!(project.text("tmp/kept.txt").as_deref(), Some("inner"));
    assert!(!project.file("tmp/lost.txt").exists());
    kernel.shutdown().await;
}

fn dry(tool: &str, arguments: Value) -> (ToolCall, CallContext) {
    let call = ToolCall { id: "dry".to_owned(), tool: tool.to_owned(), arguments };
    let context = CallContext {
        actor: Actor::Agent("test".to_owned()),
        session: "test".to_owned(),
        consent: Consent::Given,
        dry_run: true,
        depth: 0,
        token: None,
    };
    (call, context)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_shows_a_diff_and_changes_nothing() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "allowedFetchUrls": ["http://127.0.0.1:1/"] })).await;
    project
        .put("tmp/old.txt", "one\ntwo\n")
        .tool("inner.ts", "export default () => tgp.write_file('tmp/inner.txt', 'inner\\n');");
    project.tool("under_test.ts", "export default async () => {\n  await tgp.write_file('tmp/old.txt', 'one\\n2\\n');\n  await tgp.write_file('tmp/new.txt', 'new\\n');\n  await tgp.exec_tool('tools/inner.ts');\n  return tgp.list_files('tmp');\n};");
    let (call, context) = dry("exec_tool", json!({ "path": "tools/under_test.ts" }));
    let answer = kernel.call_with(call, context).await;
    let shown = data(&answer);
    assert_eq!(shown["dry_run"], json!(true));
    assert_eq!(
        shown["result"],
        json!(["tmp/inner.txt", "tmp/new.txt", "tmp/old.txt"]),
        "the run saw its writes"
    );
    let changes = shown["changes"].as_array().unwrap();
    let diff_of =
        |path: &str| changes.iter().find(|change| change["path"] == path).unwrap()["diff"].as_str().unwrap();
    assert!(diff_of("tmp/old.txt").contains("-two\n+2\n"), "{}", diff_of("tmp/old.txt"));
    assert!(diff_of("tmp/new.txt").contains("--- /dev/null") && diff_of("tmp/new.txt").contains("+new\n"));
    assert!(diff_of("tmp/inner.txt").contains("+inner\n"), "what an inner tool writes is shown, too");
    assert_eq!(project.text("tmp/old.txt").as_deref(), Some("one\ntwo\n"));
    assert!(!project.file("tmp/new.txt").exists() && !project.file("tmp/inner.txt").exists());

    project.tool(
        "post.ts",
        "export default () => tgp.fetch('http://127.0.0.1:1/', { method: 'POST', body: 'x' });",
    );
    let (call, context) = dry("exec_tool", json!({ "path": "tools/post.ts" }));
    assert_eq!(code(&kernel.call_with(call, context).await), "EPERMISSION", "a dry run posts nothing");

    for (tool, arguments) in [
        ("write_file", json!({ "path": "tools/w.ts", "content": "x\n" })),
        ("patch_file", json!({ "path": "tools/inner.ts", "search": "inner.txt", "replace": "$&$1" })),
    ] {
        let before = project.text(".tgp/tools/inner.ts");
        let (call, context) = dry(tool, arguments);
        let answer = kernel.call_with(call, context).await;
        assert!(data(&answer)["diff"].as_str().unwrap().contains('+'), "{tool}");
        assert_eq!(project.text(".tgp/tools/inner.ts"), before, "{tool}");
        assert!(!project.file(".tgp/tools/w.ts").exists(), "{tool}");
    }
    kernel.shutdown().await;
}
