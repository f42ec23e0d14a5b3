//! Imports of TypeScript that only its configuration, manifests or comments make known (security review 3, A7).

use serde_json::{Value, json};
use tgp_contract::{Change, Graph, GraphQuery, RelativePath};

use crate::support::{Project, ingest, rows, run};

const EDGES: &str = "MATCH (f:File)-[:IMPORTS]->(:File {path: 'src/web/page.ts'}) \
                     RETURN DISTINCT f.path AS path ORDER BY path";

fn layered(files: &[(&str, &str)]) -> Project {
    let project = Project::new();
    project.write("src/web/page.ts", "export const page = 1;\nexport type Page = 1;\n");
    project.write("src/ok/fine.ts", "export const fine = 1;\n");
    for (path, content) in files {
        project.write(path, content);
    }
    project
}

/// The files that import the page.
fn importers(files: &[(&str, &str)]) -> Vec<String> {
    let mut project = layered(files);
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    let found: Vec<String> =
        rows(&store, "HEAD", EDGES).iter().map(|row| row[0].as_str().unwrap().to_owned()).collect();
    // The same where one file after the other is written.
    let empty = Project::new();
    let store = empty.open();
    ingest(&store, "WORKTREE");
    empty.write("src/web/page.ts", "export const page = 1;\nexport type Page = 1;\n");
    empty.write("src/ok/fine.ts", "export const fine = 1;\n");
    for (path, content) in files.iter().rev() {
        empty.write(path, content);
        ingest(&store, "WORKTREE");
    }
    let again: Vec<String> =
        rows(&store, "WORKTREE", EDGES).iter().map(|row| row[0].as_str().unwrap().to_owned()).collect();
    assert_eq!(again, found, "{files:?}");
    found
}

fn assert_imports(files: &[(&str, &str)]) {
    assert_eq!(importers(files), [files[0].0], "{files:#?}");
}

const ALIAS: &str = r#"{"compilerOptions": {"paths": {"@p/*": ["../src/web/*"]}}}"#;
const OF_ALIAS: (&str, &str) = ("src/domain/a.ts", "import { page } from '@p/page';\n");

#[test]
fn bug_paths_of_an_extended_configuration_were_not_seen() {
    for (extends, base) in [
        ("\"../../cfg/base.json\"", "cfg/base.json"),
        ("\"../../cfg/base\"", "cfg/base.json"),
        ("\"../../cfg\"", "cfg/tsconfig.json"),
        ("[\"../../cfg/none.json\", \"../../cfg/base.json\"]", "cfg/base.json"),
        ("[\"../../cfg/base.json\", \"./other.json\"]", "cfg/base.json"),
        ("\"@own/cfg/base.json\"", "cfg/base.json"),
        ("\"@own/cfg\"", "cfg/tsconfig.json"),
    ] {
        assert_imports(&[
            OF_ALIAS,
            ("src/domain/tsconfig.json", &format!("{{ // why\n  \"extends\": {extends},\n}}")),
            ("src/domain/other.json", r#"{"compilerOptions": {"paths": {"@o/*": ["./*"]}}}"#),
            (base, ALIAS),
            ("package.json", r#"{"workspaces": ["cfg"]}"#),
            ("cfg/package.json", r#"{"name": "@own/cfg"}"#),
        ]);
    }
}

#[test]
fn bug_a_base_directory_was_not_inherited() {
    // Paths in one file, the directory that they are relative to in another one.
    assert_imports(&[
        OF_ALIAS,
        (
            "src/domain/tsconfig.json",
            r#"{"extends": "../../cfg/base", "compilerOptions": {"paths": {"@p/*": ["web/*"]}}}"#,
        ),
        ("cfg/base.json", r#"{"compilerOptions": {"baseUrl": "../src"}}"#),
    ]);
    assert_imports(&[
        ("src/domain/a.ts", "import 'web/page';\n"),
        ("src/domain/tsconfig.json", r#"{"extends": "../../cfg/one"}"#),
        ("cfg/one.json", r#"{"extends": "./two"}"#),
        ("cfg/two.json", r#"{"compilerOptions": {"baseUrl": "../src"}}"#),
    ]);
    assert_imports(&[
        OF_ALIAS,
        ("src/domain/tsconfig.json", r#"{"extends": "../../cfg/base.json"}"#),
        ("cfg/base.json", r#"{"compilerOptions": {"paths": {"@p/*": ["${configDir}/../web/*"]}}}"#),
    ]);
}

/// A configuration that cannot be read may mean anything.
#[test]
fn names_under_an_unknown_configuration_are_unresolved() {
    let mut project = layered(&[
        OF_ALIAS,
        ("src/domain/tsconfig.json", r#"{"extends": "../../cfg/base.json"}"#),
        ("cfg/base.json", "{\"compilerOptions\": {\"paths\": oops"),
    ]);
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    let query = "MATCH (:File {path: 'src/domain/a.ts'})-[:IMPORTS]->(u:Unresolved) RETURN u.specifier";
    assert_eq!(rows(&store, "HEAD", query), [[json!("@p/page")]]);
    let broken = "MATCH (f:File {broken: true}) RETURN f.path";
    assert_eq!(rows(&store, "HEAD", broken), [[json!("cfg/base.json")]]);
}

#[test]
fn data_is_not_a_configuration() {
    let mut project = layered(&[("data.json", "{\"a\": [1, 2"), ("more.json", "\0")]);
    project.write("large.json", vec![b' '; 3 << 20]);
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    assert!(rows(&store, "HEAD", "MATCH (f:File) WHERE f.broken OR f.unparsed RETURN f.path").is_empty());
}

#[test]
fn bug_a_nested_condition_of_a_package_was_not_seen() {
    let import = ("src/domain/a.ts", "import { page } from 'own/page';\n");
    for exports in [
        r#"{"./page": {"types": "./src/ok/fine.ts", "import": {"node": "./src/web/page.ts"}, "default": "./src/ok/fine.ts"}}"#,
        r#"{"./page": {"types": "./src/ok/fine.ts", "browser": {"production": {"x": "./src/web/page.ts"}}}}"#,
        r#"{"./page": [{"worker": "./src/web/page.ts"}, "./src/ok/fine.ts"]}"#,
        r#"{"./*": {"types": "./src/ok/*.ts", "deno": "./src/web/*.ts"}}"#,
        r#"{"./page": {"default": "./src/ok/fine.ts", "module-sync": "./src/web/page.js"}}"#,
    ] {
        assert_imports(&[
            import,
            ("package.json", &format!("{{\"name\": \"own\", \"exports\": {exports}}}")),
        ]);
    }
    let import = ("src/domain/a.ts", "import { page } from '#page';\n");
    for imports in [
        r##"{"#page": {"types": "./src/ok/fine.ts", "import": {"node": {"x": "./src/web/page.ts"}}}}"##,
        r##"{"#page": "own/page"}"##,
    ] {
        let manifest = format!(
            "{{\"name\": \"own\", \"imports\": {imports}, \"exports\": {{\"./page\": \"./src/web/page.ts\"}}}}"
        );
        assert_imports(&[import, ("package.json", &manifest)]);
    }
}

#[test]
fn bug_a_dependency_on_a_directory_was_not_seen() {
    let import = ("src/domain/a.ts", "import { page } from 'dep';\n");
    for version in [
        "file:src/web",
        "file:./src/web",
        "link:./src/web",
        "portal:src/web",
        "./src/web",
        "workspace:./src/web",
    ] {
        let manifest = format!("{{\"name\": \"own\", \"dependencies\": {{\"dep\": \"{version}\"}}}}");
        for of_web in [
            r#"{"name": "other", "main": "page.ts"}"#,
            r#"{"main": "./page"}"#,
            r#"{"name": "dep", "exports": {".": {"types": "./none.d.ts", "node": "./page.ts"}}}"#,
        ] {
            assert_imports(&[import, ("package.json", &manifest), ("src/web/package.json", of_web)]);
        }
        // A file of it, without a manifest there.
        assert_imports(&[("src/domain/a.ts", "import 'dep/page';\n"), ("package.json", &manifest)]);
    }
    for field in ["devDependencies", "overrides", "resolutions"] {
        let manifest = format!("{{\"{field}\": {{\"dep\": \"file:src/web\"}}}}");
        assert_imports(&[("src/domain/a.ts", "import 'dep/page';\n"), ("package.json", &manifest)]);
    }
    assert_imports(&[
        import,
        ("package.json", r#"{"workspaces": ["src/*"], "dependencies": {"dep": "workspace:^"}}"#),
        ("src/web/package.json", r#"{"name": "dep", "main": "page.ts"}"#),
    ]);
}

#[test]
fn bug_comments_that_import_were_not_seen() {
    for (name, code) in [
        ("a.js", "/** @type {import('../web/page').Page} */\nexport let a;\n"),
        (
            "a.js",
            "/**\n * @param {Array<import(\"../web/page\").Page>} a\n * @returns {{x: import('./b').B}}\n */\nfunction f(a) {}\n",
        ),
        ("a.js", "/** @typedef {typeof import('../web/page')} P */\n"),
        ("a.mjs", "/** @import { Page } from '../web/page' */\n"),
        ("a.cjs", "/**\n * @import * as ns from \"../web/page.ts\"\n */\n"),
        ("a.jsx", "/** @template {import( '../web/page' ).Page} T */\n"),
        ("a.ts", "/// <reference types=\"../web/page\" />\n"),
        ("a.ts", "/// <reference path='../web/page.ts' />\n"),
        ("a.ts", "/// <reference no-default-lib=\"true\" types='../web/page' preserve=\"true\" />\n"),
    ] {
        assert_imports(&[(&format!("src/domain/{name}"), code)]);
    }
    // Words and examples are not imports, and in TypeScript the types of comments mean nothing.
    for (name, code) in [
        ("a.js", "/** see import('../web/page') */\n"),
        ("a.js", "/* @type {import('../web/page')} */\n"),
        ("a.js", "/** an import { of } things from '../web/page' */\n"),
        ("a.ts", "/** @type {import('../web/page').Page} */\n"),
        ("a.ts", "// <reference path='../web/page.ts' />\n"),
    ] {
        assert_eq!(importers(&[(&format!("src/domain/{name}"), code)]), Vec::<String>::new(), "{code}");
    }
}

#[test]
fn types_of_another_file_are_imports_of_types() {
    let mut project = layered(&[
        ("src/domain/a.ts", "export type A = import('../web/page').Page;\n"),
        ("src/domain/b.js", "/** @type {import('../web/page').Page} */\nlet b;\n"),
        ("src/domain/c.ts", "import c = require('../web/page');\n"),
    ]);
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    let query = "MATCH (f:File)-[i:IMPORTS]->() RETURN f.path, i.typeOnly ORDER BY f.path";
    assert_eq!(
        json!(rows(&store, "HEAD", query)),
        json!([["src/domain/a.ts", true], ["src/domain/b.js", true], ["src/domain/c.ts", false]])
    );
}

#[test]
fn the_script_of_a_page_is_read_by_its_kind() {
    for (name, code) in [
        (
            "a.astro",
            "---\nimport { page } from '../web/page';\nif (!page) return Astro.redirect('/');\n---\n<p>it's {page}</p>\n",
        ),
        ("a.astro", "---\n---\n<script>\nimport '../web/page';\n</script>\n"),
        ("a.astro", "<script src=\"../web/page.ts\"></script>\n"),
        ("a.vue", "<script type=\"text/typescript\">\nimport type { Page } from '../web/page'\n</script>\n"),
        (
            "a.vue",
            "<script lang=\"ts\">\nexport interface G {\n  <K extends string>(key: K): K\n  <K extends number>(key: K): K\n}\nimport '../web/page'\n</script>\n",
        ),
        ("a.svelte", "<script type=module lang='ts'>\nexport type * from '../web/page'\n</script>\n"),
    ] {
        assert_imports(&[(&format!("src/domain/{name}"), code)]);
    }
    let data = "<script type=\"application/json\">{\"a\": 1}</script>\n<script type=\"text/x-template\">(((</script>\n";
    let mut project = layered(&[("src/domain/a.vue", data)]);
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    assert!(rows(&store, "HEAD", "MATCH (f:File {broken: true}) RETURN f.path").is_empty());
}

/// A proposal is judged with the configuration that it brings.
#[test]
fn a_proposed_configuration_gives_names_their_meaning() {
    let mut project = layered(&[OF_ALIAS, ("cfg/base.json", "{}")]);
    project.write("src/domain/tsconfig.json", r#"{"extends": "../../cfg/base.json"}"#);
    project.commit("all");
    let store = project.open();
    ingest(&store, "WORKTREE");
    let change =
        Change::Write { path: RelativePath::new("cfg/base.json").unwrap(), content: ALIAS.as_bytes().into() };
    let (before, after) = run(store.propose(&[change], &[GraphQuery::new(EDGES)])).unwrap().remove(0);
    assert_eq!((before.rows, after.rows), (Vec::<Vec<Value>>::new(), vec![vec![json!("src/domain/a.ts")]]));
}
