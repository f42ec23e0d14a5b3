//! RFC 8785 by its published vectors and by properties.

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_contract::canonical;

/// Appendix B of RFC 8785: the bits of a double and its canonical text.
const NUMBERS: [(u64, &str); 24] = [
    (0x0000_0000_0000_0000, "0"),
    (0x8000_0000_0000_0000, "0"),
    (0x0000_0000_0000_0001, "5e-324"),
    (0x8000_0000_0000_0001, "-5e-324"),
    (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
    (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
    (0x4340_0000_0000_0000, "9007199254740992"),
    (0xc340_0000_0000_0000, "-9007199254740992"),
    (0x4430_0000_0000_0000, "295147905179352830000"),
    (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
    (0x44b5_2d02_c7e1_4af6, "1e+23"),
    (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
    (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
    (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
    (0x444b_1ae4_d6e2_ef50, "1e+21"),
    (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
    (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
    (0x41b3_de43_5555_5553, "333333333.3333332"),
    (0x41b3_de43_5555_5554, "333333333.33333325"),
    (0x41b3_de43_5555_5555, "333333333.3333333"),
    (0x41b3_de43_5555_5556, "333333333.3333334"),
    (0x41b3_de43_5555_5557, "333333333.33333343"),
    (0x3ff0_0000_0000_0000, "1"),
    (0x4024_0000_0000_0000, "10"),
];

#[test]
fn numbers_follow_the_published_vectors() {
    for (bits, text) in NUMBERS {
        let number = f64::from_bits(bits);
        assert_eq!(canonical::to_string(&json!(number)).unwrap(), text, "{bits:016x}");
    }
}

#[test]
fn the_worked_example_of_section_3_2_comes_out() {
    let input: Value = serde_json::from_str(
        r#"{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"#,
    )
    .unwrap();
    let output = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(canonical::to_string(&input).unwrap(), output);
}

#[test]
fn names_sort_by_utf16_units() {
    let input: Value = serde_json::from_str(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
    )
    .unwrap();
    let text = canonical::to_string(&input).unwrap();
    let order = ["Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"];
    let places: Vec<usize> = order.iter().map(|name| text.find(name).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
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
    fn canonical_text_reads_back_and_is_stable(value in any_json()) {
        let text = canonical::to_string(&value).unwrap();
        let back: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(canonical::to_string(&back).unwrap(), text);
    }
}
