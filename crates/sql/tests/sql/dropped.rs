//! Futures and handles that are dropped at the worst moment leave a clean pool.

use std::time::Duration;

use serde_json::json;

use crate::support::{ReadOnly, each_with, run};

#[tokio::test]
async fn a_dropped_statement_rolls_back_and_frees_its_connection() {
    let tune = |options: &mut tgp_sql::SqlOptions| {
        options.pool = 1;
        options.statement_timeout = Duration::from_secs(60);
        options.wait = Duration::from_secs(20);
    };
    each_with("dropped", tune, async |place| {
        place.table().await;
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n";
        let slow = place.pick(endless, "SELECT pg_sleep(60)", "SELECT SLEEP(60)");
        for keep_handle in [false, true] {
            let mut transaction = place.begin().await;
            place.insert(&mut *transaction, 1).await.unwrap();
            let statement = run(&mut *transaction, slow, json!(null));
            tokio::time::timeout(Duration::from_millis(150), statement).await.expect_err("it is endless");
            if keep_handle {
                // The caller may continue with the handle, but not with the transaction.
                let error = place.insert(&mut *transaction, 2).await.unwrap_err();
                assert!(error.message.contains("rolled back"), "{error}");
                assert!(transaction.commit().await.is_err());
            } else {
                drop(transaction);
            }
            // With a pool of one this waits for the very connection, long before the statement would have ended.
            assert_eq!(place.ids().await, [] as [i64; 0]);
            let answer =
                place.call("INSERT INTO users (id, name) VALUES (7, 'seven')", json!(null)).await.unwrap();
            assert_eq!(answer.changed, 1);
            place.call("DELETE FROM users", json!(null)).await.unwrap();
        }
    })
    .await;
}

/// Handles are dropped at every stage, many at once; nothing they did is left, and the pool still works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_dropped_transactions_leaves_nothing() {
    each_with(
        "storm",
        |options| options.pool = 4,
        async |place| {
            place.table().await;
            let storm = (0..40_i64).map(|number| async move {
                let work = async {
                    let mut transaction = place.begin().await;
                    place.insert(&mut *transaction, number).await.unwrap();
                    transaction.mark().await.unwrap();
                    place.insert(&mut *transaction, number + 1000).await.unwrap();
                    transaction.keep().await.unwrap();
                    run(&mut *transaction, "SELECT count(*) AS n FROM users", json!(null)).await.unwrap();
                };
                let patience = Duration::from_micros(u64::try_from(number).unwrap() * 400);
                let _ = tokio::time::timeout(patience, work).await;
            });
            futures_util::future::join_all(storm).await;
            assert_eq!(place.ids().await, [] as [i64; 0]);
            let mut transaction = place.begin().await;
            place.insert(&mut *transaction, 1).await.unwrap();
            transaction.commit().await.unwrap();
            assert_eq!(place.ids().await, [1]);
            // No slot was lost on the way.
            let all = (0..4).map(|_| place.database.begin(ReadOnly));
            for transaction in futures_util::future::join_all(all).await {
                let mut transaction = transaction.unwrap();
                run(&mut *transaction, "SELECT 1", json!(null)).await.unwrap();
            }
        },
    )
    .await;
}
