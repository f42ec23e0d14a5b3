//! One small project in each language, and all that is known of it.
//!
//! `UPDATE=1 cargo test -p tgp-graph languages` regenerates the listings; read the difference before it is kept.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tgp_graph::GraphStore;

use crate::support::{Project, arrows, ingest, picture, rows, without_history};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graph/fixtures")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn check(language: &str) {
    let mut project = Project::new();
    copy(&folder().join(language), &project.root());
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    let listing = without_history(picture(&store, "HEAD")).join("\n") + "\n";
    let golden = folder().join(format!("{language}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &listing).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    let missing: Vec<&str> = expected.lines().filter(|line| !listing.contains(line)).collect();
    let added: Vec<&str> = listing.lines().filter(|line| !expected.contains(line)).collect();
    assert!(listing == expected, "missing: {missing:#?}\nadded: {added:#?}");
}

#[test]
fn typescript() {
    check("typescript");
}

#[test]
fn javascript() {
    check("javascript");
}

#[test]
fn rust() {
    check("rust");
}

#[test]
fn python() {
    check("python");
}

#[test]
fn go() {
    check("go");
}

#[test]
fn java() {
    check("java");
}

/// A project of these files, ingested.
fn project(files: &[(&str, &str)]) -> (Project, GraphStore) {
    let mut project = Project::new();
    for (path, content) in files {
        project.write(path, content);
    }
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    (project, store)
}

/// What one file imports: paths and names of packages.
fn imported(store: &GraphStore, path: &str) -> Vec<String> {
    let begin = format!("File {path} -> ");
    let arrows = arrows(store, "HEAD", "IMPORTS");
    arrows.into_iter().filter_map(|arrow| arrow.strip_prefix(&begin).map(str::to_owned)).collect()
}

fn called(store: &GraphStore) -> Vec<String> {
    arrows(store, "HEAD", "CALLS")
}

#[test]
fn a_package_of_a_fixture_captures_no_import() {
    let (_project, store) = project(&[
        (
            "package.json",
            r#"{"name": "app", "workspaces": ["./packages/*", "!packages/old"], "dependencies": {"near": "file:vendor/near"}}"#,
        ),
        ("test/fixtures/lodash/package.json", r#"{"name": "lodash"}"#),
        ("test/fixtures/lodash/index.js", "exports.map = 1;\n"),
        ("packages/util/package.json", r#"{"name": "@acme/util"}"#),
        ("packages/util/index.js", "exports.util = 1;\n"),
        ("packages/old/package.json", r#"{"name": "old"}"#),
        ("packages/old/index.js", "exports.old = 1;\n"),
        ("vendor/near/package.json", r#"{"name": "near"}"#),
        ("vendor/near/index.js", "exports.near = 1;\n"),
        ("src/index.js", "exports.app = 1;\n"),
        (
            "src/a.js",
            "import 'lodash';\nimport '@acme/util';\nimport 'old';\nimport 'near';\nimport 'app';\n",
        ),
    ]);
    assert_eq!(
        imported(&store, "src/a.js"),
        [
            "File packages/util/index.js",
            "File src/index.js",
            "File vendor/near/index.js",
            "Package npm:lodash",
            "Package npm:old",
        ]
    );
    let (mut pnpm, store) = project(&[
        (
            "pnpm-workspace.yaml",
            "packages:\n  # all of them\n  - 'packages/**' # here\n  - \"!**/test/**\"\ncatalog:\n  - x\n",
        ),
        ("package.json", r#"{"private": true}"#),
        ("packages/deep/util/package.json", r#"{"name": "util"}"#),
        ("packages/deep/util/index.ts", "export const util = 1;\n"),
        ("packages/deep/test/lodash/package.json", r#"{"name": "lodash"}"#),
        ("packages/deep/test/lodash/index.ts", ""),
        ("packages/app/package.json", r#"{"name": "app", "dependencies": {"util": "workspace:*"}}"#),
        ("packages/app/a.ts", "import 'util';\nimport 'lodash';\n"),
    ]);
    let expected = ["File packages/deep/util/index.ts", "Package npm:lodash"];
    assert_eq!(imported(&store, "packages/app/a.ts"), expected);
    // Another workspace is another meaning.
    pnpm.write("pnpm-workspace.yaml", "packages: ['packages/**']\n");
    pnpm.commit("all are members");
    ingest(&store, "HEAD");
    let expected = ["File packages/deep/test/lodash/index.ts", "File packages/deep/util/index.ts"];
    assert_eq!(imported(&store, "packages/app/a.ts"), expected);
}

#[test]
fn a_crate_of_a_fixture_captures_no_import() {
    let (_project, store) = project(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nexclude = [\"crates/out\"]\n"),
        (
            "crates/app/Cargo.toml",
            "[package]\nname = \"app\"\n[dependencies]\nserde = \"1\"\nnear = { path = \"../../vendor/near\" }\n",
        ),
        ("crates/app/src/lib.rs", "use serde::Serialize;\nuse util::u;\nuse near::n;\nuse out::o;\n"),
        ("crates/app/tests/t.rs", "use app::x;\n"),
        ("crates/util/Cargo.toml", "[package]\nname = \"util\"\n"),
        ("crates/util/src/lib.rs", "pub fn u() {}\n"),
        ("crates/out/Cargo.toml", "[package]\nname = \"out\"\n"),
        ("crates/out/src/lib.rs", "pub fn o() {}\n"),
        ("vendor/near/Cargo.toml", "[package]\nname = \"near\"\n"),
        ("vendor/near/src/lib.rs", "pub fn n() {}\n"),
        ("fixtures/serde/Cargo.toml", "[package]\nname = \"serde\"\n"),
        ("fixtures/serde/src/lib.rs", "pub trait Serialize {}\n"),
    ]);
    assert_eq!(
        imported(&store, "crates/app/src/lib.rs"),
        [
            "File crates/util/src/lib.rs",
            "File vendor/near/src/lib.rs",
            "Package cargo:out",
            "Package cargo:serde"
        ]
    );
    assert_eq!(imported(&store, "crates/app/tests/t.rs"), ["File crates/app/src/lib.rs"]);
}

#[test]
fn a_python_package_wins_over_a_module_of_its_name() {
    let (_project, store) = project(&[
        ("mod.py", "def f(): pass\n"),
        ("mod/__init__.py", "def f(): pass\n"),
        ("a.py", "import mod\n"),
    ]);
    assert_eq!(imported(&store, "a.py"), ["File mod/__init__.py"]);
}

#[test]
fn the_closest_path_alias_wins() {
    let (_project, store) = project(&[
        (
            "tsconfig.json",
            r#"{"compilerOptions": {"paths": {"*": ["any/*"], "@app/*": ["src/*"], "@app/lib/*": ["lib/*"], "@app/lib/one": ["one.ts"]}}}"#,
        ),
        ("any/@app/lib/one.ts", ""),
        ("any/@app/lib/two.ts", ""),
        ("src/lib/one.ts", ""),
        ("src/lib/two.ts", ""),
        ("lib/one.ts", ""),
        ("lib/two.ts", ""),
        ("one.ts", ""),
        ("a.ts", "import '@app/lib/two';\n"),
        ("b.ts", "import '@app/lib/one';\n"),
    ]);
    assert_eq!(imported(&store, "a.ts"), ["File lib/two.ts"]);
    assert_eq!(imported(&store, "b.ts"), ["File one.ts"]);
}

#[test]
fn a_slash_at_the_end_means_the_index() {
    let (_project, store) = project(&[
        ("foo.ts", ""),
        ("foo/index.ts", ""),
        ("foo/a.ts", "import '.';\n"),
        ("foo/bar/b.ts", "import '..';\n"),
        ("a.ts", "import './foo/';\n"),
        ("b.ts", "import './foo';\n"),
    ]);
    for path in ["a.ts", "foo/a.ts", "foo/bar/b.ts"] {
        assert_eq!(imported(&store, path), ["File foo/index.ts"], "{path}");
    }
    assert_eq!(imported(&store, "b.ts"), ["File foo.ts"]);
}

#[test]
fn a_rust_path_goes_through_modules_in_files() {
    let (_project, store) = project(&[
        ("Cargo.toml", "[package]\nname = \"app\"\n"),
        ("src/main.rs", "mod net;\nfn main() { net::udp::send(); net::open(); }\n"),
        ("src/net/mod.rs", "pub mod udp;\npub fn open() {}\n"),
        ("src/net/udp.rs", "pub fn send() {}\n"),
    ]);
    assert_eq!(
        called(&store),
        [
            "Symbol src/main.rs#function main -> Symbol src/net/mod.rs#function open",
            "Symbol src/main.rs#function main -> Symbol src/net/udp.rs#function send",
        ]
    );
}

#[test]
fn a_call_of_the_class_above_is_not_one_of_the_own() {
    let (_project, store) = project(&[
        ("base.py", "class Base:\n    def save(self): pass\n"),
        (
            "own.py",
            "from base import Base\n\nclass Own(Base):\n    def save(self):\n        super().save()\n",
        ),
        (
            "alone.py",
            "from elsewhere import Base\n\nclass Own(Base):\n    def save(self):\n        super().save()\n",
        ),
        ("own.ts", "export class Own extends Other {\n  run() { super.run(); }\n}\n"),
    ]);
    assert_eq!(called(&store), ["Symbol own.py#method Own.save -> Symbol base.py#method Base.save"]);
}

#[test]
fn only_what_other_crates_see_is_exported() {
    let text = "pub fn a() {}\npub(crate) fn b() {}\npub(super) struct C;\nfn d() {}\npub trait E {\n    fn e(&self);\n    fn f(&self) {}\n}\ntrait G {\n    fn g(&self);\n}\npub(crate) mod h {}\npub mod i {}\n";
    let (_project, store) = project(&[("src/lib.rs", text)]);
    let exported = "MATCH (s:Symbol) WHERE s.exported RETURN s.qualifiedName ORDER BY s.qualifiedName";
    let names: Vec<Value> = rows(&store, "HEAD", exported).into_iter().flatten().collect();
    assert_eq!(names, [json!("E"), json!("E::e"), json!("E::f"), json!("a"), json!("i")]);
}

#[test]
fn a_java_symbol_stands_at_its_name() {
    let text = "package p;\n\n@Deprecated\n@SuppressWarnings(\"all\")\npublic class A {\n    @Override\n    public\n    String toString() { return \"\"; }\n}\n";
    let (_project, store) = project(&[("src/p/A.java", text)]);
    let lines = "MATCH (s:Symbol) RETURN s.name, s.line, s.column, s.endLine ORDER BY s.name";
    assert_eq!(
        rows(&store, "HEAD", lines),
        [json!(["A", 5, 14, 9]), json!(["toString", 8, 12, 8])].map(|row| row.as_array().unwrap().clone())
    );
}

#[test]
fn a_namespace_import_names_everything() {
    let (_project, store) = project(&[
        ("x.ts", "export function f() {}\n"),
        (
            "a.ts",
            "import * as x from './x';\nimport d, * as y from 'outside';\nexport function g() { x.f(); f(); }\n",
        ),
        ("b.ts", "import * as x from './x';\nexport { x };\n"),
        ("c.ts", "import { x } from './b';\nx.f();\n"),
    ]);
    let names = "MATCH (:File {path: 'a.ts'})-[i:IMPORTS]->() RETURN i.names ORDER BY i.line";
    assert_eq!(rows(&store, "HEAD", names), [[json!(["*"])], [json!(["default", "*"])]]);
    // A namespace binds one name, not those that are in it.
    let count = "MATCH (:Symbol {name: 'g'})-[c:CALLS]->(s:Symbol) RETURN s.name, c.count";
    assert_eq!(rows(&store, "HEAD", count), [[json!("f"), json!(1)]]);
    assert!(called(&store).contains(&"File c.ts -> Symbol x.ts#function f".to_owned()));
}

#[test]
fn crate_roots_that_the_manifest_names() {
    let manifest = "[package]\nname = \"app\"\n[lib]\npath = \"source/entry.rs\"\n[[bin]]\nname = \"tool\"\npath = \"tool/start.rs\"\n";
    let (_project, store) = project(&[
        ("Cargo.toml", manifest),
        ("source/entry.rs", "mod inner;\npub fn top() {}\n"),
        ("source/inner.rs", "use crate::top;\nfn i() { top(); super::top(); }\n"),
        ("tool/start.rs", "mod work;\nuse app::top;\nfn main() { work::run(); top(); }\nfn help() {}\n"),
        ("tool/work.rs", "pub fn run() { crate::help(); }\n"),
    ]);
    assert_eq!(imported(&store, "source/entry.rs"), ["File source/inner.rs"]);
    assert_eq!(imported(&store, "tool/start.rs"), ["File source/entry.rs", "File tool/work.rs"]);
    assert_eq!(
        called(&store),
        [
            "Symbol source/inner.rs#function i -> Symbol source/entry.rs#function top",
            "Symbol tool/start.rs#function main -> Symbol source/entry.rs#function top",
            "Symbol tool/start.rs#function main -> Symbol tool/work.rs#function run",
            "Symbol tool/work.rs#function run -> Symbol tool/start.rs#function help",
        ]
    );
}

/// Gradle has no manifest that says where sources are; the files' own packages do.
#[test]
fn java_sources_begin_where_packages_say() {
    let (mut project, store) = project(&[(
        "app/code/com/acme/Main.java",
        "package com.acme;\nimport com.acme.util.Text;\nclass Main { void m() { Text.trim(); } }\n",
    )]);
    assert_eq!(imported(&store, "app/code/com/acme/Main.java"), ["Package maven:com.acme.util"]);
    let text = "package com.acme.util;\npublic class Text { public static void trim() {} }\n";
    project.write("library/java/com/acme/util/Text.java", text);
    project.commit("a module beside it");
    ingest(&store, "HEAD");
    let found = ["File library/java/com/acme/util/Text.java"];
    assert_eq!(imported(&store, "app/code/com/acme/Main.java"), found);
    assert_eq!(called(&store).len(), 1);
    project.remove("library/java/com/acme/util/Text.java");
    project.commit("and gone");
    ingest(&store, "HEAD");
    assert_eq!(imported(&store, "app/code/com/acme/Main.java"), ["Package maven:com.acme.util"]);
}
