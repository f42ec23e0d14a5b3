//! Rules about SQL statements, whatever the statement looks like: direct calls and calls inside a tool.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp::contract::{Actor, CallContext, CallRecord, Consent, Recorder, Target, ToolCall, ToolResult};
use tgp::{BootOptions, Kernel};

use crate::support::{Project, Records, code, data, error, exec};

const RULES: &str = "version: 1
rules:
  - {id: reads, effect: allow, tools: exec_sql, where: {statement: select}, reason: queries are fine}
  - {id: no-loss, effect: deny, tools: exec_sql, where: {statement: [delete, drop, update]}, reason: rows stay}
";

fn statement(sql: &str) -> ToolCall {
    ToolCall { id: "1".to_owned(), tool: "exec_sql".to_owned(), arguments: json!({ "sql": sql }) }
}

/// A kernel without an approver, with three rows that the rules protect.
struct Vault {
    project: Project,
    kernel: Kernel,
    records: Arc<Records>,
}

impl Vault {
    async fn open(rules: &str, mut config: Value) -> Self {
        let project = Project::new();
        config["sandbox"] = json!({ "cpuMs": 5_000, "wallMs": 30_000 });
        project.put("tgp.config.json", &config.to_string());
        let records = Arc::new(Records::default());
        let recorder = Arc::clone(&records) as Arc<dyn Recorder>;
        let options = BootOptions { recorder: Some(recorder), ..project.options() };
        let kernel = Kernel::boot(options).await.unwrap();
        for sql in [
            "CREATE TABLE precious (x INTEGER)",
            "INSERT INTO precious VALUES (1), (2), (3)",
            "CREATE TABLE quiet (x)",
            "CREATE TRIGGER loud AFTER INSERT ON quiet BEGIN DELETE FROM precious; END",
            "CREATE VIEW window AS SELECT * FROM precious",
            "CREATE TRIGGER broken INSTEAD OF INSERT ON window BEGIN DELETE FROM precious; END",
        ] {
            data(&kernel.call("exec_sql", json!({ "sql": sql })).await);
        }
        project.put("tgp.policy.yaml", rules);
        records.take();
        Self { project, kernel, records }
    }

    async fn ask(&self, sql: &str, consent: Consent) -> ToolResult {
        let context = CallContext {
            actor: Actor::Agent("test".to_owned()),
            session: "test".to_owned(),
            consent,
            dry_run: false,
            depth: 0,
            token: None,
        };
        let call = statement(sql);
        self.kernel.call_with(call, context).await
    }

    async fn is_whole(&self) -> bool {
        let answer = self.ask("SELECT count(*) AS n, sum(x) AS s FROM precious", Consent::Given).await;
        data(&answer)["rows"] == json!([{ "n": 3, "s": 6 }])
    }
}

/// Texts that lose rows, each in a disguise.
const DISGUISES: [&str; 18] = [
    "\u{feff}DROP TABLE precious",
    "\u{feff}DELETE FROM precious",
    "WITH c AS (SELECT 1) DELETE FROM precious WHERE x = 1",
    "WITH c AS (SELECT 1) \u{feff}DELETE FROM precious WHERE x = 1",
    "WITH c AS (SELECT 1) \u{feff}UPDATE precious SET x = 99",
    "/*\u{feff}*/\u{feff}--\n\u{feff}DELETE FROM precious",
    "/**/DELETE/**/FROM precious",
    "-- SELECT\nDELETE FROM precious",
    "INSERT INTO quiet VALUES (1)",
    "INSERT INTO window VALUES (1)",
    "REPLACE INTO quiet VALUES (1)",
    "DELETE FROM precious RETURNING x",
    "EXPLAIN DELETE FROM precious",
    "ALTER TABLE precious RENAME TO gone; DROP TABLE gone",
    "SELECT 1; DROP TABLE precious",
    "FOO bar",
    "DELETE\u{a0}FROM precious",
    "SELECT * FROM nowhere",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_byte_order_mark_does_not_hide_a_drop() {
    let vault = Vault::open(RULES, json!({})).await;
    for sql in DISGUISES {
        for consent in [Consent::Ask, Consent::Given] {
            let answer = vault.ask(sql, consent).await;
            assert_eq!(code(&answer), "EPOLICY", "{sql:?}: {answer:?}");
            assert_eq!(error(&answer).details["rule"], "no-loss", "{sql:?}");
        }
    }
    assert!(vault.is_whole().await);
    assert!(vault.records.take().iter().all(|record: &CallRecord| record.rows_changed.unwrap_or(0) == 0));
    let allowed = vault.ask("SELECT * FROM precious", Consent::Ask).await;
    assert_eq!(data(&allowed)["rows"].as_array().unwrap().len(), 3);
    // An allow rule for queries is not one for anything else.
    for sql in ["INSERT INTO precious VALUES (4)", "CREATE TABLE t AS SELECT 1", "PRAGMA user_version = 4"] {
        assert_eq!(code(&vault.ask(sql, Consent::Ask).await), "EAPPROVAL", "{sql}");
    }
    vault.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_cannot_hide_a_statement_either() {
    let vault = Vault::open(RULES, json!({})).await;
    vault.project.tool(
        "thief.ts",
        "/** Tries a statement. */\nexport default async (args: { sql: string }) => {\n  try { await tgp.exec_sql(args.sql); return 'ran'; } catch (error) { return (error as { code?: string }).code ?? String(error); }\n};",
    );
    for sql in DISGUISES {
        let answer = exec(&vault.kernel, "tools/thief.ts", json!({ "sql": sql })).await;
        assert_eq!(crate::support::result(&answer), json!("EPOLICY"), "{sql:?}");
    }
    // A table that only the run can see is known there.
    vault.project.tool(
        "builder.ts",
        "/** Makes a table and fills it. */\nexport default async () => {\n  await tgp.exec_sql('CREATE TABLE mine (x)');\n  await tgp.exec_sql('INSERT INTO mine VALUES (1)');\n  return (await tgp.exec_sql('SELECT * FROM mine')).length;\n};",
    );
    let built = exec(&vault.kernel, "tools/builder.ts", json!({})).await;
    assert_eq!(crate::support::result(&built), json!(1));
    assert!(vault.is_whole().await);
    vault.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_rows_stand_in_the_record_for_every_spelling() {
    let vault = Vault::open("version: 1\nrules: []\n", json!({})).await;
    for (sql, changed) in [
        ("\u{feff}INSERT INTO precious VALUES (4)", 1),
        ("WITH c AS (SELECT 1) \u{feff}UPDATE precious SET x = x + 1", 4),
        ("WITH c AS (SELECT 1) \u{feff}DELETE FROM precious WHERE x > 3", 2),
        ("INSERT INTO window VALUES (1)", 2),
    ] {
        let answer = vault.ask(sql, Consent::Given).await;
        assert_eq!(data(&answer)["changed"], changed, "{sql:?}");
        let records = vault.records.take();
        assert_eq!(records[0].rows_changed, Some(changed), "{sql:?}");
        let Target::Statement { kinds, reads, .. } = &records[0].targets[0] else { panic!("{records:?}") };
        assert!(!reads && !kinds.contains(&"unknown".to_owned()), "{sql:?}: {kinds:?}");
    }
    vault.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_are_asked_for_unless_the_configuration_frees_them() {
    let none = "version: 1\nrules: []\n";
    let strict = Vault::open(none, json!({})).await;
    assert_eq!(code(&strict.ask("SELECT * FROM precious", Consent::Ask).await), "EAPPROVAL");
    strict.kernel.shutdown().await;

    let free = Vault::open(none, json!({ "db": { "freeReads": true } })).await;
    for sql in [
        "SELECT * FROM precious",
        "\u{feff}SELECT 1",
        "VALUES (1)",
        "PRAGMA table_info(precious)",
        "SELECT * FROM window",
    ] {
        data(&free.ask(sql, Consent::Ask).await);
    }
    for sql in [
        "INSERT INTO precious VALUES (4)",
        "\u{feff}DELETE FROM precious",
        "WITH c AS (SELECT 1) \u{feff}DELETE FROM precious",
        "DELETE FROM precious RETURNING x",
        "PRAGMA user_version = 4",
        "CREATE TEMP TABLE t (x)",
        "EXPLAIN DELETE FROM precious",
    ] {
        assert_eq!(code(&free.ask(sql, Consent::Ask).await), "EAPPROVAL", "{sql:?}");
    }
    free.project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: ask-first, effect: ask, tools: exec_sql, where: {statement: select}, reason: ask Ann}\n",
    );
    assert_eq!(code(&free.ask("SELECT * FROM precious", Consent::Ask).await), "EAPPROVAL");
    assert!(free.is_whole().await);
    free.kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_reads_on_a_server_change_nothing_there() {
    let servers = [
        (
            "TGP_TEST_POSTGRES_URL",
            "nextval('vault_s')",
            ["pg_advisory_lock(1)", "pg_read_file('PG_VERSION')"],
        ),
        ("TGP_TEST_MYSQL_URL", "NEXTVAL(vault_s)", ["GET_LOCK('a', 0)", "LOAD_FILE('/etc/passwd')"]),
    ];
    for (variable, next, effects) in servers {
        let Ok(url) = std::env::var(variable) else {
            println!("skipped: {variable} is not set");
            continue;
        };
        let project = Project::new();
        let kernel = project.kernel(json!({ "db": { "url": url, "freeReads": true } })).await;
        let given = async |sql: String| kernel.call("exec_sql", json!({ "sql": sql })).await;
        data(&given("DROP SEQUENCE IF EXISTS vault_s".to_owned()).await);
        data(&given("CREATE SEQUENCE vault_s".to_owned()).await);
        let context = || CallContext {
            actor: Actor::Agent("test".to_owned()),
            session: "test".to_owned(),
            consent: Consent::Ask,
            dry_run: false,
            depth: 0,
            token: None,
        };
        let ask = async |sql: String| {
            let call = statement(&sql);
            kernel.call_with(call, context()).await
        };
        data(&ask("SELECT 1 AS a, upper('b') AS b".to_owned()).await);
        for call in [next, effects[0], effects[1]] {
            let answer = ask(format!("SELECT {call}")).await;
            assert_eq!(code(&answer), "EAPPROVAL", "{call}: {answer:?}");
        }
        data(&given("DROP SEQUENCE vault_s".to_owned()).await);
        kernel.shutdown().await;
    }
}
