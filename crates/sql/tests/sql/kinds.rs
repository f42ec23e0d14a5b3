//! What a text is said to do, before any database has seen it.

use tgp_sql::statement_kinds;

#[test]
fn kinds() {
    let table: &[(&str, &[&str])] = &[
        ("select 1", &["select"]),
        ("  -- DELETE FROM t\n SELECT 1 /* ; DROP TABLE t */", &["select"]),
        ("SELECT 'DELETE FROM t; DROP TABLE t'", &["select"]),
        ("SELECT \"delete\", replace(a, 'x', 'y') FROM t", &["select"]),
        ("SELECT (replace(a, 'x', 'y'))", &["select"]),
        ("REPLACE INTO t VALUES (1)", &["replace"]),
        ("WITH x AS (SELECT 1) DELETE FROM t", &["select", "delete"]),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", &["delete", "select"]),
        ("WITH x AS NOT MATERIALIZED (UPDATE t SET a = 1 RETURNING 1) TABLE x", &["update", "table"]),
        ("EXPLAIN ANALYZE UPDATE t SET a = 1", &["explain", "analyze", "update"]),
        ("EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM t", &["explain", "analyze", "delete"]),
        ("EXPLAIN ANALYZE FORMAT=TREE DELETE a FROM a", &["explain", "analyze", "delete"]),
        ("SELECT 1; DROP TABLE t; SELECT 2", &["select", "drop"]),
        ("SELECT 1;;/**/;truncate t", &["select", "truncate"]),
        ("SELECT * FROM t FOR UPDATE", &["select", "lock"]),
        ("SELECT * FROM t LOCK IN SHARE MODE", &["select", "lock"]),
        // An insertion that changes rows which are there already.
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", &["insert", "update"]),
        ("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", &["insert", "update"]),
        ("INSERT OR REPLACE INTO t VALUES (1)", &["insert", "replace"]),
        ("INSERT INTO t SELECT * FROM u", &["insert", "select"]),
        ("CREATE TABLE t SELECT * FROM u", &["create", "select"]),
        // A function that is not known to only compute.
        ("SELECT pg_terminate_backend(1)", &["select", "call"]),
        ("SELECT upper(a), count(*) FROM t WHERE a IN (1, 2)", &["select"]),
        ("SELECT NEXT VALUE FOR s", &["select", "call"]),
        // Words that begin no statement, and verbs that are names.
        ("CLUSTER show", &["cluster"]),
        ("NOTIFY values", &["notify"]),
        ("DECLARE c CURSOR FOR SELECT 1", &["select", "unknown"]),
        ("EXPLAIN ANALYZE REFRESH MATERIALIZED VIEW v", &["explain", "analyze", "unknown"]),
        ("WITH c AS (SELECT 1) \u{feff}DELETE FROM t", &["select", "delete", "unknown"]),
        ("DELETE\u{a0}FROM t", &["unknown"]),
        ("SELECT 1\u{b}", &["select", "unknown"]),
        ("SELECT '\u{a0}\u{feff}'", &["select"]),
        // What only one of the databases takes for a comment or a string counts as code.
        ("SELECT 1 # ; \nDELETE FROM t", &["select", "delete"]),
        ("SELECT a #> '{b}', a #>> '{c}' FROM t", &["select"]),
        ("SELECT #a(') FROM t", &["select", "call", "unknown"]),
        ("SELECT 1 --1; \n; DELETE FROM t", &["select", "delete"]),
        ("SELECT '\\'; DELETE FROM t; -- '", &["select", "delete"]),
        ("SELECT $$ ; DELETE FROM t $$", &["select", "delete"]),
        // MySQL runs what the others take for a comment.
        ("/*!50000 DELETE FROM t */", &["unknown"]),
        ("SELECT 1 /*! INTO OUTFILE '/x' */", &["select", "unknown"]),
        ("SELECT 'never ends", &["unknown", "select"]),
        ("", &["unknown"]),
        (";;", &["unknown"]),
        ("garbage in, garbage out", &["unknown"]),
        ("\u{0}\u{feff}√ 'x' 1 ?", &["unknown"]),
    ];
    // Their order means nothing.
    let sorted = |mut kinds: Vec<String>| {
        kinds.sort_unstable();
        kinds
    };
    let mut wrong = Vec::new();
    for (sql, expected) in table {
        let expected = sorted(expected.iter().map(ToString::to_string).collect());
        let kinds = sorted(statement_kinds(sql));
        if kinds != expected {
            wrong.push(format!("{sql}: {kinds:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_selection_into_something_creates_it() {
    let creates = [
        "SELECT * INTO y FROM t",
        "select a\ninto/**/temp y from t",
        "SELECT 1 AS a INTO y; SELECT 2",
        "INSERT INTO a VALUES (1); SELECT * INTO y FROM t",
        "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * INTO y FROM x",
        "WITH x AS (SELECT 1) SELECT * INTO y FROM x",
        "EXPLAIN ANALYZE SELECT * INTO y FROM t",
        "SELECT 1 insert INTO y",
        "SELECT 1 replace INTO y",
        "SELECT 1INTO y",
        "SELECT 1.into y",
        "SELECT $1INTO y",
        "SELECT a FROM t INTO OUTFILE '/tmp/x'",
    ];
    for sql in creates {
        let kinds = statement_kinds(sql);
        assert!(
            kinds.contains(&"create".to_owned()) && kinds.contains(&"select".to_owned()),
            "{sql}: {kinds:?}"
        );
    }
    let others = [
        "INSERT INTO y SELECT * FROM t",
        "INSERT OR ROLLBACK INTO y SELECT * FROM t",
        "INSERT HIGH_PRIORITY IGNORE INTO y SELECT * FROM t",
        "REPLACE DELAYED INTO y SELECT * FROM t",
        "WITH x AS (SELECT 1) INSERT OR REPLACE INTO y SELECT * FROM x",
        "EXPLAIN FORMAT=JSON INSERT INTO y SELECT 1",
        "MERGE INTO y USING (SELECT 1 AS a) s ON y.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a)",
        "SELECT 'INTO y', \"into\" FROM t -- INTO y",
        "SELECT 1; FETCH c INTO y",
        "LOAD DATA INFILE 'x' INTO TABLE y",
    ];
    for sql in others {
        let kinds = statement_kinds(sql);
        assert!(!kinds.contains(&"create".to_owned()), "{sql}: {kinds:?}");
    }
}
