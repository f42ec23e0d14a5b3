//! `meta.json`: stable, strict, and nothing but tools.

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_contract::{RelativePath, ToolMetadata};
use tgp_registry::{Index, IndexError, is_tool};

use crate::support::tool;

#[test]
fn a_tool_is_a_module_below_tools() {
    let yes =
        ["tools/fib.ts", "tools/a/b/c.mjs", "tools/x.tsx", "tools/x.cjs", "tools/testing.ts", "tools/a.b.ts"];
    let no = [
        "fib.ts",
        "lib/fib.ts",
        "tools",
        "tools/readme.md",
        "tools/data.json",
        "tools/types.d.ts",
        "tools/fib.test.ts",
        "tools/fib.spec.js",
        "tools/.hidden.ts",
        "tools/.cache/x.ts",
        "tools/ts",
        "tools/.ts",
        "toolset/x.ts",
        "tools/x.TS",
    ];
    for path in yes {
        assert!(is_tool(&RelativePath::new(path).unwrap()), "{path}");
    }
    for path in no {
        assert!(!is_tool(&RelativePath::new(path).unwrap()), "{path}");
    }
}

#[test]
fn the_bytes_are_one_line_a_tool_and_valid_json() {
    let index = Index::from_tools([
        tool("tools/b.ts", "line\nbreak"),
        tool("tools/a.ts", "\u{2028}"),
        tool("x.ts", ""),
    ]);
    let text = String::from_utf8(index.to_bytes()).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["tools"].as_array().unwrap().len(), 2);
    assert_eq!(value["tools"][0]["path"], json!("tools/a.ts"));
    assert_eq!(index.get(&RelativePath::new("tools/b.ts").unwrap()).unwrap().description, "line\nbreak");
    let empty = Index::default();
    assert_eq!(Index::parse(&empty.to_bytes()), Ok(empty));
}

#[test]
fn what_was_not_written_by_us_is_damaged() {
    // The checksum is right in each of these: the content is what is refused.
    let framed = |lines: &[String]| {
        let body = lines.join(",\n");
        let sum = tgp_contract::canonical::sha256_hex(body.as_bytes());
        format!("{{\"format\":1,\"sha256\":\"{sum}\",\"tools\":[\n{body}\n]}}\n")
    };
    let line = |path: &str| serde_json::to_string(&tool(path, "x")).unwrap();
    assert!(Index::parse(framed(&[line("tools/a.ts"), line("tools/b.ts")]).as_bytes()).is_ok());
    let order = IndexError::Order("tools/a.ts".to_owned());
    assert_eq!(
        Index::parse(framed(&[line("tools/b.ts"), line("tools/a.ts")]).as_bytes()),
        Err(order.clone())
    );
    assert_eq!(Index::parse(framed(&[line("tools/a.ts"), line("tools/a.ts")]).as_bytes()), Err(order));
    let other = IndexError::NotATool("docs/a.ts".to_owned());
    assert_eq!(Index::parse(framed(&[line("docs/a.ts")]).as_bytes()), Err(other));
    let escape = line("tools/a.ts").replace("tools/a.ts", "../../etc/passwd");
    assert!(matches!(Index::parse(framed(&[escape]).as_bytes()), Err(IndexError::Line { line: 2, .. })));
    let newer =
        String::from_utf8(Index::default().to_bytes()).unwrap().replace("\"format\":1", "\"format\":2");
    assert_eq!(Index::parse(newer.as_bytes()), Err(IndexError::Format(2)));
    for broken in [&b""[..], b"{}", b"[]", b"\xff\xfe", b"{\"format\":1,\"tools\":[]}\n", b"null\n"] {
        assert!(Index::parse(broken).is_err(), "{broken:?}");
    }
    let error = tgp_contract::ToolError::from(IndexError::Checksum);
    assert_eq!(error.code.as_str(), "EINTEGRITY");
    assert!(error.help_of().is_some());
}

fn any_tool() -> impl Strategy<Value = ToolMetadata> {
    let words = prop::collection::vec("[a-z]{1,8}", 0..4);
    let schema = prop::collection::btree_map("[a-z\\\\\"\n]{1,6}", -1000i64..1000, 0..4);
    ("[a-z]{1,6}(/[a-z_]{1,6}){0,2}", any::<String>(), any::<String>(), words, schema).prop_map(
        |(path, description, signature, words, schema)| ToolMetadata {
            description,
            signature,
            identifiers: words.clone(),
            imports: words,
            parameters: json!(schema),
            ..tool(&format!("tools/{path}.ts"), "")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_gives_the_same_bytes_and_they_read_back(
        tools in prop::collection::vec(any_tool(), 0..12), turn in 0usize..12
    ) {
        let mut unique = Index::from_tools(tools).tools().cloned().collect::<Vec<_>>();
        let sorted = Index::from_tools(unique.clone());
        let middle = turn.min(unique.len());
        unique.rotate_left(middle);
        unique.reverse();
        let index = Index::from_tools(unique);
        prop_assert_eq!(index.to_bytes(), sorted.to_bytes());
        let read = Index::parse(&index.to_bytes()).unwrap();
        prop_assert_eq!(&read, &index);
        prop_assert_eq!(read.to_bytes(), index.to_bytes());
    }

    #[test]
    fn no_damage_of_one_byte_goes_unnoticed(
        tools in prop::collection::vec(any_tool(), 1..5), place in any::<prop::sample::Index>(), change in 1u8..=255
    ) {
        let mut bytes = Index::from_tools(tools).to_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        prop_assert!(Index::parse(&bytes).is_err());
        bytes[place] ^= change;
        bytes.truncate(place);
        prop_assert!(Index::parse(&bytes).is_err());
    }
}
