//! What failures say, and what they never say.

use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};
use tgp_sql::DatabaseUrl;

use crate::support::{Kind, MYSQL, POSTGRES, ReadWrite, each, on, open, run};

fn position(error: &ToolError) -> (u64, u64) {
    let position = &error.details["position"];
    (position["line"].as_u64().unwrap(), position["column"].as_u64().unwrap())
}

#[tokio::test]
async fn errors_carry_the_databases_code_and_the_place() {
    each("codes", async |place| {
        place.table().await;
        place.call("INSERT INTO users (id, name) VALUES (1, 'one')", json!(null)).await.unwrap();
        let mut transaction = place.begin().await;
        let cases = [
            (
                "INSERT INTO users (id, name) VALUES (1, 'x')",
                ["SQLITE_CONSTRAINT_PRIMARYKEY", "23505", "23000"],
            ),
            (
                "INSERT INTO users (id, name) VALUES (2, 'one')",
                ["SQLITE_CONSTRAINT_UNIQUE", "23505", "23000"],
            ),
            (
                "INSERT INTO users (id, name) VALUES (2, NULL)",
                ["SQLITE_CONSTRAINT_NOTNULL", "23502", "23000"],
            ),
            ("SELECT * FROM nowhere", ["SQLITE_ERROR", "42P01", "42S02"]),
            ("SELECT absent FROM users", ["SQLITE_ERROR", "42703", "42S22"]),
            ("SELECT 1 FORM users x y", ["SQLITE_ERROR", "42601", "42000"]),
        ];
        for (sql, [sqlite, postgres, mysql]) in cases {
            let error = run(&mut *transaction, sql, json!(null)).await.unwrap_err();
            assert_eq!(error.code, Code::Sql);
            assert_eq!(error.details["sqlCode"], place.pick(sqlite, postgres, mysql), "{sql}");
        }
        if place.kind == Kind::Postgres {
            let error = place.insert(&mut *transaction, 1).await.unwrap_err();
            assert_eq!(
                (&error.details["constraint"], &error.details["table"]),
                (&json!("users_pkey"), &json!("users"))
            );
        }
        if place.kind == Kind::MySql {
            assert_eq!(place.insert(&mut *transaction, 1).await.unwrap_err().details["errno"], 1062);
        }
        // The place is in the caller's text, whatever happened to its parameters and comments.
        let sql = "SELECT :a, /* ü :b */\n  :c,\n  ü 'x' wrong wrong FROM users";
        let error = run(&mut *transaction, sql, json!({"a": "1", "c": "2"})).await.unwrap_err();
        assert_eq!(position(&error).0, 3, "{error:?}");
        if place.kind != Kind::Sqlite {
            assert_eq!(position(&error), (3, place.pick("", "15", "9").parse().unwrap()), "{error:?}");
        }
        let error =
            run(&mut *transaction, "SELECT :aaaaaaaa,\n absent FROM users", json!({"aaaaaaaa": "1"})).await;
        let error = error.unwrap_err();
        if place.kind != Kind::MySql {
            assert_eq!(position(&error), (2, 2), "{error:?}");
        }
        assert!(error.help_of().is_some(), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn credentials_are_in_no_text() {
    const SECRET: &str = "hunter2-secret";
    let mut texts = Vec::new();
    for (variable, scheme) in [(POSTGRES, "postgres"), (MYSQL, "mysql")] {
        // A closed port, with no server needed.
        let closed = format!("{scheme}://someone:{SECRET}@127.0.0.1:1/db");
        let url = DatabaseUrl::parse(&closed).unwrap();
        texts.push(format!("{url} {url:?}"));
        let error = open(&closed, |_| {}).await.begin(ReadWrite).await.map(drop).unwrap_err();
        assert_eq!(error.code, Code::Sql);
        assert!(error.help_of().is_some());
        texts.push(serde_json::to_string(&error).unwrap() + &format!("{error:?}"));
        if let Ok(server) = std::env::var(variable) {
            let (_, place) = server.split_once('@').unwrap();
            let error =
                open(&format!("{scheme}://tgp:{SECRET}@{place}"), |_| {}).await.begin(ReadWrite).await;
            let error = error.map(drop).unwrap_err();
            assert!(["28P01", "28000"].contains(&error.details["sqlCode"].as_str().unwrap()), "{error:?}");
            assert!(error.help_of().unwrap().contains("password"));
            texts.push(serde_json::to_string(&error).unwrap());
        }
    }
    let wrong = [
        "postgres://a:hunter2-secret@h:99999999/x",
        "mysql://a:hunter2-secret@:::/x",
        "oracle://a:hunter2-secret@h",
    ];
    for url in wrong {
        texts.push(format!("{:?}", DatabaseUrl::parse(url).unwrap_err()));
    }
    for text in texts {
        assert!(!text.contains(SECRET) && !text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_goes_away_ends_the_transaction_and_not_the_pool() {
    for kind in [Kind::Postgres, Kind::MySql] {
        on(kind, "away", &|options| options.pool = 2, &async |place| {
            place.table().await;
            let mut victim = place.begin().await;
            place.insert(&mut *victim, 1).await.unwrap();
            let who = place.pick("", "SELECT pg_backend_pid() AS id", "SELECT CONNECTION_ID() AS id");
            let id = run(&mut *victim, who, json!(null)).await.unwrap().rows[0]["id"].clone();
            let kill = match place.kind {
                Kind::Postgres => ("SELECT pg_terminate_backend($1)".to_owned(), json!([id])),
                _ => (format!("CREATE PROCEDURE stop() KILL {id}"), Value::Null),
            };
            place.call(&kill.0, kill.1).await.unwrap();
            if place.kind == Kind::MySql {
                place.call("CALL stop()", Value::Null).await.unwrap();
            }
            let error = place.insert(&mut *victim, 2).await.unwrap_err();
            assert_eq!(error.details["transaction"], "rolled back", "{error:?}");
            assert!(victim.commit().await.is_err());
            assert_eq!(place.ids().await, [] as [i64; 0]);
        })
        .await;
    }
}

/// JavaScript's `toISOString` is what a tool has, and MySQL does not take it.
#[tokio::test]
async fn bug_a_time_that_mysql_refuses_says_how_to_write_it() {
    each("times", async |place| {
        if place.kind != Kind::MySql {
            return;
        }
        place.call("CREATE TABLE moments (at DATETIME(3) NOT NULL)", json!(null)).await.unwrap();
        let insert = "INSERT INTO moments VALUES (?)";
        let error = place.call(insert, json!(["2024-01-02T03:04:05.678Z"])).await.unwrap_err();
        assert!(error.help_of().unwrap().contains("toISOString"), "{error:?}");
        place.call(insert, json!(["2024-01-02 03:04:05.678"])).await.unwrap();
    })
    .await;
}
