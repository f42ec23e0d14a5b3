//! Tools that import packages.

use crate::support::{Project, links};

const MODULE: &str = r#"{"type": "module", "exports": {".": "./index.js", "./sub": "./lib/sub.js", "./package.json": "./package.json"}}"#;

fn with(source: &str) -> Project {
    Project::new(&[("tools/a.ts", source)]).allow(&[
        "pkg",
        "@scope/pkg",
        "dual",
        "cjs",
        "links",
        "escape",
        "uses",
    ])
}

#[test]
fn an_es_module_package_with_an_exports_map() {
    let project = with("import { x } from 'pkg'; import { y } from 'pkg/sub'; export default () => [x, y];")
        .file("node_modules/pkg/package.json", MODULE)
        .file("node_modules/pkg/index.js", "export { x } from './lib/x.js'; export * from 'dep';")
        .file("node_modules/pkg/lib/x.js", "export const x = 1;")
        .file("node_modules/pkg/lib/sub.js", "export const y = 2;")
        .file("node_modules/dep/package.json", r#"{"main": "./main"}"#)
        .file("node_modules/dep/main.js", "exports.deep = 1;");
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(links(&graph, "tools/a.ts"), ["pkg -> npm:pkg/index.js", "pkg/sub -> npm:pkg/lib/sub.js"]);
    assert_eq!(
        links(&graph, "npm:pkg/index.js"),
        ["./lib/x.js -> npm:pkg/lib/x.js", "dep -> esm:npm:dep/main.js"]
    );
    assert_eq!(graph.modules["esm:npm:dep/main.js"].exports, ["default", "deep"]);
}

#[test]
fn a_dual_package_gives_each_kind_its_file() {
    let manifest = r#"{"exports": {"import": "./index.mjs", "require": "./index.cjs"}}"#;
    let dual = |source: &str| {
        with(source)
            .file("node_modules/dual/package.json", manifest)
            .file("node_modules/dual/index.mjs", "export const kind = 'esm';")
            .file("node_modules/dual/index.cjs", "exports.kind = 'cjs';")
    };
    let graph = dual("import { kind } from 'dual'; export default kind;").graph("tools/a.ts").unwrap();
    assert_eq!(links(&graph, "tools/a.ts"), ["dual -> npm:dual/index.mjs"]);
    let graph = dual("const { kind } = require('dual'); module.exports = kind;").graph("tools/a.ts").unwrap();
    assert_eq!(links(&graph, "tools/a.ts"), ["dual -> npm:dual/index.cjs"]);
}

#[test]
fn module_and_main_fields() {
    let project = with("import x from 'pkg'; const y = require('@scope/pkg'); export default [x, y];")
        .file(
            "node_modules/pkg/package.json",
            r#"{"main": "./main.js", "module": "./module.js", "browser": "./no.js"}"#,
        )
        .file("node_modules/pkg/module.js", "export default 1;")
        .file("node_modules/@scope/pkg/package.json", r#"{"main": "./lib", "module": "./module.js"}"#)
        .file("node_modules/@scope/pkg/lib/index.js", "module.exports = require('./data.json');")
        .file("node_modules/@scope/pkg/lib/data.json", r#"{"n": 1}"#);
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(
        links(&graph, "tools/a.ts"),
        [
            "@scope/pkg -> npm:@scope/pkg/lib/index.js",
            "pkg -> npm:pkg/module.js",
            "tgp:require -> tgp:require",
        ]
    );
}

#[test]
fn the_browser_build_of_a_package_is_taken() {
    let project = with("import a from 'pkg'; import b from 'dual'; const c = require('cjs'); export default [a, b, c];")
        .file(
            "node_modules/pkg/package.json",
            r#"{"exports": {".": {"browser": "./web.js", "import": "./node.js"}}, "type": "module"}"#,
        )
        .file("node_modules/pkg/web.js", "export default 1;")
        .file("node_modules/pkg/node.js", "import 'node:fs'; export default 2;")
        .file(
            "node_modules/dual/package.json",
            r#"{"exports": {"import": {"node": "./node.mjs", "default": "./index.mjs"}}}"#,
        )
        .file("node_modules/dual/index.mjs", "export default 3;")
        .file(
            "node_modules/cjs/package.json",
            r#"{"main": "./node.js", "browser": {"./node.js": "./web.js", "./random.js": "./random-web.js", "stream": false}}"#,
        )
        .file("node_modules/cjs/web.js", "exports.random = require('./random.js'); exports.stream = require('stream');")
        .file("node_modules/cjs/random.js", "module.exports = require('crypto');")
        .file("node_modules/cjs/random-web.js", "module.exports = 4;");
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(
        links(&graph, "tools/a.ts"),
        [
            "cjs -> npm:cjs/web.js",
            "dual -> npm:dual/index.mjs",
            "pkg -> npm:pkg/web.js",
            "tgp:require -> tgp:require",
        ]
    );
    assert_eq!(
        links(&graph, "npm:cjs/web.js"),
        ["./random.js -> npm:cjs/random-web.js", "stream -> npm:empty"]
    );
}

#[test]
fn a_browser_field_leads_nowhere_outside_of_packages() {
    let project = with("import a from 'pkg'; export default a;")
        .file("secret.js", "export default 1;")
        .file(
            "node_modules/pkg/package.json",
            r#"{"main": "./main.js", "browser": {"./main.js": "../../secret.js"}}"#,
        )
        .file("node_modules/pkg/main.js", "export default 2;");
    assert!(project.graph("tools/a.ts").is_err());
}

#[test]
fn linked_layouts_stay_below_node_modules() {
    let project = with("import { a } from 'links'; export default a;")
        .link("node_modules/links", ".pnpm/links@1.0.0/node_modules/links")
        .file(
            "node_modules/.pnpm/links@1.0.0/node_modules/links/package.json",
            r#"{"type": "module", "main": "a.js"}"#,
        )
        .file("node_modules/.pnpm/links@1.0.0/node_modules/links/a.js", "export { a } from 'deep';")
        .link("node_modules/.pnpm/links@1.0.0/node_modules/deep", "../../deep@2.0.0/node_modules/deep")
        .file("node_modules/.pnpm/deep@2.0.0/node_modules/deep/index.js", "export const a = 1;");
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(
        graph.modules.keys().collect::<Vec<_>>(),
        [
            "npm:.pnpm/deep@2.0.0/node_modules/deep/index.js",
            "npm:.pnpm/links@1.0.0/node_modules/links/a.js",
            "tools/a.ts",
        ]
    );
}

#[test]
fn packages_of_directories_above_keep_apart() {
    let project = with("import { a } from 'pkg'; import { b } from 'uses'; export default [a, b];")
        .file("inner/node_modules/pkg/index.js", "export const a = 'near';")
        .file("node_modules/pkg/index.js", "export const a = 'far';")
        .file("node_modules/uses/index.js", "export { a as b } from 'pkg';");
    let host = project.host_in(project.path().join("inner"));
    let entry = tgp_contract::RelativePath::new("tools/a.ts").unwrap();
    let graph = crate::support::build(tgp_compiler::GraphBuilder::new(host, &entry)).unwrap();
    assert_eq!(links(&graph, "tools/a.ts"), ["pkg -> npm:pkg/index.js", "uses -> npm:../uses/index.js"]);
    assert_eq!(links(&graph, "npm:../uses/index.js"), ["pkg -> npm:../pkg/index.js"]);
}

#[test]
fn links_that_leave_node_modules_are_refused() {
    let project = with("import x from 'escape'; export default x;")
        .file("secret/index.js", "export default 'secret';")
        .link("node_modules/escape", "../secret");
    let refusal = project.refusal("tools/a.ts");
    assert!(
        refusal.starts_with(
            "ESECURITY 1:15 tools/a.ts:1:15: cannot import `escape`: it leads to a file outside"
        )
    );

    let project = with("import x from 'pkg'; export default x;")
        .file("node_modules/pkg/index.js", "export { default } from '../../secret/index.js';")
        .file("secret/index.js", "export default 'secret';");
    let refusal = project.refusal("tools/a.ts");
    assert!(
        refusal.starts_with("ESECURITY 1:25 npm:pkg/index.js:1:25: cannot import `../../secret/index.js`"),
        "{refusal}"
    );
}

#[test]
fn node_modules_are_refused_with_the_packages_place() {
    let project = with("import x from 'pkg'; export default x;")
        .file("node_modules/pkg/index.js", "\nimport crypto from 'crypto';\nexport default crypto;");
    let refusal = project.refusal("tools/a.ts");
    assert!(
        refusal.starts_with(
            "ESECURITY 2:20 npm:pkg/index.js:2:20: cannot import `crypto`: it is a module of Node"
        ),
        "{refusal}"
    );
    // A `require` fails when its line runs, which may be never.
    let project = with("import x from 'pkg'; export default x;")
        .file("node_modules/pkg/index.js", "\nconst crypto = require('crypto');\nmodule.exports = crypto;");
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(links(&graph, "npm:pkg/index.js"), ["crypto -> missing:crypto"]);
    let stand_in = &graph.modules["missing:crypto"].code;
    assert!(
        stand_in.contains("npm:pkg/index.js:2:24: cannot import `crypto`: it is a module of Node"),
        "{stand_in}"
    );
}

#[test]
fn an_installed_package_stands_in_for_nodes() {
    let project = with("import x from 'pkg'; export default x;")
        .file("node_modules/pkg/index.js", "module.exports = require('events');")
        .file("node_modules/events/index.js", "module.exports = class EventEmitter {};");
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(links(&graph, "npm:pkg/index.js"), ["events -> npm:events/index.js"]);
}

#[test]
fn an_optional_dependency_may_be_missing() {
    let project = with("import x from 'pkg'; export default x;").file(
        "node_modules/pkg/index.js",
        "try { require('fs'); require('gone'); } catch {} module.exports = 1;",
    );
    assert_eq!(links(&project.graph("tools/a.ts").unwrap(), "npm:pkg/index.js"), [""; 0]);
}

/// What is loaded in a branch that is never taken fails only when it is.
#[test]
fn bug_a_module_of_node_in_a_branch_never_taken_refused_the_package() {
    let project = with("import x from 'pkg'; export default x;").file(
        "node_modules/pkg/index.js",
        "module.exports = () => { require('stream'); require('./gone'); require('gone'); return import('node:fs'); };",
    );
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(
        links(&graph, "npm:pkg/index.js"),
        [
            "./gone -> missing:npm:pkg/index.js:./gone",
            "gone -> missing:gone",
            "node:fs -> esm:missing:node:fs",
            "stream -> missing:stream",
        ]
    );
    let code = &graph.modules["missing:stream"].code;
    assert!(
        code.contains("cannot import `stream`: it is a module of Node") && code.contains("MODULE_NOT_FOUND"),
        "{code}"
    );
    // What runs at once is refused at once, with its place.
    let project = with("import x from 'pkg'; export default x;")
        .file("node_modules/pkg/package.json", MODULE)
        .file("node_modules/pkg/index.js", "import { Readable } from 'stream';\nexport default Readable;");
    let refusal = project.refusal("tools/a.ts");
    assert!(refusal.contains("ESECURITY") && refusal.contains("cannot import `stream`"), "{refusal}");
    // And a tool's own require is an import that its author can correct.
    let refusal = with("module.exports = () => require('stream');").refusal("tools/a.ts");
    assert!(refusal.contains("ESECURITY"), "{refusal}");
}

#[test]
fn what_is_missing_is_named() {
    let refusal = with("import x from 'pkg'; export default x;").refusal("tools/a.ts");
    assert!(
        refusal.contains("ENOTFOUND 1:15") && refusal.contains("package `pkg` is not installed"),
        "{refusal}"
    );
    assert!(refusal.contains("(run `npm install pkg` in the project)"), "{refusal}");

    let project = with("import x from 'pkg/hidden'; export default x;")
        .file("node_modules/pkg/package.json", MODULE)
        .file("node_modules/pkg/hidden.js", "export default 1;");
    let refusal = project.refusal("tools/a.ts");
    assert!(refusal.contains("package `pkg` does not export `./hidden`"), "{refusal}");

    let project = with("import x from 'pkg'; export default x;")
        .file("node_modules/pkg/index.js", "export { x as default } from './gone.js';");
    let refusal = project.refusal("tools/a.ts");
    assert!(refusal.contains("ENOTFOUND 1:30 npm:pkg/index.js:1:30"), "{refusal}");
}

#[test]
fn large_and_binary_files_are_refused() {
    let project = with("import x from 'pkg'; export default x;")
        .file("node_modules/pkg/index.js", &format!("export default 1;{}", " ".repeat(4 * 1024 * 1024)));
    assert!(project.refusal("tools/a.ts").contains("more than the 4194304 allowed"));

    let project = with("import x from 'pkg'; export default x;").file("node_modules/pkg/index.js", "");
    std::fs::write(project.path().join("node_modules/pkg/index.js"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(project.refusal("tools/a.ts").contains("is not UTF-8 text"));
}

#[test]
fn a_package_names_its_own_files() {
    let manifest = r##"{"name": "pkg", "type": "module", "exports": {".": "./a.js", "./b": "./b.js"}, "imports": {"#inner": "./inner.js"}}"##;
    let project = with("import { x, y } from 'pkg'; export default [x, y];")
        .file("node_modules/pkg/package.json", manifest)
        .file("node_modules/pkg/a.js", "export { x } from '#inner'; export { y } from 'pkg/b';")
        .file("node_modules/pkg/inner.js", "export const x = 1;")
        .file("node_modules/pkg/b.js", "export const y = 1;");
    let graph = project.graph("tools/a.ts").unwrap();
    assert_eq!(links(&graph, "npm:pkg/a.js"), ["#inner -> npm:pkg/inner.js", "pkg/b -> npm:pkg/b.js"]);
}
