//! What a tool may look like, and what comes back from it.

use serde_json::{Value, json};

use crate::support::{Project, code, data, error, exec, logs, result, run};

/// Sources with the arguments and the result of each, on one kernel.
async fn all_give(cases: &[(&str, Value, Value)]) {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (source, args, expected) in cases {
        let answer = run(&kernel, &project, source, args.clone()).await;
        assert_eq!(result(&answer), *expected, "{source}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_shapes_sync_and_async() {
    all_give(&[
        ("export default (args: { n: number }) => args.n + 1;", json!({ "n": 1 }), json!(2)),
        ("export default async function ({ n }: { n: number }): Promise<number> { return n + 1; }", json!({ "n": 2 }), json!(3)),
        ("const add = ({ n }: { n: number }) => n + 1;\nexport { add as default };", json!({ "n": 3 }), json!(4)),
        ("const n: number = args.n;\nreturn n * 2;", json!({ "n": 4 }), json!(8)),
        ("const later = await Promise.resolve(args.n as number);\nif (later > 1) return 'many';\nreturn 'one';", json!({ "n": 5 }), json!("many")),
        ("const list: number[] = args.list;\nlist.map((n) => n * 2)", json!({ "list": [1, 2] }), json!([2, 4])),
        ("await Promise.resolve(args.n + 1)", json!({ "n": 6 }), json!(7)),
        ("({ sum: args.a + args.b })", json!({ "a": 1, "b": 2 }), json!({ "sum": 3 })),
        ("module.exports = ({ n }: { n: number }) => n - 1;", json!({ "n": 7 }), json!(6)),
        ("module.exports = async () => 'later';", json!({}), json!("later")),
        ("exports.default = () => 'named';", json!({}), json!("named")),
        ("export default () => args.n;", json!({ "n": 8 }), json!(8)),
        ("export default (value: string) => value.length;", json!("text"), json!(4)),
        ("export default (list: unknown[]) => list.length;", json!([1, 2, 3]), json!(3)),
        ("export default { answer: 42 };", json!({}), json!({ "answer": 42 })),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typescript_at_run_time() {
    all_give(&[
        ("enum Colour { Red = 1, Green }\nexport default () => [Colour.Green, Colour[1]];", json!({}), json!([2, "Red"])),
        ("const enum Bit { A = 1 << 3 }\nexport default () => Bit.A;", json!({}), json!(8)),
        ("namespace Geo { export const side = 3; export function area(): number { return side ** 2; } }\nexport default () => Geo.area();", json!({}), json!(9)),
        ("function twice(_: unknown, __: string, d: PropertyDescriptor) { const f = d.value; d.value = function (...v: unknown[]) { return 2 * f.apply(this, v); }; }\nclass A { @twice five() { return 5; } }\nexport default () => new A().five();", json!({}), json!(10)),
        ("class Box<T> { constructor(private readonly value: T) {} get(): T { return this.value; } }\nexport default () => new Box<number>(7).get();", json!({}), json!(7)),
        ("abstract class Shape { abstract area(): number; static #made = 0; static make() { return ++Shape.#made; } }\nexport default () => Shape.make();", json!({}), json!(1)),
        ("type A = { a?: { b?: number } };\nexport default (x: A) => x.a?.b ?? (x as unknown as string satisfies string) ?? null;", json!({ "a": { "b": 1 } }), json!(1)),
        ("function over(a: string): string;\nfunction over(a: number): number;\nfunction over(a: unknown) { return a; }\nexport default () => [over('x'), over(1)!];", json!({}), json!(["x", 1])),
        ("const log: string[] = [];\nexport default () => { { using _ = { [Symbol.dispose]: () => { log.push('closed'); } }; log.push('open'); } return log; };", json!({}), json!(["open", "closed"])),
        ("export default () => Object.groupBy([1, 2, 3], (n) => (n % 2 ? 'odd' : 'even'));", json!({}), json!({ "odd": [1, 3], "even": [2] })),
        ("import type { Missing } from './nowhere.ts';\nexport default (x: Missing) => 'types only';", json!({}), json!("types only")),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_json() {
    all_give(&[
        ("export default () => undefined;", json!({}), json!(null)),
        ("export default () => {};", json!({}), json!(null)),
        (
            "export default () => new Date(Date.UTC(2026, 0, 2, 3, 4, 5));",
            json!({}),
            json!("2026-01-02T03:04:05.000Z"),
        ),
        ("export default () => ({ a: undefined, b: null });", json!({}), json!({ "b": null })),
        ("export default () => ({ toJSON: () => 'mine' });", json!({}), json!("mine")),
        ("export default () => 9007199254740991;", json!({}), json!(9_007_199_254_740_991_u64)),
        (
            "export default () => [0.1 + 0.2, 1e21, -0, 1e-7];",
            json!({}),
            json!([0.300_000_000_000_000_04, 1e21, 0, 1e-7]),
        ),
        ("export default () => 'ä€😀\\u0000\\n';", json!({}), json!("ä€😀\u{0}\n")),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_are_not_json_are_told() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (source, word) in [
        ("export default () => 1n;", "BigInt"),
        ("const a: unknown[] = [];\na.push(a);\nexport default () => a;", "contains itself"),
        ("export default () => () => 1;", "function"),
        ("export default () => Symbol('x');", "symbol"),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(code(&answer), "ERUNTIME", "{source}");
        let message = error(&answer).message.to_lowercase();
        assert!(message.contains(&word.to_lowercase()), "{source}: {message}");
    }
    let ordered =
        run(&kernel, &project, "export default () => ({ z: 1, a: 2, m: { y: 1, b: 2 } });", json!({})).await;
    assert_eq!(result(&ordered).to_string(), r#"{"z":1,"a":2,"m":{"y":1,"b":2}}"#, "keys keep their order");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_come_in_order_with_their_levels() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "console.log('one', { a: [1, 'x'] });\nconsole.warn('two');\ntgp.log('three', 3);\nconsole.error(new Error('four').message);\nconsole.debug(null, undefined);\nconsole.info(new Map([['k', new Set([1])]]));\nexport default () => { console.assert(false, 'five'); return 1; };";
    let answer = run(&kernel, &project, source, json!({})).await;
    let told = logs(data(&answer));
    let expected = [
        ("info", "one { a: [ 1, 'x' ] }"),
        ("warn", "two"),
        ("info", "three 3"),
        ("error", "four"),
        ("debug", "null undefined"),
        ("info", "Map(1) { 'k' => Set(1) { 1 } }"),
        ("error", "Assertion failed: five"),
    ];
    assert_eq!(told, expected.map(|(level, text)| (level.to_owned(), text.to_owned())));
    let failed = run(&kernel, &project, "console.log('before');\nthrow new Error('after');", json!({})).await;
    let details = Value::Object(error(&failed).details.clone());
    assert_eq!(logs(&details), [("info".to_owned(), "before".to_owned())], "a failed run keeps its logs");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_globals_are_there() {
    all_give(&[
        ("export default () => new URL('../b?x=1#h', 'https://e.com/a/c').href;", json!({}), json!("https://e.com/b?x=1#h")),
        ("export default () => new TextDecoder().decode(new TextEncoder().encode('ä€😀'));", json!({}), json!("ä€😀")),
        ("export default () => structuredClone({ a: new Date(0), b: [1n].length });", json!({}), json!({ "a": "1970-01-01T00:00:00.000Z", "b": 1 })),
        ("export default () => [atob(btoa('tgp')), btoa('tgp')];", json!({}), json!(["tgp", "dGdw"])),
        ("export default () => [crypto.randomUUID().length, crypto.getRandomValues(new Uint8Array(8)).length];", json!({}), json!([36, 8])),
        ("export default () => new Promise((resolve) => setTimeout(resolve, 5, 'late'));", json!({}), json!("late")),
        ("const a = new AbortController();\nexport default () => { a.abort('why'); return [a.signal.aborted, a.signal.reason]; };", json!({}), json!([true, "why"])),
        ("export default () => new URLSearchParams({ a: '1 2', b: 'ä' }).toString();", json!({}), json!("a=1+2&b=%C3%A4")),
        ("export default async () => { let n = 0; const id = setInterval(() => { n += 1; }, 1); await new Promise((r) => setTimeout(r, 30)); clearInterval(id); const seen = n; await new Promise((r) => setTimeout(r, 10)); return seen > 0 && n === seen; };", json!({}), json!(true)),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unit_plan_2_compilation() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let callable = run(&kernel, &project, "export default (a: number) => a * 2;", json!(21)).await;
    assert_eq!(result(&callable), json!(42));
    let broken = run(&kernel, &project, "// one\nconst x = ;\n", json!({})).await;
    assert_eq!(code(&broken), "ECOMPILE");
    let place = error(&broken).place_of().unwrap();
    assert_eq!((place.file.as_str(), place.line, place.column), ("tools/under_test.ts", 2, 11));
    let missing = exec(&kernel, "tools/none.ts", json!({})).await;
    assert_eq!(code(&missing), "ENOTFOUND");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unit_plan_2_memory_limit() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let answer = run(
        &kernel,
        &project,
        "export default () => new Uint8Array(100 * 1024 * 1024).fill(1).length;",
        json!({}),
    )
    .await;
    assert_eq!(code(&answer), "ERR_ISOLATE_MEMORY");
    assert!(error(&answer).message.contains("64 MB"), "{}", error(&answer).message);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unit_plan_2_timeout_of_50_ms() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "cpuMs": 50 } })).await;
    let answer = run(&kernel, &project, "while (true) {}", json!({})).await;
    assert_eq!(code(&answer), "ERR_ISOLATE_TIMEOUT");
    assert!(error(&answer).message.contains("50 ms"), "{}", error(&answer).message);
    let cpu = error(&answer).details["stats"]["cpu_ms"].as_f64().unwrap();
    assert!((49.0..500.0).contains(&cpu), "{cpu} ms");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unit_plan_2_determinism() {
    const SOURCE: &str = "export default () => [Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(4))], Date.now(), new Date().toISOString()];";
    let project = Project::new();
    let seeded = project.kernel(json!({ "sandbox": { "seed": 7, "clock": 1_767_225_600_000_u64 } })).await;
    let first = result(&run(&seeded, &project, SOURCE, json!({})).await);
    let second = result(&run(&seeded, &project, SOURCE, json!({})).await);
    assert_eq!(first, second, "a seed makes every run the same");
    assert_eq!((&first[4], &first[5]), (&json!(1_767_225_600_000_u64), &json!("2026-01-01T00:00:00.000Z")));
    seeded.shutdown().await;
    let other = project.kernel(json!({ "sandbox": { "seed": 8 } })).await;
    assert_ne!(
        result(&run(&other, &project, SOURCE, json!({})).await)[0],
        first[0],
        "another seed, another sequence"
    );
    other.shutdown().await;
    let free = project.kernel(json!({})).await;
    let first = result(&run(&free, &project, SOURCE, json!({})).await);
    let second = result(&run(&free, &project, SOURCE, json!({})).await);
    for at in 0..4 {
        assert_ne!(first[at], second[at], "without a seed every run differs");
    }
    let random = first[0].as_f64().unwrap();
    assert!((0.0..1.0).contains(&random));
    free.shutdown().await;
}
