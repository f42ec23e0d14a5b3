//! This project's own history.

use std::path::Path;
use std::process::Command;

use tgp_graph::{GraphOptions, GraphStore};

use crate::support::{ingest, rows, run};

/// Commits that are read by the test command: enough for two steps backwards.
const RECENT: usize = 130;

fn git(words: &[&str]) -> Option<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("git").arg("-C").arg(here).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn reads_history(most: usize) {
    let Some(root) = git(&["rev-parse", "--show-toplevel"]) else {
        println!("skipped: these sources are in no repository");
        return;
    };
    if git(&["rev-parse", "--is-shallow-repository"]).as_deref() != Some("false") {
        println!("skipped: this clone has only a part of the history");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut options = GraphOptions::new(home.path().join("graph.sqlite"), &root);
    // This checkout may be a work tree of another one.
    options.repository =
        tgp_fs::RepositoryAccess::confirmed(tgp_fs::outside_places(Path::new(&root)).unwrap());
    options.history = options.history.min(most);
    let store = run(GraphStore::open(options.clone())).unwrap();
    let ingested = ingest(&store, "HEAD");
    let all: u64 = git(&["rev-list", "--count", "HEAD"]).unwrap().parse().unwrap();
    let expected = all.min(most as u64);
    assert_eq!(ingested.commits, expected);
    let listed = git(&["ls-tree", "-r", "--full-tree", "HEAD"]).unwrap();
    let files = listed.lines().filter(|line| line.starts_with("100")).count();
    assert_eq!(ingested.files, files as u64);
    let stats = run(store.stats(None)).unwrap();
    assert_eq!((stats.nodes["Commit"], stats.cut), (expected, expected < all));
    assert!(stats.nodes["Symbol"] > 1000 && stats.relationships["CALLS"] > 1000, "{stats:?}");
    println!(
        "own history: {expected} commits, {} bytes, {:?}, {:?}",
        stats.bytes, stats.nodes, stats.relationships
    );
    // What git says of older commits is what the graph says of them.
    let known = rows(&store, "HEAD", "MATCH (c:Commit) RETURN c.sha ORDER BY c.time");
    for at in [0, known.len() / 2] {
        let older = known[at][0].as_str().unwrap();
        let then = git(&["ls-tree", "-r", "--full-tree", older]).unwrap();
        let then = then.lines().filter(|line| line.starts_with("100")).count();
        assert_eq!(run(store.stats(Some(older))).unwrap().nodes["File"], then as u64, "{older}");
    }
    assert_eq!(ingest(&store, "HEAD").commits, 0);
}

#[test]
fn the_recent_history_of_this_project() {
    reads_history(RECENT);
}

/// `cargo test -p tgp-graph --test graph -- --ignored`.
#[test]
#[ignore = "it takes minutes"]
fn the_whole_history_of_this_project() {
    reads_history(usize::MAX);
}
