//! One small project in each language, and all that is known of it.
//!
//! `UPDATE=1 cargo test -p tgp-graph languages` writes the listings anew; read the difference before it is kept.

use std::path::{Path, PathBuf};

use crate::support::{Project, ingest, picture, without_history};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graph/fixtures")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn check(language: &str) {
    let mut project = Project::new();
    copy(&folder().join(language), &project.root());
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    let listing = without_history(picture(&store, "HEAD")).join("\n") + "\n";
    let golden = folder().join(format!("{language}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &listing).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    let missing: Vec<&str> = expected.lines().filter(|line| !listing.contains(line)).collect();
    let added: Vec<&str> = listing.lines().filter(|line| !expected.contains(line)).collect();
    assert!(listing == expected, "missing: {missing:#?}\nadded: {added:#?}");
}

#[test]
fn typescript() {
    check("typescript");
}

#[test]
fn javascript() {
    check("javascript");
}

#[test]
fn rust() {
    check("rust");
}

#[test]
fn python() {
    check("python");
}

#[test]
fn go() {
    check("go");
}

#[test]
fn java() {
    check("java");
}
