//! Rows of statements inside runs: the caps, reading in batches, and who waits for whom.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tgp::contract::CallRecord;
use tgp::{BootOptions, Kernel};

use crate::sql::Shop;
use crate::support::{Project, Records, code, data, error, exec, result, run};

impl Shop {
    async fn fill(&self, count: usize) {
        let rows: Vec<String> = (1..=count).map(|id| format!("({id}, 'user {id}')")).collect();
        self.sql(&format!("INSERT INTO {{t}} (id, name) VALUES {}", rows.join(", "))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_rows_beyond_the_cap_were_left_out_without_an_error() {
    for shop in Shop::all(json!({ "db": { "maxRows": 5 } })).await {
        shop.fill(8).await;
        let ask = async |options: &str| {
            let source = format!(
                "export default async () => {{\n  const rows = await tgp.exec_sql('SELECT id FROM {{t}} ORDER BY id', []{options});\n  return [rows.length, rows.truncated];\n}};"
            );
            shop.run(&source).await
        };
        let cut = ask("").await;
        assert_eq!(code(&cut), "ESQL", "{}", shop.dialect);
        let message = &error(&cut).message;
        assert!(message.contains("5 were read") && message.contains("tgp.query"), "{message}");
        assert_eq!(result(&ask(", { maxRows: 3 }").await), json!([3, true]), "{}", shop.dialect);
        assert_eq!(result(&ask(", { maxRows: 5 }").await), json!([5, true]), "{}", shop.dialect);
        assert_eq!(result(&ask(", { allowTruncated: true }").await), json!([5, true]), "{}", shop.dialect);
        let more = ask(", { maxRows: 6 }").await;
        assert_eq!(code(&more), "ESQL", "{}", shop.dialect);
        assert!(error(&more).message.contains("maxRows asks for 6 rows"), "{}", error(&more).message);
        assert_eq!(code(&ask(", { maxRows: 0 }").await), "EVALIDATION", "{}", shop.dialect);
        assert_eq!(code(&ask(", { limit: 3 }").await), "EVALIDATION", "{}", shop.dialect);
        // A direct call says so.
        let direct = shop.sql("SELECT id FROM {t}").await;
        assert_eq!(direct["truncated"], true, "{}", shop.dialect);
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_reads_all_rows_and_a_batch_is_one_call() {
    let config = json!({ "db": { "maxRows": 10 }, "sandbox": { "bridgeCalls": 10 } });
    for shop in Shop::all(config).await {
        shop.fill(95).await;
        let read = |batch: usize| {
            format!(
                "export default async () => {{\n  let [rows, sum] = [0, 0];\n  for await (const row of tgp.query('SELECT id FROM {{t}} WHERE id > :least', {{ least: 0 }}, {{ batch: {batch} }})) {{\n    rows += 1;\n    sum += row.id;\n  }}\n  return [rows, sum];\n}};"
            )
        };
        let all = shop.run(&read(10)).await;
        assert_eq!(result(&all), json!([95, 4560]), "{}", shop.dialect);
        let too_many = shop.run(&read(9)).await;
        assert!(
            error(&too_many).message.contains("more than 10 `tgp.*` calls"),
            "{}",
            error(&too_many).message
        );
        let wrong = shop.run(&read(0)).await;
        assert_eq!(code(&wrong), "EVALIDATION", "{}", shop.dialect);
        shop.close().await;
    }
}

/// The gates take a different time for each statement, and the faster ones went first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_statements_that_were_not_awaited_ran_in_another_order() {
    for shop in Shop::all(json!({})).await {
        for _ in 0..5 {
            shop.sql("DELETE FROM {t}").await;
            let source = "export default async () => {\n  let last: Promise<unknown> = Promise.resolve();\n  for (let i = 0; i < 20; i++) last = tgp.exec_sql('INSERT INTO {t} (id, name) SELECT COUNT(*) + 1, ? FROM {t}', [String(i)]);\n  await last;\n  return (await tgp.exec_sql('SELECT name FROM {t} ORDER BY id')).map((row) => Number(row.name));\n};";
            let names: Vec<u32> = (0..20).collect();
            assert_eq!(result(&shop.run(source).await), json!(names), "{}", shop.dialect);
        }
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_query_with_a_misspelt_column_was_taken_for_a_write() {
    let shop = Shop::all(json!({})).await.remove(0);
    let answer = shop
        .run("export default async () => {\n  for await (const row of tgp.query('SELECT nope FROM {t}')) return row;\n  return null;\n};")
        .await;
    assert_eq!(code(&answer), "ESQL");
    assert!(error(&answer).message.contains("no such column: nope"), "{}", error(&answer).message);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_is_left_early_closes_its_query() {
    for shop in Shop::all(json!({})).await {
        shop.fill(40).await;
        let left = [
            "for await (const row of tgp.query('SELECT id FROM {t} ORDER BY id', [], { batch: 2 })) if (row.id === 3) break;",
            "try { for await (const row of tgp.query('SELECT id FROM {t}', [], { batch: 2 })) throw new Error('no'); } catch {}",
            "const rows = tgp.query('SELECT id FROM {t}', [], { batch: 2 }); await rows.next(); await rows.return();",
            "tgp.query('SELECT id FROM {t}');",
        ];
        for (at, statement) in left.iter().enumerate() {
            let id = 100 + at;
            let answer = shop
                .run(&format!("export default async () => {{\n  {statement}\n  await tgp.exec_sql(\"INSERT INTO {{t}} (id, name) VALUES ({id}, 'x')\");\n  return 'done';\n}};"))
                .await;
            assert_eq!(result(&answer), json!("done"), "{}: {statement}", shop.dialect);
        }
        assert_eq!(shop.count().await, 44, "{}", shop.dialect);
        // One that is open at the end is closed with the run, and its rows are committed.
        let open = shop
            .run("export default async () => {\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (200, 'x')\");\n  const rows = tgp.query('SELECT id FROM {t} ORDER BY id', [], { batch: 2 });\n  return (await rows.next()).value.id;\n};")
            .await;
        assert_eq!(result(&open), json!(1), "{}", shop.dialect);
        assert_eq!(shop.count().await, 45, "{}", shop.dialect);
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_shares_its_run_with_other_statements_and_tools() {
    for shop in Shop::all(json!({})).await {
        shop.fill(6).await;
        shop.tool(
            "half.ts",
            "export default async (args: { id: number }) => {\n  await tgp.exec_sql('INSERT INTO {t} (id, name) VALUES (:id, :name)', { id: args.id, name: 'inner' });\n  const rows = tgp.query('SELECT id FROM {t} ORDER BY id', [], { batch: 2 });\n  await rows.next();\n  throw new Error('inner');\n};",
        );
        let beside = shop
            .run("export default async () => {\n  let seen = 0;\n  for await (const row of tgp.query('SELECT id FROM {t} WHERE id < 100 ORDER BY id', [], { batch: 2 })) {\n    seen += 1;\n    await tgp.exec_sql('INSERT INTO {t} (id, name) VALUES (?, ?)', [100 + row.id, 'copy']);\n    await tgp.exec_tool('tools/half.ts', { id: 300 }).catch(() => undefined);\n  }\n  return seen;\n};")
            .await;
        if shop.dialect == "mysql" {
            assert_eq!(code(&beside), "ESQL");
            assert!(error(&beside).message.contains("while a tgp.query is being read"));
            assert_eq!(shop.count().await, 6);
        } else {
            assert_eq!(result(&beside), json!(6), "{}", shop.dialect);
            assert_eq!(shop.count().await, 12, "{}", shop.dialect);
        }
        // What an inner run that failed has left open is closed before the outer one continues.
        let after = shop
            .run("export default async () => {\n  await tgp.exec_tool('tools/half.ts', { id: 300 }).catch(() => undefined);\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (400, 'x')\");\n  return (await tgp.exec_sql('SELECT id FROM {t} WHERE id >= 300')).map((row) => row.id);\n};")
            .await;
        assert_eq!(result(&after), json!([400]), "{}", shop.dialect);
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_only_reads_and_passes_the_gates() {
    for shop in Shop::all(json!({})).await {
        shop.fill(3).await;
        let ask = async |sql: &str| {
            let source = format!(
                "export default async () => {{\n  for await (const row of tgp.query(`{sql}`)) return row;\n}};"
            );
            shop.run(&source).await
        };
        let deleted = ask("DELETE FROM {t}").await;
        assert_eq!(code(&deleted), "ESQL", "{}", shop.dialect);
        assert!(error(&deleted).message.contains("only reads"), "{}", error(&deleted).message);
        assert_eq!(
            result(&ask("SELECT id FROM {t} ORDER BY id").await),
            json!({ "id": 1 }),
            "{}",
            shop.dialect
        );
        let rule = "version: 1\nrules:\n  - {id: none, effect: deny, tools: exec_sql, where: {statement: select}, reason: no}\n";
        shop.project.put("tgp.policy.yaml", rule);
        assert_eq!(code(&ask("SELECT id FROM {t}").await), "EPOLICY", "{}", shop.dialect);
        std::fs::remove_file(shop.project.file("tgp.policy.yaml")).unwrap();
        assert_eq!(shop.count().await, 3, "{}", shop.dialect);
        shop.close().await;
    }
}

/// A kernel on SQLite whose records can be read.
async fn recorded(project: &Project) -> (Kernel, Arc<Records>) {
    project.put("tgp.config.json", &json!({ "sandbox": { "cpuMs": 5_000, "wallMs": 30_000 } }).to_string());
    let records = Arc::new(Records::default());
    let options = BootOptions { recorder: Some(Arc::clone(&records) as _), ..project.options() };
    let kernel = Kernel::boot(options).await.unwrap();
    data(&kernel.call("exec_sql", json!({ "sql": "CREATE TABLE t (id INTEGER PRIMARY KEY)" })).await);
    records.take();
    (kernel, records)
}

async fn until_recorded(records: &Records, tool: &str) {
    while !records.take().iter().any(|record: &CallRecord| record.tool.as_deref() == Some(tool)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The reader ends only when the writer has: with the lock it would keep the writer waiting for itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_run_that_had_only_selected_kept_writers_waiting() {
    let project = Project::new();
    let (kernel, records) = recorded(&project).await;
    project.tool(
        "reads.ts",
        "export default async () => {\n  const before = await tgp.exec_sql('SELECT count(*) AS n FROM t');\n  while (!(await tgp.list_files('tmp')).includes('tmp/go')) await new Promise((resolve) => setTimeout(resolve, 20));\n  const after = await tgp.exec_sql('SELECT count(*) AS n FROM t');\n  return [before[0].n, after[0].n];\n};",
    );
    project.tool(
        "writes.ts",
        "export default async () => (await tgp.exec_sql('INSERT INTO t VALUES (1)')).changed;",
    );
    let write = async {
        until_recorded(&records, "exec_sql").await;
        let written = exec(&kernel, "tools/writes.ts", json!({})).await;
        project.put("tmp/go", "");
        result(&written)
    };
    let (read, written) = tokio::join!(exec(&kernel, "tools/reads.ts", json!({})), write);
    assert_eq!(written, json!(1));
    assert_eq!(result(&read), json!([0, 0]), "a run sees one state of the database");
    kernel.shutdown().await;
}

/// A statement that the sources do not show can come too late to write; the error says to run the tool again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_run_that_read_before_another_committed_lost_the_hint_to_retry() {
    let project = Project::new();
    let (kernel, records) = recorded(&project).await;
    project.tool(
        "late.ts",
        "export default async (args: { sql: string }) => {\n  await tgp.exec_sql('SELECT count(*) AS n FROM t');\n  while (!(await tgp.list_files('tmp')).includes('tmp/go')) await new Promise((resolve) => setTimeout(resolve, 20));\n  return (await tgp.exec_sql(args.sql)).changed;\n};",
    );
    let late = async || exec(&kernel, "tools/late.ts", json!({ "sql": "INSERT INTO t VALUES (2)" })).await;
    let write = async {
        until_recorded(&records, "exec_sql").await;
        data(&kernel.call("exec_sql", json!({ "sql": "INSERT INTO t VALUES (1)" })).await);
        project.put("tmp/go", "");
    };
    let (refused, ()) = tokio::join!(late(), write);
    assert_eq!(code(&refused), "ESQL");
    assert!(error(&refused).message.contains("since this one first read it"), "{}", error(&refused).message);
    let details = &error(&refused).details;
    assert_eq!((&details["retry"], &details["sqlCode"]), (&json!(true), &json!("SQLITE_BUSY_SNAPSHOT")));
    assert!(error(&refused).help_of().unwrap().starts_with("run it again"), "{details:?}");
    assert_eq!(result(&late().await), json!(1));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_rows_of_an_inner_run_that_was_undone_were_counted() {
    let project = Project::new();
    let (kernel, records) = recorded(&project).await;
    project.tool(
        "inner.ts",
        "export default async (args: { id: number; fail: boolean }) => {\n  await tgp.exec_sql('INSERT INTO t VALUES (?), (?)', [args.id, args.id + 1]);\n  if (args.fail) throw new Error('inner');\n};",
    );
    let source = "export default async () => {\n  await tgp.exec_sql('INSERT INTO t VALUES (1)');\n  await tgp.exec_tool('tools/inner.ts', { id: 10, fail: false });\n  await tgp.exec_tool('tools/inner.ts', { id: 20, fail: true }).catch(() => undefined);\n};";
    assert_eq!(result(&run(&kernel, &project, source, json!({})).await), Value::Null);
    let records = records.take();
    let outer = records.iter().rfind(|record| record.tool.as_deref() == Some("exec_tool")).unwrap();
    assert_eq!(outer.rows_changed, Some(3));
    let count = kernel.call("exec_sql", json!({ "sql": "SELECT count(*) AS n FROM t" })).await;
    assert_eq!(data(&count)["rows"], json!([{ "n": 3 }]));
    kernel.shutdown().await;
}
