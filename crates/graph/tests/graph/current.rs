//! Questions about the files as they are now.

use rusqlite::Connection;
use serde_json::json;
use tgp_contract::{Graph, GraphQuery};
use tgp_graph::GraphStore;

use crate::support::{Project, committed, file, files, ingest, run};

const FILES: &str = "MATCH (f:File) RETURN f.path AS path ORDER BY path";

fn now(store: &GraphStore) -> Vec<String> {
    let answer = run(store.query_worktree(GraphQuery::new(FILES).at("WORKTREE"))).unwrap();
    assert!(answer.standing.draft && !answer.standing.behind);
    answer.rows.iter().map(|row| row[0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn bug_a_comparison_with_the_files_was_made_with_an_old_draft() {
    let project = project();
    let store = project.open();
    ingest(&store, "WORKTREE");
    let text = "MATCH (f:File) WHERE NOT exists_at(f, 'WORKTREE') RETURN f.path AS path";
    let gone = || {
        let answer = run(store.query_beside_worktree(GraphQuery::new(text).at("HEAD"))).unwrap();
        assert!(!answer.standing.draft);
        answer.rows.iter().map(|row| row[0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(gone().is_empty());
    project.remove("b.ts");
    assert_eq!(gone(), ["b.ts"]);
}

/// What counts the writes to the store.
fn generation(project: &Project) -> String {
    let connection = Connection::open(project.options().file).unwrap();
    connection.query_row("SELECT value FROM meta WHERE name = 'generation'", [], |row| row.get(0)).unwrap()
}

fn project() -> Project {
    let mut project = Project::new();
    project.write(".gitignore", "ignored/\n");
    project.write("a.ts", "export const a = 1;\n");
    project.write("b.ts", "import { a } from './a';\na;\n");
    project.commit("first");
    project
}

#[test]
fn bug_a_question_about_the_files_waited_for_whoever_writes() {
    let project = project();
    project.write("c.ts", "export const c = 1;\n");
    let store = project.open();
    assert_eq!(now(&store), [".gitignore", "a.ts", "b.ts", "c.ts"]);
    let other = Connection::open(project.options().file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Nothing has changed, so neither this process nor a new one has anything to write.
    assert_eq!(now(&store), [".gitignore", "a.ts", "b.ts", "c.ts"]);
    assert_eq!(now(&project.open()), [".gitignore", "a.ts", "b.ts", "c.ts"]);
    other.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn the_draft_is_written_only_when_a_file_has_changed() {
    let mut project = project();
    let store = project.open();
    let expect = |project: &Project, expected: &[&str]| {
        assert_eq!(now(&store), expected);
        let before = generation(project);
        assert_eq!(now(&store), expected);
        assert_eq!(generation(project), before, "nothing has changed");
        assert_eq!(files(&store, "WORKTREE"), expected);
    };
    expect(&project, &[".gitignore", "a.ts", "b.ts"]);
    project.write("c.ts", "export const c = 1;\n");
    expect(&project, &[".gitignore", "a.ts", "b.ts", "c.ts"]);
    project.write("ignored/d.ts", "export const d = 1;\n");
    expect(&project, &[".gitignore", "a.ts", "b.ts", "c.ts"]);
    project.remove("b.ts");
    expect(&project, &[".gitignore", "a.ts", "c.ts"]);
    project.write(".gitignore", "");
    expect(&project, &[".gitignore", "a.ts", "c.ts", "ignored/d.ts"]);
    project.commit("second");
    expect(&project, &[".gitignore", "a.ts", "c.ts", "ignored/d.ts"]);
    // Another store of the same file makes a draft that this one did not see.
    project.write("e.ts", "export const e = 1;\n");
    ingest(&project.open(), "WORKTREE");
    expect(&project, &[".gitignore", "a.ts", "c.ts", "e.ts", "ignored/d.ts"]);
}

#[test]
fn a_content_that_changed_is_seen_and_so_is_one_that_came_back() {
    let project = project();
    let store = project.open();
    let defined = |store: &GraphStore| {
        let question =
            GraphQuery::new("MATCH (s:Symbol {path: 'a.ts'}) RETURN s.name AS name").at("WORKTREE");
        let answer = run(store.query_worktree(question)).unwrap();
        answer.rows.iter().map(|row| row[0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(defined(&store), ["a"]);
    project.write("a.ts", "export const z = 1;\n");
    assert_eq!(defined(&store), ["z"], "of the same length, and a moment later");
    project.write("a.ts", "export const a = 1;\n");
    assert_eq!(defined(&store), ["a"]);
}

#[test]
fn files_without_git_are_asked_about_too() {
    let project = Project::without_git();
    project.write("a.ts", "export const a = 1;\n");
    let store = project.open();
    assert_eq!(now(&store), ["a.ts"]);
    let before = generation(&project);
    assert_eq!(now(&store), ["a.ts"]);
    assert_eq!(generation(&project), before);
}

/// The list of the files that git knows is held between questions, once nothing about the index can change unseen.
#[test]
fn a_change_of_the_index_alone_changes_what_counts() {
    let project = project();
    project.write("ignored/d.ts", "export const d = 1;\n");
    let store = project.open();
    let plain = [".gitignore", "a.ts", "b.ts"];
    assert_eq!(now(&store), plain);
    // Longer than the coarsest clock of a file system takes for a tick.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert_eq!(now(&store), plain);
    let index = |change: &dyn Fn(&mut git2::Index)| {
        let mut index = project.git().index().unwrap();
        change(&mut index);
        index.write().unwrap();
    };
    index(&|index| index.add_path(std::path::Path::new("ignored/d.ts")).unwrap());
    assert_eq!(now(&store), [".gitignore", "a.ts", "b.ts", "ignored/d.ts"]);
    index(&|index| index.remove_path(std::path::Path::new("ignored/d.ts")).unwrap());
    assert_eq!(now(&store), plain);
}

#[test]
fn an_export_and_the_numbers_of_the_work_tree_are_about_the_files_as_they_are() {
    let (project, store) = committed(&[("a.ts", "export function a() {}\n")]);
    // Nobody has asked about the work tree before.
    assert_eq!(file(&store, "WORKTREE", "a.ts")["lines"], json!(1));
    project.write("a.ts", "// a line\nexport function a() {}\n");
    project.write("b.ts", "export function b() {}\n");
    assert_eq!(file(&store, "WORKTREE", "a.ts")["lines"], json!(2));
    let stats = run(store.stats(Some("WORKTREE"))).unwrap();
    assert_eq!((stats.nodes["File"], stats.nodes["Symbol"]), (2, 2));
    project.remove("b.ts");
    assert_eq!(run(store.stats(Some("WORKTREE"))).unwrap().nodes["File"], 1);
    assert_eq!(file(&store, "HEAD", "a.ts")["lines"], json!(1));
}

#[test]
fn bug_who_asked_about_the_work_tree_waited_until_all_of_the_history_was_read() {
    let mut project = Project::new();
    for number in 0..900 {
        project.write("a.ts", format!("export function a() {{}}\n// {number}\n"));
        project.commit("next");
    }
    let reading = project.open();
    run(reading.ingest_alone("HEAD")).unwrap();
    project.write("b.ts", "export function b() {}\n");
    let asking = project.open();
    let before = run(asking.unread_history()).unwrap().unwrap().read;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| run(reading.ingest("HEAD")).unwrap());
        // The first group of commits is read.
        while run(asking.unread_history()).unwrap().is_some_and(|unread| unread.read == before) {
            std::thread::yield_now();
        }
        let answer = run(asking.query_worktree(GraphQuery::new(FILES).at("WORKTREE"))).unwrap();
        assert_eq!(answer.rows, [[json!("a.ts")], [json!("b.ts")]]);
        let unread = run(asking.unread_history()).unwrap();
        assert!(unread.is_some(), "the answer came when there was nothing more to read");
        reader.join().unwrap();
    });
    assert!(run(asking.unread_history()).unwrap().is_none());
}
