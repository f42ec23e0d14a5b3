//! Statements that would leave the transaction, the database or the one-statement rule.

use serde_json::json;
use tgp_contract::Code;

use crate::support::{Kind, Place, each, on, run};

/// Everybody's: texts that every database must refuse.
const EVERYWHERE: [&str; 30] = [
    "BEGIN",
    "begin",
    "BeGiN;",
    "BEGIN IMMEDIATE",
    "/* x */ BEGIN",
    "-- x\nBEGIN",
    "-- BEGIN\nCOMMIT",
    "COMMIT",
    "commit work",
    "\n\t COMMIT \n;",
    "/**/COMMIT/**/;/**/",
    "/* /* */ COMMIT",
    "END",
    "END TRANSACTION",
    "ROLLBACK",
    "ROLLBACK TO x",
    "ROLLBACK TO SAVEPOINT tgp_mark_1",
    "SAVEPOINT x",
    "RELEASE x",
    "RELEASE SAVEPOINT tgp_statement",
    "START TRANSACTION",
    "PREPARE TRANSACTION 'x'",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "VACUUM INTO '/tmp/tgp-stolen.db'",
    "SELECT 1; SELECT 2",
    "SELECT 1; COMMIT",
    "COMMIT; SELECT 1",
    "SELECT ';'; DROP TABLE users",
    "",
    " -- nothing\n",
];

const SQLITE: [&str; 15] = [
    "ATTACH '/tmp/tgp-stolen.db' AS x",
    "DETACH main",
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA main.locking_mode = EXCLUSIVE",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA query_only = OFF",
    "PRAGMA trusted_schema = ON",
    "PRAGMA wal_checkpoint",
    "SELECT load_extension('x')",
    "SELECT * FROM pragma_database_list",
    "CREATE VIRTUAL TABLE v USING dbstat",
    "EXPLAIN COMMIT",
    "VACUUM",
];

const POSTGRES: [&str; 20] = [
    "ABORT",
    "COPY users TO '/tmp/tgp-stolen'",
    "COPY users TO PROGRAM 'cat'",
    "COPY users FROM STDIN",
    "copy (select 1) to stdout",
    "SET statement_timeout = 0",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET LOCAL transaction_isolation = 'serializable'; COMMIT",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "DEALLOCATE ALL",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
    "DISCARD ALL",
    "LISTEN x",
    "LOAD 'x'",
    "RESET ALL",
    "CHECKPOINT",
    "-- a\rCOMMIT -- b\n",
    "/* a /* b */ c */ COMMIT",
    "E'x' ; COMMIT",
];

const MYSQL: [&str; 27] = [
    "SET autocommit = 1",
    "SET @a = 1, autocommit = 1",
    "SET @@autocommit = 1",
    "SET SESSION sql_mode = ''",
    "SET NAMES latin1",
    "SET STATEMENT max_statement_time = 0 FOR COMMIT",
    "XA START 'x'",
    "LOCK TABLES users WRITE",
    "UNLOCK TABLES",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE users",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE users",
    "SELECT 1 INTO OUTFILE '/tmp/tgp-stolen'",
    "SELECT 1 into /* x */ dumpfile '/tmp/tgp-stolen'",
    "SELECT LOAD_FILE('/etc/passwd')",
    "SELECT load_file ('/etc/passwd')",
    "SELECT `load_file`('/etc/passwd')",
    "/*!40000 COMMIT */",
    "/*! COMMIT */",
    "/*M! COMMIT */",
    "SELECT 1 /*! ; COMMIT */",
    "# x\nCOMMIT",
    "PREPARE x FROM 'COMMIT'",
    "EXECUTE IMMEDIATE 'COMMIT'",
    "USE mysql",
    "FLUSH TABLES",
    "KILL 1",
    "SHUTDOWN",
];

#[tokio::test]
async fn what_would_end_or_leave_the_transaction_is_refused() {
    each("refused", async |place| {
        place.table().await;
        let own = match place.kind {
            Kind::Sqlite => &SQLITE[..],
            Kind::Postgres => &POSTGRES[..],
            Kind::MySql => &MYSQL[..],
        };
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        for sql in EVERYWHERE.iter().chain(own) {
            let error = run(&mut *transaction, sql, json!(null)).await.expect_err(sql);
            assert_eq!(error.code, Code::Sql, "{sql}");
            assert!(
                !error.message.is_empty() && !error.details.contains_key("transaction"),
                "{sql}: {error:?}"
            );
        }
        // It is still the same transaction, and still not committed.
        place.insert(&mut *transaction, 2).await.unwrap();
        drop(transaction);
        assert_eq!(place.ids().await, [] as [i64; 0]);
        assert!(!std::path::Path::new("/tmp/tgp-stolen.db").exists());
    })
    .await;
}

#[tokio::test]
async fn harmless_statements_of_the_same_look_are_taken() {
    async fn check(place: &Place, statements: &[&str]) {
        let mut transaction = place.begin().await;
        for sql in statements {
            run(&mut *transaction, sql, json!(null)).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
    }
    each("taken", async |place| {
        place.table().await;
        check(place, &["SELECT 'COMMIT; BEGIN' AS v;", "SELECT 1 -- ; COMMIT", "/* BEGIN; */ SELECT 1 ; ; "])
            .await;
    })
    .await;
    on(Kind::Sqlite, "taken", &|_| {}, &async |place| {
        place.table().await;
        let trigger =
            "CREATE TRIGGER t AFTER INSERT ON users BEGIN DELETE FROM users WHERE id = 0; SELECT 1; END;";
        check(place, &[trigger, "PRAGMA table_info(users)", "SELECT * FROM pragma_table_info('users')"])
            .await;
        check(
            place,
            &["PRAGMA user_version = 3", "CREATE VIRTUAL TABLE f USING fts5(body)", "EXPLAIN SELECT 1"],
        )
        .await;
        check(
            place,
            &["CREATE TEMP TABLE x (a)", "CREATE INDEX i ON users(name)", "ALTER TABLE users ADD more TEXT"],
        )
        .await;
    })
    .await;
    on(Kind::Postgres, "taken", &|_| {}, &async |place| {
        place.table().await;
        check(
            place,
            &["SET LOCAL work_mem = '8MB'", "SHOW work_mem", "EXPLAIN SELECT 1", "LOCK TABLE users"],
        )
        .await;
        check(
            place,
            &["DO $$ BEGIN PERFORM 1; END; $$", "SELECT $a$;COMMIT$a$", "(SELECT 1) UNION (SELECT 2)"],
        )
        .await;
    })
    .await;
    on(Kind::MySql, "taken", &|_| {}, &async |place| {
        place.table().await;
        check(place, &["SET @a = 1, @b = (SELECT 2)", "SHOW TABLES", "DESCRIBE users", "DO 1", "SELECT @a"])
            .await;
    })
    .await;
}

/// What one transaction sets in its connection is not there for the next.
#[tokio::test]
async fn connections_come_back_clean() {
    crate::support::each_with("clean", |options| options.pool = 1, async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        let dirty = match place.kind {
            Kind::Sqlite => vec!["CREATE TEMP TABLE left_over (a)"],
            Kind::Postgres => vec![
                "CREATE TEMP TABLE left_over (a int)",
                "SELECT set_config('work_mem', '9MB', false)",
                "SELECT pg_advisory_lock(7)",
            ],
            Kind::MySql => vec!["CREATE TEMPORARY TABLE left_over (a int)", "SET @left = 1"],
        };
        for sql in dirty {
            run(&mut *transaction, sql, json!(null)).await.unwrap();
        }
        transaction.commit().await.unwrap();
        let mut transaction = place.begin().await;
        run(&mut *transaction, "SELECT * FROM left_over", json!(null)).await.unwrap_err();
        let (sql, expected) = match place.kind {
            Kind::Sqlite => ("SELECT count(*) AS v FROM sqlite_temp_schema", json!(0)),
            Kind::Postgres => (
                "SELECT current_setting('work_mem') <> '9MB' AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = \
                 'advisory' AND pid = pg_backend_pid()) AS v",
                json!(true),
            ),
            Kind::MySql => ("SELECT @left IS NULL AS v", json!(1)),
        };
        assert_eq!(run(&mut *transaction, sql, json!(null)).await.unwrap().rows[0]["v"], expected);
    })
    .await;
}
