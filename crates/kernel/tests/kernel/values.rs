//! Values that leave a tool: exact, or an error that names where they are and what to do.

use serde_json::{Value, json};

use crate::sql::Shop;
use crate::support::{Project, code, error, place, result, run};

/// An expression that a tool returns, and what the error says of it.
const REFUSED: [(&str, &str); 32] = [
    ("({ total: 12n })", ".total is a bigint: return String(total)"),
    ("({ rows: [0, 1, 2, { tags: new Set(['a']) }] })", ".rows[3].tags is a Set: return [...tags]"),
    ("({ byName: new Map([['a', 1]]) })", ".byName is a Map: return Object.fromEntries(byName)"),
    ("({ ratio: 0 / 0 })", ".ratio is NaN: return null or a string in its place"),
    ("[1, -1 / 0]", "[1] is infinite: return null or a string in its place"),
    ("({ error: new TypeError('no') })", ".error is an Error: return error.message"),
    ("({ callback: () => 1 })", ".callback is a function: return what it computes"),
    ("({ key: Symbol('k') })", ".key is a symbol: return key.description"),
    ("[1, undefined]", "[1] is undefined: return null instead, or leave it out"),
    ("[1, , 2]", "[1] is undefined"),
    ("({ data: new Uint8Array([1]) })", ".data is a Uint8Array: return Buffer.from(data).toString('base64')"),
    ("({ data: Buffer.from('a') })", ".data is a Uint8Array: return Buffer.from(data).toString('base64')"),
    ("({ data: new ArrayBuffer(2) })", ".data is an ArrayBuffer"),
    ("({ numbers: new Float64Array(2) })", ".numbers is a Float64Array: return [...numbers]"),
    ("({ view: new DataView(new ArrayBuffer(2)) })", ".view is a DataView"),
    ("({ text: tgp.list_files('/tmp') })", ".text is a Promise: return await text"),
    ("({ pattern: /a/g })", ".pattern is a RegExp: return pattern.source"),
    ("({ at: new Date(NaN) })", ".at is an invalid Date: return null instead"),
    ("({ head: new Headers() })", ".head is a Headers without properties of its own"),
    ("({ answer: new Response('a') })", ".answer is a Response without properties of its own"),
    ("({ keys: new Map().keys() })", "without properties of its own"),
    ("({ weak: new WeakMap() })", ".weak is a WeakMap without properties of its own"),
    (
        "new (class Secret { #a = 1; get a() { return this.#a; } })()",
        "a Secret without properties of its own",
    ),
    ("({ text: Object('a') })", ".text is a boxed primitive: return text.valueOf()"),
    ("({ big: Object(1n) })", ".big is a BigInt without properties of its own"),
    (
        "(() => { const a: any = { b: {} }; a.b.c = a; return a; })()",
        ".b.c is an object that contains itself",
    ),
    (
        "(() => { let a: any = 1; for (let n = 0; n < 200; n += 1) a = [a]; return a; })()",
        "nested more than 100 levels deep",
    ),
    ("({ 'odd key': 1n })", "[\"odd key\"] is a bigint: return String(value)"),
    ("12n", "not a bigint: return String(value)"),
    ("new Map()", "not a Map: return Object.fromEntries(value)"),
    ("() => 1", "not a function"),
    ("Number.NaN", "not NaN"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_values_that_json_does_not_have_were_changed_without_an_error() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (expression, expected) in REFUSED {
        let source =
            format!("export default () => {{\n  const value: any = {expression};\n  return value;\n}};");
        let answer = run(&kernel, &project, &source, json!({})).await;
        assert_eq!(code(&answer), "ERUNTIME", "{expression}");
        let message = &error(&answer).message;
        assert!(message.contains(expected), "{expression}: {message}");
        assert!(message.contains("a tool's result must be JSON"), "{expression}: {message}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_json_has_is_returned_exactly() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let exact = [
        (
            "[0, -1, 1.5, 1e300, 5e-324, 0.1, 2 ** 31, -(2 ** 31), 9007199254740991, 10 / 2]",
            json!([
                0,
                -1,
                1.5,
                1e300,
                5e-324,
                0.1,
                2_147_483_648_i64,
                -2_147_483_648_i64,
                9_007_199_254_740_991_i64,
                5
            ]),
        ),
        ("[2 ** 53, 2 ** 60]", json!([9_007_199_254_740_992_i64, 1_152_921_504_606_846_976_i64])),
        (
            "['', 'a\"b\\\\c\\n\\t\\u0001\\u2028', 'ä😀', '\\ud800']",
            json!(["", "a\"b\\c\n\t\u{1}\u{2028}", "ä😀", "\u{fffd}"]),
        ),
        ("({ a: undefined, b: null, [Symbol('c')]: 1, 'ä ö': true })", json!({ "b": null, "ä ö": true })),
        ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        (
            "({ at: new Date(1e12), url: new URL('https://example.com/a') })",
            json!({ "at": "2001-09-09T01:46:40.000Z", "url": "https://example.com/a" }),
        ),
        ("({ money: { toJSON: () => ({ cents: 5 }) } })", json!({ "money": { "cents": 5 } })),
        ("new (class Point { x = 1; y = 2; get sum() { return 3; } })()", json!({ "x": 1, "y": 2 })),
        ("Object.assign(Object.create(null), { a: 1 })", json!({ "a": 1 })),
        ("({ ['__proto__']: 1 })", json!({ "__proto__": 1 })),
        ("(() => { const a = { n: 1 }; return [a, a]; })()", json!([{ "n": 1 }, { "n": 1 }])),
        ("new Proxy([1, 2], {})", json!([1, 2])),
        ("undefined", Value::Null),
        ("({}) && []", json!([])),
    ];
    for (expression, expected) in exact {
        let source =
            format!("export default () => {{\n  const value: any = {expression};\n  return value;\n}};");
        let answer = run(&kernel, &project, &source, json!({})).await;
        assert_eq!(result(&answer), expected, "{expression}");
    }
    // What packages do to have integers in JSON keeps working.
    let patched = "export default () => {\n  (BigInt.prototype as any).toJSON = function () { return String(this); };\n  return { n: 5n };\n};";
    assert_eq!(result(&run(&kernel, &project, patched, json!({})).await), json!({ "n": "5" }));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_does_to_built_ins_does_not_change_what_leaves_it() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let hostile = "export default async () => {\n  JSON.stringify = () => '\"forged\"';\n  Object.keys = () => [];\n  Array.isArray = (() => false) as any;\n  (Array.prototype as any)[Symbol.iterator] = function* () {};\n  Object.defineProperty(Array.prototype, 'push', { value: () => 0 });\n  Date.prototype.getTime = () => 0;\n  String.prototype.replace = () => 'x';\n  const map: any = new Map();\n  Object.setPrototypeOf(map, Object.prototype);\n  let refused = '';\n  try { await tgp.exec_tool('tools/x.ts', { map }); } catch (error: any) { refused = error.message; }\n  return { list: [1, 2], refused };\n};";
    let answer = run(&kernel, &project, hostile, json!({})).await;
    let expected = "tgp.exec_tool: args.map is a Map: pass Object.fromEntries(map)";
    assert_eq!(result(&answer), json!({ "list": [1, 2], "refused": expected }));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_of_calls_are_exact_or_refused_where_the_call_is() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("echo.ts", "export default (args: any) => args;");
    for (call, expected) in [
        (
            "tgp.exec_tool('tools/echo.ts', { when: new Map() })",
            "tgp.exec_tool: args.when is a Map: pass Object.fromEntries(when)",
        ),
        ("tgp.exec_tool('tools/echo.ts', { n: [1n] })", "args.n[0] is a bigint: pass String(value)"),
        (
            "tgp.exec_sql('SELECT ?', [NaN])",
            "tgp.exec_sql: params[0] is NaN: pass null or a string in its place",
        ),
        ("tgp.exec_sql('SELECT ?', [undefined])", "params[0] is undefined: pass null instead"),
        ("tgp.exec_sql('SELECT :a', { a: undefined })", "params.a is undefined: pass null instead"),
        ("tgp.exec_sql('SELECT ?', [() => 1])", "params[0] is a function"),
        ("tgp.exec_sql('SELECT ?', [new Set([1])])", "params[0] is a Set: pass [...value]"),
        ("tgp.exec_sql('SELECT ?', [new Float32Array(1)])", "params[0] is a Float32Array"),
        ("tgp.exec_sql('SELECT ?', [{ data: new Uint8Array(1) }])", "params[0].data is a Uint8Array"),
        ("tgp.exec_sql('SELECT ?', [new Date(NaN)])", "params[0] is an invalid Date"),
        ("tgp.exec_sql('SELECT ?', [2n ** 64n])", "params[0] is a bigint beyond 64 bits: pass String(value)"),
    ] {
        let source = format!("export default async () => {{\n  await {call};\n}};");
        let answer = run(&kernel, &project, &source, json!({})).await;
        assert_eq!(code(&answer), "ERUNTIME", "{call}");
        assert!(error(&answer).message.contains(expected), "{call}: {}", error(&answer).message);
        assert!(place(&answer).starts_with("tools/under_test.ts:2:"), "{call}: {}", place(&answer));
    }
    let source =
        "export default () => tgp.exec_tool('tools/echo.ts', { at: new Date(0), left: undefined, n: null });";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(result(&answer), json!({ "at": "1970-01-01T00:00:00.000Z", "n": null }));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_dates_and_integers_are_parameters_of_statements() {
    for shop in Shop::all(json!({})).await {
        let (bytes, time) = match shop.dialect {
            "postgresql" => ("BYTEA", "TIMESTAMPTZ"),
            "mysql" => ("BLOB", "DATETIME(3)"),
            _ => ("BLOB", "TEXT"),
        };
        shop.sql(&format!("CREATE TABLE {{t}}_kept (id INTEGER, content {bytes}, at {time}, big BIGINT)"))
            .await;
        let answer = shop
            .run("export default async () => {\n  const sql = 'INSERT INTO {t}_kept VALUES (:id, :content, :at, :big)';\n  const at = new Date('2026-11-17T02:03:04.567Z');\n  const big = 9007199254740993n;\n  await tgp.exec_sql(sql, { id: 1, content: new Uint8Array([0, 255]), at, big });\n  await tgp.exec_sql(sql, { id: 2, content: Buffer.from('hi'), at: null, big: -5n });\n  await tgp.exec_sql(sql, { id: 3, content: new Uint8Array([1, 2, 3]).subarray(1).slice().buffer, at, big: 2n ** 63n - 1n });\n  const found = await tgp.exec_sql('SELECT id FROM {t}_kept WHERE big = ?', [big]);\n  const all = await tgp.exec_sql('SELECT id, content, at, big FROM {t}_kept ORDER BY id');\n  return { found: found.map((row) => row.id), all: [...all] };\n};")
            .await;
        let value = result(&answer);
        assert_eq!(value["found"], json!([1]), "{}", shop.dialect);
        let contents: Vec<&Value> =
            value["all"].as_array().unwrap().iter().map(|row| &row["content"]).collect();
        assert_eq!(contents, ["AP8=", "aGk=", "AgM="], "{}", shop.dialect);
        let bigs: Vec<&Value> = value["all"].as_array().unwrap().iter().map(|row| &row["big"]).collect();
        assert_eq!(
            bigs,
            [&json!("9007199254740993"), &json!(-5), &json!("9223372036854775807")],
            "{}",
            shop.dialect
        );
        let at = value["all"][0]["at"].as_str().unwrap();
        assert!(at.starts_with("2026-11-17T02:03:04.567"), "{}: {at}", shop.dialect);
        assert_eq!(value["all"][1]["at"], Value::Null, "{}", shop.dialect);
        shop.sql("DROP TABLE {t}_kept").await;
        shop.close().await;
    }
}
