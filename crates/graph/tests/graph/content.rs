//! What a file gives to others, what types are made of, and which names are symbols.

use serde_json::{Value, json};
use tgp_graph::GraphStore;

use crate::support::{arrows, committed, file, ingest, rows};

/// The public names of a file and what they mean.
fn exports(store: &GraphStore, commit: &str, path: &str) -> Vec<String> {
    let query = format!(
        "MATCH (:File {{path: '{path}'}})-[e:EXPORTS]->(t) \
         RETURN e.name + ' = ' + coalesce(t.qualifiedName, t.name, t.specifier) + ' in ' + coalesce(t.path, '-') AS line \
         ORDER BY line"
    );
    let text = |row: &Vec<Value>| row[0].as_str().unwrap_or("nothing").to_owned();
    rows(store, commit, &query).iter().map(text).collect()
}

#[test]
fn an_index_file_has_its_public_names() {
    let (mut project, store) = committed(&[
        (
            "lib/a.ts",
            "export function real() {}\nfunction inner() {}\nexport { inner as shown };\nexport const { one, two: zwei, ...rest } = real();\nexport default class Kind {}\nfunction hidden() {}\n",
        ),
        ("lib/b.ts", "export * from './a';\nexport const b = 1;\nexport const one = 2;\n"),
        (
            "index.ts",
            "export { real as publicReal, default as Kind } from './lib/a';\nexport * from './lib/b';\nexport * as all from './lib/b';\nexport { z } from 'zod';\nexport type { T } from './gone';\nimport { shown } from './lib/a';\nexport { shown as passed };\n",
        ),
    ]);
    assert_eq!(
        exports(&store, "HEAD", "lib/a.ts"),
        [
            "default = Kind in lib/a.ts",
            "one = one in lib/a.ts",
            "real = real in lib/a.ts",
            "rest = rest in lib/a.ts",
            "shown = inner in lib/a.ts",
            "zwei = zwei in lib/a.ts",
        ]
    );
    assert_eq!(
        exports(&store, "HEAD", "index.ts"),
        [
            "Kind = Kind in lib/a.ts",
            "T = ./gone in -",
            "all = b.ts in lib/b.ts",
            "b = b in lib/b.ts",
            "one = one in lib/b.ts",
            "passed = inner in lib/a.ts",
            "publicReal = real in lib/a.ts",
            "real = real in lib/a.ts",
            "rest = rest in lib/a.ts",
            "shown = inner in lib/a.ts",
            "z = zod in -",
            "zwei = zwei in lib/a.ts",
        ]
    );
    // A name comes two files below; the index is not touched.
    project.write("lib/a.ts", "export function real() {}\nexport function fresh() {}\n");
    project.commit("another");
    ingest(&store, "HEAD");
    assert_eq!(
        exports(&store, "HEAD", "index.ts"),
        [
            "T = ./gone in -",
            "all = b.ts in lib/b.ts",
            "b = b in lib/b.ts",
            "fresh = fresh in lib/a.ts",
            "one = one in lib/b.ts",
            "publicReal = real in lib/a.ts",
            "real = real in lib/a.ts",
            "z = zod in -",
        ]
    );
}

#[test]
fn types_say_what_they_are_made_of() {
    let (_project, store) = committed(&[
        (
            "a.ts",
            "import { Base } from './b';\nimport * as b from './b';\ninterface Own extends b.Shape {}\nclass A extends Base<string> implements Own, b.Shape {}\n",
        ),
        ("b.ts", "export class Base<T> {}\nexport interface Shape {}\n"),
        ("c.py", "from d import Base\nimport d\nclass C(Base, d.Other[int], metaclass=d.Meta):\n    pass\n"),
        ("d.py", "class Base: pass\nclass Other: pass\nclass Meta: pass\n"),
        ("e.rs", "trait Above {}\ntrait Shape: Above {}\nstruct S;\nimpl Shape for S {}\n"),
        ("p/F.java", "package p;\nclass F extends G implements H {}\n"),
        ("p/G.java", "package p;\nclass G {}\n"),
        ("p/H.java", "package p;\ninterface H {}\n"),
    ]);
    assert_eq!(
        arrows(&store, "HEAD", "EXTENDS"),
        [
            "Symbol a.ts#class A -> Symbol b.ts#class Base",
            "Symbol a.ts#interface Own -> Symbol b.ts#interface Shape",
            "Symbol c.py#class C -> Symbol d.py#class Base",
            "Symbol c.py#class C -> Symbol d.py#class Other",
            "Symbol e.rs#trait Shape -> Symbol e.rs#trait Above",
            "Symbol p/F.java#class F -> Symbol p/G.java#class G",
        ]
    );
    assert_eq!(
        arrows(&store, "HEAD", "IMPLEMENTS"),
        [
            "Symbol a.ts#class A -> Symbol a.ts#interface Own",
            "Symbol a.ts#class A -> Symbol b.ts#interface Shape",
            "Symbol e.rs#struct S -> Symbol e.rs#trait Shape",
            "Symbol p/F.java#class F -> Symbol p/H.java#interface H",
        ]
    );
}

#[test]
fn imports_of_types_alone_are_marked() {
    let (_project, store) = committed(&[
        (
            "a.ts",
            "import type { A } from './b';\nimport { type B, type C } from './c';\nimport { type D, d } from './d';\nexport type { E } from './e';\nimport './f';\n",
        ),
        ("g.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from h import H\nimport i\n"),
    ]);
    let query = "MATCH (f:File)-[i:IMPORTS]->() WHERE i.typeOnly RETURN i.specifier ORDER BY i.specifier";
    let found: Vec<Value> = rows(&store, "HEAD", query).into_iter().flatten().collect();
    assert_eq!(found, [json!("./b"), json!("./c"), json!("./e"), json!("h")]);
    let query = "MATCH (f:File)-[i:IMPORTS]->() WHERE NOT i.typeOnly RETURN i.specifier ORDER BY i.specifier";
    let found: Vec<Value> = rows(&store, "HEAD", query).into_iter().flatten().collect();
    assert_eq!(found, [json!("./d"), json!("./f"), json!("i"), json!("typing")]);
}

#[test]
fn functions_within_functions_are_symbols_and_variables_are_not() {
    let (_project, store) = committed(&[
        (
            "a.test.ts",
            "import { it } from 'vitest';\nit('works', () => {\n  const value = 1;\n  const helper = () => value;\n  function local() { helper(); }\n  local();\n});\nexport function outer() { function inner() {} inner(); }\n(function () { const top = 1; function once() {} })();\n",
        ),
        ("b.py", "def outer():\n    def inner():\n        pass\n    inner()\n"),
        ("c.rs", "fn outer() { fn inner() {} inner(); }\n"),
    ]);
    let query = "MATCH (s:Symbol) RETURN s.path + ' ' + s.kind + ' ' + s.qualifiedName AS line ORDER BY line";
    let found: Vec<Value> = rows(&store, "HEAD", query).into_iter().flatten().collect();
    assert_eq!(
        found,
        [
            "a.test.ts const top",
            "a.test.ts function helper",
            "a.test.ts function local",
            "a.test.ts function once",
            "a.test.ts function outer",
            "a.test.ts function outer.inner",
            "b.py function outer",
            "b.py function outer.inner",
            "c.rs function outer",
            "c.rs function outer::inner",
        ]
    );
    assert_eq!(
        arrows(&store, "HEAD", "CALLS"),
        [
            "File a.test.ts -> Symbol a.test.ts#function local",
            "Symbol a.test.ts#function local -> Symbol a.test.ts#function helper",
            "Symbol a.test.ts#function outer -> Symbol a.test.ts#function outer.inner",
            "Symbol b.py#function outer -> Symbol b.py#function outer.inner",
            "Symbol c.rs#function outer -> Symbol c.rs#function outer::inner",
        ]
    );
}

#[test]
fn bug_variance_does_not_break_a_file() {
    let (_project, store) = committed(&[(
        "a.ts",
        "export interface Both<in T, out U> { f(a: T): U }\nexport type In<in out T extends object = {}> = T;\n",
    )]);
    assert_eq!(file(&store, "HEAD", "a.ts")["broken"], json!(false));
    let names = rows(&store, "HEAD", "MATCH (s:Symbol) RETURN s.name ORDER BY s.name");
    assert_eq!(names, [[json!("Both")], [json!("In")], [json!("f")]]);
}

#[test]
fn bug_paths_of_rust_2015_begin_at_the_root_of_the_crate() {
    let (_project, store) = committed(&[
        ("Cargo.toml", "[package]\nname = \"old\"\nversion = \"0.1.0\"\n"),
        (
            "src/main.rs",
            "extern crate clap;\nmod app;\nmod printer;\nmod worker;\ntype Result<T> = ::std::result::Result<T, ()>;\nuse app::run;\nfn main() { run(); }\n",
        ),
        (
            "src/app.rs",
            "use printer::Printer;\nuse worker;\nuse Result;\nuse clap::App;\npub fn run() -> Result<()> { worker::go() }\n",
        ),
        ("src/printer.rs", "pub struct Printer;\n"),
        ("src/worker.rs", "pub fn go() -> ::Result<()> { Ok(()) }\n"),
    ]);
    let arrows: Vec<String> = arrows(&store, "HEAD", "IMPORTS")
        .into_iter()
        .filter(|arrow| arrow.starts_with("File src/app.rs"))
        .collect();
    assert_eq!(
        arrows,
        [
            "File src/app.rs -> File src/main.rs",
            "File src/app.rs -> File src/printer.rs",
            "File src/app.rs -> File src/worker.rs",
            "File src/app.rs -> Package cargo:clap",
        ]
    );
}
