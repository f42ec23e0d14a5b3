//! An ingest that is killed leaves a store that can continue.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tgp_graph::{GraphOptions, GraphStore};

use crate::support::{Project, ingest, picture, run};

/// Passes to the child what to ingest.
const STORE: &str = "TGP_GRAPH_KILL_STORE";
const PROJECT: &str = "TGP_GRAPH_KILL_PROJECT";

/// Not a separate test: the process that is killed.
#[test]
fn the_one_that_is_killed() {
    if let (Ok(store), Ok(project)) = (std::env::var(STORE), std::env::var(PROJECT)) {
        let store = run(GraphStore::open(GraphOptions::new(store, project))).unwrap();
        ingest(&store, "HEAD");
    }
}

#[test]
fn a_kill_leaves_a_store_that_continues() {
    let mut project = Project::new();
    for number in 0..200 {
        project.write("a.ts", format!("export function f{number}() {{}}\n").repeat(20));
        project
            .write(&format!("n{}.ts", number % 40), format!("import * as a from './a';\na.f{number}();\n"));
        project.commit(&format!("commit {number}"));
    }
    let whole = project.fresh("whole.sqlite");
    ingest(&whole, "HEAD");
    // Before it has begun, within the first transaction, and after each of some.
    for reached in [0, 1, 64, 128] {
        let file = project.home.path().join(format!("killed-{reached}.sqlite"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::the_one_that_is_killed"])
            .env(STORE, &file)
            .env(PROJECT, project.root())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while moments(&file) < reached && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let before = moments(&file);
        let store = run(GraphStore::open(GraphOptions::new(&file, project.root()))).unwrap();
        let rest = ingest(&store, "HEAD").commits;
        println!("killed after {before} of 200 commits; {rest} were left");
        assert_eq!(before + rest, 200);
        for back in [0, 70, 150] {
            let name = format!("HEAD~{back}");
            assert_eq!(picture(&store, &name), picture(&whole, &name), "killed after {before}, {name}");
        }
    }
}

/// Commits that are in the store; none where there is no store yet.
fn moments(file: &Path) -> u64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let Ok(connection) = rusqlite::Connection::open_with_flags(file, flags) else { return 0 };
    let count = connection.query_row("SELECT count(*) FROM moment", [], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| u64::try_from(count).unwrap())
}
