//! Reading in batches, and transactions that read before they write.

use serde_json::{Value, json};
use tgp_contract::{Code, SqlAccess, SqlParams, SqlStatement, SqlTransaction};

use crate::support::{Kind, Place, each, each_with, on, run};

fn statement(sql: &str) -> SqlStatement {
    SqlStatement { sql: sql.to_owned(), params: SqlParams::None, judged: None }
}

/// A table with the ids from 1 to `count`.
async fn fill(place: &Place, count: i64) {
    place.table().await;
    let mut transaction = place.begin().await;
    for id in 1..=count {
        place.insert(&mut *transaction, id).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

/// The ids that a cursor gives in batches of `size`, and how many batches there were.
async fn drain(transaction: &mut dyn SqlTransaction, cursor: u64, size: usize) -> (Vec<i64>, usize) {
    let (mut ids, mut batches) = (Vec::new(), 0);
    loop {
        let batch = transaction.fetch(cursor, size).await.unwrap();
        assert!(batch.rows.len() <= size);
        ids.extend(batch.rows.iter().map(|row| row["id"].as_i64().unwrap()));
        batches += 1;
        if !batch.truncated {
            return (ids, batches);
        }
    }
}

#[tokio::test]
async fn a_cursor_gives_every_row_once_whatever_the_caps_of_an_answer_are() {
    each_with(
        "cursor",
        |options| options.max_rows = 7,
        async |place| {
            fill(place, 40).await;
            let all: Vec<i64> = (1..=40).collect();
            let mut transaction = place.begin().await;
            for (size, expected) in [(7, 6), (100, 6), (5, 8), (1, 40)] {
                let cursor = transaction
                    .open_cursor(&statement("SELECT id, name FROM users ORDER BY id"))
                    .await
                    .unwrap();
                let (ids, batches) = drain(&mut *transaction, cursor, size).await;
                assert_eq!((&ids, batches), (&all, expected), "{:?} {size}", place.kind);
                let ended = transaction.fetch(cursor, size).await.unwrap_err();
                assert_eq!(ended.code, Code::Sql, "{:?}", place.kind);
            }
            // The caps of a statement hold again, and the transaction is as good as before.
            let capped = run(&mut *transaction, "SELECT id FROM users", json!(null)).await.unwrap();
            assert_eq!((capped.rows.len(), capped.truncated), (7, true), "{:?}", place.kind);
            place.insert(&mut *transaction, 41).await.unwrap();
            transaction.commit().await.unwrap();
            assert_eq!(
                place.call("SELECT id FROM users WHERE id = 41", json!(null)).await.unwrap().rows.len(),
                1
            );
        },
    )
    .await;
}

#[tokio::test]
async fn a_cursor_has_parameters_and_exact_values() {
    each("cursor_values", async |place| {
        let kind = place.pick("JSON", "JSONB", "JSON");
        let table = format!("CREATE TABLE kept (id BIGINT, extra {kind})");
        place.call(&table, json!(null)).await.unwrap();
        let insert = "INSERT INTO kept VALUES (?, ?)";
        place.call(insert, json!([{ "$bigint": "9007199254740993" }, { "a": [1] }])).await.unwrap();
        let mut transaction = place.begin().await;
        let query = SqlStatement {
            sql: "SELECT id, extra FROM kept WHERE id > :least".to_owned(),
            params: SqlParams::from_value(json!({ "least": 5 })).unwrap(),
            judged: None,
        };
        let cursor = transaction.open_cursor(&query).await.unwrap();
        let batch = transaction.fetch(cursor, 10).await.unwrap();
        assert_eq!(
            Value::from(batch.rows[0].clone()),
            json!({ "id": "9007199254740993", "extra": { "a": [1] } }),
            "{:?}",
            place.kind
        );
        transaction.rollback().await;
    })
    .await;
}

#[tokio::test]
async fn a_closed_cursor_leaves_the_transaction_usable() {
    each("cursor_closed", async |place| {
        fill(place, 2_000).await;
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 5_000).await.unwrap();
        for _ in 0..3 {
            let cursor =
                transaction.open_cursor(&statement("SELECT id FROM users ORDER BY id")).await.unwrap();
            assert_eq!(transaction.fetch(cursor, 2).await.unwrap().rows.len(), 2, "{:?}", place.kind);
            transaction.close_cursor(cursor).await.unwrap();
            transaction.close_cursor(cursor).await.unwrap();
            assert_eq!(transaction.fetch(cursor, 2).await.unwrap_err().code, Code::Sql);
        }
        place.insert(&mut *transaction, 5_001).await.unwrap();
        // One that is still open at the end does not keep the rows from being committed.
        let left = transaction.open_cursor(&statement("SELECT id FROM users")).await.unwrap();
        transaction.fetch(left, 2).await.unwrap();
        transaction.commit().await.unwrap();
        let ids = place.ids().await;
        assert_eq!(ids[2_000..], [5_000, 5_001], "{:?}", place.kind);
        // Nor from being undone; and the connection serves the next transaction.
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 5_002).await.unwrap();
        let left = transaction.open_cursor(&statement("SELECT id FROM users")).await.unwrap();
        transaction.fetch(left, 2).await.unwrap();
        transaction.rollback().await;
        assert_eq!(place.ids().await.len(), 2_002, "{:?}", place.kind);
    })
    .await;
}

#[tokio::test]
async fn other_statements_run_beside_a_cursor_where_the_database_can() {
    each("cursor_beside", async |place| {
        fill(place, 6).await;
        let mut transaction = place.begin().await;
        let query = statement("SELECT id FROM users WHERE id < 100 ORDER BY id");
        let cursor = transaction.open_cursor(&query).await.unwrap();
        transaction.fetch(cursor, 2).await.unwrap();
        let beside = place.insert(&mut *transaction, 101).await;
        let second = transaction.open_cursor(&query).await;
        if place.kind == Kind::MySql {
            for refused in [beside.unwrap_err(), second.unwrap_err()] {
                assert_eq!(refused.code, Code::Sql);
                assert!(refused.message.contains("while a tgp.query is being read"), "{}", refused.message);
            }
        } else {
            beside.unwrap();
            let second = second.unwrap();
            // A failure and a return to a mark beside it do not end it.
            place.insert(&mut *transaction, 101).await.unwrap_err();
            transaction.mark().await.unwrap();
            place.insert(&mut *transaction, 102).await.unwrap();
            transaction.undo().await.unwrap();
            assert_eq!(drain(&mut *transaction, second, 4).await.0, [1, 2, 3, 4, 5, 6], "{:?}", place.kind);
            let mut open = vec![];
            for _ in 0..3 {
                open.push(transaction.open_cursor(&query).await.unwrap());
            }
            let refused = transaction.open_cursor(&query).await.unwrap_err();
            assert!(refused.message.contains("4 queries"), "{:?}: {}", place.kind, refused.message);
        }
        assert_eq!(drain(&mut *transaction, cursor, 2).await.0, [3, 4, 5, 6], "{:?}", place.kind);
        place.insert(&mut *transaction, 103).await.unwrap();
        transaction.commit().await.unwrap();
        let expected: &[i64] = if place.kind == Kind::MySql { &[103] } else { &[101, 103] };
        assert_eq!(place.ids().await[6..], *expected, "{:?}", place.kind);
    })
    .await;
}

#[tokio::test]
async fn a_cursor_is_for_statements_that_read_and_its_errors_are_the_statements() {
    each("cursor_refused", async |place| {
        fill(place, 3).await;
        let mut transaction = place.begin().await;
        for sql in ["SELECT absent FROM users", "SELECT 1; SELECT 2", "SELECT id FROM users WHERE id = ?"] {
            let refused = transaction.open_cursor(&statement(sql)).await.unwrap_err();
            assert_eq!(refused.code, Code::Sql, "{:?} {sql}", place.kind);
        }
        let refused = async {
            let cursor = transaction.open_cursor(&statement("DELETE FROM users")).await?;
            transaction.fetch(cursor, 1).await
        };
        let refused = refused.await.unwrap_err();
        assert!(refused.message.contains("only reads"), "{:?}: {}", place.kind, refused.message);
        // A row that cannot be computed ends the cursor, not the transaction.
        if place.kind == Kind::Postgres {
            let sql = "SELECT id, 1 / (2 - id) AS x FROM users ORDER BY id";
            let cursor = transaction.open_cursor(&statement(sql)).await.unwrap();
            let failed = transaction.fetch(cursor, 10).await.unwrap_err();
            assert!(failed.message.contains("zero"), "{}", failed.message);
        }
        place.insert(&mut *transaction, 4).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1, 2, 3, 4], "{:?}", place.kind);
    })
    .await;
}

/// Opens a cursor and reads it to its end, which must be refused because it would not only read.
async fn refused_query(transaction: &mut dyn SqlTransaction, sql: &str) {
    let read = async {
        let cursor = transaction.open_cursor(&statement(sql)).await?;
        while transaction.fetch(cursor, 500).await?.truncated {}
        Ok::<_, tgp_contract::ToolError>(())
    };
    let refused = read.await.expect_err(sql);
    assert_eq!(refused.code, Code::Sql, "{sql}");
    assert!(refused.message.contains("tgp.query only reads"), "{sql}: {}", refused.message);
    assert!(refused.help_of().is_some_and(|help| help.contains("tgp.exec_sql")), "{sql}");
}

#[tokio::test]
async fn bug_a_query_of_postgresql_wrote_by_its_functions() {
    on(Kind::Postgres, "cursor_reads", &|_| {}, &async |place: &Place| {
        fill(place, 5).await;
        for sql in [
            "CREATE SEQUENCE s",
            "CREATE FUNCTION evil() RETURNS INTEGER LANGUAGE sql AS 'DELETE FROM users WHERE id = 1; SELECT 1'",
            "CREATE FUNCTION loud() RETURNS INTEGER LANGUAGE plpgsql AS 'BEGIN PERFORM set_config(''transaction_read_only'', ''off'', true); RETURN evil(); END'",
            "CREATE FUNCTION sly() RETURNS INTEGER IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN evil(); END'",
            "CREATE VIEW wiping AS SELECT evil() AS id",
        ] {
            place.call(sql, json!(null)).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 6).await.unwrap();
        let beside = transaction.open_cursor(&statement("SELECT id FROM users ORDER BY id")).await.unwrap();
        assert_eq!(transaction.fetch(beside, 2).await.unwrap().rows.len(), 2);
        for sql in [
            "SELECT evil()",
            "SELECT * FROM wiping",
            "SELECT n, CASE WHEN n = 1700 THEN evil() END FROM generate_series(1, 2000) AS n",
            "SELECT sly()",
            "SELECT id FROM users WHERE sly() = 1",
            "SELECT nextval('s')",
            "SELECT id FROM users FOR UPDATE",
            "WITH d AS (DELETE FROM users RETURNING id) SELECT id FROM d",
            "INSERT INTO users VALUES (9, 'x') RETURNING id",
        ] {
            refused_query(&mut *transaction, sql).await;
            // What the transaction does by other statements is as free as before.
            run(&mut *transaction, "UPDATE users SET name = name WHERE id = 2", json!(null)).await.unwrap();
        }
        // Nor can a function take the server's promise back.
        let cursor = transaction.open_cursor(&statement("SELECT loud()")).await.unwrap();
        let refused = transaction.fetch(cursor, 1).await.unwrap_err();
        assert!(refused.message.contains("read-write mode"), "{}", refused.message);
        place.insert(&mut *transaction, 7).await.unwrap();
        assert_eq!(drain(&mut *transaction, beside, 3).await.0, [3, 4, 5, 6]);
        // Directly after a batch: a mark, and the end.
        let open = transaction.open_cursor(&statement("SELECT id FROM users")).await.unwrap();
        transaction.fetch(open, 1).await.unwrap();
        transaction.mark().await.unwrap();
        place.insert(&mut *transaction, 8).await.unwrap();
        transaction.fetch(open, 1).await.unwrap();
        transaction.keep().await.unwrap();
        place.insert(&mut *transaction, 9).await.unwrap();
        transaction.fetch(open, 1).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    })
    .await;
}

#[tokio::test]
async fn bug_a_query_of_postgresql_did_what_a_read_only_transaction_permits() {
    on(Kind::Postgres, "cursor_effects", &|_| {}, &async |place: &Place| {
        let mut transaction = place.begin().await;
        for sql in [
            "SELECT lo_create(0)",
            "SELECT pg_catalog.lo_from_bytea(0, 'x')",
            "SELECT \"pg_advisory_lock\"(1)",
            "SELECT 1 FROM pg_notify('a', 'b')",
            "SELECT PG_RELOAD_CONF()",
            "SELECT set_config('a.b', 'c', true)",
            "SELECT pg_sleep(0)",
            "SELECT (0::float8).pg_sleep",
            "SELECT (1::bigint).pg_advisory_xact_lock",
            "SELECT U&\"pg\\005fsleep\"(0)",
        ] {
            refused_query(&mut *transaction, sql).await;
        }
        let own = "CREATE FUNCTION twice(INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 2 * $1'";
        run(&mut *transaction, own, json!(null)).await.unwrap();
        for sql in ["SELECT twice(1) AS id", "SELECT pg_table_is_visible(1) AS id", "SELECT random() AS id"] {
            let cursor = transaction.open_cursor(&statement(sql)).await.unwrap();
            assert_eq!(transaction.fetch(cursor, 5).await.unwrap().rows.len(), 1, "{sql}");
        }
        transaction.rollback().await;
    })
    .await;
}

#[tokio::test]
async fn bug_a_query_of_mysql_could_call_what_does_more_than_compute() {
    on(Kind::MySql, "cursor_calls", &|_| {}, &async |place: &Place| {
        fill(place, 3).await;
        place.call("CREATE SEQUENCE s NOCACHE", json!(null)).await.unwrap();
        let mut transaction = place.begin().await;
        for sql in [
            "SELECT NEXTVAL(s)",
            "SELECT NEXT VALUE FOR s",
            "SELECT GET_LOCK('tgp', 0)",
            "SELECT stored_function()",
            "SELECT `upper`('a')",
            "SELECT @a := 1",
            "SELECT id FROM users FOR UPDATE",
            "SELECT id FROM users LOCK IN SHARE MODE",
            "ANALYZE SELECT 1",
            "DELETE FROM users RETURNING id",
        ] {
            refused_query(&mut *transaction, sql).await;
        }
        let query = "SELECT upper(name) AS name, count(*) AS n FROM users WHERE id IN (1, 2) GROUP BY name";
        let cursor = transaction.open_cursor(&statement(query)).await.unwrap();
        assert_eq!(transaction.fetch(cursor, 10).await.unwrap().rows.len(), 2);
        transaction.commit().await.unwrap();
        let next = place.call("SELECT next_not_cached_value AS n FROM s", json!(null)).await.unwrap();
        assert_eq!(next.rows[0]["n"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_row_that_fits_in_no_batch_is_an_error() {
    each_with(
        "cursor_large",
        |options| options.max_bytes = 1_000,
        async |place| {
            place.call("CREATE TABLE texts (id INTEGER, content TEXT)", json!(null)).await.unwrap();
            for id in 1..=9 {
                let content = "x".repeat(if id == 9 { 2_000 } else { 300 });
                place.call("INSERT INTO texts VALUES (?, ?)", json!([id, content])).await.unwrap();
            }
            let mut transaction = place.begin().await;
            let small = statement("SELECT id, content FROM texts WHERE id < 9 ORDER BY id");
            let cursor = transaction.open_cursor(&small).await.unwrap();
            // Three rows fill a batch, whatever was asked for.
            assert_eq!(
                drain(&mut *transaction, cursor, 100).await,
                ((1..=8).collect(), 3),
                "{:?}",
                place.kind
            );
            let large = statement("SELECT id, content FROM texts WHERE id = 9");
            let cursor = transaction.open_cursor(&large).await.unwrap();
            let refused = transaction.fetch(cursor, 1).await.unwrap_err();
            assert!(
                refused.message.contains("larger than the bytes"),
                "{:?}: {}",
                place.kind,
                refused.message
            );
            assert_eq!(run(&mut *transaction, "SELECT 1 AS one", json!(null)).await.unwrap().rows.len(), 1);
            transaction.rollback().await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_transaction_that_has_only_read_keeps_no_writer_waiting() {
    each("reads_first", async |place| {
        fill(place, 1).await;
        let mut reader = place.database.begin(SqlAccess::ReadFirst).await.unwrap();
        reader.mark().await.unwrap();
        run(&mut *reader, "SELECT id FROM users", json!(null)).await.unwrap();
        // It would wait for 30 s, and fail.
        let mut writer = place.begin().await;
        place.insert(&mut *writer, 2).await.unwrap();
        writer.commit().await.unwrap();
        reader.commit().await.unwrap();
        // Without another writer in between it writes too.
        let mut reader = place.database.begin(SqlAccess::ReadFirst).await.unwrap();
        run(&mut *reader, "SELECT id FROM users", json!(null)).await.unwrap();
        place.insert(&mut *reader, 3).await.unwrap();
        reader.commit().await.unwrap();
        assert_eq!(place.ids().await, [1, 2, 3], "{:?}", place.kind);
    })
    .await;
}

#[tokio::test]
async fn what_was_read_before_another_writer_committed_is_not_written_on() {
    on(Kind::Sqlite, "snapshot", &|_| {}, &async |place: &Place| {
        fill(place, 1).await;
        let mut reader = place.database.begin(SqlAccess::ReadFirst).await.unwrap();
        run(&mut *reader, "SELECT id FROM users", json!(null)).await.unwrap();
        let mut writer = place.begin().await;
        place.insert(&mut *writer, 2).await.unwrap();
        writer.commit().await.unwrap();
        let refused = place.insert(&mut *reader, 3).await.unwrap_err();
        assert_eq!(refused.code, Code::Sql);
        assert_eq!(refused.details["sqlCode"], "SQLITE_BUSY_SNAPSHOT");
        assert_eq!(refused.details["retry"], true);
        // It still reads what it has read before, and the next writer does not wait for it.
        let seen = run(&mut *reader, "SELECT id FROM users", json!(null)).await.unwrap();
        assert_eq!(seen.rows.len(), 1);
        reader.rollback().await;
        let mut writer = place.begin().await;
        place.insert(&mut *writer, 3).await.unwrap();
        writer.commit().await.unwrap();
        assert_eq!(place.ids().await, [1, 2, 3]);
    })
    .await;
}

/// Readers that become writers hold a connection each; a writer that waits for its turn must not need one of theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_become_writers_do_not_block_each_other_for_good() {
    let tune = |options: &mut tgp_sql::SqlOptions| options.pool = 2;
    on(Kind::Sqlite, "upgrade", &tune, &async |place: &Place| {
        fill(place, 1).await;
        let mut holder = place.begin().await;
        let upgrade = async |id: i64| {
            let mut reader = place.database.begin(SqlAccess::ReadFirst).await.unwrap();
            run(&mut *reader, "SELECT id FROM users", json!(null)).await.unwrap();
            place.insert(&mut *reader, id).await.unwrap();
            reader.commit().await.unwrap();
        };
        let end = async {
            // All connections wait for the turn of the holder, which has one of its own.
            place.insert(&mut *holder, 9).await.unwrap();
            holder.rollback().await;
        };
        tokio::join!(upgrade(2), end);
        upgrade(3).await;
        place.call("INSERT INTO users VALUES (4, 'four')", json!(null)).await.unwrap();
        assert_eq!(place.ids().await, [1, 2, 3, 4]);
    })
    .await;
}

#[tokio::test]
async fn sqlite_has_its_mathematical_functions() {
    on(Kind::Sqlite, "math", &|_| {}, &async |place: &Place| {
        let sql = "SELECT sqrt(16) AS a, pow(2, 10) AS b, ln(1) AS c, log(1000) AS d, log(2, 8) AS e, sqrt(-1) AS f, \
                   floor(2.5) AS g, ceil(3) AS h, mod(7, 3) AS i, sqrt('x') AS j, round(10 * pi(), 2) AS k, sqrt(NULL) AS l";
        let rows = place.call(sql, json!(null)).await.unwrap().rows;
        let expected = json!({
            "a": 4.0, "b": 1024.0, "c": 0.0, "d": 3.0, "e": 3.0, "f": null, "g": 2.0, "h": 3, "i": 1.0, "j": null,
            "k": 31.42, "l": null
        });
        assert_eq!(Value::from(rows[0].clone()), expected);
        // Also in a view, which only takes functions that are harmless.
        place.call("CREATE VIEW roots AS SELECT sqrt(9) AS root", json!(null)).await.unwrap();
        let root = place.call("SELECT root FROM roots", json!(null)).await.unwrap();
        assert_eq!(root.rows[0]["root"], 3.0);
    })
    .await;
}
