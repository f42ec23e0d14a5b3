//! Tests of tools, run in the sandbox by `test_tool`: what is found, what is reported, and that nothing
//! stays.

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::canonical;

use crate::support::{Project, code, data, error};

async fn tested(kernel: &Kernel, path: &str) -> Value {
    data(&kernel.call("test_tool", json!({ "path": path })).await).clone()
}

fn counts(report: &Value) -> (u64, u64) {
    (report["passed"].as_u64().unwrap(), report["failed"].as_u64().unwrap())
}

/// `name: message` of every test that failed.
fn failures(file: &Value) -> Vec<String> {
    let tests = file["tests"].as_array().unwrap().iter().filter(|test| test["ok"] == false);
    tests
        .map(|test| {
            format!("{}: {}", test["name"].as_str().unwrap(), test["error"]["message"].as_str().unwrap())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_goes_from_red_to_green() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let test = "import { test, expect } from '@tgp/test';\nimport add from './add.ts';\n\ntest('adds', () => {\n  expect(add({ a: 1, b: 2 })).toBe(3);\n});\n";
    project.tool("math/add.test.ts", test);
    let red = tested(&kernel, "tools/math/add.ts").await;
    assert_eq!(counts(&red), (0, 1));
    let file = &red["files"][0];
    assert_eq!(file["error"]["code"], "ENOTFOUND", "{file}");
    let place = json!({ "file": "tools/math/add.test.ts", "line": 2, "column": 17 });
    assert_eq!(file["error"]["details"]["place"], place);
    assert_eq!(
        (&file["path"], &file["toolPath"]),
        (&json!("tools/math/add.test.ts"), &json!("tools/math/add.ts"))
    );
    assert_eq!(file["testSha256"], canonical::sha256_hex(test.as_bytes()));
    assert_eq!(file["toolSha256"], Value::Null);

    let wrong = "export default (args: { a: number; b: number }): number => args.a - args.b;\n";
    project.tool("math/add.ts", wrong);
    let red = tested(&kernel, "tools/math/add.test.ts").await;
    assert_eq!(counts(&red), (0, 1));
    let file = &red["files"][0];
    assert_eq!(file["toolSha256"], canonical::sha256_hex(wrong.as_bytes()));
    assert_eq!((&file["tests"][0]["name"], &file["tests"][0]["ok"]), (&json!("adds"), &json!(false)));
    let place = json!({ "file": "tools/math/add.test.ts", "line": 5, "column": 10 });
    assert_eq!(
        file["tests"][0]["error"],
        json!({ "message": "expected -1 to be 3", "place": place, "expected": "3", "received": "-1" })
    );

    project.tool("math/add.ts", &wrong.replace('-', "+"));
    let green = tested(&kernel, "tools").await;
    assert_eq!(counts(&green), (1, 0), "{green}");
    assert_eq!(green["files"][0]["toolSha256"], canonical::sha256_hex(wrong.replace('-', "+").as_bytes()));
    assert!(green["files"][0]["stats"].is_object());
    kernel.shutdown().await;
}

/// Checks that hold, and checks that do not, with what is said of them.
const HOLDS: [&str; 40] = [
    "expect(1).toBe(1)",
    "expect(NaN).toBe(NaN)",
    "expect(0).not.toBe(-0)",
    "expect({ a: [1, { b: 2 }] }).toEqual({ a: [1, { b: 2 }] })",
    "expect({ a: 1, b: undefined }).toEqual({ a: 1 })",
    "expect([1, 2]).not.toEqual([2, 1])",
    "expect([1]).not.toEqual({ 0: 1, length: 1 })",
    "expect(new Map([['a', { b: 1 }]])).toEqual(new Map([['a', { b: 1 }]]))",
    "expect(new Set([{ a: 1 }])).toEqual(new Set([{ a: 1 }]))",
    "expect(new Set([1])).not.toEqual(new Set([2]))",
    "expect(new Date(5)).toEqual(new Date(5))",
    "expect(new Date(5)).not.toEqual(new Date(6))",
    "expect(/a/g).not.toEqual(/a/i)",
    "expect(new Uint8Array([1, 2])).toEqual(new Uint8Array([1, 2]))",
    "expect(new Error('a')).not.toEqual(new Error('b'))",
    "const a: any = { n: 1 }; a.self = a; const b: any = { n: 1 }; b.self = b; expect(a).toEqual(b)",
    "expect(null).not.toEqual(undefined)",
    "expect(0.1 + 0.2).toBeCloseTo(0.3)",
    "expect(1.005).not.toBeCloseTo(1.1, 3)",
    "expect('haystack').toContain('st')",
    "expect([1, NaN]).toContain(NaN)",
    "expect(new Set(['a'])).toContain('a')",
    "expect([{ a: 1 }]).not.toContain({ a: 1 })",
    "expect('abc').toMatch(/^a.c$/)",
    "const pattern = /a/g; expect('a').toMatch(pattern); expect('a').toMatch(pattern)",
    "expect(null).toBeNull()",
    "expect(undefined).toBeUndefined()",
    "expect(0).toBeDefined()",
    "expect('').toBeFalsy()",
    "expect([]).toBeTruthy()",
    "expect('abc').toHaveLength(3)",
    "expect(2).toBeGreaterThan(1)",
    "expect(2n).toBeGreaterThanOrEqual(2n)",
    "expect(1).toBeLessThan(2)",
    "expect(2).toBeLessThanOrEqual(2)",
    "expect(() => { throw new RangeError('too far') }).toThrow('far')",
    "expect(() => { throw new RangeError('too far') }).toThrow(RangeError)",
    "expect(() => 1).not.toThrow()",
    "await expect(Promise.resolve([1])).resolves.toEqual([1])",
    "await expect(Promise.reject(new Error('no'))).rejects.toThrow(/^no$/)",
];

const FAILS: [(&str, &str); 20] = [
    ("expect(1).toBe('1')", "expected 1 to be \"1\""),
    ("expect(1).not.toBe(1)", "expected 1 not to be 1"),
    ("expect({ a: [1] }).toEqual({ a: [2] })", "expected { a: [1] } to equal { a: [2] }"),
    ("expect([1, 2]).toHaveLength(3)", "expected [1, 2] to have length 3"),
    ("expect(undefined).toHaveLength(0)", "expected undefined to have length 0"),
    ("expect(3).toBeNull()", "expected 3 to be null"),
    ("expect(3).toBeUndefined()", "expected 3 to be undefined"),
    ("expect(0).toBeTruthy()", "expected 0 to be truthy"),
    ("expect(0.5).toBeCloseTo(0.51)", "expected 0.5 to be within 2 digits of 0.51"),
    ("expect(NaN).toBeGreaterThan(1)", "expected NaN to be greater than 1"),
    ("expect('a').toBeLessThan(1)", "TypeError: \"a\" is not a number to compare"),
    ("expect(5).toContain(5)", "TypeError: toContain: 5 is neither a text nor a list"),
    ("expect(() => 1).toThrow()", "expected \"a function that returned\" to throw"),
    ("expect(() => { throw new Error('one') }).toThrow('two')", "expected Error: one to throw \"two\""),
    (
        "expect(async () => 1).toThrow()",
        "TypeError: toThrow: the function is async; write `await expect(promise).rejects.toThrow()`",
    ),
    (
        "await expect(Promise.resolve(1)).rejects.toThrow()",
        "expected the promise to be rejected, but it resolved to 1",
    ),
    (
        "await expect(Promise.reject(new Error('no'))).resolves.toBe(1)",
        "expected the promise to resolve, but it was rejected with Error: no",
    ),
    ("await expect(1).resolves.toBe(1)", "expected 1 to be a promise"),
    ("throw 'plain'", "the test threw \"plain\""),
    (
        "await tgp.read_file('none.txt')",
        "ENOTFOUND: no such file or directory: `none.txt`; a tool can read its own repository, such as tools/, /lib/ (the \
         tools), /tmp/ (until the run ends), tmp/ (also to write)",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matchers_say_what_holds_and_what_does_not() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let mut source = "import { test, expect } from '@tgp/test';\n".to_owned();
    for check in HOLDS.iter().chain(FAILS.iter().map(|(check, _)| check)) {
        source.push_str(&format!("test({}, async () => {{ {check} }});\n", json!(check)));
    }
    project.tool("matchers.test.ts", &source);
    let report = tested(&kernel, "tools/matchers.test.ts").await;
    let file = &report["files"][0];
    let expected: Vec<String> = FAILS.iter().map(|(check, says)| format!("{check}: {says}")).collect();
    assert_eq!(failures(file), expected);
    assert_eq!(counts(&report), (HOLDS.len() as u64, FAILS.len() as u64));
    // Every failure has its line, those after a wait included. What is not an error has no place to report.
    for (index, (check, _)) in FAILS.iter().enumerate().filter(|(_, (check, _))| !check.starts_with("throw"))
    {
        let place = &file["tests"][HOLDS.len() + index]["error"]["place"];
        assert_eq!(place["line"], HOLDS.len() + index + 2, "{check}: {place}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_hooks_and_waits_keep_their_order() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool(
        "order.test.ts",
        "import { test, describe, expect, beforeEach, afterEach } from '@tgp/test';
        const seen: string[] = [];
        beforeEach(() => { seen.push('outer before'); });
        afterEach(async () => { await null; seen.push('outer after'); });
        describe('group', () => {
          beforeEach(async () => { await null; seen.push('inner before'); });
          afterEach(() => { seen.push('inner after'); });
          test('first', () => { seen.push('first'); throw new Error('on purpose'); });
          describe('deep', () => test('second', async () => {
            await new Promise((done) => setTimeout(done, 1));
            console.log(seen.join(','));
            expect(seen.length).toBe(7);
          }));
        });
        test('never ends', () => new Promise(() => {}));
        test('goes on', () => { expect(1).toBe(1); });
        test('declares', () => { test('inside', () => {}); });",
    );
    let report = tested(&kernel, "tools/order.test.ts").await;
    let file = &report["files"][0];
    let names: Vec<&str> =
        file["tests"].as_array().unwrap().iter().map(|test| test["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["group > first", "group > deep > second", "never ends", "goes on", "declares"]);
    assert_eq!(
        failures(file),
        [
            "group > first: on purpose",
            "never ends: 'never ends' did not end within 2000 ms: is every promise settled?",
            "declares: test() inside a test: tests are declared before they run",
        ]
    );
    let log = "outer before,inner before,first,inner after,outer after,outer before,inner before";
    assert_eq!(file["logs"][0]["text"], log);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_fails_as_a_whole_is_a_failed_run() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "cpuMs": 50, "memoryMb": 16 } })).await;
    let head = "import { test, expect, describe } from '@tgp/test';\n";
    for (name, body, expected) in [
        ("syntax", "test('x', () => {", "ECOMPILE"),
        ("empty", "", "EVALIDATION"),
        ("top", "throw new Error('at the top');", "ERUNTIME"),
        ("package", "import z from 'left-pad';\ntest('x', () => z);", "ESECURITY"),
        ("name", "import { nothing } from './empty.test.ts';\ntest('x', nothing);", "ECOMPILE"),
        ("loop", "test('x', () => { for (;;) {} });", "ERR_ISOLATE_TIMEOUT"),
        (
            "memory",
            "test('x', () => { const a: string[] = []; for (;;) a.push('x'.repeat(100_000) + a.length); });",
            "ERR_ISOLATE_MEMORY",
        ),
        ("async-group", "describe('x', (async () => {}) as () => void);", "ERUNTIME"),
        ("lost", "test('x', () => { void Promise.reject(new Error('nobody')); });", "ERUNTIME"),
    ] {
        project.tool(&format!("{name}.test.ts"), &format!("{head}{body}\n"));
        let report = tested(&kernel, &format!("tools/{name}.test.ts")).await;
        let file = &report["files"][0];
        assert_eq!(file["error"]["code"], expected, "{name}: {file}");
        assert!(file["error"]["details"]["help"].is_string(), "{name}: {file}");
        assert_eq!(counts(&report), (0, 1), "{name}");
    }
    // A tool has 50 ms of CPU time here; its tests may take longer.
    project.tool(
        "slow.test.ts",
        &format!("{head}test('x', () => {{ const end = Date.now() + 300; while (Date.now() < end); expect(1).toBe(1); }});"),
    );
    let report = tested(&kernel, "tools/slow.test.ts").await;
    assert_eq!(counts(&report), (1, 0), "{report}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tests_write_is_undone() {
    let project = Project::new();
    project.put("out/kept.txt", "before");
    let kernel = project.kernel(json!({ "fs": { "allowedDirs": ["out"] } })).await;
    let make = json!({ "sql": "CREATE TABLE notes (text TEXT)" });
    data(&kernel.call("exec_sql", make).await);
    project.tool("inner.ts", "export default () => tgp.write_file('out/inner.txt', 'x');");
    project.tool(
        "writes.test.ts",
        "import { test, expect } from '@tgp/test';
        test('writes', async () => {
          await tgp.write_file('out/kept.txt', 'after');
          await tgp.exec_sql('INSERT INTO notes VALUES (?)', ['x']);
          await tgp.exec_tool('tools/inner.ts');
          expect(await tgp.read_file('out/kept.txt')).toBe('after');
          expect(await tgp.read_file('out/inner.txt')).toBe('x');
          expect((await tgp.exec_sql('SELECT * FROM notes')).length).toBe(1);
        });",
    );
    let report = tested(&kernel, "tools").await;
    assert_eq!(counts(&report), (1, 0), "{report}");
    assert_eq!(project.text("out/kept.txt").as_deref(), Some("before"));
    assert_eq!(project.text("out/inner.txt"), None);
    let rows = kernel.call("exec_sql", json!({ "sql": "SELECT count(*) AS n FROM notes" })).await;
    assert_eq!(data(&rows)["rows"][0]["n"], 0);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_files_are_no_tools() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let test = "import { test, expect } from '@tgp/test';\nimport shout from './shout.ts';\ntest('shouts', () => { expect(shout({ text: 'a' })).toBe('A!'); });\n";
    let tool = "/** Shouts a text. */\nexport default ({ text }: { text: string }): string => `${text.toUpperCase()}!`;\n";
    for (path, content) in [("tools/shout.test.ts", test), ("tools/shout.ts", tool)] {
        let written = kernel.call("write_file", json!({ "path": path, "content": content })).await;
        assert!(written.is_ok(), "{written:?}");
    }
    let listed = kernel.call("list_files", json!({ "dir": "tools" })).await;
    assert_eq!(data(&listed), &json!(["tools/shout.test.ts", "tools/shout.ts"]));
    let meta = project.text(".tgp/meta.json").unwrap();
    assert!(meta.contains("tools/shout.ts") && !meta.contains("shout.test.ts"), "{meta}");
    let found = kernel.call("search", json!({ "query": "shouts a text" })).await;
    assert!(!data(&found).to_string().contains("shout.test.ts"), "{found:?}");
    let executed = kernel.call("exec_tool", json!({ "path": "tools/shout.test.ts" })).await;
    assert_eq!(code(&executed), "EVALIDATION");
    assert!(error(&executed).help_of().unwrap().contains("test_tool"));
    let checked = kernel.call("check_tool", json!({ "path": "tools/shout.test.ts" })).await;
    assert_eq!((&data(&checked)["valid"], &data(&checked)["findings"]), (&json!(true), &json!([])));
    project.tool("greedy.ts", "import { expect } from '@tgp/test';\nexport default () => expect(1);\n");
    let checked = kernel.call("check_tool", json!({ "path": "tools/greedy.ts" })).await;
    assert!(data(&checked)["errors"][0].as_str().unwrap().contains("it is for test files"), "{checked:?}");
    let executed = kernel.call("exec_tool", json!({ "path": "tools/greedy.ts" })).await;
    assert_eq!(code(&executed), "ESECURITY");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_means_a_file_a_tool_or_a_directory() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    assert_eq!(data(&kernel.call("test_tool", json!({})).await)["files"], json!([]));
    let test = "import { test, expect } from '@tgp/test';\ntest('holds', () => { expect(1).toBe(1); });\n";
    for name in ["a.test.ts", "deep/b.test.ts", "deep/er/c.test.ts"] {
        project.tool(name, test);
    }
    project.tool("a.ts", "export default 1;");
    project.tool("untested.ts", "export default 1;");
    project.tool(".test.ts", test);
    for (path, expected) in [
        ("tools", vec!["tools/a.test.ts", "tools/deep/b.test.ts", "tools/deep/er/c.test.ts"]),
        ("tools/deep", vec!["tools/deep/b.test.ts", "tools/deep/er/c.test.ts"]),
        ("tools/a.ts", vec!["tools/a.test.ts"]),
        ("tools/deep/b.ts", vec!["tools/deep/b.test.ts"]),
        ("tools/deep/er/c.test.ts", vec!["tools/deep/er/c.test.ts"]),
    ] {
        let report = tested(&kernel, path).await;
        let paths: Vec<&str> =
            report["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(paths, expected, "{path}");
        assert_eq!(counts(&report), (expected.len() as u64, 0), "{path}");
    }
    for (path, expected) in [
        ("tools/untested.ts", "ENOTFOUND"),
        ("tools/none.test.ts", "ENOTFOUND"),
        ("tools/none", "ENOTFOUND"),
        ("../a.test.ts", "ESECURITY"),
    ] {
        let answer = kernel.call("test_tool", json!({ "path": path })).await;
        assert_eq!(code(&answer), expected, "{path}");
        assert!(error(&answer).help_of().is_some(), "{path}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_test_beside_a_script_is_found_and_tied_to_it() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let script = "export default () => 3;\n";
    project.put(".tgp/bin/three.js", script);
    project.put(
        ".tgp/bin/three.test.ts",
        "import { test, expect } from '@tgp/test';\nimport three from './three.js';\ntest('is three', () => { expect(three()).toBe(3); });\n",
    );
    let report = tested(&kernel, "bin/three.js").await;
    assert_eq!(counts(&report), (1, 0), "{report}");
    let file = &report["files"][0];
    assert_eq!((&file["path"], &file["toolPath"]), (&json!("bin/three.test.ts"), &json!("bin/three.js")));
    assert_eq!(file["toolSha256"], canonical::sha256_hex(script.as_bytes()));
    kernel.shutdown().await;
}
