//! The files as they are, and changes that are only tried.

use serde_json::json;
use tgp_contract::{Change, Code, Graph, GraphQuery, RelativePath};

use crate::support::{Project, arrows, files, ingest, picture, refusal, run, without_history};

fn write(path: &str, content: &str) -> Change {
    Change::Write { path: RelativePath::new(path).unwrap(), content: content.as_bytes().into() }
}

fn remove(path: &str) -> Change {
    Change::Remove { path: RelativePath::new(path).unwrap() }
}

#[test]
fn a_draft_is_taken_back_exactly() {
    let mut project = Project::new();
    project.write("a.ts", "import pad from 'left-pad';\nexport function a() { pad(); }\n");
    project.write("b.ts", "import { a } from './a';\na();\n");
    project.commit("first");
    let store = project.open();
    ingest(&store, "HEAD");
    let before = tables(&project);
    project.write("a.ts", "export function other() {}\n");
    project.write("c.ts", "import right from 'right-pad';\nright();\n");
    project.remove("b.ts");
    let draft = ingest(&store, "WORKTREE");
    assert_eq!((draft.files, draft.commits, draft.parsed), (2, 0, 2));
    assert_eq!(files(&store, "WORKTREE"), ["a.ts", "c.ts"]);
    assert_eq!(files(&store, "HEAD"), ["a.ts", "b.ts"]);
    project.write("c.ts", "export const c = 1;\n");
    ingest(&store, "WORKTREE");
    assert!(arrows(&store, "WORKTREE", "IMPORTS").is_empty());
    assert_eq!(arrows(&store, "WORKTREE", "CHANGED_IN"), ["File a.ts -> Commit first"]);
    // A commit that changes nothing pushes the draft out; what is left is as if the draft had never been.
    let head = project.git().head().unwrap().peel_to_commit().unwrap();
    let (tree, parent) = (head.tree_id(), head.id());
    drop(head);
    let empty = project.commit_tree("empty", tree, &[parent]);
    ingest(&store, &empty);
    assert_eq!(refusal(&store, "WORKTREE").code, Code::NotFound);
    let after = tables(&project);
    let lost: Vec<&String> = before.iter().filter(|line| !after.contains(line)).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    let added: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    let of_the_commit = |line: &str| {
        line.contains("\"message\":\"empty\"") || line.contains("PARENT") || line.contains("Commit")
    };
    assert!(added.iter().all(|line| of_the_commit(line)), "{added:#?}");
}

/// All rows, hidden ones included.
fn tables(project: &Project) -> Vec<String> {
    let connection = rusqlite::Connection::open(project.options().file).unwrap();
    let mut lines = Vec::new();
    for (table, columns) in [
        ("node", "id || props || since || '-' || until || ghost"),
        ("edge", "id || type || source || '-' || target || props || since || '-' || until"),
        ("label", "name || node"),
        ("now_key JOIN now ON now.row_id = now_key.row", "key || name"),
    ] {
        let sql = format!("SELECT {columns} FROM {table} ORDER BY 1");
        let mut statement = connection.prepare(&sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        lines.extend(rows.map(|row| format!("{table} {}", row.unwrap())));
    }
    lines
}

#[test]
fn ignored_files_do_not_count_and_committed_ones_do() {
    let mut project = Project::new();
    project.write("src/a.ts", "export const a = 1;\n");
    project.write("dist/kept.js", "exports.kept = 1;\n");
    project.commit("first");
    project.write(".gitignore", "dist/\n*.log\n!keep.log\n");
    project.write("dist/built.js", "exports.built = 1;\n");
    project.write("debug.log", "x\n");
    project.write("keep.log", "x\n");
    project.write("node_modules/left-pad/index.js", "module.exports = 1;\n");
    project.write(".tgp/state.json", "{}\n");
    let store = project.open();
    ingest(&store, "WORKTREE");
    let expected = [".gitignore", "dist/kept.js", "keep.log", "src/a.ts"];
    assert_eq!(files(&store, "WORKTREE"), expected);
    // What is tried counts whether a rule hides it or not; installed packages never do.
    let changes = [
        write("dist/more.js", ""),
        write("other.log", ""),
        write("node_modules/x/y.js", ""),
        write("new.ts", ""),
    ];
    let question = GraphQuery::new("MATCH (f:File) RETURN f.path AS path ORDER BY path");
    let answers = run(store.propose(&changes, &[question])).unwrap();
    let paths: Vec<&str> = answers[0].1.rows.iter().map(|row| row[0].as_str().unwrap()).collect();
    let tried = [".gitignore", "dist/kept.js", "dist/more.js", "keep.log", "new.ts", "other.log", "src/a.ts"];
    assert_eq!(paths, tried);
}

#[test]
fn a_proposal_shows_what_would_be_and_leaves_nothing() {
    for with_git in [true, false] {
        let mut project = if with_git { Project::new() } else { Project::without_git() };
        project.write("lib.ts", "export function f() {}\nexport function g() {}\n");
        project.write("user.ts", "import { f } from './lib';\nexport function use() { f(); }\n");
        if with_git {
            project.commit("first");
        }
        let store = project.open();
        let questions = [
            GraphQuery::new("MATCH (f:File) RETURN f.path AS path ORDER BY path"),
            GraphQuery::new("MATCH (a)-[c:CALLS]->(b:Symbol) RETURN a.name, b.name, b.path ORDER BY a.name"),
            GraphQuery::new("MATCH (f:File)-[:IMPORTS]->(t:File {path: $path}) RETURN f.path")
                .param("path", "lib.ts"),
        ];
        let ask = |changes: &[Change]| run(store.propose(changes, &questions)).unwrap();
        let untouched = ask(&[]);
        for (before, after) in &untouched {
            assert_eq!(before, after);
            assert!(before.standing.draft);
            assert_eq!(before.standing.reference, "WORKTREE");
            assert_eq!(before.standing.commit.is_empty(), !with_git);
        }
        assert_eq!(untouched[1].0.rows, [[json!("use"), json!("f"), json!("lib.ts")]]);
        assert_eq!(untouched[2].0.rows, [[json!("user.ts")]]);
        let before = picture(&store, "WORKTREE");

        let removed = ask(&[remove("lib.ts")]);
        assert_eq!(removed[0].1.rows, [[json!("user.ts")]]);
        assert!(removed[1].1.rows.is_empty() && removed[2].1.rows.is_empty());
        assert_eq!(removed[1].0, untouched[1].0);

        let moved = ask(&[
            remove("lib.ts"),
            write("lib/index.ts", "export { f } from './f';\n"),
            write("lib/f.ts", "export const f = () => 1;\n"),
        ]);
        assert_eq!(moved[1].1.rows, [[json!("use"), json!("f"), json!("lib/f.ts")]]);
        assert_eq!(picture(&store, "WORKTREE"), before);

        // Made for real, it is what was foretold.
        project.remove("lib.ts");
        project.write("lib/index.ts", "export { f } from './f';\n");
        project.write("lib/f.ts", "export const f = () => 1;\n");
        for ((now, _), (_, foretold)) in ask(&[]).iter().zip(&moved) {
            assert_eq!(now.rows, foretold.rows);
        }
    }
}

#[test]
fn a_project_without_commits() {
    let project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    let store = project.open();
    assert_eq!(run(store.ingest("HEAD")).unwrap_err().code, Code::NotFound);
    let draft = ingest(&store, "WORKTREE");
    assert_eq!((draft.commit.as_str(), draft.files), ("", 1));
    let standing = run(store.stats(None)).unwrap().standing;
    assert!(standing.draft && !standing.behind);
    // The first commit replaces it.
    let mut project = project;
    project.commit("first");
    assert_eq!(ingest(&store, "HEAD").commits, 1);
    assert_eq!(files(&store, "HEAD"), ["a.ts"]);
    assert_eq!(without_history(picture(&store, "HEAD")).len(), 4);
}

/// A file that changes within the grain of its times is not taken for the old one.
#[test]
fn quick_changes_are_seen() {
    let project = Project::without_git();
    let store = project.open();
    for number in 0..10 {
        project.write("a.ts", format!("export const a{number} = 1;\n"));
        ingest(&store, "WORKTREE");
        let defines = arrows(&store, "WORKTREE", "DEFINES");
        assert_eq!(defines, [format!("File a.ts -> Symbol a.ts#const a{number}")]);
    }
}

fn git(place: &std::path::Path, words: &[&str]) {
    let mut command = std::process::Command::new("git");
    let output = command.arg("-C").arg(place).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_deleted() {
    let mut project = Project::new();
    project.write("in/a.ts", "import { b } from '../out/b';\nb();\n");
    project.write("out/b.ts", "export function b() {}\n");
    let first = project.commit("first");
    project.write("out/b.ts", "export function b() {}\nexport function more() {}\n");
    project.commit("second");
    let store = project.open();
    // The last moment is another commit than the one that the work tree is based on.
    ingest(&store, "HEAD");
    git(&project.root(), &["checkout", "--quiet", &first]);
    git(&project.root(), &["sparse-checkout", "set", "in"]);
    assert!(!project.root().join("out").exists());
    ingest(&store, "WORKTREE");
    assert_eq!(without_history(picture(&store, "WORKTREE")), without_history(picture(&store, &first)));
    let question = GraphQuery::new("MATCH (f:File) RETURN f.path AS path ORDER BY path");
    let answers = run(store.propose(&[write(".gitignore", "x\n")], &[question])).unwrap();
    let paths: Vec<&str> = answers[0].1.rows.iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(paths, [".gitignore", "in/a.ts", "out/b.ts"]);
}

#[test]
fn nested_repositories_and_rules_that_are_in_no_tree() {
    let mut project = Project::new();
    project.write("a.ts", "");
    project.commit("first");
    git(&project.root(), &["init", "--quiet", "nested"]);
    project.write("nested/b.ts", "");
    project.write("module/.git", "gitdir: ../.git/modules/module\n");
    project.write("module/c.ts", "");
    project.write("notes.private", "");
    project.write("kept.private", "");
    let rules = project.home.path().join("rules");
    std::fs::write(&rules, "a.ts\n").unwrap();
    git(&project.root(), &["config", "core.excludesFile", rules.to_str().unwrap()]);
    // Rules that one person has for all repositories do not count; those of this repository do.
    std::fs::write(project.root().join(".git/info/exclude"), "*.private\n!kept.private\n").unwrap();
    let repository = tgp_fs::RepositoryAccess::confirmed(tgp_fs::outside_places(&project.root()).unwrap());
    let options = tgp_graph::GraphOptions { repository, ..project.options() };
    let store = run(tgp_graph::GraphStore::open(options)).unwrap();
    ingest(&store, "WORKTREE");
    assert_eq!(files(&store, "WORKTREE"), ["a.ts", "kept.private"]);
    let question = GraphQuery::new("MATCH (f:File) RETURN f.path AS path ORDER BY path");
    let changes = [write("nested/d.ts", ""), write("new.private", ""), write("new.ts", "")];
    let answers = run(store.propose(&changes, &[question])).unwrap();
    let paths: Vec<&str> = answers[0].1.rows.iter().map(|row| row[0].as_str().unwrap()).collect();
    // What is written is judged, wherever it is and whatever a rule says of it.
    assert_eq!(paths, ["a.ts", "kept.private", "nested/d.ts", "new.private", "new.ts"]);
    // Without git all files are alike.
    let bare = Project::without_git();
    git(&bare.root(), &["init", "--quiet", "nested"]);
    bare.write("nested/b.ts", "");
    let store = bare.open();
    ingest(&store, "WORKTREE");
    assert_eq!(files(&store, "WORKTREE"), ["nested/b.ts"]);
}

#[test]
fn what_cannot_be_read_says_what_helps() {
    let mut project = Project::new();
    let store = project.open();
    let nothing = run(store.ingest("HEAD")).unwrap_err();
    assert_eq!((nothing.code, nothing.message.as_str()), (Code::NotFound, "there is no commit yet"));
    assert_eq!(nothing.help_of(), Some("`tgp graph ingest --commit WORKTREE` reads the files as they are"));
    project.write("a.ts", "export const a = 1;\n");
    project.commit("first");
    project.write("a.ts", "export const a = 2;\n");
    project.commit("second");
    git(&project.root(), &["config", "uploadpack.allowFilter", "true"]);
    let source = format!("file://{}", project.root().display());
    git(project.home.path(), &["clone", "--quiet", "--filter=blob:none", &source, "partial"]);
    let partial = project.home.path().join("partial");
    let store = run(tgp_graph::GraphStore::open(project.options_at("partial.sqlite", &partial))).unwrap();
    let missing = run(store.ingest("HEAD")).unwrap_err();
    assert_eq!(missing.code, Code::Git);
    assert!(missing.help_of().is_some_and(|help| help.contains("git fetch --refetch")), "{missing:?}");
    git(&partial, &["fetch", "--quiet", "--refetch", "--no-filter"]);
    // The newest commit, whose blob the clone has, is there already.
    assert_eq!(ingest(&store, "HEAD").commits, 1);

    git(project.home.path(), &["init", "--quiet", "--object-format=sha256", "long"]);
    let options = project.options_at("long.sqlite", &project.home.path().join("long"));
    let refused = run(tgp_graph::GraphStore::open(options)).err().unwrap();
    assert!(refused.message.contains("SHA-256"), "{refused:?}");
}
