//! Branches and merges: what is seen from where.

use git2::Oid;
use tgp_contract::{Graph, GraphQuery};

use crate::support::{Project, arrows, files, ingest, picture, run};

fn id(text: &str) -> Oid {
    Oid::from_str(text).unwrap()
}

/// A main line and a side line that are merged, with a file that only the merge has.
fn diamond(project: &mut Project) -> [String; 4] {
    project.write("base.ts", "export function base() {}\n");
    let base = project.commit("base");
    project.write("left.ts", "import { base } from './base';\nexport function left() { base(); }\n");
    let left = project.commit("left");
    project.git().set_head_detached(id(&base)).unwrap();
    project.remove("left.ts");
    project.write("right.ts", "import { base } from './base';\nexport function right() { base(); }\n");
    let right = project.commit("right");
    project.write("left.ts", "import { base } from './base';\nexport function left() { base(); }\n");
    project.write("base.ts", "export function base() { return 'merged'; }\n");
    let merge = project.commit_on("merge", &[id(&right), id(&left)]);
    [base, left, right, merge]
}

#[test]
fn a_commit_sees_its_own_line_of_history() {
    let mut project = Project::new();
    let [base, left, right, merge] = diamond(&mut project);
    let store = project.open();
    assert_eq!(ingest(&store, &merge).commits, 4);
    let commits = |name: &str| -> Vec<String> {
        let lines = picture(&store, name);
        let commits = lines.iter().filter(|line| line.starts_with("Commit "));
        commits.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(commits(&base), ["base"]);
    assert_eq!(commits(&left), ["base", "left"]);
    assert_eq!(commits(&right), ["base", "right"]);
    assert_eq!(commits(&merge), ["base", "left", "merge", "right"]);
    assert_eq!(files(&store, &left), ["base.ts", "left.ts"]);
    assert_eq!(files(&store, &right), ["base.ts", "right.ts"]);
    assert_eq!(
        arrows(&store, &merge, "CALLS"),
        [
            "Symbol left.ts#function left -> Symbol base.ts#function base",
            "Symbol right.ts#function right -> Symbol base.ts#function base",
        ]
    );
    assert_eq!(arrows(&store, &right, "PARENT"), ["Commit right -> Commit base"]);
    // A merge has changed what it has from none of its parents.
    assert_eq!(
        arrows(&store, &merge, "CHANGED_IN"),
        [
            "File base.ts -> Commit base",
            "File base.ts -> Commit merge",
            "File left.ts -> Commit left",
            "File right.ts -> Commit right",
        ]
    );
    assert_eq!(
        arrows(&store, &left, "CHANGED_IN"),
        ["File base.ts -> Commit base", "File left.ts -> Commit left",]
    );
}

/// A file is deleted on one line and renamed on another: each sees its own story.
#[test]
fn renames_belong_to_their_line() {
    let mut project = Project::new();
    let body = "export function known() {\n  return 'a text that is long enough to be known again';\n}\n";
    project.write("a.ts", body);
    let base = project.commit("base");
    project.rename("a.ts", "b.ts");
    let renamed = project.commit("renamed");
    project.rename("b.ts", "c.ts");
    let again = project.commit("again");
    project.git().set_head_detached(id(&renamed)).unwrap();
    project.remove("c.ts");
    let deleted = project.commit("deleted");
    let store = project.open();
    ingest(&store, &again);
    ingest(&store, &deleted);
    assert!(arrows(&store, &base, "WAS_RENAMED_FROM").is_empty());
    assert_eq!(arrows(&store, &renamed, "WAS_RENAMED_FROM"), ["File b.ts -> File a.ts"]);
    assert_eq!(
        arrows(&store, &again, "WAS_RENAMED_FROM"),
        ["File b.ts -> File a.ts", "File c.ts -> File b.ts"]
    );
    assert!(arrows(&store, &deleted, "WAS_RENAMED_FROM").is_empty());
    assert!(files(&store, &deleted).is_empty());
}

/// A file that is not touched but imports one that comes, goes and changes is linked again.
#[test]
fn untouched_files_are_linked_again() {
    let mut project = Project::new();
    project.write("user.ts", "import { f } from './lib';\nexport function use() { f(); }\n");
    let nothing = project.commit("nothing to import");
    project.write("lib/index.ts", "export * from './impl';\n");
    let barrel = project.commit("a barrel");
    project.write("lib/impl.ts", "export function f() {}\n");
    let found = project.commit("the function");
    project.write("lib/impl.ts", "export function g() {}\n");
    let lost = project.commit("another function");
    project.write("lib.ts", "export const f = () => 1;\n");
    let nearer = project.commit("a nearer file");
    let store = project.open();
    // One at a time: every step is an incremental one.
    for commit in [&nothing, &barrel, &found, &lost, &nearer] {
        assert_eq!(ingest(&store, commit).commits, 1);
    }
    let of = |commit: &str, kind: &str| -> Vec<String> {
        arrows(&store, commit, kind).into_iter().filter(|arrow| arrow.contains("user.ts")).collect()
    };
    assert_eq!(of(&nothing, "IMPORTS"), ["File user.ts -> Unresolved ./lib"]);
    assert_eq!(of(&barrel, "IMPORTS"), ["File user.ts -> File lib/index.ts"]);
    assert!(of(&barrel, "CALLS").is_empty());
    assert_eq!(of(&found, "CALLS"), ["Symbol user.ts#function use -> Symbol lib/impl.ts#function f"]);
    assert!(of(&lost, "CALLS").is_empty());
    assert_eq!(of(&nearer, "IMPORTS"), ["File user.ts -> File lib.ts"]);
    assert_eq!(of(&nearer, "CALLS"), ["Symbol user.ts#function use -> Symbol lib.ts#function f"]);
}

/// Files of a Go package see each other without an import: a new one concerns all of them.
#[test]
fn files_of_a_package_are_linked_again() {
    let mut project = Project::new();
    project.write("main.go", "package main\n\nfunc main() { helper() }\n");
    let alone = project.commit("alone");
    project.write("helper.go", "package main\n\nfunc helper() {}\n");
    let together = project.commit("together");
    project.remove("helper.go");
    let again = project.commit("alone again");
    let store = project.open();
    for commit in [&alone, &together, &again] {
        ingest(&store, commit);
    }
    let call = ["Symbol main.go#function main -> Symbol helper.go#function helper"];
    assert_eq!(arrows(&store, &together, "CALLS"), call);
    assert!(arrows(&store, &alone, "CALLS").is_empty());
    assert!(arrows(&store, &again, "CALLS").is_empty());
}

/// What does not change costs no rows, however many commits pass.
#[test]
fn an_unchanged_file_has_one_row() {
    let mut project = Project::new();
    project.write("still.ts", "export function still() {}\n");
    project.write("busy.ts", "");
    project.commit("first");
    for number in 0..20 {
        project.write("busy.ts", format!("export const busy = {number};\n"));
        project.commit(&format!("commit {number}"));
    }
    let store = project.open();
    ingest(&store, "HEAD");
    let connection = rusqlite::Connection::open(project.options().file).unwrap();
    let rows = |path: &str| -> i64 {
        let sql = "SELECT count(*) FROM node WHERE json_extract(props, '$.path') = ?1";
        connection.query_row(sql, [path], |row| row.get(0)).unwrap()
    };
    // The file and its function; each content of the other file, and its one constant from the second commit on.
    assert_eq!((rows("still.ts"), rows("busy.ts")), (2, 22));
    assert_eq!(run(store.ingest("HEAD")).unwrap().parsed, 0);
}

fn git(project: &Project, words: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.arg("-C").arg(project.root()).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]);
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What was ingested last may be gone from git for good.
#[test]
fn an_amended_commit_that_git_has_dropped_is_no_obstacle() {
    let mut project = Project::new();
    let body = "export function known() {\n  return 'a text that is long enough to be known again';\n}\n";
    project.write("old.ts", body);
    project.commit("base");
    project.write("lib/a.ts", "export function a() {}\n");
    project.rename("old.ts", "new.ts");
    let dropped = project.commit("to be amended");
    for with_draft in [false, true] {
        let store = project.fresh(if with_draft { "draft.sqlite" } else { "commits.sqlite" });
        ingest(&store, if with_draft { "WORKTREE" } else { "HEAD" });
    }
    project.remove("lib/a.ts");
    project.write("lib/b.ts", "export function b() {}\n");
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--amend", "--message", "amended"]);
    git(&project, &["reflog", "expire", "--expire=now", "--all"]);
    git(&project, &["gc", "--quiet", "--prune=now"]);
    assert!(git2::Repository::init(project.root()).unwrap().find_commit(id(&dropped)).is_err());
    let rebuilt = project.fresh("rebuilt.sqlite");
    ingest(&rebuilt, "HEAD");
    for name in ["draft.sqlite", "commits.sqlite"] {
        let store = project.fresh(name);
        assert_eq!(ingest(&store, "HEAD").commits, 1);
        ingest(&store, "WORKTREE");
        assert_eq!(picture(&store, "HEAD"), picture(&rebuilt, "HEAD"));
        assert_eq!(picture(&store, "WORKTREE"), picture(&rebuilt, "HEAD"));
        // What git has dropped is still known here.
        assert_eq!(files(&store, &dropped), ["lib/a.ts", "new.ts"]);
        assert_eq!(arrows(&store, &dropped, "PARENT"), ["Commit to be amended -> Commit base"]);
    }
}

/// A file of the same name that comes later is another one, on the line where the first was deleted.
#[test]
fn a_rename_ends_with_its_file() {
    let mut project = Project::new();
    let body = "export function known() {\n  return 'a text that is long enough to be known again';\n}\n";
    project.write("a.ts", body);
    project.commit("base");
    project.rename("a.ts", "b.ts");
    let renamed = project.commit("renamed");
    project.write("other.ts", "");
    let kept = project.commit("kept");
    project.remove("b.ts");
    let deleted = project.commit("deleted");
    project.write("b.ts", "export const unrelated = 1;\n");
    let another = project.commit("another");
    let again = {
        project.git().set_head_detached(id(&deleted)).unwrap();
        project.remove("b.ts");
        project.rename("other.ts", "more/other.ts");
        project.commit("elsewhere")
    };
    let orders = [[&kept, &another, &again, &renamed], [&again, &kept, &renamed, &another]];
    for (number, order) in orders.iter().enumerate() {
        let store = project.fresh(&format!("{number}.sqlite"));
        for commit in order {
            ingest(&store, commit);
        }
        let past = |commit: &str| -> Vec<String> {
            let all = arrows(&store, commit, "WAS_RENAMED_FROM");
            all.into_iter().filter(|arrow| arrow.contains("b.ts")).collect()
        };
        assert_eq!(past(&renamed), ["File b.ts -> File a.ts"]);
        assert_eq!(past(&kept), ["File b.ts -> File a.ts"]);
        assert!(past(&deleted).is_empty() && past(&another).is_empty() && past(&again).is_empty());
    }
}

/// A draft on a line that still has the file sees the rename, and reverts it.
#[test]
fn a_draft_sees_the_renames_of_its_own_line() {
    let mut project = Project::new();
    let body = "export function known() {\n  return 'a text that is long enough to be known again';\n}\n";
    project.write("a.ts", body);
    project.commit("base");
    project.rename("a.ts", "b.ts");
    let renamed = project.commit("renamed");
    project.remove("b.ts");
    let deleted = project.commit("deleted");
    let store = project.open();
    ingest(&store, &deleted);
    project.git().set_head_detached(id(&renamed)).unwrap();
    project.write("b.ts", body);
    ingest(&store, "WORKTREE");
    assert_eq!(arrows(&store, "WORKTREE", "WAS_RENAMED_FROM"), ["File b.ts -> File a.ts"]);
    assert!(arrows(&store, &deleted, "WAS_RENAMED_FROM").is_empty());
    project.git().set_head_detached(id(&deleted)).unwrap();
    project.remove("b.ts");
    project.write("c.ts", "");
    let next = project.commit("next");
    ingest(&store, "HEAD");
    assert!(arrows(&store, &next, "WAS_RENAMED_FROM").is_empty());
}

/// Without a name a question is about the head, whatever was ingested since.
#[test]
fn a_question_without_a_commit_is_about_the_head() {
    let mut project = Project::new();
    project.write("a.ts", "");
    let first = project.commit("first");
    project.write("b.ts", "");
    let second = project.commit("second");
    project.git().set_head_detached(id(&first)).unwrap();
    project.remove("b.ts");
    project.write("c.ts", "");
    let side = project.commit("side");
    let store = project.open();
    ingest(&store, &side);
    ingest(&store, &second);
    let standing = || run(store.stats(None)).unwrap().standing;
    assert_eq!((standing().commit, standing().behind), (side.clone(), false));
    project.git().set_head_detached(id(&first)).unwrap();
    assert_eq!((standing().commit, standing().behind), (first.clone(), false));
    project.write("d.ts", "");
    project.commit("unknown to the graph");
    assert_eq!((standing().commit, standing().behind), (second.clone(), true));
    // One that was there already was asked for all the same.
    assert_eq!(ingest(&store, &side).commits, 0);
    assert_eq!((standing().commit, standing().behind), (side.clone(), true));
}

#[test]
fn a_draft_on_another_commit_than_the_head_is_behind() {
    let mut project = Project::new();
    project.write("a.ts", "");
    let first = project.commit("first");
    project.write("b.ts", "");
    project.commit("second");
    let store = project.open();
    ingest(&store, "WORKTREE");
    // What was read of the work tree last, as opposed to the files as they are.
    let question = GraphQuery::new("RETURN 1").at("WORKTREE");
    let behind = || run(store.query(question.clone())).unwrap().standing.behind;
    assert!(!behind());
    project.git().set_head_detached(id(&first)).unwrap();
    assert!(behind());
    assert!(!run(store.stats(Some("WORKTREE"))).unwrap().standing.behind);
    assert!(!behind());
}

/// What was cut off is read when it can be had.
#[test]
fn more_history_takes_effect() {
    let mut project = Project::new();
    for number in 0..5 {
        project.write("a.ts", format!("export const a = {number};\n"));
        project.commit(&format!("commit {number}"));
    }
    let rebuilt = project.fresh("rebuilt.sqlite");
    ingest(&rebuilt, "HEAD");
    let with_cap = |cap: usize| {
        let mut options = project.options();
        options.history = cap;
        run(tgp_graph::GraphStore::open(options)).unwrap()
    };
    let store = with_cap(2);
    assert_eq!(ingest(&store, "HEAD").commits, 2);
    assert_eq!(ingest(&store, "HEAD").commits, 0);
    let tool = tgp_graph::ToolFact { path: "t.ts".into(), name: "t".into(), description: String::new() };
    run(store.set_tools(vec![tool])).unwrap();
    let store = with_cap(9);
    let again = ingest(&store, "HEAD");
    // The parse of the head alone was kept.
    assert_eq!((again.commits, again.parsed), (5, 4));
    assert!(!run(store.stats(None)).unwrap().cut);
    let lines = picture(&store, "HEAD");
    let (tools, rest): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|line| line.starts_with("Tool "));
    assert_eq!((tools.len(), rest), (1, picture(&rebuilt, "HEAD")));
    assert_eq!(ingest(&store, "HEAD").commits, 0);
    assert_eq!(ingest(&with_cap(2), "HEAD").commits, 0);

    let shallow = project.home.path().join("shallow");
    let source = format!("file://{}", project.root().display());
    let run_git = |words: &[&str]| {
        let output = std::process::Command::new("git").args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let place = shallow.to_str().unwrap();
    run_git(&["clone", "--quiet", "--depth", "2", &source, place]);
    let store = run(tgp_graph::GraphStore::open(project.options_at("shallow.sqlite", &shallow))).unwrap();
    assert_eq!((ingest(&store, "HEAD").commits, ingest(&store, "HEAD").commits), (2, 0));
    run_git(&["-C", place, "fetch", "--quiet", "--unshallow"]);
    assert_eq!((ingest(&store, "HEAD").commits, ingest(&store, "HEAD").commits), (5, 0));
    assert_eq!(picture(&store, "HEAD"), picture(&rebuilt, "HEAD"));
}
