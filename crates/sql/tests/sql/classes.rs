//! What a statement would do, as SQLite itself says before it runs, and that it does no more than that.

use serde_json::json;
use tgp_contract::{Code, SqlClass, SqlParams, SqlStatement};

use crate::support::{Kind, Place, ReadOnly, on};

const SCHEMA: [&str; 12] = [
    "CREATE TABLE t (x INTEGER PRIMARY KEY, y)",
    "CREATE TABLE log (x)",
    "CREATE TABLE child (t INTEGER REFERENCES t (x) ON DELETE CASCADE)",
    "CREATE TABLE heir (t INTEGER REFERENCES t (x) ON DELETE SET NULL)",
    "CREATE TABLE quiet (x)",
    "CREATE TRIGGER noted AFTER INSERT ON quiet BEGIN DELETE FROM log; END",
    "CREATE VIEW v AS SELECT x, y FROM t",
    "CREATE TRIGGER instead INSTEAD OF DELETE ON v BEGIN UPDATE t SET y = 0; END",
    "CREATE VIRTUAL TABLE words USING fts5 (a)",
    "CREATE VIRTUAL TABLE old USING fts4 (a)",
    "CREATE VIRTUAL TABLE boxes USING rtree (id, a, b)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
];

async fn prepared(place: &Place) {
    for sql in SCHEMA {
        place.call(sql, json!(null)).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

async fn kinds(place: &Place, sql: &str) -> (Vec<String>, bool) {
    let SqlClass { mut kinds, reads } = place.database.inspect(sql).await.unwrap();
    kinds.sort_unstable();
    (kinds, reads)
}

async fn on_sqlite(test: &str, scenario: impl AsyncFn(&Place)) {
    on(Kind::Sqlite, test, &|_| {}, &scenario).await;
}

#[tokio::test]
async fn bug_a_table_valued_pragma_was_only_a_select() {
    on_sqlite("pragma_tables", async |place| {
        prepared(place).await;
        for sql in [
            "SELECT count(*) FROM pragma_table_list",
            "SELECT name FROM PRAGMA_TABLE_INFO('t')",
            "SELECT a.name FROM t, pragma_index_list('t') AS a",
            "WITH a AS (SELECT * FROM pragma_user_version) SELECT * FROM a",
            "SELECT (SELECT count(*) FROM \"pragma_table_info\"('t'))",
        ] {
            let (found, reads) = kinds(place, sql).await;
            assert!(found.contains(&"pragma".to_owned()) && reads, "{sql}: {found:?}");
        }
        assert_eq!(kinds(place, "SELECT 'pragma_table_info'").await, (vec!["select".to_owned()], true));
    })
    .await;
}

#[tokio::test]
async fn sqlite_says_itself_what_a_statement_does() {
    let reads: &[(&str, &[&str])] = &[
        ("SELECT 1", &["select"]),
        ("\u{feff}SELECT * FROM t", &["select"]),
        ("VALUES (1), (2)", &["values"]),
        (
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n",
            &["select"],
        ),
        ("SELECT * FROM v", &["select"]),
        ("SELECT 'DELETE FROM t', \"x\" FROM t -- DROP TABLE t", &["select"]),
        ("EXPLAIN QUERY PLAN SELECT * FROM t", &["explain", "select"]),
        ("PRAGMA table_info(t)", &["pragma"]),
        ("PRAGMA user_version", &["pragma"]),
        ("SELECT * FROM pragma_table_info('t')", &["pragma", "select"]),
        ("SELECT * FROM words WHERE words MATCH 'a'", &["select"]),
        ("SELECT * FROM old WHERE old MATCH 'a'", &["select"]),
        ("SELECT * FROM boxes WHERE a > 1", &["select"]),
        ("SELECT x AS comment, upper(y) FROM t", &["comment", "select"]),
    ];
    let writes: &[(&str, &[&str])] = &[
        ("DELETE FROM log", &["delete"]),
        ("\u{feff}DROP TABLE log", &["drop"]),
        ("WITH c AS (SELECT 1) \u{feff}DELETE FROM log", &["delete", "select"]),
        ("WITH c AS (SELECT 1) \u{feff}UPDATE log SET x = 99", &["select", "update"]),
        ("\u{feff}/*\u{feff}*/--\n\u{feff}DELETE FROM log", &["delete"]),
        // What a trigger, a foreign key and a view do counts.
        ("INSERT INTO quiet VALUES (1)", &["delete", "insert"]),
        ("DELETE FROM t", &["delete", "update"]),
        ("DELETE FROM v", &["delete", "update"]),
        ("REPLACE INTO t VALUES (1, 1)", &["delete", "insert", "replace", "update"]),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT DO UPDATE SET y = 2", &["insert", "update"]),
        ("INSERT OR REPLACE INTO log VALUES (1)", &["insert", "replace"]),
        ("INSERT INTO log VALUES (1), (2)", &["insert"]),
        ("INSERT INTO log SELECT x FROM t", &["insert", "select"]),
        ("INSERT INTO log VALUES (1) RETURNING x", &["insert"]),
        ("UPDATE log SET x = t.x FROM t", &["update"]),
        ("INSERT INTO words VALUES ('a')", &["insert"]),
        ("CREATE TABLE n (x)", &["create"]),
        ("CREATE TABLE n AS SELECT * FROM t", &["create", "select"]),
        ("CREATE TEMP TABLE n (x)", &["create"]),
        ("CREATE INDEX i ON t (y)", &["create"]),
        ("DROP TABLE log", &["drop"]),
        ("DROP TABLE t", &["delete", "drop", "update"]),
        ("DROP VIEW v", &["drop"]),
        ("ALTER TABLE log RENAME TO diary", &["alter", "rename"]),
        ("ALTER TABLE log ADD COLUMN z", &["alter"]),
        ("ANALYZE", &["analyze"]),
        ("REINDEX", &["reindex"]),
        ("EXPLAIN DELETE FROM log", &["delete", "explain"]),
        ("PRAGMA user_version = 4", &["pragma"]),
        ("PRAGMA defer_foreign_keys = ON", &["pragma"]),
        ("SELECT optimize(old) FROM old", &["select"]),
        // What SQLite does not understand, or is not to run, may be anything.
        ("SELECT * FROM nowhere", &["select", "unknown"]),
        ("FOO bar", &["unknown"]),
        ("SELECT 1; DELETE FROM t", &["delete", "select", "unknown"]),
        ("VACUUM", &["unknown", "vacuum"]),
        ("ATTACH 'x' AS y", &["attach", "unknown"]),
        ("SELECT load_extension('x')", &["select", "unknown"]),
        ("SELECT 1\0; DELETE FROM t", &["delete", "select", "unknown"]),
        ("", &["unknown"]),
    ];
    on_sqlite("classes", async |place| {
        prepared(place).await;
        for (sql, expected) in reads {
            assert_eq!(
                kinds(place, sql).await,
                (expected.iter().map(ToString::to_string).collect(), *sql != reads[13].0),
                "{sql}"
            );
        }
        let mut wrong = Vec::new();
        for (sql, expected) in writes {
            let expected = (expected.iter().map(ToString::to_string).collect(), false);
            let found = kinds(place, sql).await;
            if found != expected {
                wrong.push(format!("{sql}: {found:?} instead of {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(place.call("SELECT count(*) FROM t", json!(null)).await.unwrap().rows[0]["count(*)"], 3);
        // The same inside a transaction, with a table that only it can see.
        let mut transaction = place.begin().await;
        crate::support::run(&mut *transaction, "CREATE TABLE mine (x)", json!(null)).await.unwrap();
        let found = transaction.inspect("DELETE FROM mine").await.unwrap();
        assert_eq!(found, SqlClass { kinds: vec!["delete".to_owned()], reads: false });
        assert!(
            place.database.inspect("DELETE FROM mine").await.unwrap().kinds.contains(&"unknown".to_owned())
        );
        transaction.rollback().await;
    })
    .await;
}

#[tokio::test]
async fn looking_at_a_statement_makes_no_file_and_changes_nothing() {
    on_sqlite("looking", async |place| {
        let file = place.url.strip_prefix("sqlite:").unwrap().to_owned();
        assert_eq!(kinds(place, "CREATE TABLE t (x)").await.0, ["create"]);
        assert!(!std::path::Path::new(&file).exists(), "a look at a statement made the database");
        place.call("CREATE TABLE t (x)", json!(null)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(kinds(place, "PRAGMA user_version = 7").await.0, ["pragma"]);
            assert_eq!(kinds(place, "DROP TABLE t").await.0, ["drop"]);
        }
        let version = place.call("PRAGMA user_version", json!(null)).await.unwrap();
        assert_eq!(version.rows[0]["user_version"], 0);
        assert_eq!(kinds(place, "SELECT * FROM t").await, (vec!["select".to_owned()], true));
    })
    .await;
}

#[tokio::test]
async fn a_statement_that_does_more_than_was_judged_is_refused() {
    on_sqlite("judged", async |place| {
        prepared(place).await;
        let sql = "INSERT INTO log VALUES (1)";
        let judged = place.database.inspect(sql).await.unwrap();
        assert_eq!(judged.kinds, ["insert"]);
        let statement = SqlStatement { sql: sql.to_owned(), params: SqlParams::None, judged: Some(judged) };
        let mut transaction = place.begin().await;
        transaction.execute(&statement).await.unwrap();
        transaction.commit().await.unwrap();
        // Another connection makes it delete as well, after it was inspected.
        place
            .call("CREATE TRIGGER later AFTER INSERT ON log BEGIN DELETE FROM t; END", json!(null))
            .await
            .unwrap();
        for access in [tgp_contract::SqlAccess::ReadWrite, ReadOnly] {
            let mut transaction = place.database.begin(access).await.unwrap();
            let error = transaction.execute(&statement).await.unwrap_err();
            assert_eq!(error.code, Code::Policy, "{error:?}");
            assert!(error.message.contains("delete"), "{error:?}");
            transaction.rollback().await;
        }
        let left = place.call("SELECT count(*) AS n FROM t", json!(null)).await.unwrap();
        assert_eq!(left.rows[0]["n"], 3);
    })
    .await;
}

#[tokio::test]
async fn changed_rows_are_counted_for_every_spelling() {
    on_sqlite("counted", async |place| {
        prepared(place).await;
        for (sql, changed) in [
            ("INSERT INTO log VALUES (1), (2)", 2),
            ("\u{feff}INSERT INTO log VALUES (3)", 1),
            ("WITH c AS (SELECT 1) \u{feff}UPDATE log SET x = 9 WHERE x > 1", 2),
            ("SELECT 1", 0),
            ("CREATE TABLE made AS SELECT * FROM log", 0),
            ("CREATE VIRTUAL TABLE more USING fts5 (a)", 0),
            ("INSERT INTO words VALUES ('a b'), ('c')", 2),
            ("DELETE FROM words", 2),
            ("EXPLAIN DELETE FROM log", 0),
            // A trigger's own rows are not counted, except behind a view, where there are no others.
            ("INSERT INTO quiet VALUES (1), (2)", 2),
            ("DELETE FROM v WHERE x = 1", 3),
            ("WITH c AS (SELECT 1) \u{feff}DELETE FROM made RETURNING x", 3),
            ("PRAGMA user_version = 3", 0),
            ("DROP TABLE made", 0),
        ] {
            let answer =
                place.call(sql, json!(null)).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            assert_eq!(answer.changed, changed, "{sql}");
        }
    })
    .await;
}
