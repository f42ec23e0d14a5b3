//! Programs, definitions and stored queries: what they run has a kind that says so, and what they only name is no call.

use serde_json::json;
use tgp_sql::classify_foreign;

use crate::support::{Kind, Place, ReadWrite, on, run};

fn kinds(dialect: &str, sql: &str) -> Vec<String> {
    classify_foreign(sql, dialect).unwrap().kinds
}

#[track_caller]
fn assert_kind(dialect: &str, kind: &str, texts: &[&str]) {
    let wrong: Vec<String> = texts
        .iter()
        .map(|sql| (sql, kinds(dialect, sql)))
        .filter(|(_, kinds)| !kinds.iter().any(|known| known == kind))
        .map(|(sql, kinds)| format!("{sql}: {kinds:?} without {kind}"))
        .collect();
    assert!(wrong.is_empty(), "{dialect}\n{}", wrong.join("\n"));
}

#[test]
fn bug_a_definition_that_carries_code_was_only_a_creation() {
    assert_kind(
        "postgresql",
        "unknown",
        &[
            "DO $$BEGIN DELETE FROM t; END$$",
            "DO LANGUAGE plpgsql 'BEGIN DROP TABLE t; END'",
            "do/**/$x$ BEGIN END $x$ LANGUAGE plpgsql",
            "(DO $$BEGIN END$$)",
            "CREATE RULE r AS ON INSERT TO a DO ALSO DELETE FROM t",
            "CREATE OR REPLACE RULE r AS ON UPDATE TO a DO INSTEAD NOTHING",
            "CREATE TRIGGER g AFTER INSERT ON a EXECUTE FUNCTION f()",
            "CREATE OR REPLACE CONSTRAINT TRIGGER g AFTER INSERT ON a EXECUTE FUNCTION f()",
            "CREATE EVENT TRIGGER g ON ddl_command_end EXECUTE FUNCTION f()",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM t; SELECT 1'",
            "CREATE OR REPLACE FUNCTION f() RETURNS int RETURN 1",
            "CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM t'",
            "CREATE AGGREGATE total (int) (SFUNC = f, STYPE = int)",
            "CREATE OPERATOR === (FUNCTION = f, LEFTARG = int, RIGHTARG = int)",
            "CREATE OPERATOR CLASS c FOR TYPE int USING btree AS FUNCTION 1 f(int, int)",
            "CREATE CAST (text AS int) WITH FUNCTION f(text) AS IMPLICIT",
            "CREATE EXTENSION dblink",
            "CREATE POLICY p ON t USING (f())",
            "CREATE TRUSTED LANGUAGE l HANDLER h",
            "CREATE TYPE x (INPUT = f, OUTPUT = g)",
            "CREATE TYPE x AS RANGE (SUBTYPE = int, SUBTYPE_DIFF = f)",
            "CREATE FOREIGN TABLE x (a int) SERVER s",
            "CREATE SERVER s FOREIGN DATA WRAPPER w",
            "CREATE USER MAPPING FOR ann SERVER s",
            "CREATE SUBSCRIPTION s CONNECTION 'x' PUBLICATION p",
            "CREATE SCHEMA s CREATE TABLE a (x int) CREATE TRIGGER g AFTER INSERT ON a EXECUTE FUNCTION f()",
            "CREATE \"table\" x",
            "CREATE TABLE a (x int); CREATE TABLE b (x int)",
            "ALTER FUNCTION f() RENAME TO upper",
            "ALTER FUNCTION f() SECURITY DEFINER",
            "ALTER OPERATOR + (int, int) SET SCHEMA s",
            "ALTER TYPE x SET (RECEIVE = f)",
            "ALTER TABLE t DISABLE TRIGGER ALL",
            "ALTER TABLE t ENABLE ALWAYS RULE r",
            "ALTER TABLE t DISABLE ROW LEVEL SECURITY",
            "ALTER ROLE tgp SET search_path = evil",
            "ALTER DATABASE d SET session_preload_libraries = 'x'",
            "ALTER SYSTEM SET archive_command = 'x'",
            "ALTER EXTENSION x UPDATE",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
            "EXECUTE p(1)",
            "PREPARE p AS DELETE FROM t",
            "EXPLAIN ANALYZE EXECUTE p",
            "CREATE TABLE x AS EXECUTE p",
            "LOAD 'library'",
            "COPY t FROM PROGRAM 'rm -rf /'",
            "IMPORT FOREIGN SCHEMA s FROM SERVER x INTO y",
        ],
    );
    assert_kind(
        "mysql",
        "unknown",
        &[
            "CREATE TRIGGER g BEFORE INSERT ON a FOR EACH ROW DELETE FROM t",
            "CREATE DEFINER = 'root'@'localhost' TRIGGER g BEFORE INSERT ON a FOR EACH ROW DELETE FROM t",
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t",
            "CREATE OR REPLACE FUNCTION f() RETURNS INT RETURN 1",
            "CREATE FUNCTION f RETURNS STRING SONAME 'evil.so'",
            "CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'evil.so'",
            "CREATE PROCEDURE p() DELETE FROM t",
            "CREATE PACKAGE BODY p AS END",
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')",
            "CREATE ALGORITHM = MERGE DEFINER = 'root'@'%' VIEW v AS SELECT 1",
            "ALTER EVENT e ENABLE",
            "ALTER PROCEDURE p SQL SECURITY DEFINER",
            "PREPARE s FROM 'DELETE FROM t'",
            "EXECUTE s",
            "LOAD DATA INFILE 'x' INTO TABLE t",
        ],
    );
}

#[test]
fn bug_a_definition_that_replaces_what_is_there_was_only_a_creation() {
    let both = [
        "CREATE OR REPLACE TABLE precious (a int)",
        "create or/**/replace table precious LIKE mark",
        "CREATE OR REPLACE TEMPORARY TABLE precious AS SELECT 1 AS a",
        "CREATE OR REPLACE DATABASE shop",
        "CREATE OR REPLACE SCHEMA shop",
        "CREATE OR REPLACE SEQUENCE s",
        "CREATE OR REPLACE USER ann",
        "CREATE OR REPLACE ROLE readers",
        "CREATE OR REPLACE UNIQUE INDEX i ON precious (a)",
        "EXPLAIN CREATE OR REPLACE TABLE precious (a int)",
        "(CREATE OR REPLACE TABLE precious (a int))",
    ];
    for dialect in ["sqlite", "postgresql", "mysql"] {
        assert_kind(dialect, "drop", &both);
    }
    assert_kind(
        "mysql",
        "unknown",
        &["CREATE OR REPLACE SERVER s FOREIGN DATA WRAPPER x OPTIONS (HOST 'x')"],
    );
    assert_kind(
        "mysql",
        "delete",
        &["ALTER IGNORE TABLE t ADD UNIQUE (a)", "ALTER ONLINE IGNORE TABLE t ADD UNIQUE (a)"],
    );
    for sql in [
        "CREATE OR REPLACE VIEW v AS SELECT a FROM precious",
        "CREATE OR REPLACE RECURSIVE VIEW v (a) AS SELECT 1",
        "CREATE TABLE IF NOT EXISTS t (a int)",
    ] {
        assert!(!kinds("mysql", sql).contains(&"drop".to_owned()), "{sql}: {:?}", kinds("mysql", sql));
    }
}

#[test]
fn bug_an_alteration_of_a_name_was_no_renaming() {
    for dialect in ["postgresql", "mysql"] {
        assert_kind(
            dialect,
            "rename",
            &[
                "ALTER TABLE t RENAME TO u",
                "ALTER TABLE t RENAME COLUMN a TO b",
                "ALTER TABLE IF EXISTS ONLY t RENAME a TO b",
                "ALTER INDEX i RENAME TO j",
                "ALTER SCHEMA s RENAME TO r",
                "ALTER USER ann RENAME TO bob",
            ],
        );
    }
}

#[test]
fn bug_a_function_with_the_name_of_a_word_of_the_grammar_was_no_call() {
    assert_kind(
        "postgresql",
        "call",
        &[
            "SELECT xor(1)",
            "SELECT explain(1)",
            "SELECT cross(1)",
            "SELECT inner(1)",
            "SELECT is(1)",
            "SELECT join(1)",
            "SELECT 1 FROM a, join(1)",
            "SELECT cube(1), a FROM t GROUP BY 2",
            "SELECT 1 FROM t ORDER BY rollup(a)",
            "SELECT a FROM t JOIN u ON conflict(1)",
            "SELECT NOT materialized(1)",
            "SELECT varying(1)",
            "SELECT (1).pg_sleep",
            "SELECT $1.evil",
            "SELECT a[1].evil FROM t",
            "SELECT t.U&\"ev\\0069l\" FROM t",
        ],
    );
    for sql in [
        "SELECT 1 FROM a JOIN (SELECT 1) b ON true CROSS JOIN (VALUES (1)) c",
        "SELECT 1 FROM a LEFT JOIN (b CROSS JOIN c) ON true",
        "SELECT 1 FROM a GROUP BY ROLLUP (a)",
        "SELECT 1 FROM a GROUP BY CUBE (a, b)",
        "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING",
        "EXPLAIN (VERBOSE) SELECT 1",
        "WITH a AS NOT MATERIALIZED (SELECT 1) SELECT * FROM a",
        "SELECT a::character varying(10), CAST(b AS bit varying(3)) FROM t",
        "SELECT t.a, s.t.b FROM s.t",
    ] {
        assert!(!kinds("postgresql", sql).contains(&"call".to_owned()), "{sql}");
    }
    assert!(!kinds("mysql", "SELECT a XOR (b) FROM t JOIN (u) ON (1)").contains(&"call".to_owned()));
}

#[test]
fn bug_calls_were_looked_for_in_queries_only() {
    let both = [
        "CREATE TABLE x AS SELECT evil()",
        "CREATE TABLE x (a int) AS SELECT evil() AS a",
        "CREATE TABLE IF NOT EXISTS x AS SELECT 1 WHERE evil() > 0",
        "CREATE TABLE x (a int DEFAULT evil())",
        "CREATE TABLE x (a int CHECK (evil(a)))",
        "CREATE TABLE x (a int, CHECK (evil (a, 1)))",
        "CREATE TABLE x (a int, b int GENERATED ALWAYS AS (evil(a)) STORED)",
        "CREATE TABLE x (a numeric(10, 2), b int DEFAULT (evil()))",
        "CREATE VIEW v AS SELECT evil()",
        "CREATE OR REPLACE VIEW v (a) AS SELECT evil()",
        "CREATE INDEX i ON x ((evil(a)))",
        "ALTER TABLE x ALTER COLUMN a SET DEFAULT evil()",
        "ALTER TABLE x ADD CHECK (evil(a))",
        "ALTER TABLE x ADD COLUMN b int DEFAULT evil()",
        "EXPLAIN ANALYZE CREATE TABLE x AS SELECT evil()",
        "CREATE TABLE x AS WITH c (a) AS (SELECT 1) SELECT evil() FROM c",
        "CREATE TABLE x AS TABLE y LIMIT evil()",
        "DECLARE c CURSOR FOR SELECT evil()",
        "INSERT INTO t VALUES (evil())",
        "DELETE FROM t WHERE evil()",
        "GRANT SELECT ON t TO u; SELECT evil()",
    ];
    assert_kind("postgresql", "call", &both);
    assert_kind("mysql", "call", &both);
    assert_kind(
        "postgresql",
        "call",
        &[
            "CREATE MATERIALIZED VIEW v AS SELECT evil()",
            "CREATE UNLOGGED TABLE x AS SELECT evil()",
            "CREATE TEMP TABLE x ON COMMIT DROP AS SELECT evil()",
            "REFRESH MATERIALIZED VIEW v",
            "REFRESH MATERIALIZED VIEW CONCURRENTLY v",
            "ALTER TABLE x ALTER a TYPE text USING evil(a)",
            "ALTER TABLE x ALTER a TYPE text USING btree(a)",
            "ALTER TABLE x ALTER a SET DATA TYPE text USING (evil(a))",
            "CREATE DOMAIN d AS int CHECK (evil(VALUE))",
            "CREATE INDEX i ON x (evil(a))",
            "CREATE INDEX i ON x USING btree (a) WHERE evil(a)",
            "CREATE INDEX i ON x (a) INCLUDE (b) WHERE inherits(a)",
            "CREATE TABLE x (a int[] DEFAULT ARRAY[true, NOT evil(1)])",
            "CREATE TABLE x (a int DEFAULT nextval('s'))",
            "CREATE TABLE x PARTITION BY RANGE (evil(a))",
            "CREATE TABLE x AS SELECT DISTINCT ON (a) inherits(b) FROM y",
            "CREATE STATISTICS s ON (evil(a)), b FROM x",
            "CREATE TABLE x AS VALUES (evil())",
            "MERGE INTO t USING u ON evil() WHEN MATCHED THEN DELETE",
            "CALL p()",
            "EXPLAIN SELECT evil()",
        ],
    );
    assert_kind(
        "mysql",
        "call",
        &[
            "CREATE TABLE x SELECT evil()",
            "CREATE TABLE x (SELECT evil())",
            "CREATE TABLE x (SELECT 1 AS a, b evil(2))",
            "CREATE TABLE x (WITH c AS (SELECT 1) SELECT NOT evil(2) FROM c)",
            "CREATE TABLE x (a INT DEFAULT (SLEEP(5)))",
            "CREATE TABLE x (a INT DEFAULT NEXT VALUE FOR s)",
            "CREATE TABLE x (a INT, KEY k ((evil(10))))",
            "CREATE TABLE x (a INT, KEY k ((upper(a, evil(10)))))",
            "CREATE TABLE x (a INT, b INT AS (evil(10)), KEY k (a))",
            "CREATE INDEX i ON x ((evil(10)))",
            "DO evil()",
            "DO SLEEP(1), GET_LOCK('a', 1)",
            "SET @a = evil()",
            "HANDLER t READ FIRST WHERE evil()",
            "SHOW TABLES WHERE evil()",
        ],
    );
}

/// Each of these is read once, however much of it looks like the beginning of something.
#[test]
fn a_long_definition_is_read_at_once() {
    let repeated = |begin: &str, part: &str| format!("{begin}{}{}", part.repeat(50_000), ")".repeat(50_000));
    for (begin, part) in [
        ("CREATE TABLE t (a int, ", "KEY k (] "),
        ("CREATE TABLE t (a int, ", "KEY k (a(1)), "),
        ("CREATE TABLE t (a int, ", "b c(1), "),
        ("CREATE INDEX i ON t (", "a(1), "),
        ("CREATE SCHEMA s ", "CREATE TABLE t "),
        ("CREATE SCHEMA s ", "CREATE OR REPLACE "),
        ("", "(CREATE TABLE t "),
        ("", "(ALTER TABLE t "),
    ] {
        for dialect in ["postgresql", "mysql"] {
            assert!(!kinds(dialect, &repeated(begin, part)).is_empty(), "{begin}{part}");
        }
    }
}

#[test]
fn what_a_definition_only_names_is_not_called() {
    let both = [
        (
            "CREATE TABLE t (a int PRIMARY KEY, b varchar(10) NOT NULL DEFAULT 'x', c numeric(10, 2))",
            "create",
        ),
        (
            "CREATE TABLE IF NOT EXISTS s.t (a int, PRIMARY KEY (a), UNIQUE (a), FOREIGN KEY (a) REFERENCES u (b))",
            "create",
        ),
        (
            "CREATE TABLE t (a int CHECK (a > 0), b timestamp(3) DEFAULT now(), CONSTRAINT c CHECK (length(b) < 3))",
            "create",
        ),
        ("CREATE TABLE t (a geometry(Point, 4326), b double precision)", "create"),
        ("CREATE TABLE t (a int) PARTITION BY RANGE (a)", "create"),
        ("CREATE VIEW v (a, b) AS SELECT upper(a), count(*) FROM t GROUP BY a", "create select"),
        ("CREATE UNIQUE INDEX i ON t (a, lower(b))", "create"),
        ("CREATE TABLE t AS SELECT a FROM u", "create select"),
        ("ALTER TABLE t ADD COLUMN a varchar(10)", "alter"),
        ("ALTER TABLE t ADD CONSTRAINT c UNIQUE (a)", "alter"),
        ("DROP TABLE t", "drop"),
        ("GRANT SELECT (a), UPDATE (b) ON t TO u", "grant"),
        ("TRUNCATE t", "truncate"),
    ];
    let postgres = [
        ("CREATE TABLE t (a int, EXCLUDE (a WITH =)) INHERITS (p)", "create"),
        (
            "CREATE INDEX CONCURRENTLY i ON ONLY s.t USING gin (a) INCLUDE (b) WITH (fillfactor = 70)",
            "create",
        ),
        ("CREATE TABLE t (a int GENERATED BY DEFAULT AS IDENTITY (START 5))", "create"),
        ("CREATE TYPE mood AS ENUM ('a', 'b')", "create"),
        ("CREATE TYPE pair AS (a int, b numeric(3))", "create"),
        ("ALTER TYPE mood ADD VALUE 'c'", "alter"),
        ("ALTER TABLE t ALTER a TYPE numeric(3) USING (a::numeric(3))", "alter"),
        ("ALTER TABLE t ALTER a DROP NOT NULL, ALTER b DROP DEFAULT", "alter"),
        ("ALTER ROLE u WITH PASSWORD 'x'", "alter"),
        ("CREATE SCHEMA IF NOT EXISTS s AUTHORIZATION u", "create"),
        ("COMMENT ON FUNCTION f(int) IS 'x'", "comment"),
        ("GRANT EXECUTE ON FUNCTION f(int) TO u", "grant"),
        ("DROP FUNCTION f(int)", "drop"),
    ];
    let mysql = [
        (
            "CREATE TABLE t (id INT(11) AUTO_INCREMENT, k ENUM('a', 'b'), at DATETIME(3), KEY k (a(10)), FULLTEXT KEY f (b)) ENGINE=InnoDB",
            "create",
        ),
        ("CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (10))", "create"),
        ("CREATE INDEX i ON t (a(10), b)", "create"),
        ("ALTER TABLE t ADD INDEX i (a), ADD UNIQUE KEY u (b)", "alter"),
        ("ALTER TABLE t MODIFY a BIGINT (20)", "alter"),
    ];
    let mut wrong = Vec::new();
    let texts = |dialect: &'static str, list: &[(&'static str, &'static str)]| {
        list.iter().map(|(sql, kinds)| (dialect, *sql, *kinds)).collect::<Vec<_>>()
    };
    let all = [
        texts("postgresql", &both),
        texts("mysql", &both),
        texts("postgresql", &postgres),
        texts("mysql", &mysql),
    ];
    for (dialect, sql, expected) in all.concat() {
        let mut found = kinds(dialect, sql);
        found.sort_unstable();
        if found.join(" ") != expected {
            wrong.push(format!("{dialect}: {sql}: {found:?} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bug_an_alteration_that_loses_data_had_no_kind_of_a_loss() {
    for dialect in ["sqlite", "postgresql", "mysql"] {
        assert_kind(dialect, "drop", &["ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ADD b int, DROP a"]);
    }
    assert_kind(
        "postgresql",
        "drop",
        &["ALTER TABLE t DROP IF EXISTS a CASCADE", "ALTER TABLE t DROP identity"],
    );
    assert_kind("mysql", "drop", &["ALTER TABLE t DROP PARTITION p", "ALTER TABLE t DISCARD TABLESPACE"]);
    assert_kind("mysql", "truncate", &["ALTER TABLE t TRUNCATE PARTITION p"]);
}

const SCHEMA: [&str; 8] = [
    "CREATE TABLE precious (x INTEGER)",
    "INSERT INTO precious SELECT generate_series(1, 500)",
    "CREATE TABLE mark (x INTEGER)",
    "INSERT INTO mark VALUES (1)",
    "CREATE FUNCTION evil() RETURNS INTEGER LANGUAGE sql AS 'DELETE FROM precious WHERE x = (SELECT max(x) FROM precious); SELECT 1'",
    "CREATE FUNCTION evil(INTEGER) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT evil() = 1'",
    "CREATE FUNCTION sly() RETURNS INTEGER IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN evil(); END'",
    "CREATE MATERIALIZED VIEW stale AS SELECT 1 AS x WHERE false WITH NO DATA",
];

/// Statements that lose rows of `precious`, some of them with the statement after them.
const LOSSES: [&str; 26] = [
    "DO $$BEGIN DELETE FROM precious WHERE x = 1; END$$",
    "DO LANGUAGE plpgsql 'BEGIN DELETE FROM precious WHERE x = 2; END'",
    "CREATE TABLE l1 AS SELECT evil()",
    "CREATE UNLOGGED TABLE l2 (a) AS SELECT evil()",
    "CREATE TABLE l3 AS SELECT sly()",
    "CREATE TABLE l4 AS VALUES (evil())",
    "CREATE TEMP TABLE l5 AS SELECT evil() AS a",
    "CREATE TABLE l6 AS WITH c (a) AS (SELECT evil()) SELECT * FROM c",
    "EXPLAIN ANALYZE CREATE TABLE l7 AS SELECT evil()",
    "ALTER TABLE mark ALTER x TYPE BIGINT USING evil()",
    "ALTER TABLE mark ADD y INTEGER DEFAULT evil()",
    "ALTER TABLE mark ADD CHECK (evil(x::int))",
    "ALTER TABLE mark ADD CONSTRAINT c CHECK (public_evil(x))",
    "CREATE INDEX i ON mark (sly())",
    "CREATE INDEX i ON mark ((sly() + x))",
    "CREATE INDEX i ON mark (x) WHERE sly() = 1",
    "CREATE STATISTICS t ON (sly() + x), x FROM mark",
    "SELECT evil()",
    "INSERT INTO mark VALUES (evil())",
    "UPDATE mark SET x = evil()",
    "MERGE INTO mark USING (SELECT evil() AS a) s ON false WHEN NOT MATCHED THEN INSERT VALUES (a)",
    "ALTER TABLE precious DROP COLUMN x",
    "TRUNCATE precious",
    "DROP TABLE precious CASCADE",
    "EXPLAIN ANALYZE DELETE FROM precious",
    "WITH d AS (DELETE FROM precious RETURNING 1) SELECT 1",
];

#[tokio::test]
async fn bug_what_loses_rows_in_postgresql_had_no_kind_that_says_so() {
    on(Kind::Postgres, "losses", &|_| {}, &async |place: &Place| {
        for sql in SCHEMA {
            place.call(sql, json!(null)).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
        let (mut lost, mut wrong) = (0, Vec::new());
        for sql in LOSSES {
            let found = place.database.inspect(sql).await.unwrap();
            let mut transaction = place.database.begin(ReadWrite).await.unwrap();
            let ran = run(&mut *transaction, sql, json!(null)).await.is_ok();
            let left = run(&mut *transaction, "SELECT count(x) AS n FROM precious", json!(null)).await;
            transaction.rollback().await;
            let is_lost = ran && !left.is_ok_and(|left| left.rows[0]["n"] == 500);
            lost += usize::from(is_lost);
            let says = ["delete", "drop", "truncate", "call", "unknown"];
            if is_lost && !found.kinds.iter().any(|kind| says.contains(&kind.as_str())) {
                wrong.push(format!("{sql}: {:?}", found.kinds));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(lost > LOSSES.len() / 2, "only {lost} of the statements lose anything");
    })
    .await;
}
