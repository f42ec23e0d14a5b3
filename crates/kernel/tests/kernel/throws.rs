//! An exception names its place in the TypeScript, not in what was made of it.

use serde_json::json;

use crate::support::{Project, code, error, exec, place, result, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_throw_names_its_line_and_column() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (source, line, column) in [
        // In the tool itself.
        ("export default () => {\n  throw new Error('here');\n};", 2, 9),
        // After declarations that leave nothing in the output.
        (
            "interface A {\n  a: number;\n  b: string;\n}\ntype B =\n  | A\n  | undefined;\ndeclare const c: B;\nexport default (): B => {\n    throw new Error('here');\n};",
            10,
            11,
        ),
        // In a nested function, past generics and casts.
        (
            "function outer<T extends object>(value: T): never {\n  const inner = (v: unknown): never => {\n    throw new TypeError(String(v));\n  };\n  return inner(value as unknown);\n}\nexport default () => outer({});",
            3,
            11,
        ),
        // An enum grows into many lines.
        (
            "enum E {\n  A,\n  B,\n}\nexport default () => {\n  if (E.B === 1) throw new Error('here');\n};",
            6,
            24,
        ),
        // Scripts.
        ("const n: number = 1;\n\nif (n === 1) throw new Error('here');\nreturn n;", 3, 20),
        ("const broken: { deep?: { x: number } } = {};\n(broken as { deep: { x: number } }).deep.x", 2, 4),
        // CommonJS.
        ("module.exports = () => {\n  throw new Error('here');\n};", 2, 9),
        // After an await.
        ("export default async () => {\n  await Promise.resolve();\n  throw new Error('late');\n};", 3, 9),
        // In a timer's callback.
        (
            "export default () => new Promise(() => {\n  setTimeout(() => {\n    throw new Error('later');\n  }, 1);\n});",
            3,
            11,
        ),
        // While the module is loaded.
        (
            "const x: string | null = null;\nconst y = (x as unknown as string).length;\nexport default () => y;",
            2,
            12,
        ),
        // A getter that the result is read by.
        (
            "export default () => ({\n  get bad(): number {\n    throw new RangeError('read');\n  },\n});",
            3,
            11,
        ),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(code(&answer), "ERUNTIME", "{source}");
        let found = error(&answer).place_of().unwrap_or_else(|| panic!("no place for\n{source}"));
        assert_eq!((found.file.as_str(), found.line), ("tools/under_test.ts", line), "{source}");
        // The engine remembers the last step before the throw, which is the statement or a call inside it.
        let width = source.lines().nth(line as usize - 1).unwrap().chars().count() as u32;
        assert!(
            (column - 2..=width).contains(&found.column),
            "column {} instead of {column} in\n{source}",
            found.column
        );
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_tool_names_its_own_file() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("lib/deep.ts", "interface Long {\n  a: 1;\n}\nexport const deep = (_: Long): never => {\n  throw new Error('deep');\n};");
    project
        .tool("by_import.ts", "import { deep } from './lib/deep.ts';\nexport default () => deep({ a: 1 });");
    project.tool(
        "by_require.ts",
        "const { deep } = require('./lib/deep.ts');\nmodule.exports = () => deep({ a: 1 });",
    );
    project
        .tool("by_lib.ts", "import { deep } from '/lib/lib/deep.ts';\nexport default () => deep({ a: 1 });");
    for tool in ["by_import", "by_require", "by_lib"] {
        let answer = exec(&kernel, &format!("tools/{tool}.ts"), json!({})).await;
        assert!(place(&answer).starts_with("tools/lib/deep.ts:5:"), "{tool}: {}", place(&answer));
        let stack = error(&answer).details["stack"].as_array().unwrap().clone();
        assert!(
            stack.iter().any(|frame| frame.as_str().unwrap().contains(&format!("tools/{tool}.ts:2:"))),
            "{stack:?}"
        );
    }
    // A source that does not compile names its own file, too.
    project.tool("lib/broken.ts", "export const a = 1;\nexport const b = ;\n");
    project.tool("imports_broken.ts", "import { a } from './lib/broken.ts';\nexport default () => a;");
    let answer = exec(&kernel, "tools/imports_broken.ts", json!({})).await;
    assert_eq!(code(&answer), "ECOMPILE");
    assert!(place(&answer).starts_with("tools/lib/broken.ts:2:"), "{}", place(&answer));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_and_codes_are_the_tools_own() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (source, expected, message) in [
        ("export default () => { throw new TypeError('bad'); };", "ERUNTIME", "TypeError: bad"),
        ("export default () => { throw 'text'; };", "ERUNTIME", "the tool threw text"),
        ("export default () => { throw { a: 1 }; };", "ERUNTIME", "the tool threw { a: 1 }"),
        ("export default () => { throw null; };", "ERUNTIME", "the tool threw null"),
        ("export default () => Promise.reject(new Error('later'));", "ERUNTIME", "later"),
        (
            "class Mine extends Error { name = 'Mine'; }\nexport default () => { throw new Mine('own'); };",
            "ERUNTIME",
            "Mine: own",
        ),
        ("export default () => tgp.read_file('../../etc/passwd');", "ESECURITY", "upward"),
        ("export default () => tgp.read_file('nothing.json');", "ENOTFOUND", "nothing.json"),
        ("export default () => tgp.read_file(5 as never);", "EVALIDATION", "string"),
        ("export default () => tgp.exec_sql('selec 1');", "ESQL", "syntax"),
        ("export default () => new Promise(() => {});", "ERUNTIME", "nothing can settle"),
        ("export const named = 1;", "EVALIDATION", "default export"),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(code(&answer), expected, "{source}");
        assert!(error(&answer).message.contains(message), "{source}: {}", error(&answer).message);
        assert!(error(&answer).help_of().is_some(), "{source}: no help");
    }
    kernel.shutdown().await;
}

const LOST: &str = "unhandled promise rejection: ";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_nobody_awaited_fails_the_run() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    for (source, expected, message, line) in [
        (
            "export default () => {\n  Promise.reject(new Error('lost'));\n  return 'ok';\n};",
            "ERUNTIME",
            "lost",
            2,
        ),
        (
            "const later = async (): Promise<void> => {\n  await Promise.resolve();\n  throw new TypeError('lost');\n};\nexport default () => {\n  void later();\n  return 'ok';\n};",
            "ERUNTIME",
            "lost",
            3,
        ),
        // Only one of two is handled; the first that is not is reported.
        (
            "export default () => {\n  Promise.reject(new Error('handled')).catch(() => 0);\n  Promise.reject(new Error('lost'));\n  Promise.reject(new Error('second'));\n  return 'ok';\n};",
            "ERUNTIME",
            "lost",
            3,
        ),
        (
            "export default () => {\n  queueMicrotask(() => {\n    throw new Error('lost');\n  });\n  return 'ok';\n};",
            "ERUNTIME",
            "lost",
            3,
        ),
        // It says more than that the tool waits forever.
        (
            "export default () => new Promise(() => {\n  queueMicrotask(() => {\n    throw new Error('lost');\n  });\n});",
            "ERUNTIME",
            "lost",
            3,
        ),
        (
            "export default () => {\n  void tgp.read_file('../../etc/passwd');\n  return 'ok';\n};",
            "ESECURITY",
            "upward",
            2,
        ),
        // What happens after a call that is not awaited belongs to the run, too.
        (
            "export default () => {\n  void tgp.list_files('tools').then(() => {\n    throw new Error('lost');\n  });\n  return 'ok';\n};",
            "ERUNTIME",
            "lost",
            3,
        ),
        // Scripts and CommonJS.
        ("Promise.reject(new Error('lost'));\nreturn 'ok';", "ERUNTIME", "lost", 1),
        (
            "module.exports = () => {\n  Promise.reject(new Error('lost'));\n  return 'ok';\n};",
            "ERUNTIME",
            "lost",
            2,
        ),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(code(&answer), expected, "{source}");
        let told = &error(&answer).message;
        assert!(told.contains(LOST) && told.contains(message), "{source}: {told}");
        assert!(place(&answer).starts_with(&format!("tools/under_test.ts:{line}:")), "{source}: {answer:?}");
    }
    // What is not an error has no place, but it is reported all the same.
    let answer = run(&kernel, &project, "export default () => {\n  Promise.reject(5);\n};", json!({})).await;
    assert!(error(&answer).message.contains(&format!("{LOST}the tool threw 5")), "{answer:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejection_that_is_handled_late_is_fine() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool("throws.ts", "throw new Error('while it loads');\nexport default () => 1;");
    for source in [
        "export default async () => {\n  const lost = Promise.reject(new Error('x'));\n  await new Promise((resolve) => setTimeout(resolve, 5));\n  await lost.catch(() => 0);\n  return 'ok';\n};",
        // Handled only while the calls that are still open are waited for.
        "export default () => {\n  const lost = Promise.reject(new Error('x'));\n  void tgp.list_files('tools').then(() => lost.catch(() => 0));\n  return 'ok';\n};",
        "export default async () => {\n  const calls = [tgp.read_file('a'), tgp.read_file('b')];\n  await tgp.list_files('tools');\n  await Promise.allSettled(calls);\n  return 'ok';\n};",
        "export default async () => {\n  await Promise.race([Promise.resolve(1), tgp.read_file('missing')]);\n  return 'ok';\n};",
        "export default async () => {\n  try {\n    await tgp.fetch('https://example.com/');\n  } catch {\n    return 'ok';\n  }\n};",
        "module.exports = () => {\n  try {\n    return require('./throws.ts');\n  } catch {\n    return 'ok';\n  }\n};",
        // A timer is not waited for.
        "export default () => {\n  setTimeout(() => Promise.reject(new Error('x')), 60_000);\n  return 'ok';\n};",
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(result(&answer), json!("ok"), "{source}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_nobody_awaited_belong_to_the_run() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "export default () => {\n  void tgp.write_file('tmp/a', 'a').then(() => tgp.write_file('tmp/b', 'b'));\n  return 'ok';\n};";
    assert_eq!(result(&run(&kernel, &project, source, json!({})).await), json!("ok"));
    assert_eq!((project.text("tmp/a").as_deref(), project.text("tmp/b").as_deref()), (Some("a"), Some("b")));
    let source = "export default () => {\n  void tgp.write_file('tmp/c', 'c');\n  void tgp.write_file('/etc/x', 'y');\n  return 'ok';\n};";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(code(&answer), "ESECURITY", "{answer:?}");
    assert!(error(&answer).message.contains(LOST), "{answer:?}");
    assert!(place(&answer).starts_with("tools/under_test.ts:3:"), "{answer:?}");
    assert!(!project.file("tmp/c").exists(), "nothing was committed");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_error_before_a_loop_was_reported_at_the_loop() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool(
        "early.ts",
        "export default async (args: { path: string }) => {\n  const text = await tgp.read_file(args.path);\n  let sum = 0;\n  for (const line of text.split('\\n')) sum += Number(line);\n  return sum;\n};",
    );
    let answer = exec(&kernel, "tools/early.ts", json!({ "path": "tmp/nope" })).await;
    assert!(place(&answer).starts_with("tools/early.ts:2:"), "{}", place(&answer));
    kernel.shutdown().await;
}
