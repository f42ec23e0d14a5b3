//! Our reading of a text against that of the real servers: what we call a read changes nothing there, and what changes
//! something has a kind that says so.

use serde_json::{Value, json};
use tgp_contract::{SqlAccess, SqlClass};

use crate::support::{Kind, Place, ReadOnly, ReadWrite, on, run};

/// Kinds of statements that only look, on any server.
const LOOKING: [&str; 8] = ["select", "values", "table", "show", "describe", "explain", "analyze", "comment"];

const POSTGRES_SCHEMA: [&str; 8] = [
    "CREATE TABLE precious (x INTEGER)",
    "INSERT INTO precious SELECT generate_series(1, 100)",
    "CREATE SEQUENCE s",
    "CREATE FUNCTION wipe() RETURNS INTEGER LANGUAGE sql AS 'DELETE FROM precious WHERE x = (SELECT max(x) FROM precious); SELECT 1'",
    "CREATE FUNCTION wiped(precious) RETURNS INTEGER LANGUAGE sql AS 'DELETE FROM precious WHERE x = 1; SELECT 1'",
    "CREATE VIEW wiping AS SELECT wipe() AS x",
    "CREATE FUNCTION public_upper(text) RETURNS text LANGUAGE sql AS 'SELECT $1'",
    "CREATE TABLE notes (x TEXT)",
];

/// Texts that hide `nextval`, `wipe` or a change from a reader who takes PostgreSQL for another database.
const POSTGRES: [&str; 76] = [
    "SELECT nextval('s')",
    "SELECT nextval ('s')",
    "SELECT pg_catalog.nextval('s')",
    "SELECT pg_catalog . nextval ( 's' )",
    "SELECT \"nextval\"('s')",
    "SELECT U&\"next\\0076al\"('s')",
    "SELECT/**/nextval/**/('s')",
    "SELECT nextval--\n('s')",
    "SELECT * FROM nextval('s')",
    "SELECT * FROM LATERAL nextval('s') AS n (x)",
    "SELECT * FROM nextval('s') AS x",
    "SELECT 1 AS a, nextval('s') AS b",
    "SELECT (SELECT nextval('s'))",
    "SELECT 1 WHERE nextval('s') > 0",
    "SELECT 1 ORDER BY nextval('s')",
    "SELECT CASE WHEN nextval('s') > 0 THEN 1 END",
    "SELECT coalesce(NULL, nextval('s'))",
    "SELECT DISTINCT ON (x) nextval('s') FROM precious",
    "WITH c AS (SELECT nextval('s')) SELECT * FROM c",
    "WITH c (a) AS (SELECT 1), nextval (b) AS (SELECT 2) SELECT nextval('s') FROM c",
    "VALUES (nextval('s'))",
    "VALUES (1), (nextval('s'))",
    "TABLE precious LIMIT nextval('s')",
    "EXPLAIN ANALYZE SELECT nextval('s')",
    "EXPLAIN (ANALYZE, VERBOSE) SELECT nextval('s')",
    "EXPLAIN (FORMAT JSON, ANALYZE TRUE) VALUES (nextval('s'))",
    "SELECT setval('s', 9)",
    "SELECT wipe()",
    "SELECT * FROM wipe()",
    "SELECT * FROM wiping",
    "SELECT precious.wiped FROM precious LIMIT 1",
    "SELECT (precious).wiped FROM precious LIMIT 1",
    "SELECT pg_notify('a', 'b'), nextval('s')",
    "SELECT query_to_xml('SELECT nextval(''s'')', true, true, '')",
    "SELECT xpath('/a', query_to_xml('SELECT nextval(''s'')', true, true, ''))",
    "WITH d AS (DELETE FROM precious WHERE x = 1 RETURNING *) SELECT * FROM d",
    "WITH d AS MATERIALIZED (UPDATE precious SET x = x + 1 RETURNING *) SELECT count(*) FROM d",
    "WITH d (a) AS (INSERT INTO precious VALUES (7) RETURNING x) TABLE d",
    "WITH c AS (SELECT 1) DELETE FROM precious WHERE x = 2",
    "WITH c AS (SELECT 1)/**/DELETE FROM precious WHERE x = 3",
    "EXPLAIN ANALYZE DELETE FROM precious WHERE x = 4",
    "EXPLAIN (ANALYZE) UPDATE precious SET x = x + 1",
    "EXPLAIN ANALYZE VERBOSE INSERT INTO precious VALUES (8)",
    "SELECT * INTO stolen FROM precious",
    "SELECT * INTO TEMP stolen2 FROM precious",
    "SELECT 1INTO stolen3",
    "CREATE TABLE stolen4 AS SELECT * FROM precious",
    "INSERT INTO notes SELECT 'a' ON CONFLICT DO NOTHING",
    // Comments: they nest, and a carriage return ends one.
    "SELECT 1 /* /* */ ' */ , nextval('s') -- '",
    "SELECT 1 /* -- */ , nextval('s')",
    "SELECT 1 -- \r , nextval('s')",
    "SELECT 1 -- /* \n , nextval('s') -- */",
    "SELECT 1 /*/*/ */*/ , nextval('s')",
    "SELECT 2*/**/3, nextval('s')",
    "SELECT 1 /*! , */ , nextval('s')",
    "SELECT 1 # 2, nextval('s')",
    "SELECT 1 --1 \n , nextval('s')",
    // Strings: backslashes, escapes, continuations, dollars.
    "SELECT '\\', nextval('s'), '\\'",
    "SELECT E'\\'', nextval('s'), '\\''",
    "SELECT E'a'\n'\\', ' || nextval('s') || '\\'",
    "SELECT E'a' -- x\n'\\', ' || nextval('s') --'",
    "SELECT e'\\\\', nextval('s'), '\\\\'",
    "SELECT U&'\\0027', nextval('s')",
    "SELECT 'a'\n'\\', nextval('s')",
    "SELECT 1$$ ' $$, nextval('s'), $$ ' $$",
    "SELECT 1E'\\', nextval(''s'') --'",
    "SELECT $a$ $b$ $$ ' $a$, nextval('s'), ' '",
    "SELECT $\u{e9}$ ' $\u{e9}$, nextval('s'), ' '",
    "SELECT $$'$$, nextval('s'), $$'$$",
    "SELECT B'1', X'1', N'\\', nextval('s'), '\\'",
    "SELECT \"a\" FROM (SELECT 1 AS \"a\", nextval('s') AS \"b\"\"\") q",
    "SELECT '\"', nextval('s'), '\"'",
    // Blanks of Unicode are names for PostgreSQL.
    "SELECT\u{a0}nextval('s')",
    "SELECT 1\u{3000}, nextval('s')",
    "\u{feff}SELECT nextval('s')",
    "SELECT 1 AS a\u{2028}, nextval('s')",
];

const MYSQL_SCHEMA: [&str; 4] = [
    "CREATE TABLE precious (x INTEGER)",
    "INSERT INTO precious VALUES (1), (2), (3), (4), (5)",
    "CREATE SEQUENCE s NOCACHE",
    "CREATE VIEW drawing AS SELECT NEXTVAL(s) AS x",
];

/// The same for MariaDB.
const MYSQL: [&str; 50] = [
    "SELECT NEXT VALUE FOR s",
    "SELECT next/**/value for s",
    "SELECT NEXTVAL(s)",
    "SELECT nextval (s)",
    "SELECT `nextval`(s)",
    "SELECT SETVAL(s, 90)",
    "SELECT * FROM drawing",
    "SELECT (SELECT NEXTVAL(s))",
    "SELECT IF(1, NEXTVAL(s), 2)",
    "SELECT 1 ORDER BY NEXTVAL(s)",
    "VALUES (NEXTVAL(s))",
    "WITH c AS (SELECT NEXTVAL(s)) SELECT * FROM c",
    "WITH c (a) AS (SELECT 1), d (b) AS (SELECT NEXTVAL(s)) SELECT * FROM d",
    "ANALYZE SELECT NEXTVAL(s)",
    "ANALYZE FORMAT=JSON SELECT NEXTVAL(s)",
    "ANALYZE FORMAT=JSON DELETE FROM precious WHERE x = 1",
    "DO NEXTVAL(s)",
    "SELECT GET_LOCK('tgp', 0)",
    "SELECT get_lock('tgp', 0), RELEASE_ALL_LOCKS()",
    "SELECT * FROM precious WHERE x = 1 FOR UPDATE",
    "SELECT * FROM precious WHERE x = 1 LOCK IN SHARE MODE",
    "SELECT 1 INTO @a",
    "SELECT @a := 1",
    "SELECT 1 /*! , NEXTVAL(s) */",
    "SELECT 1 /*!50000 , NEXTVAL(s) */",
    "SELECT 1 /*M! , NEXTVAL(s) */",
    "SELECT 1 /*M!100000 , NEXTVAL(s) */",
    "SELECT 1 /* */ , NEXTVAL(s)",
    "SELECT 1 /* /* */ , NEXTVAL(s) -- */",
    // Dashes are a comment only with a blank behind them, and the driver needs blanks in some places.
    "SELECT 1 --/**/ ' \n , NEXTVAL(s) -- '",
    "SELECT 1 --' \n , NEXTVAL(s) -- '",
    "SELECT 1--\" \n , NEXTVAL(s) -- \"",
    "SELECT 1 --` \n , NEXTVAL(s) -- `",
    "SELECT 1 ---' \n , NEXTVAL(s) -- '",
    "SELECT 1 --#' \n , NEXTVAL(s) -- '",
    "SELECT 1 --\u{a0}' \n , NEXTVAL(s) -- '",
    "SELECT 1 --1, NEXTVAL(s)",
    "SELECT 1 --\t' \n , NEXTVAL(s) -- '",
    "SELECT 1 --\u{1}' \n , NEXTVAL(s) -- '",
    "SELECT 1 -- \r , 2 \n , NEXTVAL(s)",
    "SELECT 1 # ' \n , NEXTVAL(s) -- '",
    // Strings.
    "SELECT '\\'', NEXTVAL(s), '\\''",
    "SELECT \"\\\"\", NEXTVAL(s), \"\\\"\"",
    "SELECT '\\\\', NEXTVAL(s), '\\\\'",
    "SELECT 'a''', NEXTVAL(s), ''",
    "SELECT `x` FROM (SELECT 1 AS `x`, NEXTVAL(s) AS `\\`) q",
    "SELECT $$, NEXTVAL(s), $$",
    "SELECT 1\u{a0}, NEXTVAL(s)",
    "\u{feff}SELECT NEXTVAL(s)",
    "SELECT 1\u{b}, NEXTVAL(s)",
];

/// Useful queries, which have to be recognised.
const READS: [&str; 14] = [
    "SELECT * FROM precious",
    "(SELECT x FROM precious) UNION (SELECT 1) ORDER BY 1",
    "SELECT count(*), upper('a'), coalesce(max(x), 0) FROM precious WHERE x IN (1, 2) GROUP BY x",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3), b (m) AS (SELECT n FROM a) SELECT * FROM b",
    "SELECT row_number() OVER (ORDER BY x) AS n FROM precious",
    "SELECT CAST('1.5' AS DECIMAL(4, 2)) AS d",
    "SELECT x FROM precious WHERE EXISTS (SELECT 1) AND NOT (x = 2) -- DELETE FROM precious",
    "SELECT 'DELETE FROM precious; it''s', 1 /* DROP TABLE precious */",
    "EXPLAIN SELECT * FROM precious",
    "SELECT x FROM precious AS p (x) LIMIT 1",
    "SELECT current_timestamp, now()",
    "SELECT a.x FROM precious a JOIN (SELECT 1 AS x) b ON (a.x = b.x)",
    "SELECT é.x AS größe FROM precious AS é",
];

/// Everything a text could have changed.
async fn state(place: &Place) -> Vec<Value> {
    let questions: &[&str] = match place.kind {
        Kind::Postgres => &[
            "SELECT sum(x)::text AS a, count(*) AS b FROM precious",
            "SELECT count(*) AS a FROM notes",
            "SELECT last_value AS a, is_called AS b FROM s",
            "SELECT count(*) AS a FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace",
        ],
        Kind::MySql => &[
            "SELECT sum(x) AS a, count(*) AS b FROM precious",
            "SELECT next_not_cached_value AS a FROM s",
            "SELECT count(*) AS a FROM information_schema.tables WHERE table_schema = database()",
            "SELECT is_used_lock('tgp') AS a",
        ],
        Kind::Sqlite => &[],
    };
    let mut found = Vec::new();
    for sql in questions {
        found.push(json!(place.call(sql, json!(null)).await.unwrap().rows));
    }
    found
}

/// Runs a text as a separate transaction.
async fn tried(place: &Place, sql: &str, access: SqlAccess) -> bool {
    let mut transaction = place.database.begin(access).await.unwrap();
    let answer = run(&mut *transaction, sql, json!(null)).await;
    answer.is_ok() && transaction.commit().await.is_ok()
}

async fn compare(place: &Place, schema: &[&str], texts: &[&str]) {
    for sql in schema {
        place.call(sql, json!(null)).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let mut changing = 0;
    for sql in texts {
        let SqlClass { kinds, reads } = place.database.inspect(sql).await.unwrap();
        let before = state(place).await;
        if reads {
            tried(place, sql, ReadOnly).await;
            assert_eq!(state(place).await, before, "{sql} was called a read: {kinds:?}");
        }
        let ran = tried(place, sql, ReadWrite).await;
        let changed = state(place).await != before;
        changing += usize::from(changed);
        let looks = kinds.iter().all(|kind| LOOKING.contains(&kind.as_str()));
        // What a view does is not in the text; there the read-only transaction holds.
        let hidden = ["wiping", "drawing"].iter().any(|name| sql.contains(name));
        assert!(!(ran && changed && looks) || hidden, "{sql} changes something, and its kinds are {kinds:?}");
    }
    assert!(changing > texts.len() / 3, "only {changing} of {} texts work at all", texts.len());
    for sql in READS {
        let found = place.database.inspect(sql).await.unwrap();
        assert!(found.reads, "{sql}: {found:?}");
        let is_other = place.kind == Kind::MySql && sql.contains("AS p (x)");
        assert!(tried(place, sql, ReadOnly).await || is_other, "{sql}");
    }
}

#[tokio::test]
async fn what_is_called_a_read_changes_nothing_in_postgresql() {
    on(Kind::Postgres, "readings", &|_| {}, &async |place| compare(place, &POSTGRES_SCHEMA, &POSTGRES).await)
        .await;
}

#[tokio::test]
async fn what_is_called_a_read_changes_nothing_in_mysql() {
    on(Kind::MySql, "readings", &|_| {}, &async |place| compare(place, &MYSQL_SCHEMA, &MYSQL).await).await;
}

#[tokio::test]
async fn bug_a_function_that_is_written_like_a_column_was_a_free_read() {
    const SCHEMA: [&str; 9] = [
        "CREATE TYPE place AS (city TEXT)",
        "CREATE TABLE mark (id INTEGER, name TEXT, home place)",
        "CREATE FUNCTION evil_row(mark) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION \"Evil_Row\"(mark, a INTEGER DEFAULT 1) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION evil_any(anyelement) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION evil_rows(VARIADIC mark[]) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION evil_record(record) RETURNS INTEGER LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
        "CREATE FUNCTION evil_int(INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION city(mark, INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
    ];
    let calls = [
        "SELECT m.evil_row FROM mark m",
        "SELECT m . /* x */ EVIL_ROW FROM mark m",
        "SELECT \"m\".\"evil_row\" FROM mark m",
        "SELECT m.U&\"evil\\005frow\" FROM mark m",
        "SELECT m.\"Evil_Row\" FROM mark m",
        "SELECT m.evil_any FROM mark m",
        "SELECT m.evil_rows FROM mark m",
        "SELECT m.evil_record FROM mark m",
        "SELECT p.evil_any FROM pg_class p",
        "SELECT (m.id).evil_int FROM mark m",
        "SELECT (ARRAY[m])[1].evil_row FROM mark m",
        "SELECT 1 FROM mark m GROUP BY m.evil_row",
        "SELECT 1 FROM mark m ORDER BY m.evil_row",
        "VALUES ((ROW(1)).evil_any)",
        "EXPLAIN (ANALYZE) SELECT m.evil_row FROM mark m",
        "INSERT INTO mark (id) SELECT m.evil_row FROM mark m",
        "CREATE TABLE copy AS SELECT m.evil_row FROM mark m",
        "CREATE MATERIALIZED VIEW copy AS SELECT m.evil_row FROM mark m",
        "ALTER TABLE mark ALTER name TYPE TEXT USING mark.evil_row",
        "ALTER TABLE mark ADD CHECK (mark.evil_row > 0)",
        "SELECT (1000::float8).pg_sleep",
        "SELECT (1).pg_terminate_backend",
        "SELECT ('/etc/passwd'::text).pg_read_file",
        "SELECT (5::bigint).pg_advisory_xact_lock",
    ];
    let reads = [
        "SELECT m.id, m.name, m.\"home\" FROM mark m",
        "SELECT (m.home).city, (home).city FROM mark m",
        "SELECT m.evil_int FROM mark m",
        "SELECT c.relname FROM pg_catalog.pg_class c",
        "SELECT count(*) FROM information_schema.tables",
    ];
    on(Kind::Postgres, "attributes", &|_| {}, &async |place| {
        for sql in SCHEMA {
            place.call(sql, json!(null)).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
        for access in [ReadOnly, ReadWrite] {
            let mut transaction = place.database.begin(access).await.unwrap();
            for sql in calls {
                let alone = place.database.inspect(sql).await.unwrap();
                let inside = transaction.inspect(sql).await.unwrap();
                for found in [alone, inside] {
                    assert!(!found.reads && found.kinds.contains(&"call".to_owned()), "{sql}: {found:?}");
                }
            }
            for sql in reads {
                let found = place.database.inspect(sql).await.unwrap();
                assert!(found.reads && !found.kinds.contains(&"call".to_owned()), "{sql}: {found:?}");
                assert_eq!(transaction.inspect(sql).await.unwrap().reads, access == ReadOnly, "{sql}");
            }
            transaction.rollback().await;
        }
    })
    .await;
}

/// A server that cannot be asked leaves the doubt, and only where there is one.
#[tokio::test]
async fn a_server_that_is_away_vouches_for_no_name() {
    let database = crate::support::open("postgres://nobody@127.0.0.1:1/none", |_| {}).await;
    assert!(database.inspect("SELECT 1").await.unwrap().reads);
    let found = database.inspect("SELECT t.a FROM t").await.unwrap();
    assert!(!found.reads && found.kinds.contains(&"call".to_owned()), "{found:?}");
}

/// Functions of PostgreSQL that the server itself does not vouch for, and that compute all the same.
const VOLATILE: [&str; 7] = [
    "clock_timestamp",
    "gen_random_uuid",
    "pg_database_size",
    "pg_relation_size",
    "pg_table_size",
    "pg_total_relation_size",
    "random",
];

#[tokio::test]
async fn no_volatile_function_of_postgresql_is_called_a_read() {
    on(Kind::Postgres, "volatile", &|_| {}, &async |place| {
        let sql = "SELECT DISTINCT proname AS name FROM pg_catalog.pg_proc WHERE provolatile = 'v'";
        let names = place.call(sql, json!(null)).await.unwrap().rows;
        assert!(names.len() > 200, "{}", names.len());
        for row in names {
            let name = row["name"].as_str().unwrap();
            let found = place.database.inspect(&format!("SELECT {name}(1)")).await.unwrap();
            assert!(!found.reads || VOLATILE.contains(&name), "{name}: {found:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn functions_with_effects_are_not_reads() {
    let postgres = [
        "pg_terminate_backend(1)",
        "pg_cancel_backend(1)",
        "dblink('host=x', 'SELECT 1')",
        "dblink_exec('x', 'y')",
        "pg_read_file('PG_VERSION')",
        "pg_read_binary_file('x')",
        "pg_ls_dir('.')",
        "pg_stat_file('x')",
        "lo_export(1, '/tmp/x')",
        "lo_import('/etc/passwd')",
        "lo_unlink(1)",
        "set_config('a.b', 'c', false)",
        "pg_advisory_lock(1)",
        "pg_sleep(1)",
        "pg_reload_conf()",
        "pg_logical_emit_message(true, 'a', 'b')",
        "setseed(0)",
        "txid_current()",
        "query_to_xml('x', true, true, '')",
        "cursor_to_xml('x', 1, true, true, '')",
        "public.count(1)",
        "my_schema.upper('x')",
        "OPERATOR(public.+) 1",
    ];
    let mysql = [
        "LOAD_FILE('/etc/passwd')",
        "SLEEP(1)",
        "BENCHMARK(1, 1)",
        "GET_LOCK('a', 1)",
        "RELEASE_LOCK('a')",
        "LAST_INSERT_ID(5)",
        "MASTER_POS_WAIT('a', 1)",
        "UUID_SHORT()",
        "sys_exec('id')",
        "db.upper('a')",
        "count (1)",
        "`upper`('a')",
        "upper/**/('a')",
        "string_agg(x)",
        "1 PROCEDURE ANALYSE()",
        "1 INTO OUTFILE '/tmp/x'",
        "1 INTO DUMPFILE '/tmp/x'",
        "1 INTO @a",
        "@a := 1",
        "NEXT VALUE FOR s",
    ];
    for (kind, calls) in [(Kind::Postgres, &postgres[..]), (Kind::MySql, &mysql[..])] {
        on(kind, "effects", &|_| {}, &async |place| {
            for call in calls {
                let found = place.database.inspect(&format!("SELECT {call}")).await.unwrap();
                let named = |kind: &String| ["call", "create", "set", "unknown"].contains(&kind.as_str());
                assert!(!found.reads && found.kinds.iter().any(named), "{call}: {found:?}");
            }
        })
        .await;
    }
}

/// A statement before can change how the server reads a text; ours would then be another reading.
#[tokio::test]
async fn the_servers_way_to_read_strings_cannot_be_changed() {
    on(Kind::Postgres, "strings", &|_| {}, &async |place| {
        let mut transaction = place.begin().await;
        for change in [
            "SET LOCAL standard_conforming_strings = off",
            "SELECT set_config('standard_conforming_strings', 'off', true)",
            "DO $$ BEGIN PERFORM set_config('standard_conforming_strings', 'off', false); END $$",
        ] {
            run(&mut *transaction, change, json!(null)).await.unwrap();
            let answer = run(&mut *transaction, "SELECT '\\' AS a, '\\' AS b", json!(null)).await.unwrap();
            assert_eq!(answer.rows[0]["a"], "\\", "{change}");
        }
        transaction.rollback().await;
    })
    .await;
}
