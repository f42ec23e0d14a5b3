//! The lexer on its own: it is the one part that reads text no database has seen yet.

use proptest::prelude::*;
use serde_json::{Map, json};
use tgp_contract::SqlParams;

use super::lexer::{Dialect, Kind, tokens};
use super::parameters::bind;
use super::statement::Script;

const DIALECTS: [Dialect; 3] = [Dialect::Sqlite, Dialect::Postgres, Dialect::MySql];

/// Pieces that cannot hold a parameter, and must not end early or late.
fn shell() -> impl Strategy<Value = (Dialect, String)> {
    let inside = "[ -~\u{e9}\n]{0,12}";
    prop_oneof![
        (prop::sample::select(DIALECTS.to_vec()), inside).prop_map(|(dialect, text)| (
            dialect,
            format!("'{}'", text.replace('\'', "''").replace('\\', ""))
        )),
        inside.prop_map(|text| (
            Dialect::MySql,
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        )),
        inside.prop_map(|text| (
            Dialect::Postgres,
            format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        )),
        inside.prop_map(|text| (Dialect::Postgres, format!("$tag${}$tag$", text.replace('$', "")))),
        inside.prop_map(|text| (Dialect::Postgres, format!("/* /* {} */ */", text.replace(['*', '/'], "")))),
        (prop::sample::select(DIALECTS.to_vec()), inside)
            .prop_map(|(dialect, text)| (dialect, format!("-- {}\n", text.replace('\n', "")))),
        inside.prop_map(|text| (Dialect::MySql, format!("`{}`", text.replace('`', "``")))),
        inside.prop_map(|text| (Dialect::MySql, format!("#{}\n", text.replace('\n', "")))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn any_text_is_split_without_loss(sql in "\\PC{0,80}", which in 0..3_usize) {
        let tokens = tokens(&sql, DIALECTS[which]);
        let mut end = 0;
        for token in &tokens {
            prop_assert!(sql[end..token.start].chars().all(char::is_whitespace));
            prop_assert_eq!(&sql[token.start..token.end()], token.text);
            prop_assert!(!token.text.is_empty());
            end = token.end();
        }
        prop_assert!(sql[end..].chars().all(char::is_whitespace));
    }

    #[test]
    fn tricky_characters_are_split_without_loss(sql in "[-/*'\"`$:?@#;\\[\\]\\\\eE1a\n ]{0,40}", which in 0..3_usize) {
        let total: usize = tokens(&sql, DIALECTS[which]).iter().map(|token| token.text.len()).sum();
        prop_assert!(total <= sql.len());
        // Reading it as a statement must not fail in any way but by an error.
        if let Ok(script) = Script::read(&sql, DIALECTS[which]) {
            let _ = bind(&script, DIALECTS[which], &SqlParams::Positional(vec![json!(1)]));
            let _ = bind(&script, DIALECTS[which], &SqlParams::Named(Map::new()));
            prop_assert!(!script.tokens.is_empty());
        }
    }

    #[test]
    fn parameters_are_found_outside_strings_and_comments_only((dialect, shell) in shell(), before in any::<bool>()) {
        let sql = if before { format!("SELECT {shell} , :value") } else { format!("SELECT :value , {shell}") };
        let found = tokens(&sql, dialect);
        prop_assert_eq!(found.iter().filter(|token| token.kind == Kind::Named).count(), 1, "{:?}", found);
        let script = Script::read(&sql, dialect).unwrap();
        let given = SqlParams::Named(Map::from_iter([("value".to_owned(), json!(1))]));
        let bound = bind(&script, dialect, &given).unwrap();
        prop_assert_eq!(bound.values.len(), 1);
        // What is not a parameter and no comment is sent as it was written.
        for token in found.iter().filter(|token| !matches!(token.kind, Kind::Named | Kind::Comment)) {
            prop_assert!(bound.sql.contains(token.text), "{} in {}", token.text, bound.sql);
        }
    }
}

#[test]
fn offsets_lead_back_to_the_callers_text() {
    let sql = "SELECT /* a comment */ :first, :second,\n  wrong FROM t";
    let script = Script::read(sql, Dialect::Postgres).unwrap();
    let given =
        SqlParams::Named(Map::from_iter([("first".to_owned(), json!(1)), ("second".to_owned(), json!(2))]));
    let bound = bind(&script, Dialect::Postgres, &given).unwrap();
    let rewritten = bound.sql.find("wrong").unwrap();
    assert_eq!(bound.sql, "SELECT /* a comment */ $1, $2,\n  wrong FROM t");
    assert_eq!(bound.origin(rewritten), sql.find("wrong").unwrap());
}

#[test]
fn the_main_verb_stands_after_the_with_list() {
    let cases = [
        ("SELECT 1", "SELECT"),
        ("with a as (select 1) insert into t select * from a", "INSERT"),
        ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", "SELECT"),
        ("WITH RECURSIVE a(n) AS (SELECT 1) UPDATE t SET n = 1", "UPDATE"),
        ("(SELECT 1) UNION (SELECT 2)", "SELECT"),
        ("/* x */ -- y\n delete from t;", "DELETE"),
    ];
    for (sql, verb) in cases {
        assert_eq!(Script::read(sql, Dialect::Postgres).unwrap().main_verb(), verb, "{sql}");
    }
}

#[test]
fn routines_may_contain_semicolons_and_nothing_else_may() {
    let refused =
        ["SELECT 1; SELECT 2", "SELECT 1;;SELECT 2", "SELECT ';'; x", "", " -- only\n", ";;", "SELECT 'open"];
    for sql in refused {
        assert!(Script::read(sql, Dialect::Postgres).is_err(), "{sql}");
    }
    let taken = [
        "SELECT ';'",
        "SELECT 1;;",
        "SELECT $$;$$",
        "SELECT 1; -- ;",
        "CREATE TRIGGER a BEGIN SELECT 1; END",
    ];
    for sql in taken {
        assert!(Script::read(sql, Dialect::Postgres).is_ok(), "{sql}");
    }
    assert!(Script::read("SELECT /*! 1 */ 2", Dialect::MySql).is_err());
    assert!(Script::read("SELECT /*M!100 1 */ 2", Dialect::MySql).is_err());
}
