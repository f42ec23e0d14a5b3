//! Imports that lead to no file: they are edges all the same, and the ways to load a module without an import statement
//! are known.

use serde_json::{Value, json};
use tgp_contract::{Change, Code, Graph, GraphQuery, RelativePath};
use tgp_graph::GraphStore;

use crate::support::{Project, export, ingest, rows, run};

const EDGES: &str = "MATCH (f:File)-[i:IMPORTS]->(g:File) WHERE g.path STARTS WITH 'src/web/' \
                     RETURN f.path ORDER BY f.path";
const MISSING: &str = "MATCH (f:File)-[i:IMPORTS]->(u:Unresolved) \
                       RETURN f.path, u.specifier, u.target, u.computed ORDER BY f.path, u.specifier";

fn write(at: &str, content: &str) -> Change {
    Change::Write { path: RelativePath::new(at).unwrap(), content: content.as_bytes().into() }
}

/// A project with something that the domain must not reach.
fn layered() -> Project {
    let mut project = Project::new();
    project.write("src/web/page.ts", "export const page = 1;\n");
    project.write("src/web/page.py", "page = 1\n");
    project.write("src/web/__init__.py", "");
    project.write("src/__init__.py", "");
    project.write(
        "package.json",
        "{\"name\": \"own\", \"imports\": {\"#q\": \"./src/web/page.ts\", \
        \"#deep/*\": {\"node\": \"./src/ok/*.ts\", \"default\": [\"./src/web/*.ts\"]}}}\n",
    );
    project.commit("first");
    project
}

fn asked(store: &GraphStore, changes: &[Change], query: &str) -> Vec<Vec<Value>> {
    run(store.propose(changes, &[GraphQuery::new(query)])).unwrap().remove(0).1.rows
}

#[test]
fn a_module_is_seen_however_it_is_loaded() {
    let project = layered();
    let store = project.open();
    ingest(&store, "WORKTREE");
    let spellings = [
        ("a.ts", "import q from '#q';\n"),
        ("a.ts", "export * from '#deep/page';\n"),
        ("a.ts", "import '/src/web/page';\n"),
        ("a.ts", "import '../%77eb/p%61ge.ts';\n"),
        ("a.ts", "import '../web/page.ts#part';\n"),
        ("a.ts", "import 'raw!../web/page';\n"),
        (
            "a.ts",
            "import { createRequire } from 'node:module';\ncreateRequire(import.meta.url)('../web/page');\n",
        ),
        (
            "a.ts",
            "import { createRequire as make } from 'node:module';\nconst load = make(import.meta.url);\n\
                  export const f = () => load('../web/page');\n",
        ),
        (
            "a.ts",
            "import * as m from 'node:module';\nm.createRequire(import.meta.url).resolve('../web/page');\n",
        ),
        ("a.js", "const r = require;\nconst q = r('../web/page');\n"),
        ("a.js", "(0, require)('../web/page');\n"),
        ("a.js", "module['require']('../web/page');\n"),
        ("a.js", "process.mainModule.require('../web/page');\n"),
        ("a.ts", "import.meta.resolve('../web/page.ts');\n"),
        ("a.js", "require.resolve('../web/page');\n"),
        ("a.ts", "const pages = import.meta.glob('../web/*.ts');\n"),
        (
            "a.ts",
            "import.meta.glob(['./none/*.ts', '/src/{web,api}/**/*.ts', '!**/other.ts'], { eager: true });\n",
        ),
        ("a.ts", "new Worker(new URL('../web/page.ts', import.meta.url));\n"),
        ("a.ts", "const at = new URL('../web/page.ts', import.meta.url);\nimport(at.href);\n"),
        ("a.ts", "new Worker('../web/page.ts', { type: 'module' });\n"),
        ("a.js", "importScripts('../web/page.ts');\n"),
        ("a.ts", "navigator.serviceWorker.register('../web/page.ts');\n"),
        ("a.ts", "import { fork } from 'node:child_process';\nfork('../web/page.ts');\n"),
        ("a.py", "import importlib\nimportlib.import_module('src.web.page')\n"),
        ("a.py", "import importlib\nimportlib.import_module('src.' 'web' + '.page')\n"),
        ("a.py", "from importlib import import_module as im\nim('src.web.page')\n"),
        ("a.py", "import importlib\nload = importlib.import_module\nload(name='src.web.page')\n"),
        ("a.py", "import importlib\nimportlib.import_module('..web.page', __package__)\n"),
        ("a.py", "import importlib\nimportlib.import_module('.page', package='src.web')\n"),
        ("a.py", "__import__('src.web.page')\n"),
        ("a.py", "import runpy\nrunpy.run_module('src.web.page')\n"),
        ("a.py", "import runpy\nrunpy.run_path('src/web/page.py')\n"),
        ("a.py", "import importlib.util as u\nu.spec_from_file_location('p', '../web/page.py')\n"),
    ];
    for (name, code) in spellings {
        let at = format!("src/domain/{name}");
        let found = asked(&store, &[write(&at, code)], EDGES);
        assert_eq!(found, [[json!(at)]], "{code}");
    }
}

#[test]
fn a_rust_file_is_seen_behind_a_conditional_path_and_an_include() {
    let mut project = Project::new();
    project.write("Cargo.toml", "[package]\nname = \"own\"\nversion = \"0.1.0\"\n");
    project.write("src/lib.rs", "mod domain;\n");
    project.write("src/web/page.rs", "pub fn page() {}\n");
    project.commit("first");
    let store = project.open();
    ingest(&store, "WORKTREE");
    for code in [
        "#[cfg_attr(all(), path = \"web/page.rs\")]\nmod page;\n",
        "include!(\"web/page.rs\");\n",
        "const TEXT: &str = include_str!(\"web/page.rs\");\n",
    ] {
        let found = asked(&store, &[write("src/domain.rs", code)], EDGES);
        assert_eq!(found, [[json!("src/domain.rs")]], "{code}");
    }
}

#[test]
fn an_import_that_leads_nowhere_is_an_edge_that_becomes_a_real_one() {
    let mut project = layered();
    project.write("src/domain/a.ts", "import { later } from '../web/later';\nimport 'left-pad';\n");
    project.write("src/domain/b.py", "from . import gone\nfrom ..web.none import x\n");
    project
        .write("src/domain/c.ts", "import '#none';\nimport 'https://example.org/x.js';\nimport(which());\n");
    project.commit("second");
    let store = project.open();
    ingest(&store, "HEAD");
    let expected = json!([
        ["src/domain/a.ts", "../web/later", "src/web/later", false],
        ["src/domain/b.py", ".", "src/domain/gone", false],
        ["src/domain/b.py", "..web.none", "src/web/none", false],
        ["src/domain/c.ts", "#none", null, false],
        ["src/domain/c.ts", "https://example.org/x.js", null, false],
        ["src/domain/c.ts", "which()", null, true],
    ]);
    assert_eq!(json!(rows(&store, "HEAD", MISSING)), expected);
    let stats = run(store.stats(Some("HEAD"))).unwrap();
    assert_eq!(stats.nodes.get("Unresolved"), Some(&6));
    project.write("src/web/later.ts", "export const later = 1;\n");
    project.commit("third");
    ingest(&store, "HEAD");
    assert_eq!(rows(&store, "HEAD", EDGES), [[json!("src/domain/a.ts")]]);
    let missing = rows(&store, "HEAD", MISSING);
    assert!(!missing.iter().any(|row| row[1] == json!("../web/later")), "{missing:?}");
    // At the commit before nothing has changed, and a store that is rebuilt says the same.
    assert_eq!(rows(&store, "HEAD^", EDGES), Vec::<Vec<Value>>::new());
    let fresh = project.fresh("fresh.sqlite");
    ingest(&fresh, "HEAD");
    assert_eq!(format!("{:?}", export(&fresh, "HEAD")), format!("{:?}", export(&store, "HEAD")));
}

#[test]
fn an_ignore_rule_hides_nothing_that_is_written() {
    for rule in [".gitignore", "src/domain/.gitignore", ".git/info/exclude"] {
        let project = layered();
        let rules = project.root().join(rule);
        std::fs::create_dir_all(rules.parent().unwrap()).unwrap();
        std::fs::write(rules, "e2.ts\nmid.ts\n").unwrap();
        let store = project.open();
        ingest(&store, "WORKTREE");
        let wrong = write("src/domain/e2.ts", "import '../web/page';\n");
        assert_eq!(asked(&store, &[wrong], EDGES), [[json!("src/domain/e2.ts")]], "{rule}");
        // A detour through a file that is on the disk and hidden is seen too.
        project.write("src/ok/mid.ts", "export * from '../web/page';\n");
        let detour = write("src/domain/d.ts", "import '../ok/mid.js';\n");
        let query = "MATCH (f:File {path: 'src/domain/d.ts'})-[:IMPORTS*]->(g:File {path: 'src/web/page.ts'}) \
                     RETURN f.path";
        assert_eq!(asked(&store, &[detour], query), [[json!("src/domain/d.ts")]], "{rule}");
        // Nothing of that stays.
        let stays = rows(&store, "WORKTREE", EDGES);
        assert!(!stays.iter().any(|row| row[0].as_str().unwrap().starts_with("src/domain/")), "{stays:?}");
    }
}

#[test]
fn a_chain_of_more_ignored_files_than_anybody_has_is_refused() {
    let project = layered();
    project.write(".gitignore", "gen/\n");
    for number in 0..2100 {
        project.write(&format!("gen/f{number}.ts"), "export {};\n");
    }
    let store = project.open();
    ingest(&store, "WORKTREE");
    let code: String = (0..2100).map(|number| format!("import './gen/f{number}';\n")).collect();
    let question = GraphQuery::new(EDGES);
    let error = run(store.propose(&[write("all.ts", &code)], &[question])).unwrap_err();
    assert_eq!(error.code, Code::Budget);
}

#[test]
fn a_pattern_is_an_edge_to_every_file_that_it_means() {
    let mut project = Project::new();
    project.write("src/pages/a.ts", "export const a = 1;\n");
    project.write("src/pages/deep/b.ts", "export const b = 1;\n");
    project.write("src/pages/a.test.ts", "export const t = 1;\n");
    project.write(
        "src/app.ts",
        "export const flat = import.meta.glob('./pages/*.ts');\n\
         export const deep = import.meta.glob(['./pages/**/*.ts', '!**/*.test.ts']);\n\
         export const none = import.meta.glob('./none/*.ts');\n\
         export const own = import.meta.glob('./*.ts');\n\
         export const based = import.meta.glob('./*.ts', { base: './pages' });\n",
    );
    project.commit("first");
    let store = project.open();
    ingest(&store, "HEAD");
    let edges = "MATCH (:File {path: 'src/app.ts'})-[i:IMPORTS]->(t) \
                 RETURN i.line, coalesce(t.path, t.specifier) AS to ORDER BY i.line, to";
    let asked = |store: &GraphStore| rows(store, "HEAD", edges);
    let first = [
        json!([1, "src/pages/a.test.ts"]),
        json!([1, "src/pages/a.ts"]),
        json!([2, "src/pages/a.ts"]),
        json!([2, "src/pages/deep/b.ts"]),
        json!([3, "./none/*.ts"]),
        json!([4, "./*.ts"]),
        json!([5, "'./*.ts'"]),
    ];
    let mut expected: Vec<Vec<Value>> = first.iter().map(|row| row.as_array().unwrap().clone()).collect();
    // What is only written is shown as it is written, with or without its quotes.
    let found = asked(&store);
    expected[6][1] = found[6][1].clone();
    assert!(found[6][1].as_str().unwrap().contains("./*.ts"), "{found:?}");
    assert_eq!(found, expected);
    // A directory that was not there, and one that is gone: the file with the patterns is not touched.
    project.write("src/none/c.ts", "export const c = 1;\n");
    project.write("src/pages/new/d.ts", "export const d = 1;\n");
    project.remove("src/pages/deep/b.ts");
    project.commit("second");
    ingest(&store, "HEAD");
    let paths: Vec<String> =
        asked(&store).iter().map(|row| format!("{} {}", row[0], row[1].as_str().unwrap())).collect();
    assert_eq!(
        paths[..5],
        [
            "1 src/pages/a.test.ts",
            "1 src/pages/a.ts",
            "2 src/pages/a.ts",
            "2 src/pages/new/d.ts",
            "3 src/none/c.ts"
        ]
    );
}

/// The directory has a file that counts, and the pattern means one beside it that git ignores.
#[test]
fn a_pattern_does_not_hide_an_ignored_file_from_a_proposal() {
    let mut project = Project::new();
    project.write(".gitignore", "src/db/local.ts\n");
    project.write("src/ok/a.ts", "export const a = 1;\n");
    project.write("src/web/page.ts", "export const page = 1;\n");
    project.commit("first");
    project.write("src/db/local.ts", "import '../web/page';\n");
    let store = project.open();
    ingest(&store, "WORKTREE");
    let paths =
        "MATCH (:File {path: 'src/app.ts'})-[:IMPORTS*]->(f:File) RETURN DISTINCT f.path AS p ORDER BY p";
    let code = "import.meta.glob('./{ok,db}/**/*.ts');\n";
    let found = asked(&store, &[write("src/app.ts", code)], paths);
    assert_eq!(found, [[json!("src/db/local.ts")], [json!("src/ok/a.ts")], [json!("src/web/page.ts")]]);
}
