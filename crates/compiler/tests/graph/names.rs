//! The names of a CommonJS module that ES modules can import.

use crate::support::Project;

/// The names of the facade of `npm:cjs/index.js`, given what imports it and its files.
fn facade(tool: &str, files: &[(&str, &str)]) -> String {
    let mut project = Project::new(&[("tools/a.ts", tool)]).allow(&["cjs", "esm"]);
    for (path, content) in files {
        project = project.file(&format!("node_modules/{path}"), content);
    }
    project.graph("tools/a.ts").unwrap().modules["esm:npm:cjs/index.js"].exports.join(" ")
}

#[test]
fn names_come_from_the_source_and_from_its_importers() {
    let index =
        "exports.a = 1; exports['b'] = 2; exports['c-d'] = 3; exports.default = 4; exports.class = 5;";
    assert_eq!(
        facade("import { hidden } from 'cjs'; hidden", &[("cjs/index.js", index)]),
        "default a b class hidden"
    );
    assert_eq!(
        facade("import * as x from 'cjs'; x.hidden", &[("cjs/index.js", index)]),
        "default a b class hidden"
    );
    assert_eq!(
        facade("import x from 'cjs'; x", &[("cjs/index.js", "module.exports = function () {};")]),
        "default"
    );
}

#[test]
fn names_are_followed_through_other_modules() {
    let files = [
        (
            "cjs/index.js",
            "__exportStar(require('./one'), exports); module.exports = { own: 1, ...require('./two') };",
        ),
        ("cjs/one.js", "exports.one = 1; module.exports = require('./three');"),
        ("cjs/two.js", "Object.defineProperty(exports, 'two', { value: 2 });"),
        ("cjs/three.js", "exports.three = 3; module.exports = require('./index');"),
    ];
    assert_eq!(facade("import x from 'cjs'; x", &files), "default one own three two");
}

#[test]
fn hidden_names_pass_through_a_star() {
    let files = [
        ("esm/index.js", "export * from './middle.js'; export const shown = 1;"),
        ("esm/middle.js", "export * from 'cjs';"),
        ("cjs/index.js", "module.exports = build(); function build() { return { hidden: 1 }; }"),
    ];
    assert_eq!(facade("import { hidden, shown } from 'esm'; [hidden, shown]", &files), "default hidden");
}
