//! Source maps: every name `$mark…` of a source is found again at its own place.

use proptest::prelude::*;
use tgp_compiler::compile;

use crate::tool;

/// The places (line and column from 1, columns in characters) of every name that starts with `$mark`.
fn marks(text: &str) -> Vec<(String, u32, u32)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (offset, _) in line.match_indices("$mark") {
            let name: String = line[offset..]
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '$')
                .collect();
            let column = line[..offset].chars().count() + 1;
            found.push((name, u32::try_from(index + 1).unwrap(), u32::try_from(column).unwrap()));
        }
    }
    found
}

fn check(source: &str) {
    let compiled = compile(&tool(source)).unwrap();
    // Nobody sees a byte order mark, so no column counts it.
    let (written, emitted) = (marks(source.trim_start_matches('\u{feff}')), marks(&compiled.code));
    assert!(!written.is_empty());
    for (name, line, column) in &written {
        let places: Vec<_> = emitted.iter().filter(|(emitted, ..)| emitted == name).collect();
        assert!(!places.is_empty(), "{name} is gone from:\n{}", compiled.code);
        for (_, emitted_line, emitted_column) in places {
            let original = compiled.map.original(*emitted_line, *emitted_column);
            assert_eq!(
                original,
                Some((*line, *column)),
                "{name} in:\n{source}\nemitted as:\n{}",
                compiled.code
            );
        }
    }
}

#[test]
fn marks_are_found_in_every_shape() {
    for source in [
        "export default function (args: { n: number }) {\n  return $mark1(args.n as number) + $mark2;\n}",
        "interface A { n: number }\n\nconst b = 1;\nif (b) {\n  return $mark1;\n}\n/* 😀 */ return '😀' + $mark2;",
        "import { sum } from '@tgp/std';\nconst c: number = sum([1]);\n(c satisfies number) + $mark1.call<string>($mark2!)",
        "const x = require('./x');\nmodule.exports = (a: string) => $mark1(a, x);",
        "const x = require('./x');\nexport default () => { 'ö'; $mark1(x); throw new $mark2('a'); };",
        "\tenum E { A = $mark1 }\r\n\tnamespace N { export const n = $mark2; }\r\n\texport default [E, N];",
        "@$mark1\nclass A { @$mark2 b() { return $mark3; } }\nexport default A;",
        "\u{feff}export default () => $mark1;",
        "using a = $mark1();\nexport default () => { $mark2(a); };",
    ] {
        check(source);
    }
}

#[test]
fn a_place_between_marks_takes_the_nearest_before() {
    let compiled = compile(&tool("const a: number = 1;\nthrow new Error('x');")).unwrap();
    let line = compiled.code.lines().position(|line| line.contains("throw")).unwrap();
    let line = u32::try_from(line + 1).unwrap();
    assert_eq!(compiled.map.original(line, 1).map(|place| place.0), Some(2));
    assert_eq!(compiled.map.original(line, 1000).map(|place| place.0), Some(2));
    assert_eq!(compiled.map.original(0, 1), None);
    assert_eq!(compiled.map.original(1, 0), None);
    assert_eq!(compiled.map.original(9999, 1), None);
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("const NAME: number = MARK as number;".to_owned()),
        Just("interface NAME { a: string }".to_owned()),
        Just("function NAME<T>(a: T, b = MARK): T { return MARK(a) as T; }".to_owned()),
        Just("class NAME { private a = MARK; b(): void { this.a = MARK!; } }".to_owned()),
        Just("enum NAME { A = 1, B = A }".to_owned()),
        Just("if (MARK) { MARK(`t${MARK}`); } else { [MARK, { a: MARK }]; }".to_owned()),
        "[a-zA-Zöß漢😀 ]{0,12}".prop_map(|text| format!("/* {text} */ 'x{text}'; MARK?.['{text}']?.(MARK);")),
        Just("import { NAME } from './NAME'; MARK(NAME);".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn marks_are_found_in_generated_sources(
        pieces in prop::collection::vec((piece(), prop_oneof![Just("\n"), Just("\r\n"), Just(" "), Just("\n\n\t")]), 1..12),
        ending in prop_oneof![Just("export default $markEnd;"), Just("return $markEnd;"), Just("$markEnd"), Just("module.exports = $markEnd;")],
    ) {
        let mut source = String::new();
        let mut number = 0;
        for (index, (piece, end)) in pieces.iter().enumerate() {
            // CommonJS has no imports.
            if ending.starts_with("module") && piece.starts_with("import") { continue; }
            let mut text = piece.replace("NAME", &format!("name{index}"));
            while text.contains("MARK") {
                number += 1;
                text = text.replacen("MARK", &format!("$mark{number}$"), 1);
            }
            source.push_str(&text);
            source.push_str(end);
        }
        source.push_str(ending);
        check(&source);
    }
}
