//! Arguments are checked against the types that a tool declares, by whoever calls it; what is not declared is not checked.

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{Actor, CallContext, Consent, ToolCall, ToolResult};

use crate::support::{Project, code, data, error, exec, result, run};

const ANSWER: &str = "export default function tool(args: Args): string { return JSON.stringify(args); }\n";

async fn call_as(kernel: &Kernel, actor: Actor, path: &str, args: Value) -> ToolResult {
    let call = ToolCall {
        id: "one".to_owned(),
        tool: "exec_tool".to_owned(),
        arguments: json!({ "path": path, "args": args }),
    };
    let context = CallContext {
        actor,
        session: "test".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    };
    kernel.call_with(call, context).await
}

type TypeCase = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// Types of arguments, what fits, and what does not with the reason.
const CASES: &[TypeCase] = &[
    (
        "type Args = { n: number; text?: string; on: boolean };",
        &[r#"{"n": 1, "on": true}"#, r#"{"n": 1.5, "on": false, "text": ""}"#],
        &[
            (r#"{"n": "1", "on": true}"#, ".n is a string, the tool declares number"),
            (r#"{"on": true}"#, ".n is missing, the tool declares number"),
            (r#"{"n": 1, "on": true, "text": null}"#, ".text is null, the tool declares string"),
            (r#"{"n": 1, "on": 1}"#, ".on is a number, the tool declares boolean"),
            ("[1]", "the argument is a list, the tool declares { n: number; on: boolean; text?: string }"),
            ("\"x\"", "the argument is a string, the tool declares"),
        ],
    ),
    (
        "interface Item { name: string; price: number }\ninterface Args { items: Item[] }",
        &[r#"{"items": []}"#, r#"{"items": [{"name": "a", "price": 1}]}"#],
        &[
            (
                r#"{"items": [{"name": "a", "price": 1}, {"name": "b", "price": 2}, {"name": "c", "price": "3"}]}"#,
                ".items[2].price is a string, the tool declares number",
            ),
            (r#"{"items": {}}"#, ".items is an object, the tool declares { name: string; price: number }[]"),
        ],
    ),
    (
        "enum Level { Low = 'low', High = 'high' }\nenum Size { S, M = 5, L }\ntype Args = { level: Level; size: Size; only: Level.High; mode: 'a' | 'b' | 1 | null };",
        &[
            r#"{"level": "low", "size": 6, "only": "high", "mode": 1.0}"#,
            r#"{"level": "high", "size": 0, "only": "high", "mode": null}"#,
        ],
        &[
            (
                r#"{"level": "hgih", "size": 0, "only": "high", "mode": "a"}"#,
                ".level is \"hgih\", the tool declares \"low\" | \"high\"",
            ),
            (
                r#"{"level": "low", "size": 4, "only": "high", "mode": "a"}"#,
                ".size is 4, the tool declares 0 | 5 | 6",
            ),
            (
                r#"{"level": "low", "size": 0, "only": "low", "mode": "c"}"#,
                ".mode is \"c\", the tool declares \"a\" | \"b\" | 1 | null",
            ),
        ],
    ),
    (
        "type Pair = [string, number?, ...boolean[]];\ntype Args = { pair: Pair; map: Record<string, number>; fixed: Record<'x' | 'y', number>; [other: string]: unknown };",
        &[
            r#"{"pair": ["a"], "map": {}, "fixed": {"x": 1, "y": 2}}"#,
            r#"{"pair": ["a", 1, true, false], "map": {"k": 1}, "fixed": {"x": 1, "y": 2}, "more": {"any": []}}"#,
        ],
        &[
            (
                r#"{"pair": [], "map": {}, "fixed": {"x": 1, "y": 2}}"#,
                ".pair is a list of 0, the tool declares [string, number, ...boolean[]]",
            ),
            (
                r#"{"pair": ["a", 1, 1], "map": {}, "fixed": {"x": 1, "y": 2}}"#,
                ".pair[2] is a number, the tool declares boolean",
            ),
            (
                r#"{"pair": ["a"], "map": {"a b": "1"}, "fixed": {"x": 1, "y": 2}}"#,
                ".map[\"a b\"] is a string, the tool declares number",
            ),
            (r#"{"pair": ["a"], "map": {}, "fixed": {"x": 1}}"#, ".fixed.y is missing"),
        ],
    ),
    (
        "type Shape = { kind: 'circle'; radius: number } | { kind: 'square'; side: number };\ntype Args = { shape: Shape } & { note?: string };",
        &[
            r#"{"shape": {"kind": "circle", "radius": 1}}"#,
            r#"{"shape": {"kind": "square", "side": 1}, "note": "x"}"#,
        ],
        &[
            (
                r#"{"shape": {"kind": "circle", "radius": "1"}}"#,
                ".shape.radius is a string, the tool declares number",
            ),
            (r#"{"shape": {"kind": "square"}}"#, ".shape.side is missing, the tool declares number"),
            (r#"{"shape": {"kind": "oval"}}"#, ".shape.kind is \"oval\"; expected \"circle\" or \"square\""),
            (
                r#"{"shape": {"kind": "square", "side": 1}, "note": 1}"#,
                ".note is a number, the tool declares string",
            ),
        ],
    ),
    (
        "type Tree = { value: number; children?: Tree[] };\ntype Args = Partial<Pick<Tree, 'value'>> & { tree: Tree };",
        &[r#"{"tree": {"value": 1, "children": [{"value": 2, "children": []}]}}"#],
        &[(
            r#"{"tree": {"value": 1, "children": [{"value": 2, "children": [{"value": "3"}]}]}}"#,
            ".tree.children[0].children[0].value is a string, the tool declares number",
        )],
    ),
    // What is not certain is not checked.
    (
        "type Maybe = string | undefined;\ntype Args = { a: Maybe; b: number | undefined; c: any; d: unknown; when?: Date };",
        &["{}", r#"{"a": "x", "b": 1, "c": [], "d": {}, "when": "2026-01-01"}"#],
        &[
            (r#"{"a": 1}"#, ".a is a number, the tool declares string | undefined"),
            (r#"{"when": 5}"#, ".when is a number"),
        ],
    ),
    (
        "import type { Item } from './other';\ninterface Args extends Item { n: number; list: Item[]; f: Readonly<Item>; g: Item['x'] }",
        &[r#"{"n": 1, "more": 2, "list": [1, {}]}"#, r#"{"n": 1, "list": [], "f": 1, "g": {}}"#],
        &[
            (r#"{"n": "1"}"#, ".n is a string"),
            (r#"{"n": 1, "list": {}}"#, ".list is an object, the tool declares unknown[]"),
        ],
    ),
    (
        "type Box<T> = { value: T };\ntype Deep<T> = { [K in keyof T]?: Deep<T[K]> };\ntype If<T> = T extends string ? 1 : 2;\nclass Point { x = 1 }\ntype Args = { box: Box<number>; deep: Deep<{ a: 1 }>; c: If<'x'>; p: Point; k: keyof Point; f: () => void; o: object; e: {} };",
        &[
            r#"{"box": {"value": 1}}"#,
            r#"{"box": {"value": 1}, "deep": 2, "c": 3, "p": 4, "k": 5, "o": [6], "e": "7"}"#,
        ],
        &[
            ("[]", "the argument is a list"),
            (r#"{"box": 1}"#, ".box is a number, the tool declares { value: number }"),
        ],
    ),
    (
        "type Brand = string & { readonly __brand: 'id' };\ntype Args = { id: Brand };",
        &[r#"{"id": "x"}"#],
        &[(r#"{"id": 1}"#, ".id is a number, the tool declares string")],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_are_checked_against_the_declared_type() {
    let project = Project::new();
    project.tool("other.ts", "export type Item = { x: number };\nexport const y = 1;\n");
    let kernel = project.kernel(json!({})).await;
    for (types, good, bad) in CASES {
        let source = format!("{types}\n/** Returns its arguments. */\n{ANSWER}");
        for args in *good {
            let args: Value = serde_json::from_str(args).unwrap();
            let answer = run(&kernel, &project, &source, args.clone()).await;
            assert!(answer.is_ok(), "{types}: {args}: {answer:?}");
        }
        for (args, reason) in *bad {
            let args: Value = serde_json::from_str(args).unwrap();
            let answer = run(&kernel, &project, &source, args.clone()).await;
            assert_eq!(code(&answer), "EVALIDATION", "{types}: {args}: {answer:?}");
            let error = error(&answer);
            assert!(error.message.contains(reason), "{types}: {args}: {}", error.message);
            assert!(error.help_of().unwrap().starts_with("nothing ran; pass what the tool declares: "));
        }
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_declares_nothing_is_not_checked() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for source in [
        "return JSON.stringify(args);",
        "JSON.stringify(args)",
        "/** @param {{n: number}} args */\nexport default (args) => JSON.stringify(args);",
        "/** @param {number} args.n */\nexport default (args) => JSON.stringify({ ...args, n: args.n ?? 1 });",
        "export default (args: any) => JSON.stringify(args);",
        "export default (args: unknown) => JSON.stringify(args);",
        "export default <T extends { n: number }>(args: T) => JSON.stringify(args);",
        "export default ({ n = 1, ...rest }) => JSON.stringify({ n, rest });",
        "const { n }: { n?: number } = args; return JSON.stringify(n ?? args);",
        "module.exports = (args) => JSON.stringify(args);",
        "export default () => 'nothing';",
    ] {
        for args in [json!({ "n": "text", "x": [1] }), json!([1]), json!("text"), json!(null)] {
            let answer = run(&kernel, &project, source, args.clone()).await;
            // Some of them cannot work with a null; they are asked all the same.
            let is_asked = answer.is_ok() || code(&answer) == "ERUNTIME";
            assert!(is_asked, "{source}: {args}: {answer:?}");
        }
    }
    // Whatever the shape, a declared type is one.
    for source in [
        "declare const args: { n: number };\nreturn args.n;",
        "module.exports = (args: { n: number }) => args.n;",
        "type Tool = (args: { n: number }) => number;\nconst tool: Tool = (args) => args.n;\nexport default tool;",
        "const tool = async ({ n }: { n: number }) => n;\nexport { tool as default };",
    ] {
        assert_eq!(result(&run(&kernel, &project, source, json!({ "n": 1 })).await), json!(1), "{source}");
        assert_eq!(
            code(&run(&kernel, &project, source, json!({ "n": "1" })).await),
            "EVALIDATION",
            "{source}"
        );
    }
    // A default makes a field optional, whatever its type says.
    let defaults = "export default ({ n = Math.abs(-5) }: { n: number } = { n: 1 }): number => n;";
    assert_eq!(result(&run(&kernel, &project, defaults, json!({})).await), json!(5));
    assert_eq!(code(&run(&kernel, &project, defaults, json!({ "n": null })).await), "EVALIDATION");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_fields_are_refused_for_agents_and_warned_about_for_people() {
    let project = Project::new();
    project.tool(
        "price.ts",
        "type Item = { price: number; tax?: number };\n/** Adds. */\nexport default (args: { items: Item[]; currency?: string }): number => args.items.length;\n",
    );
    project.tool(
        "outer.ts",
        "/** Calls. */\nexport default (args: { fields: Record<string, unknown> }): Promise<unknown> => tgp.exec_tool('tools/price.ts', args.fields);\n",
    );
    let kernel = project.kernel(json!({})).await;
    let args = json!({ "items": [{ "price": 1, "tqx": 2 }], "curency": "EUR" });
    let agent = Actor::Agent("coder".to_owned());
    let refused = call_as(&kernel, agent.clone(), "tools/price.ts", args.clone()).await;
    assert_eq!(code(&refused), "EVALIDATION");
    let message = &error(&refused).message;
    for part in [
        ".items[0].tqx is a field that the tool does not declare; did you mean `tax`?",
        ".curency is a field that the tool does not declare; did you mean `currency`?",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let person = Actor::Person("ann".to_owned());
    let warned = call_as(&kernel, person, "tools/price.ts", args.clone()).await;
    assert_eq!(data(&warned)["result"], 1);
    let warnings = data(&warned)["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[1].as_str().unwrap().starts_with(".curency is a field"), "{warnings:?}");
    // What one tool passes to another is data, and may have more than is needed. It may not be wrong.
    let inner = exec(&kernel, "tools/outer.ts", json!({ "fields": args })).await;
    assert_eq!(result(&inner), json!(1), "{inner:?}");
    let wrong = exec(&kernel, "tools/outer.ts", json!({ "fields": { "items": [{ "price": "1" }] } })).await;
    assert_eq!(code(&wrong), "EVALIDATION", "{wrong:?}");
    assert!(error(&wrong).message.contains(".items[0].price is a string"), "{wrong:?}");
    // Fields of any of several objects are known.
    let union = "export default (args: { a: number } | { b: number }): number => Object.keys(args).length;";
    assert_eq!(result(&run(&kernel, &project, union, json!({ "a": 1, "b": 2 })).await), json!(2));
    let other = run(&kernel, &project, union, json!({ "a": 1, "c": 2 })).await;
    assert!(error(&other).message.contains(".c is a field that the tool does not declare"), "{other:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_types_and_arguments_cost_little_and_end() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let recursive = "type T = { next?: T };\nexport default (args: T): number => 1;";
    let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "next": inner }));
    assert_eq!(result(&run(&kernel, &project, recursive, nested(100)).await), json!(1));
    // As deep as a tool can make it; what comes over a wire has at most 128 levels.
    project.tool("recursive.ts", recursive);
    let deep = "export default async (args: { levels: number }): Promise<unknown> => {\n  let value = {};\n  for (let level = 0; level < args.levels; level += 1) value = { next: value };\n  return tgp.exec_tool('tools/recursive.ts', value);\n};";
    assert_eq!(result(&run(&kernel, &project, deep, json!({ "levels": 50 })).await), json!(1));
    let answer = run(&kernel, &project, deep, json!({ "levels": 10_000 })).await;
    assert!(!answer.is_ok(), "{answer:?}");
    let fields = "export default (args: { a: number }): string => JSON.stringify(args);";
    let hidden: Value = serde_json::from_str(r#"{"a": 1, "__proto__": {"a": 2}, "constructor": 3}"#).unwrap();
    let answer = run(&kernel, &project, fields, hidden).await;
    assert!(error(&answer).message.contains(".__proto__ is a field"), "{answer:?}");
    let proto = "export default (args: { ['__proto__']?: { n: number } }): string => JSON.stringify(args);";
    let wrong: Value = serde_json::from_str(r#"{"__proto__": {"n": "1"}}"#).unwrap();
    run(&kernel, &project, proto, wrong).await;
    let many: Vec<String> = (0..20_000).map(|number| format!("'v{number}'")).collect();
    let union = format!("export default (args: {{ a: {} }}): number => 1;", many.join(" | "));
    // The compiler has a limit of its own for these.
    assert_eq!(code(&run(&kernel, &project, &union, json!({ "a": "v1" })).await), "ECOMPILE");
    let few: Vec<String> = (0..900).map(|number| format!("'v{number}'")).collect();
    let union = format!("export default (args: {{ a: {} }}): number => 1;", few.join(" | "));
    assert_eq!(result(&run(&kernel, &project, &union, json!({ "a": "v899" })).await), json!(1));
    let answer = run(&kernel, &project, &union, json!({ "a": "v900" })).await;
    assert!(error(&answer).message.len() < 1_000, "{}", error(&answer).message);
    // Every level doubles what there is to compare.
    let doubling = "type T = { a?: T; x?: 1 } | { a?: T; y?: 2 } | { a?: T; z?: 3 };\nexport default (args: T): number => 1;";
    let chain = (0..60).fold(json!("wrong"), |inner, _| json!({ "a": inner }));
    assert_eq!(code(&run(&kernel, &project, doubling, chain).await), "EVALIDATION");
    for circular in [
        "type A = B; type B = A;\nexport default (args: A): number => 1;",
        "type A = A | string;\nexport default (args: A): number => 1;",
        "type A = A[];\nexport default (args: A): number => 1;",
        "interface A extends A { n: number }\nexport default (args: A): number => 1;",
        "type A = { a: A } & A;\nexport default (args: A): number => 1;",
    ] {
        for args in [json!({ "n": 1 }), json!([[]]), json!(5)] {
            let answer = run(&kernel, &project, circular, args).await;
            assert!(answer.is_ok() || code(&answer) == "EVALIDATION", "{circular}: {answer:?}");
        }
    }
    let width = (0..3_000).map(|number| format!("f{number}: number;")).collect::<String>();
    let chain: String = (1..200)
        .map(|number| format!("interface I{number} extends I{} {{ g{number}: number }}\n", number - 1))
        .collect();
    let wide = format!("interface I0 {{ {width} }}\n{chain}export default (args: I199): number => 1;");
    run(&kernel, &project, &wide, json!({})).await;
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_no_caller_can_call_is_refused_with_the_findings() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let two = "/** Adds. */\nexport default function add(a: number, b: number): number { return a + b; }\n";
    let answer = run(&kernel, &project, two, json!({ "a": 1, "b": 2 })).await;
    assert_eq!(code(&answer), "ECOMPILE", "{answer:?}");
    let error = error(&answer);
    assert!(error.message.contains("more than one parameter"), "{}", error.message);
    assert_eq!(error.details["findings"][0]["rule"], "single-parameter", "{:?}", error.details);
    let written = kernel.call("write_file", json!({ "path": "tools/under_test.ts", "content": two })).await;
    let errors = data(&written)["errors"].as_array().unwrap();
    assert!(errors[0].as_str().unwrap().ends_with("[single-parameter]"), "{errors:?}");
    let none = "/** Adds. */\nexport function add(args: { a: number }): number { return args.a; }\n";
    assert_eq!(code(&run(&kernel, &project, none, json!({ "a": 1 })).await), "EVALIDATION");
    let written = kernel.call("write_file", json!({ "path": "tools/under_test.ts", "content": none })).await;
    assert!(data(&written)["errors"].to_string().contains("has no default function"), "{written:?}");
    // An error that does not keep a tool from running is said beside its result, and beside its failure.
    let untyped = "/** Doubles. */\nexport default (args: any): number => args.n.toFixed(0) * 2;\n";
    let ran = run(&kernel, &project, untyped, json!({ "n": 2 })).await;
    let warnings = data(&ran)["warnings"].to_string();
    assert!(warnings.contains("the checker finds an error") && warnings.contains("[no-any]"), "{warnings}");
    let failed = run(&kernel, &project, untyped, json!({})).await;
    assert_eq!(code(&failed), "ERUNTIME");
    assert!(
        crate::support::error(&failed).details["warnings"].to_string().contains("[no-any]"),
        "{failed:?}"
    );
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_does_not_parse_is_not_written() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let broken = "/** Doubles. */\nexport default function double(args: { n: number }): number {\n  return args.n * ;\n}\n";
    let write = |path: &str, content: &str| json!({ "path": path, "content": content });
    for dry_run in [false, true] {
        let call = ToolCall {
            id: "one".to_owned(),
            tool: "write_file".to_owned(),
            arguments: write("tools/double.ts", broken),
        };
        let context = CallContext {
            actor: Actor::Agent("coder".to_owned()),
            session: "test".to_owned(),
            consent: Consent::Given,
            dry_run,
            depth: 0,
            token: None,
        };
        let refused = kernel.call_with(call, context).await;
        assert_eq!(code(&refused), "ECOMPILE", "{refused:?}");
        let error = error(&refused);
        assert_eq!(error.place_of().unwrap().to_string(), "tools/double.ts:3:19", "{error:?}");
        assert_eq!(error.details["findings"][0]["rule"], "syntax");
        assert_eq!(error.details["excerpts"], json!([{ "line": 3, "text": "  return args.n * ;" }]));
        assert!(error.help_of().unwrap().ends_with("`tools/double.ts` was not written"), "{error:?}");
        assert_eq!(project.text(".tgp/tools/double.ts"), None);
    }
    // What is not a tool is not held to that.
    for path in ["docs/notes.md", "data/x.ts", "tools/data.json"] {
        let written = kernel.call("write_file", write(path, broken)).await;
        assert!(written.is_ok(), "{path}: {written:?}");
        assert_eq!(data(&written).get("errors"), None, "{path}");
    }
    // A test is written all the same, and what is wrong with it is said.
    let written = kernel.call("write_file", write("tools/double.test.ts", broken)).await;
    assert!(data(&written)["errors"][0].as_str().unwrap().ends_with("[syntax]"), "{written:?}");
    let good = broken.replace("* ;", "* 2;");
    let written = kernel.call("write_file", write("tools/double.ts", &good)).await;
    assert_eq!(data(&written).get("errors"), None, "{written:?}");
    let patch = |search: &str, replace: &str| json!({ "path": "tools/double.ts", "search": search, "replace": replace });
    let refused = kernel.call("patch_file", patch("* 2;", "* 2")).await;
    assert!(refused.is_ok(), "a semicolon may be left out: {refused:?}");
    let refused = kernel.call("patch_file", patch("{ n: number }", "{ n: number")).await;
    assert_eq!(code(&refused), "ECOMPILE", "{refused:?}");
    assert_eq!(project.text(".tgp/tools/double.ts").unwrap(), good.replace("* 2;", "* 2"));
    let patched = kernel.call("patch_file", patch("{ n: number }", "any")).await;
    assert!(data(&patched)["errors"].to_string().contains("[no-any]"), "{patched:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_compile_errors_named_the_exports_of_a_package_that_a_rule_hides() {
    let project = Project::new();
    project
        .put("node_modules/modern/package.json", "{\"name\":\"modern\",\"type\":\"module\",\"main\":\"main.js\"}")
        .put("node_modules/modern/main.js", "export const canaryAlpha = 1;\n")
        .tool("uses.ts", "import { canaryBeta } from 'modern';\n/** Uses. */\nexport default (args: { n: number }): number => canaryBeta + args.n;\n");
    let config = json!({ "allowedImports": ["modern"] });
    let kernel = project.kernel(config.clone()).await;
    let shown = exec(&kernel, "tools/uses.ts", json!({ "n": 1 })).await;
    assert_eq!(code(&shown), "ECOMPILE", "{shown:?}");
    assert!(format!("{shown:?}").contains("canaryAlpha"), "the test is about what is named: {shown:?}");
    kernel.shutdown().await;
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: hidden, effect: deny, where: {path: 'node_modules/modern/**'}, reason: hidden}\n",
    );
    let kernel = project.kernel(config).await;
    for tool in ["exec_tool", "check_tool"] {
        let answer = kernel.call(tool, json!({ "path": "tools/uses.ts" })).await;
        assert_eq!(code(&answer), "EPOLICY", "{tool}: {answer:?}");
        assert!(!format!("{answer:?}").contains("canaryAlpha"), "{tool}: {answer:?}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_reconcile_suggested_invariants_of_a_hidden_file() {
    let project = Project::new();
    let rules = "version: 1\ninvariants:\n  - name: canary-alpha\n    query: \"MATCH (f:File) RETURN f\"\n    expect: none\n    severity: error\n    message: m\n";
    project.put(".sage/invariants.yml", rules).put("src/a.ts", "export const a = 1;\n");
    let args = json!({ "path": "src/a.ts", "invariant": "canary-alpja" });
    let kernel = project.kernel(json!({})).await;
    let shown = kernel.call("reconcile", args.clone()).await;
    assert!(format!("{shown:?}").contains("canary-alpha"), "{shown:?}");
    kernel.shutdown().await;
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: hidden, effect: deny, tools: '*', where: {path: '.sage/invariants.yml'}, reason: hidden}\n",
    );
    let kernel = project.kernel(json!({})).await;
    let hidden = kernel.call("reconcile", args).await;
    assert_eq!(code(&hidden), "ENOTFOUND", "{hidden:?}");
    assert!(!format!("{hidden:?}").contains("canary-alpha\""), "{hidden:?}");
    assert_eq!(error(&hidden).help_of(), Some("name an invariant that you know, or the query that halted"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_use_the_declared_types_before_anything_runs() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (path, content) in [
        (
            "tools/count.ts",
            "/** Counts. */\nexport default async (args: { text: string; limit?: number }): Promise<{ n: number; parts: { word: string }[] }> => ({ n: args.text.length, parts: [] });\n",
        ),
        (
            "tools/either.ts",
            "/** Either. */\nexport default (args: { n: number }): { ok: true; value: number } | { ok: false; error: string } => ({ ok: true, value: args.n });\n",
        ),
        ("tools/loose.ts", "return { anything: args.text };"),
    ] {
        let written = kernel.call("write_file", json!({ "path": path, "content": content })).await;
        assert!(written.is_ok(), "{written:?}");
    }
    let compile = |steps: &str| {
        let text = format!("query Q($text: String) {{\n{steps}\n}}\n");
        kernel.compile_queries("q.aql", &text).map(|_| ()).map_err(|problems| problems.to_error())
    };
    for good in [
        "a: exec(\"tools/count.ts\") { text: $text }\nreturn a.n",
        "a: exec(\"tools/count.ts\") { text: $text, limit: 2 }\nreturn a.parts[0].word",
        "a: exec(\"tools/either.ts\") { n: 1 }\nreturn { value: a.value, error: a.error }",
        "a: exec(\"tools/loose.ts\") { text: $text, more: 1 }\nreturn a.whatever.it.is",
    ] {
        assert!(compile(good).is_ok(), "{good}: {:?}", compile(good));
    }
    for (bad, message, place, help) in [
        (
            "a: exec(\"tools/count.ts\") { text: $text }\nreturn a.m",
            "no field `m`",
            "q.aql:3:10",
            "there are `n` and `parts`",
        ),
        (
            "a: exec(\"tools/count.ts\") { text: $text }\nreturn a.parts[0].wrod",
            "no field `wrod`",
            "q.aql:3:19",
            "did you mean `word`?",
        ),
        (
            "a: exec(\"tools/count.ts\") { text: $text, limt: 2 }",
            "has no argument `limt`",
            "q.aql:2:42",
            "did you mean `limit`?",
        ),
        (
            "a: exec(\"tools/count.ts\") { limit: 2 }",
            "needs the argument `text`",
            "q.aql:2:27",
            "add `text: …`, of type `String`",
        ),
        ("a: exec(\"tools/count.ts\") { text: 5 }", "`text` has to be `String`", "q.aql:2:35", ""),
    ] {
        let error = compile(bad).unwrap_err();
        assert_eq!(error.code.as_str(), "EVALIDATION", "{bad}");
        assert!(error.message.contains(message), "{bad}: {}", error.message);
        assert_eq!(error.place_of().unwrap().to_string(), place, "{bad}: {error:?}");
        assert!(error.help_of().unwrap_or_default().contains(help), "{bad}: {error:?}");
    }
    // A tool that was changed past the register is not judged by what it was.
    project.tool(
        "count.ts",
        "export default (args: { words: string }): { m: number } => ({ m: args.words.length });\n",
    );
    assert!(compile("a: exec(\"tools/count.ts\") { words: $text }\nreturn a.m").is_ok());
    kernel.shutdown().await;
}

/// What a tool declares is not for a caller whom a rule keeps from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_declared_types_were_shown_before_the_approval() {
    let project = Project::new();
    project
        .tool("vault.ts", "export default (args: { word: 'canary-alpha'; n: number }): number => args.n;")
        .put(
            "tgp.policy.yaml",
            "version: 1\nrules:\n  - {id: ask, effect: ask, tools: '*', where: {path: 'tools/vault.ts'}, reason: ask first}\n",
        );
    let kernel = project.kernel(json!({})).await;
    let call = crate::router::call("exec_tool", json!({ "path": "tools/vault.ts", "args": { "x": 1 } }));
    let answer = kernel.call_with(call, crate::router::context(Consent::Ask)).await;
    assert_eq!(code(&answer), "EAPPROVAL", "{answer:?}");
    assert!(!format!("{answer:?}").contains("canary-alpha"), "{answer:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_fields_that_are_left_out_were_compared_without_end() {
    let fields: String = (0..3_500).map(|at| format!("f{at}?: string; ")).collect();
    let project = Project::new();
    project.tool(
        "wide.ts",
        &format!("export default (args: {{ list: {{ {fields} }}[] }}): number => args.list.length;"),
    );
    let kernel = project.kernel(json!({})).await;
    let list = |length: usize| json!({ "list": vec![json!({}); length] });
    assert_eq!(result(&exec(&kernel, "tools/wide.ts", list(10)).await), 10);
    let refused = exec(&kernel, "tools/wide.ts", list(10_000)).await;
    assert_eq!(code(&refused), "EVALIDATION");
    assert!(error(&refused).message.contains("too large to be compared"), "{refused:?}");
    kernel.shutdown().await;
}
