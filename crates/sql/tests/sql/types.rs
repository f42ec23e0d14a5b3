//! Values that come back exactly as they went in.

use serde_json::{Value, json};

use crate::support::{Kind, each, on, run};

const BYTES: &str = "AP8QgA==";

/// What is stored and read with the same words everywhere: column type, value in, value out.
#[tokio::test]
async fn values_survive_the_round_trip() {
    each("types", async |place| {
        let binary = place.pick("BLOB", "BYTEA", "BLOB");
        let double = place.pick("REAL", "DOUBLE PRECISION", "DOUBLE");
        let document = place.pick("JSON", "JSONB", "JSON");
        let cases = [
            ("INTEGER", json!(-7), json!(-7)),
            ("BIGINT", json!(i64::MAX.to_string()), json!("9223372036854775807")),
            ("BIGINT", json!(i64::MIN.to_string()), json!("-9223372036854775808")),
            ("BIGINT", json!(9_007_199_254_740_992_i64), json!(9_007_199_254_740_992_i64)),
            ("BIGINT", json!(9_007_199_254_740_993_i64), json!("9007199254740993")),
            (double, json!(0.1), json!(0.1)),
            (double, json!(-1.797_693_134_862_315_7e308), json!(-1.797_693_134_862_315_7e308)),
            ("VARCHAR(40)", json!(""), json!("")),
            (
                "VARCHAR(40)",
                json!("zażółć 🦀 'quote' \"double\" \\ \n"),
                json!("zażółć 🦀 'quote' \"double\" \\ \n"),
            ),
            ("VARCHAR(40)", Value::Null, Value::Null),
            (binary, json!({"$base64": BYTES}), json!(BYTES)),
            (binary, json!({"$base64": ""}), json!("")),
            (
                document,
                json!({"b": [1, null, {"c": "ü"}], "a": 0.5}),
                json!({"b": [1, null, {"c": "ü"}], "a": 0.5}),
            ),
            (document, json!("9007199254740993"), json!("9007199254740993")),
            (document, json!([]), json!([])),
        ];
        place.call("CREATE TABLE kinds (id INTEGER)", json!(null)).await.unwrap();
        let mut transaction = place.begin().await;
        for (number, (kind, value, expected)) in cases.into_iter().enumerate() {
            let table = format!("kind_{number}");
            // MySQL commits at each definition, so they come before any row.
            run(&mut *transaction, &format!("CREATE TABLE {table} (v {kind})"), json!(null)).await.unwrap();
            transaction.commit().await.unwrap();
            transaction = place.begin().await;
            let inserted =
                run(&mut *transaction, &format!("INSERT INTO {table} VALUES (:v)"), json!({"v": value}))
                    .await;
            assert_eq!(inserted.unwrap().changed, 1, "{kind}");
            transaction.commit().await.unwrap();
            transaction = place.begin().await;
            let answer =
                run(&mut *transaction, &format!("SELECT v FROM {table}"), json!(null)).await.unwrap();
            assert_eq!(answer.rows[0]["v"], expected, "{kind} on {:?}", place.kind);
        }
    })
    .await;
}

#[tokio::test]
async fn postgres_values_are_exact() {
    let cases = [
        ("(0.1::numeric(30,20) + 0.2)", json!("0.30000000000000000000")),
        (
            "'123456789012345678901234567890.0123456789'::numeric",
            json!("123456789012345678901234567890.0123456789"),
        ),
        ("'-0.00001'::numeric", json!("-0.00001")),
        ("'10000'::numeric", json!("10000")),
        ("'NaN'::numeric", json!("NaN")),
        ("'1e-10'::numeric", json!("0.0000000001")),
        ("'Infinity'::float8", json!("Infinity")),
        ("0.1::float4", json!(0.1)),
        ("true", json!(true)),
        ("'2024-02-29'::date", json!("2024-02-29")),
        ("'1900-03-01'::date", json!("1900-03-01")),
        ("'0044-03-15 BC'::date", json!("-000043-03-15")),
        ("'infinity'::date", json!("infinity")),
        ("'2024-12-31 23:59:59.123456+02'::timestamptz", json!("2024-12-31T21:59:59.123456Z")),
        ("'1969-12-31 23:59:59.5'::timestamp", json!("1969-12-31T23:59:59.5")),
        ("'13:14:15'::time", json!("13:14:15")),
        ("'13:14:15+05:30'::timetz", json!("13:14:15+05:30")),
        ("'1 year 2 mons -3 days 04:05:06.7'::interval", json!("P1Y2M-3DT4H5M6.7S")),
        ("'0'::interval", json!("PT0S")),
        ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("'[1,5)'::int4range", json!("[1,5)")),
        ("'empty'::int4range", json!("empty")),
        ("'192.168.0.1'::inet", json!("192.168.0.1")),
        ("'10.0.0.0/8'::cidr", json!("10.0.0.0/8")),
        ("'::1'::inet", json!("::1")),
        ("'08:00:2b:01:02:03'::macaddr", json!("08:00:2b:01:02:03")),
        ("B'10110'", json!("10110")),
        ("array[[1,2],[3,4]]", json!([[1, 2], [3, 4]])),
        ("array[]::text[]", json!([])),
        ("array['a', null]::text[]", json!(["a", null])),
        ("'sad'::mood", json!("sad")),
        ("array['sad','ok']::mood[]", json!(["sad", "ok"])),
        ("row(1, 'x')::pair", json!({"n": 1, "t": "x"})),
        ("7::positive", json!(7)),
        ("'{\"n\": 9223372036854775807}'::jsonb", json!({"n": "9223372036854775807"})),
    ];
    on(Kind::Postgres, "exact", &|_| {}, &async |place| {
        let mut transaction = place.begin().await;
        let definitions = [
            "CREATE TYPE mood AS ENUM ('sad', 'ok')",
            "CREATE TYPE pair AS (n int, t text)",
            "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        ];
        for sql in definitions {
            run(&mut *transaction, sql, json!(null)).await.unwrap();
        }
        for (expression, expected) in &cases {
            let answer = run(&mut *transaction, &format!("SELECT {expression} AS v"), json!(null)).await;
            let answer = answer.unwrap_or_else(|error| panic!("{expression}: {error:?}"));
            assert_eq!(answer.rows[0]["v"], *expected, "{expression}");
        }
        // Parameters are read as the type the server infers.
        let typed = [
            ("numeric", json!("0.123456789012345678901234567890")),
            ("int8", json!("9223372036854775807")),
            ("timestamptz", json!("2024-01-02T03:04:05Z")),
            ("date", json!("2024-01-02")),
            ("uuid", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
            ("bool", json!(true)),
            ("mood", json!("ok")),
            ("inet", json!("10.1.2.3")),
            ("int4range", json!("[1,5)")),
            ("numeric[]", json!(["1.5", "2"])),
        ];
        for (kind, value) in typed {
            let answer =
                run(&mut *transaction, &format!("SELECT $1::{kind} AS v"), json!([value])).await.unwrap();
            assert_eq!(answer.rows[0]["v"], value, "{kind}");
        }
        let error = run(&mut *transaction, "SELECT point(1, 2) AS place", json!(null)).await.unwrap_err();
        assert!(error.help_of().unwrap().contains("place::text"), "{error:?}");
        run(&mut *transaction, "SELECT point(1, 2)::text AS place", json!(null)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn mysql_values_are_exact() {
    let cases = [
        ("CAST(0.1 AS DECIMAL(30,20)) + 0.2", json!("0.30000000000000000000")),
        ("CAST(18446744073709551615 AS UNSIGNED)", json!("18446744073709551615")),
        ("CAST('2024-02-29' AS DATE)", json!("2024-02-29")),
        ("CAST('2024-02-29 01:02:03.456' AS DATETIME(6))", json!("2024-02-29T01:02:03.456")),
        ("CAST('-838:59:59' AS TIME)", json!("-838:59:59")),
        ("b'101'", json!("BQ==")),
        ("NULL", json!(null)),
        ("TRUE", json!(1)),
    ];
    on(Kind::MySql, "exact", &|_| {}, &async |place| {
        let sql = "CREATE TABLE t (at TIMESTAMP(6) NULL, big BIGINT UNSIGNED, small TINYINT(1), flags BIT(5), f FLOAT, \
                   e ENUM('a','b'), y YEAR, doc JSON, txt LONGTEXT COLLATE utf8mb4_bin, raw VARBINARY(9))";
        place.call(sql, json!(null)).await.unwrap();
        let mut transaction = place.begin().await;
        for (expression, expected) in &cases {
            let answer = run(&mut *transaction, &format!("SELECT {expression} AS v"), json!(null)).await.unwrap();
            assert_eq!(answer.rows[0]["v"], *expected, "{expression}");
        }
        let sql = "INSERT INTO t VALUES ('2024-01-02 03:04:05.6', ?, 1, b'10101', 0.1, 'b', 2024, ?, '12', ?)";
        let params = json!(["18446744073709551615", {"a": [1]}, {"$base64": BYTES}]);
        run(&mut *transaction, sql, params).await.unwrap();
        let answer = run(&mut *transaction, "SELECT * FROM t", json!(null)).await.unwrap();
        let expected = json!({"at": "2024-01-02T03:04:05.6Z", "big": "18446744073709551615", "small": 1, "flags": 21,
            "f": 0.1, "e": "b", "y": 2024, "doc": {"a": [1]}, "txt": "12", "raw": BYTES});
        assert_eq!(Value::Object(answer.rows[0].clone()), expected);
    })
    .await;
}

#[tokio::test]
async fn columns_keep_their_order_and_double_names_get_numbers() {
    each("columns", async |place| {
        let mut transaction = place.begin().await;
        let answer = run(&mut *transaction, "SELECT 1 AS z, 2 AS a, 3 AS z, 4 AS z_2, 5 AS z", json!(null))
            .await
            .unwrap();
        assert_eq!(answer.columns, ["z", "a", "z_2", "z_2_2", "z_3"]);
        let values: Vec<_> = answer.rows[0].values().cloned().collect();
        assert_eq!(values, [json!(1), json!(2), json!(3), json!(4), json!(5)]);
    })
    .await;
}

#[tokio::test]
async fn changed_counts_what_was_inserted_updated_or_deleted() {
    each("changed", async |place| {
        place.table().await;
        let mut transaction = place.begin().await;
        let cases = [
            ("INSERT INTO users (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')", 3, 0),
            ("UPDATE users SET name = name", 3, 0),
            ("UPDATE users SET name = 'x' WHERE id = 9", 0, 0),
            ("SELECT * FROM users", 0, 3),
            ("WITH old AS (SELECT 1 AS id) SELECT * FROM old", 0, 1),
            ("DELETE FROM users WHERE id > 1 RETURNING id", 2, 2),
            ("INSERT INTO users (id, name) VALUES (4, 'd') RETURNING id, name", 1, 1),
        ];
        for (sql, changed, rows) in cases {
            let answer = run(&mut *transaction, sql, json!(null)).await.unwrap();
            assert_eq!((answer.changed, answer.rows.len()), (changed, rows), "{sql} on {:?}", place.kind);
        }
    })
    .await;
}
