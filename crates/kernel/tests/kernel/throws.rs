//! An exception names its place in the TypeScript, not in what was made of it.

use serde_json::json;

use crate::support::{Project, code, error, exec, place, run};

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
        ("export default () => tgp.exec_sql('select 1');", "ESQL", "database"),
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
