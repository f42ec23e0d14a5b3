//! This project's own history, whole.

use std::path::Path;
use std::process::Command;

use tgp_graph::{GraphOptions, GraphStore};

use crate::support::{ingest, run};

#[test]
fn the_whole_history_of_this_project() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let git = |words: &[&str]| -> Option<String> {
        let output = Command::new("git").arg("-C").arg(here).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let Some(root) = git(&["rev-parse", "--show-toplevel"]) else {
        println!("skipped: these sources are in no repository");
        return;
    };
    if git(&["rev-parse", "--is-shallow-repository"]).as_deref() != Some("false") {
        println!("skipped: this clone has only a part of the history");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let options = GraphOptions::new(home.path().join("graph.sqlite"), &root);
    let store = run(GraphStore::open(options.clone())).unwrap();
    let ingested = ingest(&store, "HEAD");
    let expected: u64 = git(&["rev-list", "--count", "HEAD"]).unwrap().parse().unwrap();
    assert_eq!(ingested.commits, expected);
    let listed = git(&["ls-tree", "-r", "--full-tree", "HEAD"]).unwrap();
    let files = listed.lines().filter(|line| line.starts_with("100")).count();
    assert_eq!(ingested.files, files as u64);
    let stats = run(store.stats(None)).unwrap();
    assert_eq!(stats.nodes["Commit"], expected);
    assert!(stats.nodes["Symbol"] > 1000 && stats.relationships["CALLS"] > 1000, "{stats:?}");
    println!(
        "own history: {expected} commits, {} bytes, {:?}, {:?}",
        stats.bytes, stats.nodes, stats.relationships
    );
    // What git says of the oldest commit is what the graph says of it.
    let oldest = git(&["rev-list", "--max-parents=0", "HEAD"]).unwrap();
    let oldest = oldest.lines().next().unwrap();
    let then = git(&["ls-tree", "-r", "--full-tree", "--name-only", oldest]).unwrap();
    assert_eq!(run(store.stats(Some(oldest))).unwrap().nodes["File"], then.lines().count() as u64);
    assert_eq!(ingest(&store, "HEAD").commits, 0);
}
