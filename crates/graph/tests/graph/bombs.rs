//! Commits of the project that expand to more than a machine can hold.

use git2::Oid;
use tgp_contract::{Code, Graph};

use crate::support::{Project, ingest, rows, run};

fn tree(project: &Project, entries: &[(i32, String, Oid)]) -> Oid {
    let mut builder = project.git().treebuilder(None).unwrap();
    for (mode, name, id) in entries {
        builder.insert(name, *id, *mode).unwrap();
    }
    builder.write().unwrap()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_commit_of_a_hundred_million_paths_is_refused_and_others_are_not() {
    let mut project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    let first = Oid::from_str(&project.commit("first")).unwrap();
    let blob = project.git().blob(b"x").unwrap();
    let names = |mode: i32, id: Oid| -> Vec<(i32, String, Oid)> {
        (0..10).map(|number| (mode, format!("n{number}"), id)).collect()
    };
    let mut bomb = tree(&project, &names(0o100_644, blob));
    for _ in 1..8 {
        bomb = tree(&project, &names(0o040_000, bomb));
    }
    let commit = project.commit_tree("bomb", bomb, &[first]);
    let store = project.open();
    let before = resident_kib();
    let error = run(store.ingest(&commit)).unwrap_err();
    assert!(resident_kib() < before + (100 << 10), "{} KiB", resident_kib() - before);
    assert_eq!(error.code, Code::Validation);
    assert!(error.message.contains("more than 500000 files (100000000)"), "{error}");
    assert!(error.message.contains("`n9/n9") || error.message.contains("`n0/n0"), "{error}");
    assert!(error.help_of().unwrap().contains("graph.history"));
    // What is not on that line of history is read as ever.
    ingest(&store, &first.to_string());
    assert_eq!(rows(&store, &first.to_string(), "MATCH (f:File) RETURN f.path").len(), 1);
}

#[test]
fn renames_of_large_files_are_not_found_by_reading_them() {
    let mut project = Project::new();
    project.write("a.ts", "export const a = 1;\n");
    project.write("big-a.bin", vec![0; 3 << 20]);
    project.commit("first");
    let mut other = vec![0; 3 << 20];
    other.push(1);
    project.remove("big-a.bin");
    project.write("big-b.bin", other);
    project.rename("a.ts", "b.ts");
    project.commit("second");
    let store = project.open();
    ingest(&store, "HEAD");
    let query = "MATCH (n:File)-[:WAS_RENAMED_FROM]->(o:File) RETURN o.path";
    assert_eq!(rows(&store, "HEAD", query), [[serde_json::json!("a.ts")]]);
}
