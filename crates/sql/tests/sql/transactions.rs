//! What stays and what goes: commit, rollback, drop, marks, and statements that fail.

use serde_json::json;
use tgp_contract::Code;

use crate::support::{Kind, ReadOnly, each, each_with, on, run, single};

/// Section 3 of the integration plan.
#[tokio::test]
async fn a_query_gives_real_rows_and_a_failed_run_leaves_none() {
    each("plan", async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        assert_eq!(place.insert(&mut *transaction, 1).await.unwrap().changed, 1);
        assert_eq!(
            run(&mut *transaction, "SELECT * FROM users", json!(null)).await.unwrap().rows[0],
            *json!({"id": 1, "name": "user 1"}).as_object().unwrap()
        );
        // The tool throws: its handle is dropped.
        drop(transaction);
        assert_eq!(place.ids().await, [] as [i64; 0]);
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 2).await.unwrap();
        transaction.rollback().await;
        assert_eq!(place.ids().await, [] as [i64; 0]);
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 3).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [3]);
    })
    .await;
}

#[tokio::test]
async fn marks_nest_and_only_what_came_after_one_is_undone() {
    each("marks", async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        assert_eq!(transaction.undo().await.unwrap_err().code, Code::Sql);
        place.insert(&mut *transaction, 1).await.unwrap();
        transaction.mark().await.unwrap();
        place.insert(&mut *transaction, 2).await.unwrap();
        transaction.mark().await.unwrap();
        place.insert(&mut *transaction, 3).await.unwrap();
        transaction.undo().await.unwrap();
        transaction.mark().await.unwrap();
        place.insert(&mut *transaction, 4).await.unwrap();
        // A failure between marks belongs to the statement only.
        place.insert(&mut *transaction, 4).await.unwrap_err();
        transaction.keep().await.unwrap();
        place.insert(&mut *transaction, 5).await.unwrap();
        transaction.keep().await.unwrap();
        transaction.mark().await.unwrap();
        transaction.mark().await.unwrap();
        place.insert(&mut *transaction, 6).await.unwrap();
        transaction.keep().await.unwrap();
        transaction.undo().await.unwrap();
        assert_eq!(transaction.keep().await.unwrap_err().code, Code::Sql);
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1, 2, 4, 5]);
    })
    .await;
}

#[tokio::test]
async fn marks_are_bounded() {
    each("bound", async |place| {
        let mut transaction = place.begin().await;
        let mut made = 0;
        while transaction.mark().await.is_ok() {
            made += 1;
            assert!(made <= 64);
        }
        assert_eq!(made, 64);
        transaction.rollback().await;
    })
    .await;
}

#[tokio::test]
async fn a_failed_statement_changes_nothing_and_the_transaction_goes_on() {
    each("failed", async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        let failing = [
            "INSERT INTO users (id, name) VALUES (2, 'two'), (1, 'again')",
            "INSERT INTO users (id, name) VALUES (3, NULL)",
            "SELECT wrong FROM users",
            "SELECT FROM FROM users",
            "INSERT INTO nowhere VALUES (1)",
            place.pick(
                "INSERT OR FAIL INTO users (id, name) VALUES (2, 'two'), (1, 'again')",
                "SELECT 1 / 0",
                "INSERT INTO users (id, name) VALUES (99999999999, 'x')",
            ),
        ];
        for sql in failing {
            let error = run(&mut *transaction, sql, json!(null)).await.unwrap_err();
            assert_eq!(error.code, Code::Sql, "{sql}");
            assert!(error.details.contains_key("sqlCode"), "{sql}: {error:?}");
        }
        place.insert(&mut *transaction, 4).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1, 4]);
    })
    .await;
}

/// SQLite has ways to end the whole transaction from inside a statement.
#[tokio::test]
async fn a_transaction_that_the_database_ended_says_so_to_the_end() {
    on(Kind::Sqlite, "ended", &|_| {}, &async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        let sql = "INSERT OR ROLLBACK INTO users (id, name) VALUES (1, 'again')";
        let error = run(&mut *transaction, sql, json!(null)).await.unwrap_err();
        assert_eq!(error.details["sqlCode"], "SQLITE_CONSTRAINT_PRIMARYKEY");
        assert_eq!(error.details["transaction"], "rolled back");
        assert!(place.insert(&mut *transaction, 2).await.unwrap_err().message.contains("rolled back"));
        assert!(transaction.mark().await.unwrap_err().message.contains("rolled back"));
        assert!(transaction.commit().await.unwrap_err().message.contains("rolled back"));
        assert_eq!(place.ids().await, [] as [i64; 0]);
    })
    .await;
}

/// InnoDB rolls the whole transaction of one of the two back; PostgreSQL only its statement.
#[tokio::test]
async fn a_deadlock_leaves_either_a_whole_transaction_or_none() {
    for kind in [Kind::Postgres, Kind::MySql] {
        on(kind, "deadlock", &|_| {}, &async |place| {
            place.table().await;
            let mut first = place.begin().await;
            place.insert(&mut *first, 1).await.unwrap();
            place.insert(&mut *first, 2).await.unwrap();
            first.commit().await.unwrap();
            let update = "UPDATE users SET name = :name WHERE id = :id";
            let (mut first, mut second) = (place.begin().await, place.begin().await);
            run(&mut *first, update, json!({"id": 1, "name": "first 1"})).await.unwrap();
            run(&mut *second, update, json!({"id": 2, "name": "second 2"})).await.unwrap();
            let finish = async |mut mine: Box<dyn tgp_contract::SqlTransaction>, id: i64, name: &str| {
                match run(&mut *mine, update, json!({"id": id, "name": name})).await {
                    Ok(_) => mine.commit().await.map(|()| None),
                    Err(error) if place.kind == Kind::MySql => {
                        assert_eq!(error.details["transaction"], "rolled back");
                        let late = place.insert(&mut *mine, 9).await.unwrap_err();
                        assert!(late.message.contains("rolled back"), "{late}");
                        assert!(mine.commit().await.is_err());
                        Ok(Some(error))
                    }
                    // The transaction is still there, and so are its locks, which the other one waits for.
                    Err(error) => {
                        run(&mut *mine, "SELECT 1", json!(null)).await.unwrap();
                        mine.rollback().await;
                        Ok(Some(error))
                    }
                }
            };
            let (one, two) = tokio::join!(finish(first, 2, "first 2"), finish(second, 1, "second 1"));
            let error = match (one.unwrap(), two.unwrap()) {
                (None, Some(error)) | (Some(error), None) => error,
                other => panic!("one of the two must lose: {other:?}"),
            };
            assert_eq!(error.details["sqlCode"], place.pick("", "40P01", "40001"));
            assert_eq!(place.ids().await, [1, 2]);
            let names = place
                .call("SELECT DISTINCT substr(name, 1, 5) AS who FROM users", json!(null))
                .await
                .unwrap();
            assert_eq!(names.rows.len(), 1, "the winner's two changes, or none: {names:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_deferred_constraint_fails_the_commit_and_nothing_stays() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        on(kind, "deferred", &|_| {}, &async |place| {
            place.table().await;
            let sql =
                "CREATE TABLE notes (user_id INTEGER REFERENCES users(id) DEFERRABLE INITIALLY DEFERRED)";
            place.call(sql, json!(null)).await.unwrap();
            let mut transaction = place.begin().await;
            place.insert(&mut *transaction, 1).await.unwrap();
            run(&mut *transaction, "INSERT INTO notes VALUES (7)", json!(null)).await.unwrap();
            let error = transaction.commit().await.unwrap_err();
            assert_eq!(error.details["sqlCode"], place.pick("SQLITE_CONSTRAINT_FOREIGNKEY", "23503", ""));
            assert_eq!(place.ids().await, [] as [i64; 0]);
        })
        .await;
    }
}

#[tokio::test]
async fn a_read_only_transaction_changes_nothing() {
    each("reads", async |place| {
        place.table().await;
        let mut transaction = place.database.begin(ReadOnly).await.unwrap();
        let writing = [
            "INSERT INTO users (id, name) VALUES (1, 'one')",
            "UPDATE users SET name = 'x'",
            "DELETE FROM users",
            "CREATE TABLE more (id INTEGER)",
            "DROP TABLE users",
            place.pick(
                "PRAGMA user_version = 7",
                "SET LOCAL transaction_read_only = off",
                "SET @a = (SELECT count(*) FROM users), autocommit = 1",
            ),
        ];
        for sql in writing {
            let error = run(&mut *transaction, sql, json!(null)).await.unwrap_err();
            assert_eq!(error.code, Code::Sql, "{sql}");
        }
        assert_eq!(
            single(&run(&mut *transaction, "SELECT count(*) AS n FROM users", json!(null)).await.unwrap()),
            0
        );
        transaction.commit().await.unwrap();
        // The connection that comes back from the pool may write again.
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1]);
    })
    .await;
}

#[tokio::test]
async fn a_read_only_database_refuses_writers_too() {
    each_with(
        "locked",
        |options| options.read_only = true,
        async |place| {
            if place.kind == Kind::Sqlite {
                // A reader does not create it.
                assert!(place.database.begin(ReadOnly).await.is_err());
                crate::support::open(&place.url, |_| {})
                    .await
                    .begin(crate::support::ReadWrite)
                    .await
                    .unwrap();
            }
            let mut transaction = place.begin().await;
            let error =
                run(&mut *transaction, "CREATE TABLE more (id INTEGER)", json!(null)).await.unwrap_err();
            assert!(error.message.contains("read-only"), "{error}");
            assert_eq!(single(&run(&mut *transaction, "SELECT 1 AS one", json!(null)).await.unwrap()), 1);
        },
    )
    .await;
}

/// MySQL commits at a definition. It is allowed where nothing is sealed by that, and refused elsewhere.
#[tokio::test]
async fn mysql_definitions_never_seal_a_transaction() {
    on(Kind::MySql, "ddl", &|_| {}, &async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        let error = run(&mut *transaction, "CREATE TABLE more (id INT)", json!(null)).await.unwrap_err();
        assert!(error.help_of().unwrap().contains("MySQL commits at DDL"));
        run(&mut *transaction, "CREATE TEMPORARY TABLE some (id INT)", json!(null)).await.unwrap();
        drop(transaction);
        assert_eq!(place.ids().await, [] as [i64; 0]);
        let mut transaction = place.begin().await;
        transaction.mark().await.unwrap();
        run(&mut *transaction, "CREATE TABLE more (id INT)", json!(null)).await.unwrap_err();
        transaction.keep().await.unwrap();
        run(&mut *transaction, "CREATE TABLE more (id INT)", json!(null)).await.unwrap();
        // One that fails has changed nothing either.
        run(&mut *transaction, "CREATE TABLE more (id INT)", json!(null)).await.unwrap_err();
        place.insert(&mut *transaction, 2).await.unwrap();
        transaction.rollback().await;
        // The definition stays, the row does not.
        assert_eq!(place.ids().await, [] as [i64; 0]);
        place.call("INSERT INTO more VALUES (1)", json!(null)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_procedure_that_commits_is_found_out() {
    on(Kind::MySql, "call", &|_| {}, &async |place| {
        place.table().await;
        let sql = "CREATE PROCEDURE sneaky() BEGIN COMMIT; START TRANSACTION; END";
        place.call(sql, json!(null)).await.unwrap();
        place.call("CREATE PROCEDURE honest() BEGIN INSERT INTO users VALUES (5, 'five'); SELECT 7 AS seven; END", json!(null)).await.unwrap();
        let mut transaction = place.begin().await;
        let answer = run(&mut *transaction, "CALL honest()", json!(null)).await.unwrap();
        assert_eq!(single(&answer), 7);
        let error = run(&mut *transaction, "CALL sneaky()", json!(null)).await.unwrap_err();
        assert!(error.details["reason"].as_str().unwrap().contains("ended the transaction"), "{error:?}");
        assert!(transaction.commit().await.is_err());
    })
    .await;
    on(Kind::Postgres, "call", &|_| {}, &async |place| {
        place.table().await;
        let sql = "CREATE PROCEDURE sneaky() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$";
        place.call(sql, json!(null)).await.unwrap();
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        for sql in ["CALL sneaky()", "DO $$ BEGIN COMMIT; END $$"] {
            assert_eq!(
                run(&mut *transaction, sql, json!(null)).await.unwrap_err().details["sqlCode"],
                "2D000"
            );
        }
        drop(transaction);
        assert_eq!(place.ids().await, [] as [i64; 0]);
    })
    .await;
}
