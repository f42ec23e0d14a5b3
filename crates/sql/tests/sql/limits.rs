//! Caps, clocks and queues.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Kind, ReadOnly, ReadWrite, each_with, on, run, single};

const NUMBERS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)";

#[tokio::test]
async fn rows_and_bytes_are_capped_and_the_answer_says_so() {
    let tune = |options: &mut tgp_sql::SqlOptions| {
        options.max_rows = 700;
        options.max_bytes = 100_000;
    };
    each_with("caps", tune, async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        let answer =
            run(&mut *transaction, &format!("{NUMBERS} SELECT i FROM n"), json!(null)).await.unwrap();
        assert_eq!((answer.rows.len(), answer.truncated), (700, true));
        let exact =
            run(&mut *transaction, &format!("{NUMBERS} SELECT i FROM n WHERE i <= 700"), json!(null)).await;
        let exact = exact.unwrap();
        assert_eq!((exact.rows.len(), exact.truncated), (700, false));
        let long = place.pick("hex(zeroblob(500))", "repeat('00', 500)", "repeat('00', 500)");
        let answer = run(&mut *transaction, &format!("{NUMBERS} SELECT {long} AS v FROM n"), json!(null))
            .await
            .unwrap();
        assert!(answer.truncated && (90..100).contains(&answer.rows.len()), "{}", answer.rows.len());
        let huge = place.pick("hex(zeroblob(100000))", "repeat('00', 100000)", "repeat('00', 100000)");
        let answer = run(&mut *transaction, &format!("SELECT {huge} AS v"), json!(null)).await.unwrap();
        assert_eq!((answer.rows.len(), answer.truncated), (0, true));
        // A change is done as a whole, whatever the answer shows of it.
        let insert = format!("INSERT INTO users {NUMBERS} SELECT i, i FROM n");
        let insert = place
            .pick(&insert, &format!("{NUMBERS} INSERT INTO users SELECT i, i::text FROM n"), &insert)
            .to_owned();
        assert_eq!(run(&mut *transaction, &insert, json!(null)).await.unwrap().changed, 900);
        let answer = run(&mut *transaction, "DELETE FROM users RETURNING id", json!(null)).await.unwrap();
        assert_eq!((answer.changed, answer.rows.len(), answer.truncated), (900, 700, true));
        assert_eq!(
            single(&run(&mut *transaction, "SELECT count(*) AS n FROM users", json!(null)).await.unwrap()),
            0
        );
    })
    .await;
}

/// A thousand million rows are neither kept nor waited for.
#[tokio::test]
async fn a_large_query_stops_at_the_cap() {
    each_with(
        "large",
        |options| options.max_rows = 3,
        async |place| {
            let many = place.pick(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
                "SELECT generate_series(1, 1000000000) AS i",
                "SELECT seq AS i FROM seq_1_to_1000000000",
            );
            let mut transaction = place.database.begin(ReadOnly).await.unwrap();
            if place.kind != Kind::Postgres {
                let answer = run(&mut *transaction, many, json!(null)).await.unwrap();
                assert_eq!((answer.rows.len(), answer.truncated), (3, true));
            }
            let answer =
                run(&mut *transaction, &format!("{NUMBERS} SELECT i FROM n"), json!(null)).await.unwrap();
            assert_eq!((answer.rows.len(), answer.truncated), (3, true));
        },
    )
    .await;
}

#[tokio::test]
async fn a_slow_statement_is_stopped_and_the_connection_lives_on() {
    let tune = |options: &mut tgp_sql::SqlOptions| {
        options.statement_timeout = Duration::from_millis(800);
        options.pool = 1;
    };
    each_with("slow", tune, async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n";
        let slow = place.pick(endless, "SELECT pg_sleep(60)", "SELECT SLEEP(60)");
        let started = Instant::now();
        let error = run(&mut *transaction, slow, json!(null)).await.unwrap_err();
        assert_eq!(error.details["timeout_ms"], 800, "{error:?}");
        assert!(error.details.contains_key("sqlCode"), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(20));
        // It only read, so the transaction continues.
        place.insert(&mut *transaction, 2).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1, 2]);
    })
    .await;
}

/// The server's clock can be switched off from inside; ours cannot.
#[tokio::test]
async fn a_statement_without_the_servers_clock_is_stopped_from_outside() {
    let tune = |options: &mut tgp_sql::SqlOptions| options.statement_timeout = Duration::from_millis(800);
    on(Kind::Postgres, "outside", &tune, &async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        run(&mut *transaction, "SET LOCAL statement_timeout = 0", json!(null)).await.unwrap();
        let error = run(&mut *transaction, "SELECT pg_sleep(60)", json!(null)).await.unwrap_err();
        assert_eq!(error.details["timeout_ms"], 800, "{error:?}");
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1]);
    })
    .await;
}

#[tokio::test]
async fn a_sqlite_write_that_is_stopped_takes_its_transaction_with_it() {
    let tune = |options: &mut tgp_sql::SqlOptions| options.statement_timeout = Duration::from_millis(200);
    on(Kind::Sqlite, "stopped", &tune, &async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        let endless = "INSERT INTO users WITH RECURSIVE n(i) AS (SELECT 9 UNION ALL SELECT i + 1 FROM n) \
                       SELECT i, hex(randomblob(40)) FROM n";
        let error = run(&mut *transaction, endless, json!(null)).await.unwrap_err();
        assert_eq!(error.details["timeout_ms"], 200);
        assert_eq!(error.details["transaction"], "rolled back");
        assert!(transaction.commit().await.is_err());
        assert_eq!(place.ids().await, [] as [i64; 0]);
    })
    .await;
}

#[tokio::test]
async fn waiting_for_a_lock_is_bounded() {
    let tune = |options: &mut tgp_sql::SqlOptions| {
        options.statement_timeout = Duration::from_millis(800);
        options.wait = Duration::from_millis(800);
    };
    each_with("locks", tune, async |place| {
        place.table().await;
        place.call("INSERT INTO users (id, name) VALUES (1, 'one')", json!(null)).await.unwrap();
        let mut holder = place.begin().await;
        run(&mut *holder, "UPDATE users SET name = 'held'", json!(null)).await.unwrap();
        let error = if place.kind == Kind::Sqlite {
            // In this process the queue answers, in another one the busy handler.
            let error = place.database.begin(ReadWrite).await.map(drop).unwrap_err();
            assert_eq!(error.details["sqlCode"], "SQLITE_BUSY");
            let other = crate::support::open(&place.url, tune).await;
            other.begin(ReadWrite).await.map(drop).unwrap_err()
        } else {
            let mut waiter = place.begin().await;
            run(&mut *waiter, "UPDATE users SET name = 'mine'", json!(null)).await.unwrap_err()
        };
        assert!(
            ["SQLITE_BUSY", "57014", "HY000", "70100"].contains(&error.details["sqlCode"].as_str().unwrap()),
            "{error:?}"
        );
        holder.commit().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_exhausted_pool_waits_and_then_says_so() {
    let tune = |options: &mut tgp_sql::SqlOptions| {
        options.pool = 2;
        options.wait = Duration::from_millis(1500);
    };
    each_with("pool", tune, async |place| {
        place.table().await;
        let first = place.database.begin(ReadOnly).await.unwrap();
        let second = place.database.begin(ReadOnly).await.unwrap();
        let error = place.database.begin(ReadOnly).await.map(drop).unwrap_err();
        assert!(error.message.contains("all 2 database connections"), "{error}");
        assert_eq!(error.details["wait_ms"], 1500);
        // Who gives one back lets the next in, also while it waits.
        let (waiting, ()) = tokio::join!(place.database.begin(ReadOnly), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            first.rollback().await;
        });
        waiting.unwrap().rollback().await;
        drop(second);
        assert_eq!(place.ids().await, [] as [i64; 0]);
    })
    .await;
}
