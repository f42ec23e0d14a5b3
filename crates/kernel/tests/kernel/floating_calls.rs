//! Calls that a tool makes without awaiting them: the run ends when they have ended, and nothing is lost.

use std::net::TcpListener;

use serde_json::json;

use crate::server::Server;
use crate::support::{Project, code, error, result, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_tool_that_was_called_without_await_was_undone() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "cpuMs": 5_000, "wallMs": 20_000 } })).await;
    project.tool(
        "inner.ts",
        "export default async (args: { name: string }) => {\n  await new Promise((resolve) => setTimeout(resolve, 100));\n  await tgp.write_file(`tmp/${args.name}`, 'x');\n};",
    );
    // A bare call, calls in a loop of callbacks, and one that lost a race.
    for (source, files) in [
        (
            "export default () => { tgp.exec_tool('tools/inner.ts', { name: 'a' }); return 'done'; };",
            &["a"][..],
        ),
        (
            "export default () => {\n  ['b', 'c'].forEach(async (name) => { await tgp.exec_tool('tools/inner.ts', { name }); await tgp.write_file(`tmp/after_${name}`, 'x'); });\n  return 'done';\n};",
            &["b", "c", "after_b", "after_c"][..],
        ),
        (
            "export default () => Promise.race([\n  tgp.exec_tool('tools/inner.ts', { name: 'd' }),\n  new Promise((resolve) => setTimeout(() => resolve('done'), 1)),\n]);",
            &["d"][..],
        ),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(result(&answer), json!("done"));
        for file in files {
            assert!(project.file(&format!("tmp/{file}")).exists(), "{file}: {source}");
        }
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_was_not_awaited_fails_the_run_and_undoes_it() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("fails.ts", "throw new Error('inner failed')");
    let source = "export default () => {\n  tgp.write_file('tmp/kept', 'x');\n  tgp.exec_tool('tools/fails.ts');\n  return 'done';\n};";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(code(&answer), "ERUNTIME", "{answer:?}");
    assert!(error(&answer).message.contains("inner failed"), "{answer:?}");
    assert!(!project.file("tmp/kept").exists(), "nothing was committed");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_request_with_an_effect_was_dropped_when_it_was_not_awaited() {
    let (project, server) = (Project::new(), Server::start());
    let kernel = project.kernel(json!({ "allowedFetchUrls": [server.url("/api")] })).await;
    let source = "export default ({ url }: { url: string }) => {\n  tgp.fetch(url, { method: 'POST', body: 'x' });\n  return 'done';\n};";
    let answer = run(&kernel, &project, source, json!({ "url": server.url("/api/echo") })).await;
    assert_eq!(result(&answer), json!("done"));
    assert_eq!(server.seen(), ["POST /api/echo x"]);
    kernel.shutdown().await;
}

/// A request that changes nothing and loses a race against a timer neither holds the run up nor fails it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_lost_race_does_not_hold_the_run_up() {
    let project = Project::new();
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api", silent.local_addr().unwrap());
    let config = json!({ "allowedFetchUrls": [url], "sandbox": { "cpuMs": 5_000, "wallMs": 60_000 } });
    let kernel = project.kernel(config).await;
    for method in ["GET", "HEAD"] {
        for entry in [
            "tgp.fetch(url, { method })",
            "tgp.fetch(url, { method }).then((r) => r.text())",
            "(async () => (await tgp.fetch(url, { method })).text())()",
        ] {
            let source = format!(
                "export default ({{ url, method }}: {{ url: string; method: string }}) => Promise.race([\n  {entry},\n  new Promise((resolve) => setTimeout(() => resolve('timer'), 50)),\n]);"
            );
            let answer = run(&kernel, &project, &source, json!({ "url": url, "method": method })).await;
            assert_eq!(result(&answer), json!("timer"), "{entry}");
        }
    }
    // A request whose signal fired is cancelled, whatever it would change.
    let source = "export default ({ url }: { url: string }) => {\n  tgp.fetch(url, { method: 'POST', signal: AbortSignal.timeout(20) }).catch(() => undefined);\n  return 'done';\n};";
    assert_eq!(result(&run(&kernel, &project, source, json!({ "url": url })).await), json!("done"));
    kernel.shutdown().await;
}

/// What follows from a request that was not awaited belongs to the run, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_what_followed_from_a_request_was_lost_when_it_was_not_awaited() {
    let (project, server) = (Project::new(), Server::start());
    let kernel = project.kernel(json!({ "allowedFetchUrls": [server.url("/api")] })).await;
    let source = "export default ({ url }: { url: string }) => {\n  ['a', 'b'].forEach(async (name) => {\n    const answer = await tgp.fetch(url);\n    await tgp.write_file(`tmp/${name}`, await answer.text());\n  });\n  return 'done';\n};";
    let answer = run(&kernel, &project, source, json!({ "url": server.url("/api/slow") })).await;
    assert_eq!(result(&answer), json!("done"));
    for name in ["a", "b"] {
        assert_eq!(std::fs::read_to_string(project.file(&format!("tmp/{name}"))).unwrap(), "slow");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_without_an_end_are_stopped_by_the_limits() {
    let project = Project::new();
    let kernel = project
        .kernel(json!({ "sandbox": { "cpuMs": 60_000, "wallMs": 500, "bridgeCalls": 100_000 } }))
        .await;
    project.tool("slow.ts", "await new Promise((resolve) => setTimeout(resolve, 60_000)); 'slow'");
    let source = "export default () => {\n  tgp.write_file('tmp/kept', 'x');\n  tgp.exec_tool('tools/slow.ts');\n  return 'done';\n};";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(code(&answer), "ERR_ISOLATE_TIMEOUT", "{answer:?}");
    assert!(!project.file("tmp/kept").exists(), "nothing was committed");
    kernel.shutdown().await;
}
