//! Suite T2 and what an ingest must bear.

use std::process::Command;

use serde_json::json;
use tgp_contract::{Code, Graph, GraphQuery};
use tgp_graph::{GraphStore, ToolFact};

use crate::support::{Project, arrows, export, file, files, ingest, picture, refusal, rows, run};

#[test]
fn t2_records_files_and_answers_by_commit() {
    let mut project = Project::new();
    project.write("src/a.ts", "export const a = 1;\n");
    project.write("README.md", "# a\n");
    let first = project.commit("first");
    let store = project.open();
    let ingested = ingest(&store, "HEAD");
    assert_eq!(ingested.commit, first);
    assert_eq!((ingested.commits, ingested.parsed, ingested.files, ingested.broken), (1, 2, 2, 0));
    assert_eq!(files(&store, &first), ["README.md", "src/a.ts"]);
    let found = rows(&store, &first, "MATCH (f:File) WHERE f.path STARTS WITH 'src/' RETURN f.path, f.lines");
    assert_eq!(found, [[json!("src/a.ts"), json!(1)]]);
    let file = file(&store, &first, "src/a.ts");
    for (key, value) in [
        ("name", "\"a.ts\""),
        ("extension", "\"ts\""),
        ("language", "\"typescript\""),
        ("bytes", "20"),
        ("lines", "1"),
        ("test", "false"),
        ("broken", "false"),
    ] {
        assert_eq!(file[key].to_string(), value, "{key}");
    }
}

#[test]
fn t2_add_then_remove() {
    let mut project = Project::new();
    project.write("x.ts", "export function x() {}\n");
    project.write("y.ts", "import { x } from './x';\nx();\n");
    let first = project.commit("add");
    project.remove("x.ts");
    let second = project.commit("remove");
    let store = project.open();
    ingest(&store, "HEAD");
    assert_eq!(files(&store, &first), ["x.ts", "y.ts"]);
    assert_eq!(files(&store, &second), ["y.ts"]);
    let find = "MATCH (f:File {path: 'x.ts'}) RETURN f.path";
    assert_eq!(rows(&store, &first, find).len(), 1);
    assert!(rows(&store, &second, find).is_empty());
    let gone = format!("MATCH (f:File) WHERE NOT exists_at(f, '{second}') RETURN f.path");
    assert_eq!(rows(&store, &first, &gone), [[json!("x.ts")]]);
    assert_eq!(arrows(&store, &first, "IMPORTS"), ["File y.ts -> File x.ts"]);
    assert_eq!(arrows(&store, &first, "CALLS"), ["File y.ts -> Symbol x.ts#function x"]);
    assert_eq!(arrows(&store, &second, "IMPORTS"), ["File y.ts -> Unresolved ./x"]);
    assert!(arrows(&store, &second, "CALLS").is_empty());
    assert!(arrows(&store, &second, "DEFINES").is_empty());
}

#[test]
fn t2_rename_chain() {
    let mut project = Project::new();
    let body = "export function long() {\n  return 'a text that is long enough to be known again';\n}\n";
    project.write("A.ts", body);
    let first = project.commit("A");
    project.rename("A.ts", "B.ts");
    let second = project.commit("B");
    project.rename("B.ts", "C.ts");
    let third = project.commit("C");
    let store = project.open();
    ingest(&store, "HEAD");
    assert!(arrows(&store, &first, "WAS_RENAMED_FROM").is_empty());
    assert_eq!(arrows(&store, &second, "WAS_RENAMED_FROM"), ["File B.ts -> File A.ts"]);
    let chain = ["File B.ts -> File A.ts", "File C.ts -> File B.ts"];
    assert_eq!(arrows(&store, &third, "WAS_RENAMED_FROM"), chain);
    assert_eq!(files(&store, &third), ["C.ts"]);
    let chain = "MATCH (f:File {path: 'C.ts'})-[:WAS_RENAMED_FROM*]->(o:File) RETURN o.path ORDER BY o.path";
    assert_eq!(rows(&store, &third, chain), [[json!("A.ts")], [json!("B.ts")]]);
    // Only the unchanging is known of a file that is gone.
    let gone = file(&store, &third, "A.ts");
    assert_eq!(gone.keys().collect::<Vec<_>>(), ["path", "name", "extension", "language"]);
}

#[test]
fn t2_ingest_twice() {
    let mut project = Project::new();
    project.write("src/a.ts", "export const a = 1;\n");
    project.commit("first");
    project.write("src/b.ts", "import { a } from './a';\nexport const b = a;\n");
    project.commit("second");
    let store = project.open();
    ingest(&store, "HEAD");
    let before = (picture(&store, "HEAD"), picture(&store, "HEAD~1"), rows_of(&project));
    let again = ingest(&store, "HEAD");
    assert_eq!((again.commits, again.parsed, again.files), (0, 0, 2));
    ingest(&store, "HEAD~1");
    drop(store);
    let store = project.open();
    assert_eq!(ingest(&store, "main").commits, 0);
    assert_eq!(before, (picture(&store, "HEAD"), picture(&store, "HEAD~1"), rows_of(&project)));
}

/// Rows of the store, hidden ones included.
fn rows_of(project: &Project) -> Vec<i64> {
    let connection = rusqlite::Connection::open(project.options().file).unwrap();
    let count = |table: &str| {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    ["moment", "node", "edge", "label", "parse", "change"].map(count).to_vec()
}

#[test]
fn names_of_commits() {
    let mut project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    let first = project.commit("first");
    project.write("b.ts", "export const b = 1;\n");
    let second = project.commit("second");
    let object = project.git().revparse_single(&first).unwrap();
    project.git().tag_lightweight("v1", &object, false).unwrap();
    drop(object);
    let store = project.open();
    let nothing = run(store.query(GraphQuery::new("MATCH (n) RETURN n"))).unwrap_err();
    assert_eq!((nothing.code, nothing.help_of()), (Code::NotFound, Some("run `tgp graph ingest`")));
    ingest(&store, "v1");
    let not_yet = refusal(&store, "main");
    assert_eq!(
        (not_yet.code, not_yet.help_of()),
        (Code::NotFound, Some("run `tgp graph ingest --commit main`"))
    );
    let standing = run(store.stats(None)).unwrap().standing;
    assert!(standing.behind);
    assert_eq!((standing.reference, standing.commit), (first.clone(), first.clone()));
    ingest(&store, "HEAD");
    for (name, commit) in [
        ("HEAD", &second),
        ("main", &second),
        ("HEAD~1", &first),
        ("v1", &first),
        (&first[..8], &first),
        (&second[..], &second),
    ] {
        let standing = export(&store, name).standing;
        assert_eq!((&standing.commit, standing.reference.as_str()), (commit, name));
        assert!(!standing.behind && !standing.draft);
    }
    let latest = run(store.stats(None)).unwrap();
    assert_eq!((latest.standing.reference.as_str(), &latest.standing.commit), ("main", &second));
    assert_eq!((latest.commits, latest.nodes["File"], latest.nodes["Commit"]), (2, 2, 2));
    for bad in ["-n", "--all", "a\nb", "", "a\u{7}"] {
        assert_eq!(refusal(&store, bad).code, Code::Validation, "{bad:?}");
        assert_eq!(run(store.ingest(bad)).unwrap_err().code, Code::Validation, "{bad:?}");
    }
    assert_eq!(refusal(&store, "nobody").code, Code::NotFound);
    assert_eq!(run(store.ingest("nobody")).unwrap_err().code, Code::NotFound);
}

#[test]
fn a_project_below_the_root_sees_its_own_files() {
    let mut project = Project::new();
    project
        .write("apps/web/src/a.ts", "import { b } from './b';\nimport { c } from '../../other/c';\nb(c);\n");
    project.write("apps/web/src/b.ts", "export function b(x: unknown) { return x; }\n");
    project.write("apps/other/c.ts", "export const c = 1;\n");
    project.commit("first");
    project.write("apps/other/d.ts", "export const d = 1;\n");
    project.commit("elsewhere");
    let options = project.options_at("web.sqlite", &project.root().join("apps/web"));
    let store = run(GraphStore::open(options)).unwrap();
    let ingested = ingest(&store, "HEAD");
    assert_eq!((ingested.files, ingested.commits), (2, 2));
    assert_eq!(files(&store, "HEAD"), ["src/a.ts", "src/b.ts"]);
    let imports = ["File src/a.ts -> File src/b.ts", "File src/a.ts -> Unresolved ../../other/c"];
    assert_eq!(arrows(&store, "HEAD", "IMPORTS"), imports);
    assert_eq!(arrows(&store, "HEAD", "CHANGED_IN").len(), 2);
}

#[test]
fn links_binaries_and_large_files() {
    let mut project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    project.write("image.png", b"\x89PNG\0\0\0");
    project.write("binary.ts", b"export const x = 1;\0\0");
    project.write("large.js", format!("function big() {{}}\n{}", "// a line of filler\n".repeat(200_000)));
    project.write("broken.ts", "export function good() {}\nexport function ((( {\nexport const after = 1;\n");
    std::os::unix::fs::symlink("a.ts", project.root().join("link.ts")).unwrap();
    std::os::unix::fs::symlink("/etc", project.root().join("etc")).unwrap();
    project.commit("first");
    let store = project.open();
    let ingested = ingest(&store, "HEAD");
    assert_eq!((ingested.files, ingested.broken), (5, 2));
    assert_eq!(files(&store, "HEAD"), ["a.ts", "binary.ts", "broken.ts", "image.png", "large.js"]);
    let defines = arrows(&store, "HEAD", "DEFINES");
    assert!(defines.contains(&"File broken.ts -> Symbol broken.ts#function good".to_owned()), "{defines:?}");
    assert!(defines.contains(&"File binary.ts -> Symbol binary.ts#const x".to_owned()), "{defines:?}");
    assert!(!defines.iter().any(|line| line.contains("large.js")), "{defines:?}");
    ingest(&store, "WORKTREE");
    assert_eq!(files(&store, "WORKTREE"), files(&store, "HEAD"));
}

#[test]
fn bare_and_shallow_repositories() {
    let mut project = Project::new();
    for number in 0..4 {
        project.write("a.ts", format!("export const a = {number};\n"));
        project.commit(&format!("commit {number}"));
    }
    let clone = |name: &str, words: &[&str]| {
        let place = project.home.path().join(name);
        let source = format!("file://{}", project.root().display());
        let status =
            Command::new("git").args(["clone", "--quiet"]).args(words).arg(source).arg(&place).status();
        assert!(status.unwrap().success());
        place
    };
    let bare = clone("bare.git", &["--bare"]);
    let store = run(GraphStore::open(project.options_at("bare.sqlite", &bare))).unwrap();
    assert_eq!(ingest(&store, "main").commits, 4);
    assert_eq!(files(&store, "HEAD"), ["a.ts"]);

    let shallow = clone("shallow", &["--depth", "2"]);
    let store = run(GraphStore::open(project.options_at("shallow.sqlite", &shallow))).unwrap();
    assert_eq!(ingest(&store, "HEAD").commits, 2);
    assert_eq!(files(&store, "HEAD"), ["a.ts"]);
    // What the oldest commit here has changed is unknown.
    assert_eq!(arrows(&store, "HEAD", "CHANGED_IN"), ["File a.ts -> Commit commit 3"]);
}

#[test]
fn a_deep_history_is_cut_and_said() {
    let mut project = Project::new();
    for number in 0..5 {
        project.write("a.ts", format!("export const a = {number};\n"));
        project.commit(&format!("commit {number}"));
    }
    let mut options = project.options();
    options.history = 3;
    let store = run(GraphStore::open(options)).unwrap();
    assert_eq!(ingest(&store, "HEAD").commits, 3);
    let stats = run(store.stats(None)).unwrap();
    assert!(stats.cut);
    assert_eq!((stats.commits, stats.nodes["Commit"]), (3, 3));
}

#[test]
fn tools_are_replaced_as_a_whole() {
    let mut project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    let first = project.commit("first");
    let store = project.open();
    ingest(&store, "HEAD");
    let tool = |path: &str| ToolFact { path: path.into(), name: path.into(), description: "does".into() };
    let tools = |commit: &str| -> Vec<String> {
        let lines = picture(&store, commit);
        lines.into_iter().filter(|line| line.starts_with("Tool ")).collect()
    };
    run(store.set_tools(vec![tool("tools/one.ts"), tool("tools/two.ts")])).unwrap();
    assert_eq!(tools(&first).len(), 2);
    project.write("b.ts", "export const b = 1;\n");
    let second = project.commit("second");
    ingest(&store, "HEAD");
    assert_eq!(tools(&second).len(), 2);
    run(store.set_tools(vec![tool("tools/two.ts")])).unwrap();
    assert_eq!((tools(&first).len(), tools(&second).len()), (2, 1));
    ingest(&store, "WORKTREE");
    run(store.set_tools(vec![])).unwrap();
    assert_eq!((tools(&first).len(), tools(&second).len(), tools("WORKTREE").len()), (2, 0, 0));
}
