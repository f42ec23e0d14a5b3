//! Values against types, and the schemas that models get, checked by an implementation that is not ours.

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_aql::{Field, QueryType, Record};

fn record(fields: &[(&str, QueryType, bool)], open: bool) -> QueryType {
    let field = |(name, ty, optional): &(&str, QueryType, bool)| {
        ((*name).to_owned(), Field { ty: ty.clone(), optional: *optional })
    };
    QueryType::Record(Record { fields: fields.iter().map(field).collect(), open })
}

fn list(of: QueryType) -> QueryType {
    QueryType::List(Box::new(of))
}

fn or_null(ty: QueryType) -> QueryType {
    QueryType::OneOf(vec![ty, QueryType::Null])
}

#[test]
fn a_mismatch_says_where_what_and_instead_of_what() {
    let choice = QueryType::Choice(vec!["high".into(), "low".into()]);
    let finding = record(
        &[
            ("file", QueryType::String, false),
            ("severity", choice.clone(), false),
            ("note", or_null(QueryType::String), true),
        ],
        false,
    );
    let cases: Vec<(QueryType, Value, &str)> = vec![
        (QueryType::Int, json!(1.5), "expected Int, found the number 1.5"),
        (QueryType::Bool, json!("true"), "expected Bool, found the text \"true\""),
        (choice, json!("mid"), "expected \"high\" | \"low\", found the text \"mid\""),
        (list(QueryType::Int), json!([1, null]), "`[1]`: expected Int, found null"),
        (finding.clone(), json!({ "file": "a" }), "`severity`: expected \"high\" | \"low\", found nothing"),
        (
            finding.clone(),
            json!({ "file": "a", "severity": "low", "x": 1 }),
            "expected only `file`, `note`, `severity`, found the field `x`",
        ),
        (
            list(finding.clone()),
            json!([{ "file": "a", "severity": "low", "note": 1 }]),
            "`[0].note`: expected String or null, found the number 1",
        ),
        (
            or_null(finding),
            json!({ "file": 1, "severity": "low" }),
            "`file`: expected String, found the number 1",
        ),
        (
            record(&[("a b", QueryType::Int, false)], false),
            json!({ "a b": [] }),
            "`[\"a b\"]`: expected Int, found a list of 0 values",
        ),
        (
            QueryType::OneOf(vec![QueryType::Int, list(QueryType::Int)]),
            json!({}),
            "expected Int or [Int], found an object without fields",
        ),
        (
            QueryType::Null,
            json!("x".repeat(500)),
            &format!("expected null, found the text \"{}…\"", "x".repeat(59)),
        ),
    ]
    .into_iter()
    .map(|(ty, value, text): (QueryType, Value, &str)| {
        (ty, value, Box::leak(text.to_owned().into_boxed_str()) as &str)
    })
    .collect();
    for (ty, value, expected) in cases {
        assert_eq!(ty.check(&value).unwrap_err().to_string(), expected);
    }
}

fn types() -> impl Strategy<Value = QueryType> {
    let leaf = prop_oneof![
        Just(QueryType::Any),
        Just(QueryType::String),
        Just(QueryType::Int),
        Just(QueryType::Float),
        Just(QueryType::Bool),
        Just(QueryType::Null),
        Just(QueryType::Choice(vec!["a".to_owned(), "b".to_owned()])),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let field = ("[a-c]", inner.clone(), any::<bool>());
        prop_oneof![
            inner.clone().prop_map(list),
            prop::collection::vec(inner, 1..3).prop_map(QueryType::OneOf),
            (prop::collection::vec(field, 0..3), any::<bool>()).prop_map(|(fields, open)| {
                let fields =
                    fields.into_iter().map(|(name, ty, optional)| (name, Field { ty, optional })).collect();
                QueryType::Record(Record { fields, open })
            }),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|truth| json!(truth)),
        (-3_i64..3).prop_map(|number| json!(number)),
        (-3_i64..3).prop_map(|number| json!(number as f64 / 2.0)),
        "[a-c]".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| json!(items)),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|fields| json!(fields)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_schema_takes_the_values_that_its_type_takes(ty in types(), values in prop::collection::vec(values(), 8)) {
        let validator = jsonschema::validator_for(&ty.to_schema()).unwrap();
        for value in values {
            prop_assert_eq!(ty.check(&value).is_ok(), validator.is_valid(&value), "{:?} {}", ty, value);
        }
    }
}
