//! Configurations whose value shows in their source, and those that have to be run.

use serde_json::{Value, json};
use tgp_compiler::{LiteralValue, SourceRole, Unit, compile};

fn literal(source: &str) -> Option<LiteralValue> {
    let unit = Unit { id: "tgp.config.ts".to_owned(), source: source.to_owned(), role: SourceRole::Config };
    compile(&unit).unwrap_or_else(|error| panic!("{error:?}\n{source}")).literal
}

fn environment(name: &str) -> Option<String> {
    match name {
        "SET" => Some("text".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn value(source: &str) -> Option<Value> {
    literal(source).map(|literal| literal.resolve(&environment).unwrap())
}

#[test]
fn a_literal_is_its_value() {
    let imported = "import { defineTGPConfig } from '@tgp/core';\n";
    for (source, expected) in [
        ("export default {};", json!({})),
        (
            "export default { a: 1, 'b-c': [true, null, -2.5, 1e3], 7: `x` };",
            json!({"a":1,"b-c":[true,null,-2.5,1000],"7":"x"}),
        ),
        ("export default { a: { b: { c: 'é\\n' } } } as const;", json!({"a":{"b":{"c":"é\n"}}})),
        ("type T = object;\nexport default { a: 1 } satisfies T;", json!({"a":1})),
        ("import type { X } from '@tgp/core';\nexport default {} as X;", json!({})),
        ("import define from '@tgp/core';\nexport default define({ a: 1 });", json!({"a":1})),
        ("import { defineTGPConfig as d } from '@tgp/core';\nexport default d({ a: 1 });", json!({"a":1})),
        ("export default { a: process.env.SET, b: process.env.MISSING };", json!({"a":"text"})),
        ("export default { a: process.env['SET']!, b: process.env.EMPTY };", json!({"a":"text","b":""})),
        (
            "export default { a: process.env.EMPTY ?? 'x', b: process.env.EMPTY || 'x' };",
            json!({"a":"","b":"x"}),
        ),
        ("export default { a: process.env.MISSING ?? process.env.SET ?? 1 };", json!({"a":"text"})),
        (
            "export default { a: null ?? false ?? 1, b: 0 || false || '' || 2, c: [] || 1 };",
            json!({"a":false,"b":2,"c":[]}),
        ),
        ("export default { a: [process.env.MISSING ?? 1] };", json!({"a":[1]})),
    ] {
        assert_eq!(value(source), Some(expected), "{source}");
    }
    assert_eq!(
        value(&format!("{imported}export default defineTGPConfig({{ a: 1 }});")),
        Some(json!({"a":1}))
    );
}

#[test]
fn what_needs_a_run_is_no_literal() {
    for source in [
        "const a = 1;\nexport default { a };",
        "export default { a: 1 + 1 };",
        "export default { a: `${1}` };",
        "export default { get a() { return 1; } };",
        "export default { a() {} };",
        "export default { ['a']: 1 };",
        "export default { ...{ a: 1 } };",
        "export default { __proto__: { a: 1 } };",
        "export default { a: 1, a: 2 };",
        "export default { a: [process.env.MISSING] };",
        "export default { a: [1, , 2] };",
        "export default { a: undefined };",
        "export default { a: 1e999 };",
        "export default { a: 1n };",
        "export default { a: /x/ };",
        "export default { a: '\\ud800' };",
        "export default { a: process.env.SET && 1 };",
        "export default { a: process.env.toString };",
        "export default { a: process.env.__proto__ ?? 1 };",
        "export default [];",
        "export default 'text';",
        "export default function () {}",
        "export default other({ a: 1 });\nfunction other(x) { return { ...x, b: 2 }; }",
        "import { defineTGPConfig } from '@tgp/core';\nexport default defineTGPConfig({}, 1);",
        "import { defineTGPConfig } from '@tgp/core';\nexport default defineTGPConfig?.({});",
        "import { defineTGPConfig as process } from '@tgp/core';\nexport default process({});",
        "import * as core from '@tgp/core';\nexport default core.defineTGPConfig({});",
        "module.exports = { a: 1 };",
        "export const a = 1;\nexport default {};",
        "throw new Error('no');\nexport default {};",
    ] {
        assert_eq!(literal(source), None, "{source}");
    }
    let deep = format!("export default {};", "{ a: ".repeat(40) + "1" + &" }".repeat(40));
    assert_eq!(literal(&deep), None);
}

#[test]
fn a_tool_has_no_literal() {
    assert_eq!(compile(&crate::tool("export default {};")).unwrap().literal, None);
}
