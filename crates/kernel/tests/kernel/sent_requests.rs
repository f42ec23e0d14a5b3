//! Requests of tools that may have changed something: what their records say, and how many are open at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::audit::AuditFilter;

use crate::support::{Project, result, run};

/// More than the largest answer that a tool may have.
const TOO_LARGE: usize = 6 << 20;

#[derive(Default)]
struct Seen {
    posts: Mutex<usize>,
    posted: Condvar,
    /// Connections that are open, and the most there were.
    open: Mutex<(usize, usize)>,
}

/// A server that answers in many wrong ways. Its thread waits for connections until the process ends.
fn server() -> (String, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::<Seen>::default();
    let shared = Arc::clone(&seen);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let seen = Arc::clone(&shared);
            std::thread::spawn(move || drop(answer(&connection, &seen)));
        }
    });
    (origin, seen)
}

fn answer(mut connection: &TcpStream, seen: &Seen) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    if first.starts_with("POST") {
        *seen.posts.lock().unwrap() += 1;
        seen.posted.notify_all();
    }
    let start = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
    match first.split(' ').nth(1).unwrap_or_default() {
        // It holds the connection until the client goes.
        "/api/silent" => drop(reader.read(&mut [0])),
        "/api/closed" => {}
        "/api/garbage" => connection.write_all(b"nonsense\r\n\r\n")?,
        "/api/out" => connection.write_all(
            b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /private\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        )?,
        "/api/large" => {
            write!(connection, "{start}content-length: {TOO_LARGE}\r\n\r\n")?;
            connection.write_all(&vec![b'x'; TOO_LARGE])?;
        }
        "/api/cut" => write!(connection, "{start}content-length: 10\r\n\r\nabc")?,
        "/api/posted" => {
            let posts = seen.posts.lock().unwrap();
            drop(seen.posted.wait_while(posts, |posts| *posts == 0).unwrap());
            write!(connection, "{start}content-length: 0\r\n\r\n")?;
        }
        _ => {
            {
                let mut open = seen.open.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
            }
            // Long enough for all that may come at once.
            std::thread::sleep(Duration::from_millis(100));
            seen.open.lock().unwrap().0 -= 1;
            write!(connection, "{start}content-length: 2\r\n\r\nok")?;
        }
    }
    Ok(())
}

/// The last request in the audit.
async fn last_request(kernel: &Kernel, project: &Project) -> Value {
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let filter = AuditFilter { tool: Some("fetch".to_owned()), ..AuditFilter::default() };
    reader.tail(&filter, 1).unwrap().pop().unwrap().body
}

fn config(origin: &str) -> Value {
    json!({
        "allowedFetchUrls": [format!("{origin}/api")],
        "sandbox": { "cpuMs": 5_000, "wallMs": 60_000 },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_request_that_reached_its_server_was_recorded_as_rolled_back() {
    let project = Project::new();
    let (origin, _) = server();
    // Nobody listens here any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = config(&origin);
    config["allowedFetchUrls"] = json!([format!("{origin}/api"), format!("http://{gone}/api")]);
    let kernel = project.kernel(config).await;
    let source = "export default async ({ url, method }: { url: string; method: string }) => {\n  try {\n    return await (await tgp.fetch(url, { method })).text();\n  } catch (error) {\n    return 'failed';\n  }\n};";
    for (base, path, method, execution) in [
        (&origin, "closed", "POST", "unknown"),
        (&origin, "garbage", "PUT", "unknown"),
        (&origin, "out", "POST", "unknown"),
        (&origin, "large", "POST", "done"),
        (&origin, "cut", "DELETE", "done"),
        (&origin, "closed", "GET", "rolled_back"),
        (&format!("http://{gone}"), "none", "POST", "rolled_back"),
    ] {
        let url = format!("{base}/api/{path}");
        let answer = run(&kernel, &project, source, json!({ "url": url, "method": method })).await;
        assert_eq!(result(&answer), json!("failed"), "{method} {path}");
        let entry = last_request(&kernel, &project).await;
        assert_eq!(entry["execution"], json!(execution), "{method} {path}: {entry}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_request_that_was_aborted_on_its_way_was_recorded_as_rolled_back() {
    let project = Project::new();
    let (origin, _) = server();
    let kernel = project.kernel(config(&origin)).await;
    let source = "export default async ({ origin }: { origin: string }) => {\n  const control = new AbortController();\n  const { signal } = control;\n  const sent = tgp.fetch(`${origin}/api/silent`, { method: 'POST', body: 'x', signal }).catch(() => 'aborted');\n  await tgp.fetch(`${origin}/api/posted`);\n  control.abort();\n  return sent;\n};";
    let answer = run(&kernel, &project, source, json!({ "origin": origin })).await;
    assert_eq!(result(&answer), json!("aborted"));
    let entry = last_request(&kernel, &project).await;
    assert_eq!(entry["execution"], json!("unknown"), "{entry}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_run_opened_as_many_connections_as_it_had_requests() {
    let project = Project::new();
    let (origin, seen) = server();
    let kernel = project.kernel(config(&origin)).await;
    let source = "export default async ({ url }: { url: string }) => {\n  const texts = await Promise.all(Array.from({ length: 40 }, async () => (await tgp.fetch(url)).text()));\n  return texts.filter((text) => text === 'ok').length;\n};";
    let answer = run(&kernel, &project, source, json!({ "url": format!("{origin}/api/slow") })).await;
    assert_eq!(result(&answer), json!(40));
    let most = seen.open.lock().unwrap().1;
    assert!(most <= 16, "{most} at a time");
    kernel.shutdown().await;
}
