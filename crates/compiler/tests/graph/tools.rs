//! Tools that import tools.

use tgp_compiler::{GraphBuilder, compile};
use tgp_contract::{Code, RelativePath};

use crate::support::{Project, links, shown};

#[test]
fn relative_specifiers_find_files_in_order() {
    let project = Project::new(&[
        (
            "tools/a/main.ts",
            "import exact from './exact.js'; import b from './b'; import c from '../c.js'; import d from './d';
             import e from '/lib/e'; import data from './data.json'; import { f } from '.';
             export default () => [exact, b, c, d, e, data, f];",
        ),
        ("tools/a/exact.js", "export default 'js';"),
        ("tools/a/exact.ts", "export default 'ts';"),
        ("tools/a/b.ts", "export default 'b';"),
        ("tools/c.ts", "export default 'c';"),
        ("tools/a/d/index.ts", "export default 'd';"),
        ("tools/e.ts", "export default 'e';"),
        ("tools/a/data.json", "{\"n\": 1}"),
        ("tools/a/index.ts", "export const f = 1;"),
    ]);
    let graph = project.graph("tools/a/main.ts").unwrap();
    assert_eq!(graph.entry, "tools/a/main.ts");
    assert_eq!(
        links(&graph, "tools/a/main.ts"),
        [
            ". -> tools/a/index.ts",
            "../c.js -> tools/c.ts",
            "./b -> tools/a/b.ts",
            "./d -> tools/a/d/index.ts",
            "./data.json -> esm:tools/a/data.json",
            "./exact.js -> tools/a/exact.js",
            "/lib/e -> tools/e.ts",
        ]
    );
}

#[test]
fn cycles_and_diamonds_are_compiled_once() {
    let project = Project::new(&[
        (
            "tools/a.ts",
            "import { b } from './b'; import { c } from './c'; export const a = 1; export default () => [b, c];",
        ),
        ("tools/b.ts", "import { a } from './a'; import { c } from './c'; export const b = () => [a, c];"),
        ("tools/c.ts", "import { b } from './b'; export const c = () => b;"),
    ]);
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(graph.modules.keys().collect::<Vec<_>>(), ["tools/a.ts", "tools/b.ts", "tools/c.ts"]);
}

#[test]
fn types_alone_make_no_module() {
    let project = Project::new(&[(
        "tools/a.ts",
        "import type { T } from './gone'; import { U } from './gone2'; export default (x: T & U) => x;",
    )]);
    assert_eq!(project.graph("tools/a.ts").unwrap().modules.len(), 1);
}

#[test]
fn the_standard_library_is_built_in() {
    let project = Project::new(&[("tools/a.ts", "import { sum } from '@tgp/std';\nsum(args.values)")]);
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(links(&graph, "tools/a.ts"), ["@tgp/std -> tgp:std"]);
    assert_eq!(links(&graph, "tgp:std"), ["tgp:csv -> tgp:csv"]);
    assert!(graph.modules["tgp:std"].exports.contains(&"parseCsv".to_owned()));
}

#[test]
fn require_and_import_of_commonjs_tools() {
    let project = Project::new(&[
        (
            "tools/a.ts",
            "import { x } from './c'; const c = require('./c'); const m = require('./m'); export default () => [x, c, m];",
        ),
        ("tools/c.ts", "const m = require('./m'); exports.x = m.y;"),
        ("tools/m.ts", "export const y = 1;"),
    ]);
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(
        links(&graph, "tools/a.ts"),
        [
            "./c -> esm:tools/c.ts",
            "./m -> tools/m.ts",
            "require:./c -> tools/c.ts",
            "tgp:require -> tgp:require",
        ]
    );
    assert_eq!(links(&graph, "tools/c.ts"), ["./m -> tools/m.ts"]);
    assert_eq!(links(&graph, "esm:tools/c.ts"), ["tgp:require -> tgp:require"]);
    assert_eq!(graph.modules["esm:tools/c.ts"].exports, ["default", "x"]);
}

#[test]
fn refusals_say_where_and_why() {
    let cases: &[(&str, &str)] = &[
        (
            "import x from '../../etc/passwd';\nexport default x;",
            "ESECURITY 1:15 tools/a.ts:1:15: cannot import `../../etc/passwd`: it names something outside the tool root",
        ),
        (
            "\nimport '/lib/../meta.json';\nexport {};",
            "ESECURITY 2:8 tools/a.ts:2:8: cannot import `/lib/../meta.json`",
        ),
        ("import '/etc/passwd'; export {};", "it names something outside the tool root"),
        ("import 'https://evil.example/x.js'; export {};", "it names something outside the tool root"),
        ("import 'data:text/javascript,1'; export {};", "it names something outside the tool root"),
        ("import 'zod/../evil'; export {};", "it names something outside the tool root"),
        ("import './link'; export {};", "it names something outside the tool root"),
        ("import 'tgp:require'; export {};", "it names something outside the tool root"),
        (
            "import { csvRows } from 'tgp:csv'; export default csvRows;",
            "it names something outside the tool root",
        ),
        ("export default () => import('tgp:csv');", "it names something outside the tool root"),
        ("module.exports = require('tgp:csv');", "it names something outside the tool root"),
        (
            "const fs = require('fs'); module.exports = fs;",
            "ESECURITY 1:20 tools/a.ts:1:20: cannot import `fs`: it is a module of Node",
        ),
        ("export * from 'node:crypto';", "ESECURITY 1:15"),
        ("import('fs/promises')", "it is a module of Node"),
        ("import 'zod-evil'; export {};", "the package is not on the allow-list (`zod`, `@scope/pkg`)"),
        (
            "import '@scope/pkg2'; export {};",
            "not on the allow-list (`zod`, `@scope/pkg`) (did you mean `@scope/pkg`?)",
        ),
        ("import 'tools/good.ts'; export {};", "a tool is imported by its path: `/lib/good.ts`"),
        ("import '@tgp/core'; export {};", "`@tgp/core` is for `tgp.config.ts`"),
        (
            "import './goood.ts'; export {};",
            "ENOTFOUND 1:8 tools/a.ts:1:8: cannot import `./goood.ts`: there is no such module; tried `tools/goood.ts`",
        ),
        ("import './goood.ts'; export {};", "did you mean `tools/good.ts`?"),
        ("import './deep'; export {};", "did you mean `tools/far/deep.ts`?"),
        (
            "import './notes.txt'; export {};",
            "ECOMPILE 1:8 tools/a.ts:1:8: cannot import `./notes.txt`: `tools/notes.txt` is not a module",
        ),
        ("import './bytes.ts'; export {};", "is not UTF-8 text"),
        (
            "import { goood } from './good'; export default goood;",
            "ECOMPILE 1:23 tools/a.ts:1:23: `./good` has no export named `goood` (did you mean `good`?)",
        ),
        ("import x from './good'; export default x;", "`./good` has no default export"),
        ("export { Shape } from './good';", "if `Shape` is a type, write `import type` or `export type`"),
    ];
    let mut wrong = Vec::new();
    for (source, expected) in cases {
        let mut project = Project::new(&[
            ("tools/a.ts", source),
            ("tools/good.ts", "export const good = 1; export interface Shape {}"),
            ("tools/far/deep.ts", "export {};"),
            ("tools/notes.txt", "hello"),
            ("tools/link.ts", "@link"),
        ])
        .allow(&["zod", "@scope/pkg"]);
        project.add("tools/bytes.ts", &[0xff, 0xfe]);
        let refusal = project.refusal("tools/a.ts");
        if !refusal.contains(expected) {
            wrong.push(format!("{source}\n  got      {refusal}\n  expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_missing_entry_names_its_neighbours() {
    let project = Project::new(&[("tools/math/fib.ts", "1")]);
    assert_eq!(
        project.refusal("tools/math/fob.ts"),
        "ENOTFOUND there is no tool `tools/math/fob.ts` (did you mean `tools/math/fib.ts`?)"
    );
}

#[test]
fn the_builder_keeps_its_books() {
    let project = Project::new(&[("tools/a.ts", "import './b'; 1"), ("tools/b.ts", "2")]);
    let entry = RelativePath::new("tools/a.ts").unwrap();
    let mut builder = GraphBuilder::new(project.host(), &entry).unwrap();
    let first = builder.pending();
    assert_eq!(first.len(), 1);
    assert!(builder.pending().is_empty());
    builder.supply(compile(&first[0]).unwrap()).unwrap();
    assert_eq!(builder.supply(compile(&first[0]).unwrap()).unwrap_err().0.code, Code::Internal);
    let unfinished = builder.finish().unwrap_err().0;
    assert!(shown(&unfinished).contains("`tools/b.ts` was asked for and not supplied"));
}

#[test]
fn graphs_have_a_size() {
    let mut project = Project::new(&[]);
    for index in 0..2_100 {
        let source = format!("import './m{}'; export {{}};", index + 1);
        project.add(&format!("tools/m{index}.ts"), source.as_bytes());
    }
    assert!(project.refusal("tools/m0.ts").contains("reaches more than 2000 modules"));
    let mut project = Project::new(&[("tools/a.ts", "import './big'; 1")]);
    project.add("tools/big.ts", &vec![b' '; 300 * 1024]);
    assert!(project.refusal("tools/a.ts").contains("more than the 262144 allowed"));
}

#[test]
fn bug_only_files_of_code_are_run() {
    let names =
        ["tools/README.md", "tools/a", "tools/data.json", "tools/a.d.ts", "a.d.mts", "bin/a.TS", "bin/a.txt"];
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "1")).collect();
    let project = Project::new(&files);
    for name in names {
        let refusal = project.refusal(name);
        assert!(refusal.starts_with(&format!("EVALIDATION `{name}` is not a tool")), "{refusal}");
    }
    for name in ["a.ts", "bin/a.js", "a.mts", "a.cts", "a.mjs", "a.cjs", "a.tsx", "a.jsx"] {
        assert!(Project::new(&[(name, "export default 1;")]).graph(name).is_ok(), "{name}");
    }
}

#[test]
fn bug_a_tool_imports_no_tests_and_no_declarations() {
    for (source, code) in [
        ("import x from './b.test.ts'; export default x;", "ECOMPILE 1:15"),
        ("export * from './b.test';", "`tools/b.test.ts` holds tests, and only tests may import it"),
        ("import '/lib/b.test.js'; export {};", "`tools/b.test.ts` holds tests"),
        ("module.exports = require('../tools/b.test.ts');", "`tools/b.test.ts` holds tests"),
        (
            "import './c'; export {};",
            "tools/c.ts:1:8: cannot import `./b.test.ts`: `tools/b.test.ts` holds tests",
        ),
        ("import './types.d.ts'; export {};", "ECOMPILE 1:8 tools/a.ts:1:8: cannot import `./types.d.ts`"),
        ("import './types.d'; export {};", "`tools/types.d.ts` is not a module"),
    ] {
        let project = Project::new(&[
            ("tools/a.ts", source),
            ("tools/b.test.ts", "export default () => 'free code';"),
            ("tools/c.ts", "import './b.test.ts'; export {};"),
            ("tools/types.d.ts", "export const x = 1;"),
        ]);
        let refusal = project.refusal("tools/a.ts");
        assert!(refusal.contains(code), "{source}: {refusal}");
    }
    // Tests may share what they need.
    let project = Project::new(&[
        ("tools/a.test.ts", "import { x } from './b.test.ts'; export default x;"),
        ("tools/b.test.ts", "export const x = 1;"),
    ]);
    assert!(project.graph("tools/a.test.ts").is_ok());
}
