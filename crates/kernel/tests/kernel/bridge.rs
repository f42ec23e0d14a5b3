//! What a tool reaches through `tgp`, and what it does not.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{Project, code, error, exec, result, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integration_plan_2_host_filesystem_access() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let written = kernel
        .call("write_file", json!({ "path": "data.json", "content": "{\"users\":[{\"id\":7}]}" }))
        .await;
    assert!(written.is_ok(), "{written:?}");
    let source = "export default async () => JSON.parse(await tgp.read_file('data.json'));";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(result(&answer), json!({ "users": [{ "id": 7 }] }));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integration_plan_2_recursive_tool_execution() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("multiplier.ts", "export default ({ a, b }: { a: number; b: number }) => a * b;");
    for source in [
        "import multiply from './multiplier.ts';\nexport default (v: { a: number; b: number }) => multiply(v);",
        "import multiply from './multiplier';\nexport default (v: { a: number; b: number }) => multiply(v);",
        "import multiply from '/lib/multiplier.ts';\nexport default (v: { a: number; b: number }) => multiply(v);",
        "const multiply = require('./multiplier.ts');\nmodule.exports = (v: { a: number; b: number }) => multiply(v);",
        "export default (v: { a: number; b: number }) => require('./multiplier').default(v);",
        "export default (v: { a: number; b: number }) => tgp.exec_tool('tools/multiplier.ts', v);",
        "return await tgp.exec_tool('tools/multiplier.ts', args);",
        "const { default: multiply } = await import('./multiplier.ts');\nreturn multiply(args);",
    ] {
        project.tool("calculator.ts", source);
        let answer = exec(&kernel, "tools/calculator.ts", json!({ "a": 6, "b": 7 })).await;
        assert_eq!(result(&answer), json!(42), "{source}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_stay_inside_the_allowed_directories() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "fs": { "allowedDirs": ["./tmp", "out/reports"] } })).await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.file("tmp")).unwrap();
    std::fs::create_dir_all(project.file("tmp-evil")).unwrap();
    symlink(outside.path(), project.file("tmp/link")).unwrap();
    symlink("../tgp.config.json", project.file("tmp/config.json")).unwrap();
    let before = project.text("tgp.config.json");
    let source = "export default ({ path }: { path: string }) => tgp.write_file(path, 'x');";
    for path in [
        "tmp-evil/x",
        "tmpx",
        "out/x",
        "out/reports-2/x",
        "x",
        "tools/x.ts",
        "/lib/x.ts",
        "/lib",
        "tmp/../x",
        "tmp/../../x",
        "../x",
        "/tmp/../x",
        "/etc/x",
        "/tmpx/x",
        "/var/tmp/x",
        "//tmp/x",
        "tmp/link/x",
        "tmp/config.json",
        "tmp/a\0b",
        "tmp\\x",
        "./tmp/./../tmp-evil/x",
        ".git/config",
        "TMP/x",
    ] {
        let answer = run(&kernel, &project, source, json!({ "path": path })).await;
        assert!(!answer.is_ok(), "{path} was written");
        assert_eq!(code(&answer), "ESECURITY", "{path}: {}", error(&answer).message);
    }
    assert_eq!(project.text("tgp.config.json"), before);
    for directory in [outside.path().to_owned(), project.file("tmp-evil"), project.file(".tgp/tools/x.ts")] {
        let left = std::fs::read_dir(&directory).map_or(0, Iterator::count);
        assert_eq!(left, 0, "something was written to {}", directory.display());
    }
    assert!(!project.file("x").exists() && !project.file("tmpx").exists() && !project.file("out").exists());
    for path in ["tmp/x", "./tmp/deep/er/x", "out/reports/x", "tmp//y", "tmp/./z"] {
        let answer = run(&kernel, &project, source, json!({ "path": path })).await;
        assert_eq!(result(&answer), Value::Null, "{path}");
        assert_eq!(project.text(path).as_deref(), Some("x"), "{path}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_stay_inside_the_root() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.put("secret.txt", "secret").tool("data/a.txt", "inside");
    symlink("/etc/passwd", project.file(".tgp/link")).unwrap();
    symlink("../secret.txt", project.file(".tgp/up")).unwrap();
    let source = "export default ({ path }: { path: string }) => tgp.read_file(path);";
    for path in [
        "../secret.txt",
        "/etc/passwd",
        "link",
        "up",
        ".git/config",
        "tools/../../secret.txt",
        "/lib/../../secret.txt",
        "/proc/self/environ",
    ] {
        let answer = run(&kernel, &project, source, json!({ "path": path })).await;
        assert_eq!(code(&answer), "ESECURITY", "{path}: {}", error(&answer).message);
    }
    let answer = run(&kernel, &project, source, json!({ "path": "secret.txt" })).await;
    assert_eq!(code(&answer), "ENOTFOUND", "the project's own files are not the tool's");
    for path in ["tools/data/a.txt", "/lib/data/a.txt", "./tools/data/./a.txt"] {
        let answer = run(&kernel, &project, source, json!({ "path": path })).await;
        assert_eq!(result(&answer), json!("inside"), "{path}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lib_is_read_only_and_tmp_is_wiped() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let write = "export default async () => {\n  await tgp.write_file('/tmp/a/b.txt', 'scratch');\n  return [await tgp.read_file('/tmp/a/b.txt'), await tgp.list_files('/tmp')];\n};";
    let answer = run(&kernel, &project, write, json!({})).await;
    assert_eq!(result(&answer), json!(["scratch", ["/tmp/a/b.txt"]]));
    assert!(!std::path::Path::new("/tmp/a/b.txt").exists(), "the scratch directory is not the machine's");
    let read = "export default async () => [await tgp.list_files('/tmp'), await tgp.read_file('/tmp/a/b.txt').catch((e: { code: string }) => e.code)];";
    let answer = run(&kernel, &project, read, json!({})).await;
    assert_eq!(result(&answer), json!([[], "ENOTFOUND"]));
    let lib = "export default () => tgp.write_file('/lib/under_test.ts', 'x');";
    let answer = run(&kernel, &project, lib, json!({})).await;
    assert_eq!(code(&answer), "ESECURITY");
    // An inner tool has its own scratch directory.
    project.tool("inner.ts", "export default async () => { await tgp.write_file('/tmp/inner', 'x'); return tgp.list_files('/tmp'); };");
    let nested = "export default async () => {\n  await tgp.write_file('/tmp/outer', 'x');\n  return [await tgp.exec_tool('tools/inner.ts'), await tgp.list_files('/tmp')];\n};";
    let answer = run(&kernel, &project, nested, json!({})).await;
    assert_eq!(result(&answer), json!([["/tmp/inner"], ["/tmp/outer"]]));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_are_named_as_the_tool_names_them() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("b/two.ts", "1").tool("a/one.ts", "1").put("tmp/out/x.txt", "1");
    let source = "export default ({ dir }: { dir: string }) => tgp.list_files(dir);";
    for (dir, expected) in [
        ("/lib/a", json!(["/lib/a/one.ts"])),
        ("tools/b", json!(["tools/b/two.ts"])),
        ("tmp", json!(["tmp/out/x.txt"])),
        ("./tmp/", json!(["tmp/out/x.txt"])),
        ("/tmp", json!([])),
    ] {
        let answer = run(&kernel, &project, source, json!({ "dir": dir })).await;
        assert_eq!(result(&answer), expected, "{dir}");
    }
    let all = run(&kernel, &project, "export default () => tgp.list_files();", json!({})).await;
    let all: Vec<String> = serde_json::from_value(result(&all)).unwrap();
    assert!(
        all.contains(&"tools/a/one.ts".to_owned()) && all.iter().all(|path| !path.starts_with(".git/")),
        "{all:?}"
    );
    assert!(all.is_sorted(), "{all:?}");
    let denied = run(&kernel, &project, source, json!({ "dir": ".." })).await;
    assert_eq!(code(&denied), "ESECURITY");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn require_is_cached_and_safe_in_cycles() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("counter.ts", "let made = 0;\nmodule.exports = { made: ++made, id: {} };");
    let twice = "const one = require('./counter.ts');\nconst two = require('./counter.ts');\nmodule.exports = () => [one === two, one.made, two.made];";
    assert_eq!(result(&run(&kernel, &project, twice, json!({})).await), json!([true, 1, 1]));
    // Every run has its own heap: nothing of the last one is there.
    assert_eq!(result(&run(&kernel, &project, twice, json!({})).await), json!([true, 1, 1]));
    project.tool(
        "even.ts",
        "const odd = require('./odd.ts');\nexports.even = (n: number): boolean => n === 0 || odd.odd(n - 1);",
    );
    project.tool("odd.ts", "const even = require('./even.ts');\nexports.odd = (n: number): boolean => n !== 0 && even.even(n - 1);");
    let cyclic =
        "const { even } = require('./even.ts');\nmodule.exports = ({ n }: { n: number }) => even(n);";
    assert_eq!(result(&run(&kernel, &project, cyclic, json!({ "n": 10 })).await), json!(true));
    project.tool("left.ts", "import { right } from './right.ts';\nexport const left = (n: number): number => (n === 0 ? 0 : right(n - 1));");
    project.tool("right.ts", "import { left } from './left.ts';\nexport const right = (n: number): number => (n === 0 ? 1 : left(n - 1));");
    let imports = "import { left } from './left.ts';\nexport default ({ n }: { n: number }) => left(n);";
    assert_eq!(result(&run(&kernel, &project, imports, json!({ "n": 7 })).await), json!(1));
    let missing = run(&kernel, &project, "export default () => require('./nowhere.ts');", json!({})).await;
    assert!(["ENOTFOUND", "ECOMPILE"].contains(&code(&missing)), "{missing:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_call_tools_only_so_deep() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "export default async ({ n }: { n: number }): Promise<number> => (n === 0 ? 0 : 1 + (await tgp.exec_tool('tools/under_test.ts', { n: n - 1 })));";
    assert_eq!(result(&run(&kernel, &project, source, json!({ "n": 8 })).await), json!(8));
    let answer = run(&kernel, &project, source, json!({ "n": 9 })).await;
    assert_eq!(code(&answer), "ERUNTIME");
    assert!(error(&answer).message.contains("levels deep"), "{}", error(&answer).message);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_json_crosses() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("echo.ts", "export default (value: unknown) => ({ value });");
    let source = "export default async () => {\n  const echo = (value: unknown) => tgp.exec_tool('tools/echo.ts', value as object).catch((e: Error) => e.name);\n  return [await echo({ d: new Date(0), u: undefined }), await echo({ f: () => 1 }), await echo([1]), await echo('\\ud800'), await echo(1n), await echo(undefined)];\n};";
    let answer = run(&kernel, &project, source, json!({})).await;
    let expected = json!([{ "value": { "d": "1970-01-01T00:00:00.000Z" } }, "TypeError", { "value": [1] }, { "value": "\u{fffd}" }, "TypeError", { "value": {} }]);
    assert_eq!(result(&answer), expected);
    kernel.shutdown().await;
}

/// With the whole project writable, a tool could once plant a git hook or rewrite the kernel's configuration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_writable_project_does_not_open_git_the_tools_or_the_configuration() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "fs": { "allowedDirs": ["."] } })).await;
    project.put(".git/config", "secret");
    for path in [
        ".tgp/.git/hooks/pre-commit",
        ".git/hooks/pre-commit",
        ".GIT/config",
        ".tgp/tools/other.ts",
        "sub/.git/config",
        "tgp.config.ts",
        "tgp.config.json",
        "TGP.config.json",
    ] {
        let source = format!("export default async () => {{ await tgp.write_file('{path}', 'x'); }};");
        let answer = run(&kernel, &project, &source, json!({})).await;
        assert_eq!(code(&answer), "ESECURITY", "{path}: {:?}", error(&answer));
    }
    let answer =
        run(&kernel, &project, "export default () => tgp.read_file('.git/config');", json!({})).await;
    assert_eq!(code(&answer), "ESECURITY");
    let source =
        "export default async () => { await tgp.write_file('notes.txt', 'x'); return tgp.list_files('.'); };";
    let listed = result(&run(&kernel, &project, source, json!({})).await);
    let reachable = json!([".gitattributes", ".gitignore", "notes.txt"]);
    assert_eq!(listed, reachable, "what is out of reach is not listed either");
    assert_eq!(project.text("notes.txt").as_deref(), Some("x"));
    kernel.shutdown().await;
}

/// A tool root that is reached through a link is the same root, and directories that overlap it are a mistake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_the_tool_root_is_kept_by_its_real_place() {
    let project = Project::new();
    std::fs::rename(project.file(".tgp"), project.file("real")).unwrap();
    symlink("real", project.file(".tgp")).unwrap();
    let kernel = project.kernel(json!({ "fs": { "allowedDirs": ["."] } })).await;
    for path in ["real/tools/planted.ts", "real/meta.json", ".tgp/meta.json", "node_modules/zod/index.js"] {
        let source = format!("export default async () => {{ await tgp.write_file('{path}', 'x'); }};");
        kernel.call("write_file", json!({ "path": "tools/under_test.ts", "content": source })).await;
        let answer = exec(&kernel, "tools/under_test.ts", json!({})).await;
        assert_eq!(code(&answer), "ESECURITY", "{path}: {:?}", error(&answer));
    }
    assert!(!project.file("real/tools/planted.ts").exists());
    kernel.shutdown().await;
    for config in [json!({ "rootDir": "." }), json!({ "fs": { "allowedDirs": ["real/data"] } })] {
        project.put("tgp.config.json", &config.to_string());
        let refused = tgp::Kernel::boot(project.options()).await.unwrap_err();
        let refused = tgp::contract::ToolError::from(refused);
        assert_eq!(refused.code.as_str(), "ECONFIG", "{config}: {refused}");
    }
}

/// Only the kernel's own refusals carry the kernel's codes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_tool_does_not_forge_the_codes_of_gates() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for forged in ["EAPPROVAL", "ESECURITY", "ENOTFOUND", "EVALIDATION"] {
        let source = format!(
            "export default () => {{ throw Object.assign(new Error('no'), {{ code: '{forged}' }}); }};"
        );
        assert_eq!(code(&run(&kernel, &project, &source, json!({})).await), "ERUNTIME", "{forged}");
    }
    let source = "export default () => tgp.read_file('missing.txt');";
    assert_eq!(code(&run(&kernel, &project, source, json!({})).await), "ENOTFOUND");
    kernel.shutdown().await;
}

/// Integers that JavaScript would round are refused instead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_large_integers_are_not_rounded_without_a_word() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("same.ts", "export default (args: { n: unknown }) => args.n;");
    let exact = exec(&kernel, "tools/same.ts", json!({ "n": 9_007_199_254_740_992_u64 })).await;
    assert_eq!(result(&exact), json!(9_007_199_254_740_992_u64));
    let inexact = exec(&kernel, "tools/same.ts", json!({ "n": 9_007_199_254_740_993_u64 })).await;
    assert_eq!(code(&inexact), "EVALIDATION");
    kernel.shutdown().await;
}

/// A file whose JSON is larger than a frame is an error the tool can catch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_answer_that_is_too_large_can_be_caught() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "cpuMs": 5_000 } })).await;
    project.put(".tgp/large.txt", &"\u{1}".repeat(8 * 1024 * 1024));
    let source = "export default async () => { try { await tgp.read_file('large.txt'); } catch (error) { return (error as { code: string }).code; } };";
    assert_eq!(result(&run(&kernel, &project, source, json!({})).await), json!("EVALIDATION"));
    kernel.shutdown().await;
}
