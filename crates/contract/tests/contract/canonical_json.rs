//! RFC 8785 by its published vectors, by the normative fixtures of `relay/fixtures`, and by properties.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_contract::canonical;

fn fixtures(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../relay/fixtures").join(folder)
}

fn text(folder: &str, name: &str) -> String {
    let path = fixtures(folder).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parsed(folder: &str, name: &str) -> Value {
    serde_json::from_str(&text(folder, name)).unwrap()
}

#[test]
fn numbers_follow_the_table_of_appendix_b() {
    let table = parsed("rfc8785", "appendix-b.numbers.json");
    let rows = table["numbers"].as_array().unwrap();
    assert_eq!(rows.len(), 26);
    for row in rows {
        let bits = row["bits"].as_str().unwrap();
        let number = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        match row["json"].as_str() {
            Some(expected) => assert_eq!(canonical::to_string(&json!(number)).unwrap(), expected, "{bits}"),
            // JSON has no such number, so no value can hold it.
            None => assert!(serde_json::Number::from_f64(number).is_none(), "{bits}"),
        }
    }
}

#[test]
fn the_worked_example_of_section_3_2_comes_out() {
    let input = parsed("rfc8785", "section-3.2.2.input.json");
    let output: Vec<u8> = text("rfc8785", "section-3.2.4.output.hex")
        .split_whitespace()
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect();
    assert_eq!(canonical::to_string(&input).unwrap().into_bytes(), output);
}

#[test]
fn names_sort_as_in_section_3_2_3() {
    let output = canonical::to_string(&parsed("rfc8785", "section-3.2.3.input.json")).unwrap();
    let sorted: Value = serde_json::from_str(&output).unwrap();
    let values: Vec<Value> = sorted.as_object().unwrap().values().cloned().collect();
    assert_eq!(Value::from(values), parsed("rfc8785", "section-3.2.3.order.json"));
}

#[test]
fn every_fixture_gives_its_text_and_its_hash() {
    let folder = "canonical-json";
    let mut cases = 0;
    for file in std::fs::read_dir(fixtures(folder)).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some(case) = name.strip_suffix("input.json") else { continue };
        let input = parsed(folder, &name);
        assert_eq!(
            canonical::to_string(&input).unwrap(),
            text(folder, &format!("{case}output.txt")),
            "{name}"
        );
        assert_eq!(canonical::hash(&input).unwrap(), text(folder, &format!("{case}output.sha256")), "{name}");
        cases += 1;
    }
    assert!(cases >= 6, "only {cases} fixtures were found");
    for refused in parsed(folder, "refused.json")["texts"].as_array().unwrap() {
        let value: Value = serde_json::from_str(refused.as_str().unwrap()).unwrap();
        assert!(canonical::to_string(&value).is_err(), "{refused} was rounded");
    }
}

#[test]
fn integers_that_would_be_rounded_are_refused() {
    assert!(canonical::to_string(&json!(9_007_199_254_740_992_u64)).is_ok());
    for value in
        [json!(9_007_199_254_740_993_u64), json!(-9_007_199_254_740_993_i64), json!({ "a": [u64::MAX] })]
    {
        let error = canonical::to_string(&value).unwrap_err().to_string();
        assert!(error.contains("write it as a string"), "{error}");
    }
}

#[test]
fn hashes_are_lower_case_sha256() {
    // printf '%s' '{"a":1}' | sha256sum
    let hash = canonical::hash(&json!({ "a": 1 })).unwrap();
    assert_eq!(hash, "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no such number", |number| number.is_finite())
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_text_is_that_of_the_library(value in any_json()) {
        let text = canonical::to_string(&value).unwrap();
        prop_assert_eq!(&text, &serde_json_canonicalizer::to_string(&value).unwrap());
        if let Value::Object(fields) = &value {
            let fields = fields.iter().map(|(name, value)| (name.as_str(), value));
            prop_assert_eq!(text, canonical::object_to_string(fields).unwrap());
        }
    }

    #[test]
    fn canonical_text_reads_back_and_is_stable(value in any_json()) {
        let text = canonical::to_string(&value).unwrap();
        let back: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(canonical::to_string(&back).unwrap(), text);
    }
}
