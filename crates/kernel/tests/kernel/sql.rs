//! SQL inside runs: one transaction a run, on every database that this machine has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{
    Actor, CallContext, Consent, Database, SqlAccess, SqlRows, SqlStatement, SqlTransaction, ToolCall,
    ToolError,
};

use crate::support::{Project, code, data, error, exec, result, run};

/// A kernel on one database, with its own table.
pub struct Shop {
    pub project: Project,
    pub kernel: Kernel,
    table: String,
    pub dialect: &'static str,
}

static TABLES: AtomicUsize = AtomicUsize::new(0);

impl Shop {
    /// One for each database there is: SQLite always, the servers where their variables name them.
    pub async fn all(config: Value) -> Vec<Self> {
        let mut shops = vec![Self::open("sqlite", None, config.clone()).await];
        for (dialect, variable) in [("postgresql", "TGP_TEST_POSTGRES_URL"), ("mysql", "TGP_TEST_MYSQL_URL")]
        {
            match std::env::var(variable) {
                Ok(url) => shops.push(Self::open(dialect, Some(url), config.clone()).await),
                Err(_) => println!("skipped: {dialect} ({variable} is not set)"),
            }
        }
        shops
    }

    pub async fn open(dialect: &'static str, url: Option<String>, mut config: Value) -> Self {
        let project = Project::new();
        config["db"]["url"] = json!(url);
        if url.is_none() {
            config["db"].as_object_mut().unwrap().remove("url");
        }
        let kernel = project.kernel(config).await;
        let number = TABLES.fetch_add(1, Ordering::Relaxed);
        let table = format!("users_{}_{number}", std::process::id());
        let shop = Self { project, kernel, table, dialect };
        shop.sql("CREATE TABLE {t} (id INTEGER PRIMARY KEY, name VARCHAR(100) NOT NULL)").await;
        shop
    }

    pub fn text(&self, template: &str) -> String {
        template.replace("{t}", &self.table)
    }

    pub async fn sql(&self, template: &str) -> Value {
        let answer = self.kernel.call("exec_sql", json!({ "sql": self.text(template) })).await;
        data(&answer).clone()
    }

    pub async fn count(&self) -> i64 {
        self.sql("SELECT count(*) AS n FROM {t}").await["rows"][0]["n"].as_i64().unwrap()
    }

    pub fn tool(&self, name: &str, template: &str) -> &Self {
        self.project.tool(name, &self.text(template));
        self
    }

    pub async fn run(&self, template: &str) -> tgp::contract::ToolResult {
        run(&self.kernel, &self.project, &self.text(template), json!({})).await
    }

    pub async fn close(self) {
        self.sql("DROP TABLE {t}").await;
        self.kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_statements_that_were_not_awaited_were_lost_without_an_error() {
    for shop in Shop::all(json!({})).await {
        let answer = shop
            .run("export default async () => {\n  [1, 2, 3].forEach(async (id) => { await tgp.exec_sql(`INSERT INTO {t} (id, name) VALUES (${id}, 'x')`); });\n  return 'done';\n};")
            .await;
        assert_eq!(result(&answer), json!("done"), "{}", shop.dialect);
        assert_eq!(shop.count().await, 3, "{}", shop.dialect);
        let deleted = shop
            .run("export default () => {\n  tgp.exec_sql('DELETE FROM {t}');\n  return 'done';\n};")
            .await;
        assert_eq!((result(&deleted), shop.count().await), (json!("done"), 0), "{}", shop.dialect);
        let wrong = shop
            .run("export default () => {\n  tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (9, 'x')\");\n  tgp.exec_sql('DELETE FROM a_table_that_is_not_there');\n  return 'done';\n};")
            .await;
        assert_eq!(code(&wrong), "ESQL", "{}", shop.dialect);
        assert_eq!(shop.count().await, 0, "{}: the run is undone", shop.dialect);
        shop.close().await;
    }
}

/// Section 3 of the integration plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integration_3_queries_return_rows_and_a_throw_rolls_back() {
    for shop in Shop::all(json!({})).await {
        shop.sql("INSERT INTO {t} (id, name) VALUES (1, 'Ann'), (2, 'Bob')").await;
        let rows =
            shop.run("export default async () => tgp.exec_sql('SELECT * FROM {t} ORDER BY id');").await;
        assert_eq!(result(&rows), json!([{ "id": 1, "name": "Ann" }, { "id": 2, "name": "Bob" }]));
        shop.sql("DELETE FROM {t}").await;
        let boom = shop
            .run("export default async () => {\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (3, 'Cid')\");\n  throw new Error('Boom');\n};")
            .await;
        assert_eq!(code(&boom), "ERUNTIME", "{}", shop.dialect);
        assert!(error(&boom).message.contains("Boom"));
        assert_eq!(shop.count().await, 0, "{}", shop.dialect);
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_ends_a_run_early_undoes_its_rows_and_its_files() {
    let config = json!({ "sandbox": { "cpuMs": 300, "wallMs": 1_500 } });
    for shop in Shop::all(config).await {
        for ending in [
            "throw new Error('boom');",
            "for (;;) {}",
            "const kept: string[] = []; for (;;) kept.push('x'.repeat(1e6) + kept.length);",
            "await new Promise((resolve) => setTimeout(resolve, 60_000));",
            "await tgp.exec_sql('SELECT * FROM a_table_that_is_not_there');",
            "return 1n;",
        ] {
            let answer = shop
                .run(&format!("export default async () => {{\n  await tgp.exec_sql(\"INSERT INTO {{t}} (id, name) VALUES (1, 'Ann')\");\n  await tgp.write_file('tmp/made.txt', 'x');\n  {ending}\n}};"))
                .await;
            error(&answer);
            assert_eq!(shop.count().await, 0, "{}: {ending}", shop.dialect);
            assert!(!shop.project.file("tmp/made.txt").exists(), "{}: {ending}", shop.dialect);
        }
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_and_files_are_committed_together() {
    for shop in Shop::all(json!({})).await {
        let source = "export default async () => {\n  const made = await tgp.exec_sql('INSERT INTO {t} (id, name) VALUES (:id, :name)', { id: 1, name: 'Ann' });\n  await tgp.write_file('tmp/made.txt', 'x');\n  const seen = await tgp.exec_sql('SELECT name FROM {t} WHERE id = :id', { id: 1 });\n  return [made.length, made.changed, made.truncated, seen[0].name];\n};";
        let answer = shop.run(source).await;
        assert_eq!(result(&answer), json!([0, 1, false, "Ann"]), "{}", shop.dialect);
        assert_eq!(shop.count().await, 1, "{}", shop.dialect);
        assert_eq!(shop.project.text("tmp/made.txt").as_deref(), Some("x"));
        // A file that cannot take its place takes the rows with it: there is a file where its folder should be
        // created.
        shop.tool(
            "blocked.ts",
            "export default async () => {\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (2, 'Bob')\");\n  await tgp.write_file('tmp/later/x.txt', 'x');\n  for (;;) {\n    if ((await tgp.list_files('tmp')).includes('tmp/go')) return 'went on';\n    await new Promise((resolve) => setTimeout(resolve, 100));\n  }\n};",
        );
        let block = async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            shop.project.put("tmp/later", "a file").put("tmp/go", "");
        };
        let (blocked, ()) = tokio::join!(exec(&shop.kernel, "tools/blocked.ts", json!({})), block);
        error(&blocked);
        assert_eq!(shop.count().await, 1, "{}", shop.dialect);
        assert_eq!(shop.project.text("tmp/later").as_deref(), Some("a file"));
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_inside_a_tool_has_a_savepoint() {
    for shop in Shop::all(json!({})).await {
        shop.tool(
            "insert.ts",
            "export default async (args: { id: number; fail: boolean }) => {\n  await tgp.exec_sql('INSERT INTO {t} (id, name) VALUES (:id, :name)', { id: args.id, name: 'inner' });\n  if (args.fail) throw new Error('inner');\n  return args.id;\n};",
        );
        let caught = "export default async () => {\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (1, 'outer')\");\n  await tgp.exec_tool('tools/insert.ts', { id: 2, fail: false });\n  const failed = await tgp.exec_tool('tools/insert.ts', { id: 3, fail: true }).catch((error) => error.message);\n  const all = await Promise.all([4, 5, 6, 7].map((id) => tgp.exec_tool('tools/insert.ts', { id, fail: id === 6 }).catch(() => 'failed')));\n  const seen = await tgp.exec_sql('SELECT id FROM {t} ORDER BY id');\n  return { failed, all, seen: seen.map((row) => row.id) };\n};";
        let answer = shop.run(caught).await;
        let value = result(&answer);
        assert_eq!(value["seen"], json!([1, 2, 4, 5, 7]), "{}: {value}", shop.dialect);
        assert_eq!(value["all"], json!([4, 5, "failed", 7]), "{}", shop.dialect);
        assert_eq!(shop.count().await, 5, "{}", shop.dialect);
        // What the inner one did goes with the outer one.
        let thrown = shop
            .run("export default async () => {\n  await tgp.exec_tool('tools/insert.ts', { id: 8, fail: false });\n  throw new Error('outer');\n};")
            .await;
        error(&thrown);
        assert_eq!(shop.count().await, 5, "{}", shop.dialect);
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_does_not_wait_for_is_never_half_committed() {
    // An inner run that ends within the limits is committed with the outer one, a longer one stops both.
    for (wait_ms, wall_ms, expected) in [(200, 60_000, 2), (60_000, 1_000, 0)] {
        let shop = Shop::open("sqlite", None, json!({ "sandbox": { "wallMs": wall_ms } })).await;
        let source = "export default async () => {\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (1, 'a')\");\n  await new Promise((resolve) => setTimeout(resolve, WAIT));\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (2, 'b')\");\n};";
        shop.tool("slow.ts", &source.replace("WAIT", &wait_ms.to_string()));
        let answer = shop
            .run("export default async () => {\n  void tgp.exec_tool('tools/slow.ts', {});\n  return 'gone';\n};")
            .await;
        match expected {
            0 => assert_eq!(code(&answer), "ERR_ISOLATE_TIMEOUT"),
            _ => assert_eq!(result(&answer), json!("gone")),
        }
        assert_eq!(shop.count().await, expected, "{answer:?}");
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_says_what_the_statements_would_do() {
    for shop in Shop::all(json!({})).await {
        let context = || CallContext {
            actor: Actor::Agent("test".to_owned()),
            session: "test".to_owned(),
            consent: Consent::Given,
            dry_run: true,
            depth: 0,
            token: None,
        };
        let sql = shop.text("INSERT INTO {t} (id, name) VALUES (1, 'Ann')");
        let call =
            ToolCall { id: "1".to_owned(), tool: "exec_sql".to_owned(), arguments: json!({ "sql": sql }) };
        let answer = shop.kernel.call_with(call, context()).await;
        assert_eq!(data(&answer)["changed"], 1, "{}", shop.dialect);
        assert_eq!(data(&answer)["dry_run"], true);
        assert_eq!(shop.count().await, 0, "{}", shop.dialect);
        shop.tool(
            "insert.ts",
            "export default async () => tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (1, 'Ann')\");",
        );
        let call = ToolCall {
            id: "2".to_owned(),
            tool: "exec_tool".to_owned(),
            arguments: json!({ "path": "tools/insert.ts" }),
        };
        let answer = shop.kernel.call_with(call, context()).await;
        assert_eq!(data(&answer)["sql"]["statements"][0]["changed"], 1, "{}", shop.dialect);
        assert_eq!(shop.count().await, 0, "{}", shop.dialect);
        shop.close().await;
    }
}

/// 50 runs that each read and then write: nothing is lost and no lock error reaches a tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_runs_at_once_on_sqlite_lose_nothing() {
    let shop = Shop::open(
        "sqlite",
        None,
        json!({ "db": { "statementTimeoutMs": 60_000 }, "sandbox": { "wallMs": 60_000 } }),
    )
    .await;
    shop.tool(
        "count.ts",
        "export default async (args: { id: number }) => {\n  const before = await tgp.exec_sql('SELECT count(*) AS n FROM {t}');\n  await tgp.exec_sql('INSERT INTO {t} (id, name) VALUES (?, ?)', [args.id, `after ${before[0].n}`]);\n  return before[0].n;\n};",
    );
    let runs = (0..50).map(|id| exec(&shop.kernel, "tools/count.ts", json!({ "id": id })));
    let mut seen: Vec<i64> = Vec::new();
    for answer in futures_util::future::join_all(runs).await {
        seen.push(result(&answer).as_i64().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..50).collect::<Vec<i64>>(), "each run saw all those before it");
    assert_eq!(shop.count().await, 50);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_database_refuses_writes() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    data(&kernel.call("exec_sql", json!({ "sql": "CREATE TABLE t (id INTEGER)" })).await);
    kernel.shutdown().await;
    let kernel = project.kernel(json!({ "db": { "readOnly": true } })).await;
    let refused = kernel.call("exec_sql", json!({ "sql": "INSERT INTO t VALUES (1)" })).await;
    assert_eq!(code(&refused), "ESQL");
    let seen = kernel.call("exec_sql", json!({ "sql": "SELECT count(*) AS n FROM t" })).await;
    assert_eq!(data(&seen)["rows"], json!([{ "n": 0 }]));
    let ignored = std::fs::read_to_string(project.file(".tgp/.gitignore")).unwrap();
    assert!(ignored.contains("/.state/") && ignored.contains("/data.sqlite\n/data.sqlite-*\n"), "{ignored}");
    assert!(project.file(".tgp/data.sqlite").exists());
    kernel.shutdown().await;
}

/// A database that the embedding program brings.
struct Echo(Arc<AtomicUsize>);

struct EchoTransaction(Arc<AtomicUsize>);

#[async_trait::async_trait]
impl Database for Echo {
    fn dialect(&self) -> &str {
        "echo"
    }

    async fn begin(&self, _access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        Ok(Box::new(EchoTransaction(Arc::clone(&self.0))))
    }
}

#[async_trait::async_trait]
impl SqlTransaction for EchoTransaction {
    async fn execute(&mut self, statement: &SqlStatement) -> Result<SqlRows, ToolError> {
        let row = json!({ "sql": statement.sql, "params": statement.params });
        Ok(SqlRows {
            columns: vec!["sql".to_owned(), "params".to_owned()],
            rows: vec![row.as_object().unwrap().clone()],
            ..SqlRows::default()
        })
    }

    async fn mark(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    async fn keep(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    async fn undo(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    async fn commit(self: Box<Self>) -> Result<(), ToolError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn rollback(self: Box<Self>) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedding_program_can_bring_its_own_database() {
    let commits = Arc::new(AtomicUsize::new(0));
    let project = Project::new();
    let mut options = project.options();
    options.database = Some(Arc::new(Echo(Arc::clone(&commits))));
    let kernel = Kernel::boot(options).await.unwrap();
    let source = "export default async () => tgp.exec_sql('hello', { a: 1 });";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(result(&answer), json!([{ "sql": "hello", "params": { "a": 1 } }]));
    assert_eq!(commits.load(Ordering::Relaxed), 1);
    let thrown = "export default async () => { await tgp.exec_sql('hello'); throw new Error('no'); };";
    error(&run(&kernel, &project, thrown, json!({})).await);
    assert_eq!(commits.load(Ordering::Relaxed), 1, "a run that throws commits nothing");
    kernel.shutdown().await;
}

/// While a run holds its transaction, a question is answered with what was committed before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_question_waits_for_no_writer() {
    for shop in Shop::all(json!({})).await {
        shop.tool(
            "holds.ts",
            "export default async () => {\n  await tgp.exec_sql(\"INSERT INTO {t} (id, name) VALUES (1, 'Ann')\");\n  await tgp.write_file('/tmp/x', '');\n  for (;;) {\n    if ((await tgp.list_files('tmp')).includes('tmp/go')) return 'went on';\n    await new Promise((resolve) => setTimeout(resolve, 50));\n  }\n};",
        );
        let asked = async {
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            let count = shop.count().await;
            shop.project.put("tmp/go", "");
            count
        };
        let (held, count) = tokio::join!(exec(&shop.kernel, "tools/holds.ts", json!({})), asked);
        assert_eq!(result(&held), json!("went on"), "{}", shop.dialect);
        assert_eq!(count, 0, "{}", shop.dialect);
        assert_eq!(shop.count().await, 1, "{}", shop.dialect);
        shop.close().await;
    }
}

/// A question that writes after all is asked again as what it is, and a broken one is asked only once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_writes_is_allowed_to() {
    for shop in Shop::all(json!({})).await {
        let broken = shop.kernel.call("exec_sql", json!({ "sql": "SELECT absent FROM nowhere" })).await;
        assert_eq!(code(&broken), "ESQL", "{}", shop.dialect);
        if shop.dialect == "postgresql" {
            shop.sql("CREATE SEQUENCE {t}_numbers").await;
            let next = shop.sql("SELECT nextval('{t}_numbers') AS n").await;
            assert_eq!(next["rows"], json!([{ "n": 1 }]));
            shop.sql("DROP SEQUENCE {t}_numbers").await;
        }
        shop.close().await;
    }
}
