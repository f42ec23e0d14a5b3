//! `tgp.fetch`: what the list names and nothing else.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Project, code, data, result, run};

const SOURCE: &str = "export default async ({ url, init }: { url: string; init?: TGPRequestInit }) => {\n  const r = await tgp.fetch(url, init);\n  return { ok: r.ok, status: r.status, text: await r.text(), mark: r.headers.get('X-Mark'), redirected: r.redirected };\n};";

fn allowed(server: &Server) -> Value {
    json!({ "allowedFetchUrls": [server.url("/api")] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listed_server_answers() {
    let (project, server) = (Project::new(), Server::start());
    let kernel = project.kernel(allowed(&server)).await;
    let call = |path: &str, init: Value| json!({ "url": server.url(path), "init": init });
    let text = run(&kernel, &project, SOURCE, call("/api/text", json!({}))).await;
    assert_eq!(
        result(&text),
        json!({ "ok": true, "status": 200, "text": "text ä", "mark": null, "redirected": false })
    );
    let missing = run(&kernel, &project, SOURCE, call("/api/missing", json!({}))).await;
    assert_eq!((&result(&missing)["ok"], &result(&missing)["status"]), (&json!(false), &json!(404)));
    let echo =
        run(&kernel, &project, SOURCE, call("/api/echo", json!({ "method": "post", "body": "hello ä" })))
            .await;
    assert_eq!(result(&echo)["text"], json!("POST hello ä"));
    let inside = run(&kernel, &project, SOURCE, call("/api/in", json!({}))).await;
    assert_eq!((&result(&inside)["text"], &result(&inside)["redirected"]), (&json!("text ä"), &json!(true)));
    let source = "export default async ({ url }: { url: string }) => {\n  const r = await tgp.fetch(new URL(url));\n  return [await r.json(), r.headers.get('content-type'), [...r.headers].some(([name]) => name === 'x-mark')];\n};";
    let parsed = run(&kernel, &project, source, json!({ "url": server.url("/api/json") })).await;
    assert_eq!(result(&parsed), json!([{ "a": [1, 2] }, "application/json", true]));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_else_is_refused_and_never_asked() {
    let (project, server, other) = (Project::new(), Server::start(), Server::start());
    let kernel = project.kernel(allowed(&server)).await;
    for url in [
        other.url("/api/text"),
        server.url("/"),
        server.url("/apix"),
        server.url("/api/../private"),
        server.url("/api/%2e%2e/private"),
        format!("http://127.0.0.1:{}@127.0.0.1:{}/api", server.port, other.port),
        format!("http://localhost:{}/api", server.port),
        format!("https://127.0.0.1:{}/api", server.port),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        let answer = run(&kernel, &project, SOURCE, json!({ "url": url })).await;
        assert_eq!(code(&answer), "ESECURITY", "{url}: {answer:?}");
    }
    assert_eq!(other.seen(), Vec::<String>::new());
    assert_eq!(server.seen(), Vec::<String>::new());
    for path in ["/api/out", "/api/away"] {
        let answer = run(&kernel, &project, SOURCE, json!({ "url": server.url(path) })).await;
        assert_eq!(code(&answer), "ESECURITY", "{path}: a redirect out of the list");
    }
    assert_eq!(server.seen(), ["GET /api/out", "GET /api/away"], "the redirect is not followed");
    kernel.shutdown().await;
    let closed = project.kernel(json!({})).await;
    let answer = run(&closed, &project, SOURCE, json!({ "url": server.url("/api/text") })).await;
    assert_eq!(code(&answer), "ESECURITY", "nothing is allowed by default");
    closed.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_is_no_cpu_time() {
    let (project, server) = (Project::new(), Server::start());
    let mut config = allowed(&server);
    config["sandbox"] = json!({ "cpuMs": 200 });
    let kernel = project.kernel(config).await;
    let source = "export default async ({ url }: { url: string }) => {\n  const all = await Promise.all([tgp.fetch(url), tgp.fetch(url)]);\n  return Promise.all(all.map((r) => r.text()));\n};";
    let answer = run(&kernel, &project, source, json!({ "url": server.url("/api/slow") })).await;
    assert_eq!(result(&answer), json!(["slow", "slow"]));
    let stats = &data(&answer)["stats"];
    assert!(stats["wall_ms"].as_f64().unwrap() >= 399.0, "{stats}");
    assert!(stats["cpu_ms"].as_f64().unwrap() < 200.0, "{stats}");
    // A wait that the tool gives up ends at once for the tool.
    let source = "export default async ({ url }: { url: string }) => tgp.fetch(url, { signal: AbortSignal.timeout(20) }).catch((e: Error) => e.name);";
    let answer = run(&kernel, &project, source, json!({ "url": server.url("/api/slow") })).await;
    assert_eq!(result(&answer), json!("TimeoutError"));
    kernel.shutdown().await;
}
