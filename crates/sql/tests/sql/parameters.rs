//! Parameters by position and by name, right and wrong.

use serde_json::{Value, json};
use tgp_contract::Code;

use crate::support::{Kind, each, on, run};

#[tokio::test]
async fn parameters_come_by_position_and_by_name() {
    each("params", async |place| {
        let mut transaction = place.begin().await;
        let cast = place.pick("", "::text", "");
        let cases = [
            (format!("SELECT ?{cast} AS a, ?{cast} AS b"), json!(["x", "y"])),
            (format!("SELECT :one{cast} AS a, :two{cast} AS b"), json!({"two": "y", "one": "x"})),
            (
                format!("SELECT :one{cast} AS a, :two{cast} AS b -- :three ? $3"),
                json!({"two": "y", "one": "x"}),
            ),
        ];
        for (sql, params) in cases {
            let answer = run(&mut *transaction, &sql, params).await.unwrap();
            assert_eq!(Value::Object(answer.rows[0].clone()), json!({"a": "x", "b": "y"}), "{sql}");
        }
        // The same name twice is one value; quoted text has no parameters.
        let sql = format!(":v{cast} AS a, ':v ? $1' AS b, :v{cast} AS c /* :v */");
        let answer = run(&mut *transaction, &format!("SELECT {sql}"), json!({"v": "z"})).await.unwrap();
        assert_eq!(Value::Object(answer.rows[0].clone()), json!({"a": "z", "b": ":v ? $1", "c": "z"}));
        if place.kind != Kind::MySql {
            let answer = run(
                &mut *transaction,
                "SELECT CAST($2 AS TEXT) AS a, CAST($1 AS TEXT) AS b",
                json!(["y", "x"]),
            )
            .await;
            assert_eq!(Value::Object(answer.unwrap().rows[0].clone()), json!({"a": "x", "b": "y"}));
        }
        if place.kind == Kind::Sqlite {
            let answer = run(&mut *transaction, "SELECT ?2 AS a, ?1 AS b", json!(["y", "x"])).await.unwrap();
            assert_eq!(Value::Object(answer.rows[0].clone()), json!({"a": "x", "b": "y"}));
        }
    })
    .await;
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    each("wrong", async |place| {
        let mut transaction = place.begin().await;
        let cases = [
            ("SELECT ?", json!([]), ""),
            ("SELECT ?", json!([1, 2]), "2 given"),
            ("SELECT 1", json!([1]), "1 given"),
            ("SELECT :a", json!({"b": 1}), ":a"),
            ("SELECT :a", json!({"a": "1", "b": 1}), "`b`"),
            ("SELECT :a", json!(null), ":a"),
            ("SELECT 1", json!({"a": 1}), "`a`"),
            ("SELECT :a", json!({"a": {"$base64": "not base64!"}}), ":a"),
        ];
        for (sql, params, part) in cases {
            let error = run(&mut *transaction, sql, params.clone()).await.unwrap_err();
            assert_eq!(error.code, Code::Sql, "{sql} {params}");
            assert!(error.message.contains(part), "{sql} {params}: {error}");
        }
        // None of them has spoilt the transaction.
        run(&mut *transaction, "SELECT 1", json!(null)).await.unwrap();
    })
    .await;
}

/// `?` is an operator of jsonb, `::` is a cast, and `:` slices arrays.
#[tokio::test]
async fn postgres_keeps_its_own_question_marks_and_colons() {
    on(Kind::Postgres, "operators", &|_| {}, &async |place| {
        let mut transaction = place.begin().await;
        let cases = [
            (r#"SELECT '{"a":1}'::jsonb ? 'a' AS v"#, json!(null), json!(true)),
            (r#"SELECT '{"a":1}'::jsonb ? $1 AS v"#, json!(["b"]), json!(false)),
            (r#"SELECT '{"a":1}'::jsonb ?| array['a'] AS v"#, json!(null), json!(true)),
            (r#"SELECT '{"a":1}'::jsonb ? :key AS v"#, json!({"key": "a"}), json!(true)),
            ("SELECT (array[1,2,3])[2:3] AS v", json!(null), json!([2, 3])),
            ("SELECT $1::int[] AS v", json!([[1, null, 3]]), json!([1, null, 3])),
            (
                "SELECT $1::text[] AS v",
                json!([["a\"b\\", "", "NULL", "{x}"]]),
                json!(["a\"b\\", "", "NULL", "{x}"]),
            ),
            ("SELECT :v::jsonb AS v", json!({"v": ["a", {"b": null}]}), json!(["a", {"b": null}])),
            ("SELECT :v::int + 1 AS v", json!({"v": 41}), json!(42)),
            ("SELECT 1 WHERE 3 = ANY(?)", json!([[1, 2]]), json!(null)),
        ];
        for (sql, params, expected) in cases {
            let answer = run(&mut *transaction, sql, params).await.unwrap();
            let value = answer.rows.first().map_or(Value::Null, |row| row["v"].clone());
            assert_eq!(value, expected, "{sql}");
        }
    })
    .await;
}

/// The MySQL driver looks for names in the text by itself, and must find none.
#[tokio::test]
async fn mysql_texts_reach_the_server_as_they_are() {
    on(Kind::MySql, "driver", &|_| {}, &async |place| {
        let mut transaction = place.begin().await;
        let sql = "SELECT 4/'2' AS a, ':x' AS b, 1-':y' IS NULL AS c, '/*' AS d, \"--:z\" AS e, 1--1 AS f, @v:=':w' AS g, '\\':q' AS h # :r '\n, '#:s' AS `i:t`";
        let answer = run(&mut *transaction, sql, json!(null)).await;
        // A text in a sum is an error in strict mode only for tables; here it is a number with a warning.
        let row = Value::Object(answer.unwrap().rows[0].clone());
        assert_eq!(
            row,
            json!({"a": 2.0, "b": ":x", "c": 0, "d": "/*", "e": "--:z", "f": 2, "g": ":w", "h": "':q", "i:t": "#:s"})
        );
    })
    .await;
}
