//! What an author might do to hide an import from the review.

use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};
use tgp_contract::{Change, Graph, GraphQuery, RelativePath};

use crate::support::{Project, arrows, file, files, ingest, run};

const IMPORT: &str = "import { page } from '../web/page';\n";
const ARROW: &str = "File src/domain/a.ts -> File src/web/page.ts";
const BEYOND: usize = 2 << 20;

fn path(path: &str) -> RelativePath {
    RelativePath::new(path).unwrap()
}

fn write(at: &str, content: impl AsRef<[u8]>) -> Change {
    Change::Write { path: path(at), content: content.as_ref().into() }
}

/// A project in which `src/web/page.ts` must not be imported from `src/domain`.
fn layered() -> Project {
    let project = Project::new();
    project.write("src/web/page.ts", "export const page = 1;\n");
    project
}

/// The paths that a question gives before and after the changes.
fn proposed(store: &tgp_graph::GraphStore, changes: &[Change], query: &str) -> (Vec<Value>, Vec<Value>) {
    let mut answers = run(store.propose(changes, &[GraphQuery::new(query)])).unwrap();
    let (before, after) = answers.remove(0);
    let first = |rows: Vec<Vec<Value>>| rows.into_iter().map(|mut row| row.remove(0)).collect();
    (first(before.rows), first(after.rows))
}

const WRONG: &str =
    "MATCH (f:File)-[:IMPORTS]->(t:File {path: 'src/web/page.ts'}) RETURN f.path ORDER BY f.path";
const PATHS: &str = "MATCH (f:File) RETURN f.path ORDER BY f.path";

#[test]
fn a_nul_hides_no_import() {
    let utf16 = |text: &str| -> Vec<u8> {
        [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let contents: [(&str, Vec<u8>); 5] = [
        ("comment before", format!("// \0\n{IMPORT}").into_bytes()),
        ("string before", format!("export const nul = '\0';\n{IMPORT}").into_bytes()),
        ("bare, behind", format!("{IMPORT}\0\0\0").into_bytes()),
        ("bare, before", format!("\0{IMPORT}").into_bytes()),
        ("two bytes a letter", utf16(IMPORT)),
    ];
    for (how, content) in contents {
        let mut project = layered();
        let store = project.open();
        ingest(&store, "WORKTREE");
        let change = write("src/domain/a.ts", &content);
        let (_, after) = proposed(&store, &[change], WRONG);
        assert_eq!(after, [json!("src/domain/a.ts")], "{how}");
        project.write("src/domain/a.ts", &content);
        project.commit("all");
        ingest(&store, "HEAD");
        assert_eq!(arrows(&store, "HEAD", "IMPORTS"), [ARROW], "{how}");
    }
    // What is not a code is a binary as before.
    let mut project = layered();
    project.write("picture.png", "\0\n\0\n");
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    assert!(!file(&store, "HEAD", "picture.png").contains_key("lines"));
}

#[test]
fn what_cannot_be_read_whole_is_marked_and_can_be_forbidden() {
    let deep = format!("{}import('../web/page'){};\n", "(".repeat(2_000), ")".repeat(2_000));
    let many: String = (0..20_001).map(|at| format!("import './x{at}';\n")).collect();
    let far = format!("import '../web/{}page';\n", "./".repeat(400));
    let contents = [
        ("large.ts", format!("{}{IMPORT}", " ".repeat(BEYOND))),
        ("deep.ts", deep),
        ("many.ts", many),
        ("far.ts", far),
        ("package.json", format!("{}{{}}", " ".repeat(BEYOND))),
    ];
    let mut project = layered();
    let store = project.open();
    ingest(&store, "WORKTREE");
    let question = "MATCH (f:File {unparsed: true}) WHERE f.broken RETURN f.path";
    for (name, content) in &contents {
        let change = write(&format!("src/domain/{name}"), content);
        let (before, after) = proposed(&store, &[change], question);
        assert_eq!((before, after), (vec![], vec![json!(format!("src/domain/{name}"))]));
    }
    for (name, content) in &contents {
        project.write(&format!("src/domain/{name}"), content);
    }
    project.write("large.bin", vec![b' '; BEYOND + 1]);
    project.commit("all");
    ingest(&store, "HEAD");
    for (name, _) in &contents {
        let file = file(&store, "HEAD", &format!("src/domain/{name}"));
        assert_eq!((&file["broken"], &file["unparsed"]), (&json!(true), &json!(true)), "{name}");
    }
    for name in ["large.bin", "src/web/page.ts"] {
        let file = file(&store, "HEAD", name);
        assert_eq!((&file["broken"], file.get("unparsed")), (&json!(false), None), "{name}");
    }
}

#[test]
fn ignore_rules_say_what_is_no_code() {
    let mut project = layered();
    project.write(".gitignore", "/out/\n*.log\n!keep.log\n/out2/*\n!/out2/kept/\n");
    project.write("src/.gitignore", "!loud.log\nlocal.ts\n");
    project.write("out/.gitignore", "!x.ts\n");
    project.commit("first");
    let exclude = project.root().join(".git/info/exclude");
    std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    std::fs::write(exclude, "mine.ts\n").unwrap();
    let table = [
        ("src/domain/a.ts", true),
        ("src/domain/target/x.ts", true),
        ("src/domain/.tgp/x.ts", true),
        ("src/loud.log", true),
        ("src/quiet.log", false),
        ("keep.log", true),
        ("src/local.ts", false),
        ("local.ts", true),
        // What is in an ignored directory cannot be reverted.
        ("out/x.ts", false),
        ("out2/x.ts", false),
        ("out2/kept/x.ts", true),
        ("src/mine.ts", false),
        (".tgp/x.ts", false),
        ("src/node_modules/x/i.js", false),
        ("src/built/target/x.ts", true),
    ];
    let store = project.open();
    ingest(&store, "WORKTREE");
    let changes: Vec<Change> = table.iter().map(|(at, _)| write(at, "")).collect();
    let (_, after) = proposed(&store, &changes, PATHS);
    for (at, _) in table {
        project.write(at, "");
    }
    ingest(&store, "WORKTREE");
    let seen = files(&store, "WORKTREE");
    // What is written is judged though a rule hides it; only what is never code is not.
    let is_judged = |at: &str| !at.starts_with(".tgp/") && !at.contains("node_modules");
    for (at, counts) in &table {
        assert_eq!(after.contains(&json!(at)), is_judged(at), "proposed {at}");
        assert_eq!(seen.contains(&(*at).to_owned()), *counts, "written {at}");
        // Git itself agrees, beside the directories that are left out without a rule.
        if !["node_modules", ".tgp/x"].iter().any(|name| at.contains(name)) {
            let git = std::process::Command::new("git")
                .args(["-c", "core.excludesFile=", "check-ignore", "--quiet", at])
                .current_dir(project.root())
                .status();
            assert_eq!(git.unwrap().code(), Some(i32::from(*counts)), "git {at}");
        }
    }
    let hidden = table.iter().filter(|(at, counts)| !counts && is_judged(at)).count();
    assert_eq!(after.len(), seen.len() + hidden);
}

#[test]
fn what_is_tracked_counts_though_a_rule_names_it() {
    let mut project = layered();
    project.write("node_modules/own/a.js", "exports.a = 1;\n");
    project.write("target/a.ts", "export const a = 1;\n");
    project.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    project.commit("first");
    project.write(".gitignore", "gen/\n");
    project.write("gen/staged.ts", "export const staged = 1;\n");
    project.write("gen/not.ts", "export const not = 1;\n");
    project.write("node_modules/own/b.js", "exports.b = 1;\n");
    project.write("target/b.ts", "export const b = 1;\n");
    let mut index = project.git().index().unwrap();
    index.add_path(std::path::Path::new("gen/staged.ts")).unwrap();
    index.write().unwrap();
    let store = project.open();
    ingest(&store, "WORKTREE");
    let seen = files(&store, "WORKTREE");
    for at in
        ["node_modules/own/a.js", "node_modules/own/b.js", "target/a.ts", "target/b.ts", "gen/staged.ts"]
    {
        assert!(seen.contains(&at.to_owned()), "{at}: {seen:?}");
    }
    assert!(!seen.contains(&"gen/not.ts".to_owned()));
    // One that is gone from the disk is still git's, and written again it counts.
    project.remove("gen/staged.ts");
    let (_, after) = proposed(&store, &[write("gen/staged.ts", ""), write("gen/new.ts", "")], PATHS);
    // And so does one that a rule hides: who writes it may have written the rule.
    assert!(after.contains(&json!("gen/staged.ts")) && after.contains(&json!("gen/new.ts")));
}

#[test]
fn a_proposal_that_changes_the_ignore_rules_is_judged_by_them() {
    for below in ["", "inner/"] {
        let mut project = layered();
        project.write(".gitignore", "/src/domain/\n");
        project.write("src/domain/a.ts", IMPORT);
        project.write("free.ts", "import './src/web/page';\n");
        project.write("src/b/.gitignore", "b.ts\n");
        project.write("src/b/b.ts", IMPORT);
        if below == "inner/" {
            // A project below the root of its repository.
            let inner = project.root().join("inner");
            std::fs::create_dir(&inner).unwrap();
            for name in [".gitignore", "src", "free.ts"] {
                std::fs::rename(project.root().join(name), inner.join(name)).unwrap();
            }
            project.write("src/x.ts", "");
            project.commit("first");
        }
        let root = project.root().join(below);
        let options = project.options_at("inner.sqlite", &root);
        let store = run(tgp_graph::GraphStore::open(options)).unwrap();
        ingest(&store, "WORKTREE");
        let ask = |changes: &[Change]| proposed(&store, changes, WRONG);
        let remove = |at: &str| Change::Remove { path: path(at) };
        let (free, a, b) = (json!("free.ts"), json!("src/domain/a.ts"), json!("src/b/b.ts"));
        let none = (vec![free.clone()], vec![free.clone()]);
        assert_eq!(ask(&[write("src/domain/c.ts", IMPORT)]).1, [free.clone(), json!("src/domain/c.ts")]);
        assert_eq!(ask(&[write(".gitignore", "")]).1, [free.clone(), a.clone()]);
        assert_eq!(ask(&[remove(".gitignore")]).1, [free.clone(), a.clone()]);
        assert_eq!(ask(&[write("src/b/.gitignore", "")]).1, [free.clone(), b.clone()]);
        assert_eq!(ask(&[remove("src/b")]), none);
        let both = [write(".gitignore", ""), write("src/domain/c.ts", IMPORT), remove("src/domain/a.ts")];
        assert_eq!(ask(&both).1, [free.clone(), json!("src/domain/c.ts")]);
        assert_eq!(ask(&[write("src/domain/.gitignore", "!*\n")]), none);
        if below.is_empty() {
            // Where it is not tracked, a rule can hide it as well.
            assert_eq!(ask(&[write(".gitignore", "/free.ts\n")]).1, vec![a.clone()]);
        } else {
            assert_eq!(ask(&[write(".gitignore", "/free.ts\n")]).1, [free.clone(), a.clone()]);
        }
        assert_eq!(ask(&[]), none);
    }
}

#[test]
fn an_import_is_seen_however_it_is_spelled() {
    let spellings = [
        ("e.TS", IMPORT),
        ("e.Tsx", IMPORT),
        ("e.JS", IMPORT),
        ("a.ts", "export const lazy = () => import(`../web/page`);\n"),
        ("a.ts", "import '../w\\x65b/page';\n"),
        ("a.ts", "import '../w\\u0065b/p\\u{61}ge';\n"),
        ("a.ts", "export * from '../w\\\neb/page';\n"),
        ("a.ts", "/// <reference path=\"../web/page.ts\" />\n"),
        ("a.ts", "///<Reference Path = '../web/page.ts'/>\nexport {};\n"),
        ("a.ts", "import page = require('../w\\145b/page');\n"),
        ("a.ts", "type Page = import('../web/page').Page;\n"),
        ("a.ts", "export function f(page: typeof import('../web/page')) {}\n"),
        ("a.js", "const page = require(`../web/page`);\n"),
        ("a.js", "require(/* why */ '../web/page');\n"),
        ("a.js", "import(/* webpackChunkName: \"page\" */ '../web/page');\n"),
        ("a.js", "module.require('../web/page');\n"),
        ("a.js", "import('../w' + ('eb' + `/page`));\n"),
        (
            "a.vue",
            "<template><p>it's</p></template>\n<script setup lang=\"ts\">\nimport '../web/page';\n</script>\n",
        ),
        ("a.vue", "<SCRIPT generic=\"T extends Array<string>\">\nimport '../web/page'\n</SCRIPT>\n"),
        ("a.vue", "<script src='../web/page.ts'></script>\n"),
        (
            "a.svelte",
            "<script context=module>\n</script>\n<script>\n  import '../web/page';\n</script>\n{#if x}",
        ),
    ];
    for (name, content) in spellings {
        let project = layered();
        let store = project.open();
        project.write(&format!("src/domain/{name}"), content);
        ingest(&store, "WORKTREE");
        let expected = format!("File src/domain/{name} -> File src/web/page.ts");
        assert_eq!(arrows(&store, "WORKTREE", "IMPORTS"), [expected], "{name}: {content}");
        let known = file(&store, "WORKTREE", &format!("src/domain/{name}"));
        assert_eq!(known["broken"], json!(false), "{name}: {content}");
        assert_eq!(known["extension"], json!(name.rsplit('.').next().unwrap().to_lowercase()));
    }
    // What is known only when the code runs is an import of something unknown.
    let project = layered();
    project.write("src/domain/a.js", "import(`../web/${name}`); require('../web/' + name); require();\n");
    let store = project.open();
    ingest(&store, "WORKTREE");
    let computed = ["'../web/' + name", "`../web/${name}`"]
        .map(|written| format!("File src/domain/a.js -> Unresolved {written}"));
    assert_eq!(arrows(&store, "WORKTREE", "IMPORTS"), computed);
}

/// One event, as a chronicle has it.
const CHRONICLE: &str = concat!(
    r#"{"actor":{"agent":"person","id":"ann"},"eventId":"ac47547926d66f45acb086f66243b9e7b6adbfa26ef1876d4a35aadfb7ec8769","#,
    r#""timestamp":"2026-11-15T12:00:00Z","type":"NOTE"}"#,
    "\n"
);

#[test]
fn chronicles_are_not_in_the_graph() {
    let mut project = layered();
    project.write("src/web/page.ts.sage", CHRONICLE);
    project.write(".sage/project.sage", "{}\n");
    project.write(".sage/files/src/web/page.ts.sage", "{}\n");
    project.write(".sage/files/src/web/page.ts.sage.torn-0123abcd", "{");
    project.write(".sage/invariants.yml", "[]\n");
    project.commit("first");
    let store = project.open();
    ingest(&store, "HEAD");
    let expected = [".sage/invariants.yml", "src/web/page.ts"];
    assert_eq!(files(&store, "HEAD"), expected);
    assert_eq!(arrows(&store, "HEAD", "CHANGED_IN").len(), 2);
    project.write("src/web/other.sage", CHRONICLE);
    ingest(&store, "WORKTREE");
    assert_eq!(files(&store, "WORKTREE"), expected);
    let changes = [write("a.ts.sage", CHRONICLE), write("a.ts", "")];
    assert_eq!(proposed(&store, &changes, PATHS).1.len(), 3);
    project.rename("src/web/page.ts.sage", "src/web/page2.ts.sage");
    project.commit("second");
    ingest(&store, "HEAD");
    assert_eq!(files(&store, "HEAD"), expected);
}

#[test]
fn a_source_of_sagemath_is_a_file_of_the_graph_at_every_commit() {
    let mut project = layered();
    project.write("src/curve.sage", "R.<x> = QQ[]\n");
    project.write("src/kept.sage", "R.<y> = QQ[]\n");
    project.commit("first");
    let store = project.open();
    ingest(&store, "HEAD");
    assert_eq!(files(&store, "HEAD"), ["src/curve.sage", "src/kept.sage", "src/web/page.ts"]);
    // One that becomes a chronicle is gone, and the other way round it comes.
    project.write("src/curve.sage", CHRONICLE);
    project.write("src/new.sage", "R.<z> = QQ[]\n");
    ingest(&store, "WORKTREE");
    project.commit("second");
    ingest(&store, "HEAD");
    assert_eq!(files(&store, "HEAD"), ["src/kept.sage", "src/new.sage", "src/web/page.ts"]);
    let changes = [write("src/other.sage", "R.<w> = QQ[]\n")];
    assert_eq!(proposed(&store, &changes, PATHS).1.len(), 4);
}

#[test]
fn the_judge_of_a_proposal_sees_all_rows() {
    let project = layered();
    let options = tgp_graph::GraphOptions { max_rows: 3, ..project.options() };
    let store = run(tgp_graph::GraphStore::open(options)).unwrap();
    ingest(&store, "WORKTREE");
    let question = GraphQuery::new("MATCH (f:File) UNWIND range(1, 50000) AS x RETURN f.path, x");
    let few = run(store.query(question.clone().at("WORKTREE"))).unwrap();
    assert_eq!((few.rows.len(), few.truncated), (3, true));
    let answers = run(store.propose(&[write("a.ts", "")], &[question])).unwrap();
    assert_eq!((answers[0].1.rows.len(), answers[0].1.truncated), (100_000, false));
}

#[test]
fn paths_that_are_no_text_are_counted() {
    let mut project = layered();
    let name = std::ffi::OsStr::from_bytes(b"src/\xFF.ts");
    std::fs::write(project.root().join(name), IMPORT).unwrap();
    project.commit("first");
    let store = project.open();
    ingest(&store, "HEAD");
    assert_eq!(run(store.stats(Some("HEAD"))).unwrap().skipped, 1);
    std::fs::write(project.root().join(std::ffi::OsStr::from_bytes(b"\xFE.ts")), IMPORT).unwrap();
    ingest(&store, "WORKTREE");
    assert_eq!(run(store.stats(Some("WORKTREE"))).unwrap().skipped, 2);
    assert_eq!(files(&store, "WORKTREE"), ["src/web/page.ts"]);
}

#[test]
fn bug_a_proposed_rule_file_beyond_the_limit_hid_files_from_invariants() {
    let mut project = Project::new();
    project.write("src/core.ts", "export const c = 1;\n");
    project.commit("first");
    project.write("src/importer.ts", "import { c } from './core';\nexport const z = c;\n");
    let store = project.open();
    ingest(&store, "WORKTREE");
    let large = format!("/src/importer.ts\n#{}\n", "x".repeat(300_000));
    for name in [".ignore", ".gitignore"] {
        let (_, after) = proposed(&store, &[write(name, &large)], PATHS);
        assert!(after.contains(&json!("src/importer.ts")), "{name}");
    }
}

#[test]
fn bug_a_pipe_named_as_a_cache_tag_hung_every_question_about_the_files() {
    let mut project = Project::new();
    project.write("a.ts", "");
    project.commit("first");
    std::fs::create_dir(project.root().join("target")).unwrap();
    for name in ["CACHEDIR.TAG", ".gitignore", "a.sage", "b.ts"] {
        let made =
            std::process::Command::new("mkfifo").arg(project.root().join("target").join(name)).status();
        assert!(made.unwrap().success());
    }
    let store = project.open();
    ingest(&store, "WORKTREE");
    assert_eq!(files(&store, "WORKTREE"), ["a.ts"]);
}

#[test]
fn bug_a_tag_that_anybody_can_write_hid_a_directory() {
    let mut project = Project::new();
    project.write("a.ts", "");
    project.commit("first");
    project.write("src/target/b.ts", "");
    project.write("src/target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    let store = project.open();
    ingest(&store, "WORKTREE");
    assert!(files(&store, "WORKTREE").contains(&"src/target/b.ts".to_owned()));
}
