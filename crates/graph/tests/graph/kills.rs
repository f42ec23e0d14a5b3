//! An ingest that is killed leaves a store that goes on.

use std::process::{Command, Stdio};
use std::time::Duration;

use tgp_graph::{GraphOptions, GraphStore};

use crate::support::{Project, ingest, picture, run};

/// Tells the child what to ingest.
const STORE: &str = "TGP_GRAPH_KILL_STORE";
const PROJECT: &str = "TGP_GRAPH_KILL_PROJECT";

/// Not a test of its own: the process that is killed.
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
    let mut met_half = false;
    for pause in [20, 60, 120, 200, 300, 450] {
        let file = project.home.path().join(format!("killed-{pause}.sqlite"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::the_one_that_is_killed"])
            .env(STORE, &file)
            .env(PROJECT, project.root())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = run(GraphStore::open(GraphOptions::new(&file, project.root()))).unwrap();
        let rest = ingest(&store, "HEAD").commits;
        met_half |= rest > 0 && rest < 200;
        for back in [0, 70, 150] {
            let name = format!("HEAD~{back}");
            assert_eq!(picture(&store, &name), picture(&whole, &name), "after {pause} ms, {name}");
        }
    }
    println!("kills: an ingest was met half-way: {met_half}");
}
