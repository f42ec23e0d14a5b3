//! History that is read backwards and in steps: whatever is read or asked in between, every commit looks the same.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tgp_contract::{Change, Code, Graph, GraphQuery, RelativePath};
use tgp_graph::GraphStore;

use crate::property::{build, edited, same, story};
use crate::support::{Project, files, ingest, picture, refusal, rows, run, without_history};

/// A long history whose commits each change one file, add one and call what is in it.
fn long(project: &mut Project, commits: usize) -> Vec<String> {
    (0..commits)
        .map(|number| {
            project.write("a.ts", format!("export function f{number}() {{}}\n"));
            let user = format!("import {{ f{number} }} from './a';\nf{number}();\n");
            project.write(&format!("n{}.ts", number % 40), user);
            project.commit(&format!("commit {number}"))
        })
        .collect()
}

/// A store that reads no history at once, however short it is.
fn patient(project: &Project, name: &str) -> GraphStore {
    let mut options = project.options_at(name, &project.root());
    options.short_history = 0;
    run(GraphStore::open(options)).unwrap()
}

#[test]
fn the_newest_commit_is_there_first() {
    let mut project = Project::new();
    let commits = long(&mut project, 200);
    let store = project.open();
    let first = run(store.ingest_alone("HEAD")).unwrap();
    assert_eq!((first.commits, first.files), (1, 41));
    assert_eq!(files(&store, "HEAD").len(), 41);
    let refused = refusal(&store, "HEAD~50");
    assert_eq!(refused.code, Code::NotFound);
    assert!(refused.message.contains("its history is not read yet"), "{}", refused.message);
    assert!(run(store.read_history(60)).unwrap());
    let unread = run(store.unread_history()).unwrap().unwrap();
    assert_eq!((unread.read, unread.total, unread.running), (61, 200, false));
    assert_eq!(unread.oldest, commits[139]);
    assert_eq!(files(&store, "HEAD~60").len(), 41);
    let refused = refusal(&store, "HEAD~61");
    assert!(refused.message.contains("61 of 200 commits of the history are read"), "{}", refused.message);
    // An older commit is asked for: it is read on until that is there, and then to the end.
    assert_eq!(ingest(&store, "HEAD~150").commits, 139);
    assert_eq!(run(store.unread_history()).unwrap(), None);
    let whole = project.fresh("whole.sqlite");
    assert_eq!(ingest(&whole, "HEAD").commits, 200);
    for back in [0, 3, 61, 150, 199] {
        let name = format!("HEAD~{back}");
        assert_eq!(picture(&store, &name), picture(&whole, &name), "{name}");
    }
}

/// The work tree and a proposal need the files of the head, and not its history.
#[test]
fn the_work_tree_does_not_wait_for_the_history() {
    let mut project = Project::new();
    long(&mut project, 100);
    let store = project.open();
    project.write("new.ts", "import { f99 } from './a';\nf99();\n");
    let question =
        GraphQuery::new("MATCH (f:File)-[:IMPORTS]->(:File {path: 'a.ts'}) RETURN f.path ORDER BY f.path");
    let path = RelativePath::new("other.ts").unwrap();
    let change = Change::Write { path, content: b"import './a';\n".as_slice().into() };
    let answers = run(store.propose(&[change], &[question])).unwrap();
    assert_eq!(answers[0].1.rows.len(), answers[0].0.rows.len() + 1);
    assert_eq!(run(store.stats(None)).unwrap().commits, 1);
    let draft = picture(&store, "WORKTREE");
    assert!(run(store.read_history(10)).unwrap());
    ingest(&store, "WORKTREE");
    assert_eq!(without_history(picture(&store, "WORKTREE")), without_history(draft));
    // The draft stays while the history is read below it.
    assert!(run(store.read_history(10)).unwrap());
    picture(&store, "WORKTREE");
    ingest(&store, "HEAD");
    let whole = project.fresh("whole.sqlite");
    ingest(&whole, "HEAD");
    ingest(&whole, "WORKTREE");
    ingest(&store, "WORKTREE");
    assert_eq!(picture(&store, "WORKTREE"), picture(&whole, "WORKTREE"));
    assert_eq!(picture(&store, "HEAD~42"), picture(&whole, "HEAD~42"));
}

/// Who goes back to an older commit before it was read gets that one first.
#[test]
fn an_older_head_does_not_wait_for_the_history() {
    let mut project = Project::new();
    let commits = long(&mut project, 150);
    let store = project.open();
    run(store.ingest_alone("HEAD")).unwrap();
    project.git().set_head_detached(git2::Oid::from_str(&commits[80]).unwrap()).unwrap();
    run(store.ingest_alone("HEAD")).unwrap();
    assert_eq!(run(store.stats(None)).unwrap().commits, 1);
    ingest(&store, &commits[149]);
    let whole = project.fresh("whole.sqlite");
    ingest(&whole, &commits[149]);
    for number in [0, 40, 80, 81, 149] {
        assert_eq!(picture(&store, &commits[number]), picture(&whole, &commits[number]), "{number}");
    }
}

#[test]
fn a_running_ingest_is_seen_by_others() {
    let mut project = Project::new();
    long(&mut project, 100);
    let store = project.open();
    run(store.ingest_alone("HEAD")).unwrap();
    assert!(!run(store.unread_history()).unwrap().unwrap().running);
    let mut lock = project.options().file.into_os_string();
    lock.push("-ingest");
    // As another process that is ingesting holds it.
    let held = std::fs::File::open(lock).unwrap();
    held.lock().unwrap();
    assert!(run(store.unread_history()).unwrap().unwrap().running);
    assert_eq!(refusal(&store, "HEAD~9").help_of(), Some("an ingest is running; ask again later"));
    // An answer says it too: it may miss what is not read yet.
    let ask = || run(store.query(GraphQuery::new("MATCH (c:Commit) RETURN count(c)"))).unwrap();
    let unread = ask().standing.unread.unwrap();
    assert_eq!((unread.running, unread.read), (true, 1));
    drop(held);
    assert!(!ask().standing.unread.unwrap().running);
    ingest(&store, "HEAD");
    assert_eq!(run(store.unread_history()).unwrap(), None);
    assert_eq!(ask().standing.unread, None);
}

#[test]
fn a_question_during_the_first_ingest_is_told_to_wait() {
    let mut project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    project.commit("first");
    let store = project.open();
    let mut lock = project.options().file.into_os_string();
    lock.push("-ingest");
    let held = std::fs::File::options().create(true).append(true).open(lock).unwrap();
    held.lock().unwrap();
    let error = run(store.query(GraphQuery::new("MATCH (f:File) RETURN f.path"))).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(error.message.contains("an ingest is running"), "{error}");
    assert_eq!(error.help_of(), Some("ask again in a few seconds"));
}

/// A store of another version is emptied, and says so.
#[test]
fn an_older_store_is_rebuilt_and_says_so() {
    let mut project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    project.commit("first");
    let file = project.options().file;
    let older = rusqlite::Connection::open(&file).unwrap();
    older.execute_batch("CREATE TABLE moment (number INTEGER); PRAGMA user_version = 2").unwrap();
    drop(older);
    let store = project.open();
    let refused = run(store.query(GraphQuery::new("MATCH (n) RETURN n"))).unwrap_err();
    assert!(refused.message.contains("made by another version"), "{}", refused.message);
    assert_eq!(refused.help_of(), Some("run `tgp graph ingest`"));
    ingest(&store, "HEAD");
    assert_eq!(files(&store, "HEAD"), ["a.ts"]);
}

/// Random histories, read in steps of one or two commits, with the store closed in between, the work tree asked about,
/// and other commits ingested on top.
#[test]
fn steps_equal_the_whole() {
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let strategy = (story(), prop::collection::vec((0u8..6, any::<prop::sample::Index>()), 12));
    runner
        .run(&strategy, |((steps, dirty), turns)| {
            let mut project = Project::new();
            let commits = build(&mut project, &steps);
            let whole = project.fresh("whole.sqlite");
            for (id, _) in &commits {
                // Each on top of the other: nothing is read backwards here.
                ingest(&whole, id);
            }
            for (path, text) in &edited(&commits.last().unwrap().1, &dirty) {
                project.write(path, text);
            }
            let base = commits[turns[0].1.index(commits.len())].0.clone();
            let mut store = patient(&project, "steps.sqlite");
            run(store.ingest_alone(&base)).unwrap();
            for (kind, index) in &turns[1..] {
                match kind {
                    0 | 1 => {
                        run(store.read_history(usize::from(*kind) + 1)).unwrap();
                    }
                    2 => store = patient(&project, "steps.sqlite"),
                    3 => {
                        run(store.ingest_alone(&commits[index.index(commits.len())].0)).unwrap();
                    }
                    4 => {
                        ingest(&store, "WORKTREE");
                    }
                    _ => {
                        let other = patient(&project, "steps.sqlite");
                        run(other.read_history(1)).unwrap();
                    }
                }
            }
            for (id, _) in commits.iter().rev() {
                ingest(&store, id);
            }
            for (number, (id, _)) in commits.iter().enumerate() {
                same(
                    &picture(&store, id),
                    &picture(&whole, id),
                    &format!("steps and whole at commit {number}"),
                )?;
                let visible = "MATCH (c:Commit) RETURN c.message ORDER BY c.message";
                prop_assert_eq!(rows(&store, id, visible), rows(&whole, id, visible));
            }
            ingest(&store, "WORKTREE");
            ingest(&whole, "WORKTREE");
            same(&picture(&store, "WORKTREE"), &picture(&whole, "WORKTREE"), "drafts")
        })
        .unwrap();
}
