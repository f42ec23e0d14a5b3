//! What a tool meets of the platform: bytes, proxies, spreads, timers, inner tools, and the words of its errors.

use serde_json::{Value, json};

use crate::support::{Project, code, data, error, exec, logs, place, result, run};

/// A view of a resizable buffer that follows its buffer, after it grew, shrank, or stayed.
const VIEWS: &str = "export default async () => {
  const made = (size: number) => new ArrayBuffer(size, { maxByteLength: 8 });
  const text = (view: Uint8Array) => new TextDecoder().decode(view);
  const [grown, cut, kept] = [made(2), made(6), made(4)];
  const views = [new Uint8Array(grown), new Uint8Array(cut, 1), new Uint8Array(kept, 1, 2)];
  grown.resize(5);
  cut.resize(3);
  kept.resize(8);
  for (const buffer of [grown, cut, kept]) new Uint8Array(buffer).forEach((_, at, all) => { all[at] = 97 + at; });
  const files = [];
  for (const [at, view] of views.entries()) {
    await tgp.write_file(`/tmp/${at}`, view);
    files.push(await tgp.read_file(`/tmp/${at}`));
  }
  const rows = await tgp.exec_sql('SELECT hex(?) AS a, hex(?) AS b, hex(?) AS c', views);
  return { texts: views.map(text), files, rows, base64: views.map((view) => btoa(text(view))) };
};";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_views_of_resizable_buffers_lost_bytes() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let found = result(&run(&kernel, &project, VIEWS, json!({})).await);
    assert_eq!(found["texts"], json!(["abcde", "bc", "bc"]));
    assert_eq!(found["files"], found["texts"]);
    assert_eq!(found["rows"], json!([{ "a": "6162636465", "b": "6263", "c": "6263" }]));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_list_behind_many_proxies_became_an_object() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = |count: usize| {
        format!(
            "export default () => {{ let list: any = [1, 2]; for (let n = 0; n < {count}; n += 1) list = new Proxy(list, {{}}); return {{ rows: list }}; }};"
        )
    };
    assert_eq!(result(&run(&kernel, &project, &source(8), json!({})).await), json!({ "rows": [1, 2] }));
    let refused = run(&kernel, &project, &source(9), json!({})).await;
    assert_eq!(code(&refused), "ERUNTIME");
    assert!(error(&refused).message.contains(".rows is a proxy of more than 8 proxies"), "{refused:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_the_helper_of_long_spreads_changed_what_a_tool_does() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (source, expected) in [
        (
            "export default () => { const \\u005f_spread = 5; const list = [1, 2]; return [Math.max(...list), \\u005f_spread]; };",
            json!([2, 5]),
        ),
        (
            "const \\u{5f}_spread = 7;\nexport default () => { const list: number[] = []; list.push(...[\\u{5f}_spread]); return list; };",
            json!([7]),
        ),
        (
            "export default () => { Math.max = (...values: number[]) => values.length; return Math.max(...Array.from({ length: 60_000 }, (_, at) => at)); };",
            json!(60_000),
        ),
        (
            "export default () => { const list = Array.from({ length: 100_000 }, (_, at) => at); return [Math.max(...list), Math.min(...list)]; };",
            json!([99_999, 0]),
        ),
    ] {
        assert_eq!(result(&run(&kernel, &project, source, json!({})).await), expected, "{source}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_limit_as_a_float_was_a_message_of_the_parser() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("one.ts", "export default () => 1;");
    let call = async |limits: &str| {
        let limits: Value = serde_json::from_str(limits).unwrap();
        kernel.call("exec_tool", json!({ "path": "tools/one.ts", "limits": limits })).await
    };
    assert_eq!(result(&call(r#"{"cpuMs": 1e3, "memoryMb": 64.0}"#).await), json!(1));
    let refused = call(r#"{"cpuMs": 1.5}"#).await;
    assert_eq!(code(&refused), "EVALIDATION");
    assert!(!error(&refused).message.contains("u64"), "{refused:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_error_of_an_inner_tool_lost_its_place() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project
        .tool("inner.ts", "export default () => {\n  throw new RangeError('too far');\n};")
        .tool("middle.ts", "export default async () => {\n\n  return tgp.exec_tool('tools/inner.ts');\n};");
    let outer = "export default async () => tgp.exec_tool('tools/middle.ts');";
    let failed = run(&kernel, &project, outer, json!({})).await;
    assert_eq!(code(&failed), "ERUNTIME");
    assert_eq!(error(&failed).message, "RangeError: too far (thrown in tools/inner.ts:2:13)");
    assert_eq!(place(&failed), "tools/under_test.ts:1:28");
    let inner = &error(&failed).details["inner"];
    assert_eq!((&inner["tool"], &inner["place"]["line"]), (&json!("tools/middle.ts"), &json!(3)), "{inner}");
    assert_eq!(inner["inner"]["tool"], "tools/inner.ts", "{inner}");
    assert_eq!(inner["inner"]["place"], json!({ "file": "tools/inner.ts", "line": 2, "column": 13 }));
    // A tool that handles the error sees the message as it was thrown.
    let caught =
        "export default () => tgp.exec_tool('tools/inner.ts').catch((error: Error) => error.message);";
    assert_eq!(result(&run(&kernel, &project, caught, json!({})).await), "RangeError: too far");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_an_inner_tool_is_suggested() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("inner.ts", "export default () => 1;");
    let failed =
        run(&kernel, &project, "export default async () => tgp.exec_tool('inner');", json!({})).await;
    assert_eq!(code(&failed), "ENOTFOUND");
    assert_eq!(error(&failed).help_of(), Some("did you mean `tools/inner.ts`?"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_pending_timer_was_dropped_in_silence() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (body, expected) in [
        (
            "setTimeout(() => console.log('late'), 5000);",
            Some("1 timer was still pending when the run ended"),
        ),
        (
            "setTimeout(() => 1, 5000); setInterval(() => 1, 5000);",
            Some("2 timers were still pending when the run ended"),
        ),
        ("clearTimeout(setTimeout(() => 1, 5000));", None),
        ("AbortSignal.timeout(5000);", None),
        ("await new Promise((resolve) => setTimeout(resolve, 1));", None),
    ] {
        let source = format!("export default async () => {{ {body} return 1; }};");
        let ran = run(&kernel, &project, &source, json!({})).await;
        let lines = logs(data(&ran));
        match expected {
            Some(text) => {
                assert!(
                    matches!(&lines[..], [(level, line)] if level == "warn" && line.starts_with(text)),
                    "{body}: {lines:?}"
                );
            }
            None => assert!(lines.is_empty(), "{body}: {lines:?}"),
        }
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_directory_that_is_not_there_was_an_empty_list() {
    let project = Project::new();
    let kernel = project
        .kernel(json!({ "fs": { "allowedDirs": ["./tmp", "./fresh"], "readDirs": ["./data"] } }))
        .await;
    let source = "export default ({ dir }: { dir: string }) => tgp.list_files(dir);";
    for dir in ["tmp/none", "/tmp/none", "tools/none", "/lib/none", "data/none"] {
        let missing = run(&kernel, &project, source, json!({ "dir": dir })).await;
        assert_eq!(code(&missing), "ENOTFOUND", "{dir}");
        let told = format!("no such file or directory: `{dir}`; a tool can read");
        assert!(error(&missing).message.starts_with(&told), "{}", error(&missing).message);
    }
    // What the configuration names may be made by the first file in it.
    for dir in ["tmp", "fresh", "/tmp"] {
        assert_eq!(result(&run(&kernel, &project, source, json!({ "dir": dir })).await), json!([]), "{dir}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_endless_test_hid_the_tests_before_it() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "cpuMs": 500, "wallMs": 20_000 } })).await;
    project.tool(
        "a.test.ts",
        "import { test, expect } from '@tgp/test';\ntest('good', () => { console.log('said'); });\ntest('bad', () => { expect(1).toBe(2); });\ntest('endless', () => { for (;;) {} });\ntest('never', () => {});\n",
    );
    let report = kernel.call("test_tool", json!({ "path": "tools/a.test.ts" })).await;
    let file = &data(&report)["files"][0];
    let ended: Vec<_> =
        file["tests"].as_array().unwrap().iter().map(|test| (&test["name"], &test["ok"])).collect();
    assert_eq!(ended, [(&json!("good"), &json!(true)), (&json!("bad"), &json!(false))]);
    assert_eq!((&file["passed"], &file["failed"]), (&json!(1), &json!(2)));
    assert_eq!(file["error"]["code"], "ERR_ISOLATE_TIMEOUT");
    assert!(file["error"]["message"].as_str().unwrap().ends_with("(in the test `endless`)"), "{file}");
    assert_eq!(file["tests"][1]["error"]["place"]["line"], 3);
    assert_eq!(file["logs"], json!([{ "level": "info", "text": "said" }]));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_required_fields_of_generic_types_were_optional() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "type Page<T, M = string> = { items: T[]; next: M; more?: Page<T> };
interface Box<T> { value: T }
interface Deep<T> extends Box<T> { rest: Box<Box<T>> }
export default (args: { page: Page<{ id: number }>; deep: Deep<string> }): string => JSON.stringify(args);
";
    let fits = json!({ "page": { "items": [{ "id": 1 }], "next": "x" }, "deep": { "value": "a", "rest": { "value": { "value": "b" } } } });
    result(&run(&kernel, &project, source, fits.clone()).await);
    for (place, value, expected) in [
        (
            "/page",
            json!(null),
            ".page is null, the tool declares { items: { id: number }[]; more?: unknown; next: string }",
        ),
        ("/page/items/0/id", json!("1"), ".page.items[0].id is a string, the tool declares number"),
        ("/page/next", json!(1), ".page.next is a number, the tool declares string"),
        ("/deep/value", json!(1), ".deep.value is a number, the tool declares string"),
        ("/deep/rest/value/value", json!(1), ".deep.rest.value.value is a number, the tool declares string"),
    ] {
        let mut args = fits.clone();
        *args.pointer_mut(place).unwrap() = value;
        let refused = run(&kernel, &project, source, args).await;
        assert_eq!(code(&refused), "EVALIDATION", "{place}");
        assert!(error(&refused).message.contains(expected), "{}", error(&refused).message);
    }
    let missing = run(&kernel, &project, source, json!({ "deep": fits["deep"] })).await;
    assert!(error(&missing).message.contains(".page is missing"), "{missing:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_do_not_fit_name_what_was_meant() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "type Shape = { kind: 'circle'; radius: number } | { kind: 'square'; side: number };
export default (args: { shape: Shape; colour: string }): string => JSON.stringify(args);
";
    for (args, expected) in [
        (
            json!({ "shape": { "kind": "x" }, "colour": "a" }),
            ".shape.kind is \"x\"; expected \"circle\" or \"square\"",
        ),
        (
            json!({ "shape": { "side": 1 }, "colour": "a" }),
            ".shape.kind is missing; expected \"circle\" or \"square\"",
        ),
        (
            json!({ "shape": { "kind": 4 }, "colour": "a" }),
            ".shape.kind is 4; expected \"circle\" or \"square\"",
        ),
        (
            json!({ "shape": { "kind": "circle" }, "colour": "a" }),
            ".shape.radius is missing, the tool declares number",
        ),
        (
            json!({ "shape": { "kind": "square", "side": 1 }, "color": "a" }),
            ".colour is missing, the tool declares string (did you mean it by \"color\"?)",
        ),
    ] {
        let refused = run(&kernel, &project, source, args).await;
        assert_eq!(code(&refused), "EVALIDATION");
        assert!(error(&refused).message.contains(expected), "{}", error(&refused).message);
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_markdown_fence_was_a_tool() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let fenced = "```ts\nexport default (args: { n: number }): number => args.n;\n```\n";
    let written = kernel.call("write_file", json!({ "path": "tools/a.ts", "content": fenced })).await;
    assert_eq!(code(&written), "ECOMPILE");
    assert!(error(&written).message.contains("wrapped in a Markdown fence"), "{written:?}");
    assert!(error(&written).help_of().unwrap().contains("remove the Markdown fence"), "{written:?}");
    assert_eq!(code(&run(&kernel, &project, fenced, json!({ "n": 1 })).await), "ECOMPILE");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_write_did_not_report_what_cannot_run() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let write = async |path: &str, content: &str| {
        let written = kernel.call("write_file", json!({ "path": path, "content": content })).await;
        data(&written)["errors"].clone()
    };
    let tool = "import add from './add.ts';\n/** Greets a person by name in a letter. */\nexport default (args: { n: number }): number => add({ a: args.n });\n";
    let errors = write("tools/one.ts", tool).await;
    assert!(errors[0].as_str().unwrap().contains("./add.ts"), "{errors}");
    let test = "import { test } from '@tgp/test';\ntest('a', () => { setTimout(() => 1, 1); });\n";
    let errors = write("tools/one.test.ts", test).await;
    assert!(errors[0].as_str().unwrap().contains("`setTimout` is not defined"), "{errors}");
    let add = "/** Turns a length in inches into centimetres. */\nexport default (args: { a: number }): number => args.a + args.a;\n";
    assert_eq!(write("tools/add.ts", add).await, Value::Null);
    let again = kernel
        .call("patch_file", json!({ "path": "tools/one.ts", "search": "Greets a", "replace": "Greets the" }))
        .await;
    assert_eq!(data(&again)["errors"], Value::Null);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_write_and_a_refused_parameter_say_what_to_do() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "bridgeCalls": 3 } })).await;
    let write = "export default () => tgp.write_file('secret/a.txt', 'x');";
    let refused = run(&kernel, &project, write, json!({})).await;
    assert_eq!(code(&refused), "ESECURITY");
    assert!(
        error(&refused).message.ends_with("a tool can write tmp/, /tmp/ (until the run ends)"),
        "{refused:?}"
    );
    assert_eq!(error(&refused).help_of(), Some("write below tmp/, or to /tmp for scratch"));
    for (statement, expected) in [
        (
            "'SELECT :a AS a', { ':a': 1 }",
            "the parameter `:a` was given with the sign that it has only in the statement",
        ),
        ("'SELECT :a AS a', { a: 1, '$b': 1 }", "the parameter `$b` was given with the sign"),
        (
            "'SELECT :b AS a', { b: undefined }",
            "params.b is undefined: pass null instead for an SQL NULL, or see why it has no value",
        ),
    ] {
        let source = format!("export default () => tgp.exec_sql({statement});");
        let refused = run(&kernel, &project, &source, json!({})).await;
        assert!(error(&refused).message.contains(expected), "{}", error(&refused).message);
    }
    let many = "export default async () => {\n  for (;;) await tgp.list_files('/tmp');\n};";
    let refused = run(&kernel, &project, many, json!({})).await;
    assert!(error(&refused).message.contains("more than 3 `tgp.*` calls"), "{refused:?}");
    assert_eq!(place(&refused).split(':').nth(1), Some("2"));
    exec(&kernel, "tools/under_test.ts", json!({})).await;
    kernel.shutdown().await;
}
