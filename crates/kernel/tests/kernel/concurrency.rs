//! Runs beside each other in a program that embeds the kernel, also on a runtime with one thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{Actor, CallContext, Consent, ToolCall};

use crate::support::{Project, alone, data, exec};

/// A runtime whose only thread waits does not check a clock, so the clock is another thread's.
struct Watchdog(Option<mpsc::Sender<()>>);

impl Watchdog {
    fn start() -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if stopped.recv_timeout(Duration::from_secs(120)) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("the runtime hangs");
                std::process::abort();
            }
        });
        Self(Some(stop))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.take();
    }
}

async fn count(kernel: &Kernel, table: &str) -> i64 {
    let sql = format!("SELECT count(*) AS n FROM {table}");
    let answer = kernel.call("exec_sql", json!({ "sql": sql })).await;
    data(&answer)["rows"][0]["n"].as_i64().unwrap()
}

/// Rows and files of 16 runs, half of which make two runs each beside each other.
async fn crowd(url: Option<String>) {
    let _watchdog = Watchdog::start();
    let mut config =
        json!({ "fs": { "allowedDirs": ["./out"] }, "sandbox": { "cpuMs": 2000, "wallMs": 60_000 } });
    if let Some(url) = url {
        config["db"] = json!({ "url": url });
    }
    let project = Project::new();
    let kernel = project.kernel(config).await;
    let table = format!("beside_{}", std::process::id());
    let create = format!("CREATE TABLE {table} (n INTEGER PRIMARY KEY)");
    data(&kernel.call("exec_sql", json!({ "sql": create })).await);
    project.tool(
        "both.ts",
        &format!(
            "export default async (args: {{ n: number }}) => {{\n  \
             await tgp.exec_sql('INSERT INTO {table} (n) VALUES (:n)', {{ n: args.n }});\n  \
             await tgp.write_file(`out/${{args.n}}.txt`, 'x');\n  return args.n;\n}};"
        ),
    );
    project.tool(
        "fans.ts",
        "export default async (args: { n: number }) => Promise.all([0, 1].map((more) => \
         tgp.exec_tool('tools/both.ts', { n: args.n + more * 100 })));",
    );
    let path = |n: u64| if n.is_multiple_of(2) { "tools/both.ts" } else { "tools/fans.ts" };
    let runs = (0..16_u64).map(|n| exec(&kernel, path(n), json!({ "n": n })));
    let answers = futures_util::future::join_all(runs).await;
    let done: Vec<&Value> = answers.iter().map(data).collect();
    assert_eq!(done.len(), 16);
    assert_eq!(count(&kernel, &table).await, 24);
    assert_eq!(std::fs::read_dir(project.file("out")).unwrap().count(), 24);
    data(&kernel.call("exec_sql", json!({ "sql": format!("DROP TABLE {table}") })).await);
    kernel.shutdown().await;
}

fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        println!("skipped: {variable} is not set");
    }
    url
}

#[tokio::test]
async fn runs_beside_each_other_end_on_one_thread_with_sqlite() {
    crowd(None).await;
}

#[tokio::test]
async fn runs_beside_each_other_end_on_one_thread_with_postgresql() {
    if let Some(url) = server("TGP_TEST_POSTGRES_URL") {
        crowd(Some(url)).await;
    }
}

#[tokio::test]
async fn runs_beside_each_other_end_on_one_thread_with_mysql() {
    if let Some(url) = server("TGP_TEST_MYSQL_URL") {
        crowd(Some(url)).await;
    }
}

/// Workers of this process that are alive: its children, threads and all.
fn workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let children =
        tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    children.map(|children| children.split_whitespace().count()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_runs_in_flight_are_bounded_and_fair() {
    const RUNS: usize = 1_000;
    /// Places for runs, workers that are warm or about to end, the template and the compiler.
    const MOST_WORKERS: usize = 32 + 16;
    if !alone("concurrency::a_thousand_runs_in_flight_are_bounded_and_fair") {
        return;
    }
    let project = Project::new();
    project.put(".tgp/tools/double.ts", "export default ({ n }: { n: number }): number => n * 2;");
    let kernel = Arc::new(project.kernel(json!({})).await);
    let ended = Arc::new(AtomicUsize::new(0));
    let call = |session: &str, n: usize| {
        let (kernel, ended) = (Arc::clone(&kernel), Arc::clone(&ended));
        let context = CallContext {
            actor: Actor::Agent(session.to_owned()),
            session: session.to_owned(),
            consent: Consent::Given,
            dry_run: false,
            depth: 0,
            token: None,
        };
        let call = ToolCall {
            id: n.to_string(),
            tool: "exec_tool".to_owned(),
            arguments: json!({ "path": "tools/double.ts", "args": { "n": n } }),
        };
        tokio::spawn(async move {
            let result = kernel.call_with(call, context).await;
            (result, ended.fetch_add(1, Ordering::SeqCst))
        })
    };
    let many: Vec<_> = (0..RUNS).map(|n| call("many", n)).collect();
    // By then all of them wait.
    while ended.load(Ordering::SeqCst) < 20 {
        assert!(workers() <= MOST_WORKERS, "{} workers", workers());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (result, before) = call("one", 7).await.unwrap();
    assert_eq!(data(&result)["result"], json!(14));
    assert!(before < RUNS / 2, "a session with one run waited for {before} of another's {RUNS}");
    for (n, task) in many.into_iter().enumerate() {
        let (result, _) = task.await.unwrap();
        assert_eq!(data(&result)["result"], json!(n * 2));
    }
    assert!(workers() <= MOST_WORKERS, "{} workers", workers());
}
