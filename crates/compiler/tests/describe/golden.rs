//! Golden folder: `golden/NAME.ts` beside `golden/NAME.ts.out`. `UPDATE_GOLDEN=1` writes the outputs anew.

use std::fs;

use tgp_compiler::describe;
use tgp_contract::{RelativePath, ToolMetadata, canonical};

use crate::{sources, tests, tool_path};

#[test]
fn every_golden_source_has_its_metadata() {
    let inputs = sources(&tests("describe/golden"));
    assert!(inputs.len() >= 30, "only {} inputs", inputs.len());
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for input in inputs {
        let mut output = input.clone().into_os_string();
        output.push(".out");
        let metadata = describe(&tool_path(&input), &fs::read_to_string(&input).unwrap());
        let rendered = format!("{}\n", serde_json::to_string_pretty(&metadata).unwrap());
        if update {
            fs::write(&output, &rendered).unwrap();
        } else if fs::read_to_string(&output).unwrap_or_default() != rendered {
            wrong.push(format!("{}\n{rendered}", input.display()));
        }
    }
    assert!(wrong.is_empty(), "run with UPDATE_GOLDEN=1 and read the difference:\n{}", wrong.join("\n"));
}

/// A schema is right when it takes what the tool takes and refuses what it does not.
#[test]
fn schemas_mean_what_the_types_say() {
    let cases: [(&str, &[&str], &[&str]); 14] = [
        ("{ n: number }", &[r#"{"n":1}"#, r#"{"n":1.5,"more":2}"#], &["{}", r#"{"n":"1"}"#, "1", "null"]),
        ("{ a?: string; b: string | undefined }", &["{}", r#"{"a":"x"}"#], &[r#"{"a":1}"#, r#"{"b":null}"#]),
        ("{ a: 'x' | 'y' | null }", &[r#"{"a":"x"}"#, r#"{"a":null}"#], &[r#"{"a":"z"}"#, "{}"]),
        ("{ a: number[] } | null", &["null", r#"{"a":[]}"#], &[r#"{"a":["x"]}"#, "[]"]),
        ("[string, number?]", &[r#"["a"]"#, r#"["a",1]"#], &["[]", r#"["a","b"]"#, r#"["a",1,2]"#]),
        ("[first: string, ...rest: boolean[]]", &[r#"["a"]"#, r#"["a",true,false]"#], &["[]", r#"["a",1]"#]),
        ("[]", &["[]"], &["[1]"]),
        ("Record<string, 0 | 1>", &["{}", r#"{"a":1}"#], &[r#"{"a":2}"#, "[]"]),
        ("{ a: 1 } & { b: 2 }", &[r#"{"a":1,"b":2}"#], &[r#"{"a":1}"#, r#"{"b":2}"#]),
        ("Tree", &[r#"{"v":1,"next":{"v":2}}"#], &[r#"{"v":1,"next":{"v":"2"}}"#, r#"{"next":{"v":1}}"#]),
        ("Tree | string", &[r#""x""#, r#"{"v":1}"#], &["1", "{}"]),
        ("Partial<Pick<Tree, 'v'>>", &["{}", r#"{"v":1,"next":1}"#], &[r#"{"v":"1"}"#]),
        ("(boolean | 'auto')[]", &["[]", r#"[true,"auto"]"#], &[r#"["on"]"#, "[null]"]),
        ("any", &["1", "null", "{}"], &[]),
    ];
    for (kind, right, wrong) in cases {
        let source = format!(
            "interface Tree {{ v: number; next?: Tree }}\nexport default (args: {kind}): {kind} => args;"
        );
        let metadata = describe(&RelativePath::new("tools/kind.ts").unwrap(), &source);
        assert_eq!(metadata.problem, None, "{kind}");
        let schema = jsonschema::draft202012::new(&metadata.parameters).unwrap();
        let takes = |text: &&str| schema.is_valid(&serde_json::from_str(text).unwrap());
        let refused: Vec<&&str> = right.iter().filter(|text| !takes(text)).collect();
        let taken: Vec<&&str> = wrong.iter().filter(|text| takes(text)).collect();
        assert!(
            refused.is_empty() && taken.is_empty(),
            "{kind}: {}\nrefused {refused:?}, taken {taken:?}",
            metadata.parameters
        );
    }
}

/// The same but for its hash, which is of the bytes.
fn without_hash(metadata: ToolMetadata) -> ToolMetadata {
    ToolMetadata { hash: String::new(), ..metadata }
}

#[test]
fn line_ends_and_a_byte_order_mark_change_the_hash_alone() {
    for input in sources(&tests("describe/golden")) {
        let path = tool_path(&input);
        let source = fs::read_to_string(&input).unwrap();
        let plain = describe(&path, &source);
        assert_eq!(plain.hash, canonical::sha256_hex(source.as_bytes()));
        for variant in [source.replace('\n', "\r\n"), format!("\u{feff}{source}")] {
            let varied = describe(&path, &variant);
            assert_eq!(varied.hash, canonical::sha256_hex(variant.as_bytes()));
            assert_eq!(without_hash(varied), without_hash(plain.clone()), "{}", input.display());
        }
    }
}

#[test]
fn metadata_survives_json() {
    for input in sources(&tests("describe/golden")) {
        let metadata = describe(&tool_path(&input), &fs::read_to_string(&input).unwrap());
        let value = serde_json::to_value(&metadata).unwrap();
        // What cannot be hashed could not be compared with what another machine wrote.
        canonical::to_string(&value).unwrap_or_else(|error| panic!("{}: {error}", input.display()));
        assert_eq!(serde_json::from_value::<ToolMetadata>(value).unwrap(), metadata);
    }
}
