//! Runs beside each other in a program that embeds the kernel, also on a runtime with one thread.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tgp::Kernel;

use crate::support::{Project, data, exec};

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
