//! The default database: `.tgp/data.sqlite`, and the move of the one that earlier versions kept in `.state`.

use std::os::unix::fs::symlink;

use crate::project::Project;

const NAMES: [&str; 4] = ["data.sqlite", "data.sqlite-wal", "data.sqlite-shm", "data.sqlite-journal"];
const COUNT: [&str; 3] = ["sql", "SELECT count(*) AS n FROM t", "--json"];

fn with_rows() -> Project {
    let project = Project::initialised();
    project.run(&["sql", "CREATE TABLE t (x)"]).expect_code(0);
    project.run(&["sql", "INSERT INTO t VALUES (1), (2)"]).expect_code(0);
    project
}

/// Puts the first files of the database, in the order of a move, where they are now, and the others where they were.
fn move_back(project: &Project, moved: usize) {
    for name in &NAMES[moved..] {
        let (old, new) = (format!(".tgp/.state/{name}"), format!(".tgp/{name}"));
        if project.file(&new).exists() {
            std::fs::rename(project.file(&new), project.file(&old)).unwrap();
        }
    }
}

#[test]
fn bug_the_default_database_was_kept_with_the_state_that_people_were_told_to_remove() {
    let project = with_rows();
    assert!(project.file(".tgp/data.sqlite").is_file());
    assert!(!project.file(".tgp/.state/data.sqlite").exists());
    let ignored = project.shell("git -C .tgp status --porcelain --ignored");
    if ignored.code == Some(0) {
        assert!(ignored.stdout.contains("!! data.sqlite"), "{ignored:?}");
        assert!(!ignored.stdout.contains("?? data.sqlite"), "{ignored:?}");
    }
}

#[test]
fn the_database_of_an_earlier_version_is_moved_once_and_its_rows_stay() {
    let project = with_rows();
    move_back(&project, 0);
    let first = project.run(&COUNT).expect_code(0);
    assert!(first.stdout.contains("\"n\":2") || first.stdout.contains("\"n\": 2"), "{first:?}");
    assert!(first.stderr.contains("the default database is now"), "{first:?}");
    for name in NAMES {
        assert!(!project.file(&format!(".tgp/.state/{name}")).exists(), "{name}");
    }
    let second = project.run(&COUNT).expect_code(0);
    assert!(!second.stderr.contains("default database"), "it is said once: {second:?}");
}

#[test]
fn a_move_that_was_interrupted_is_completed() {
    for moved in 1..NAMES.len() {
        let project = with_rows();
        // The log has the newest rows when a process was killed.
        std::fs::write(project.file(".tgp/data.sqlite-journal"), "").unwrap();
        move_back(&project, moved);
        assert!(project.file(".tgp/.state/data.sqlite-journal").exists());
        let ran = project.run(&COUNT).expect_code(0);
        assert!(ran.stdout.contains("\"n\":2") || ran.stdout.contains("\"n\": 2"), "{moved}: {ran:?}");
        assert!(!project.file(".tgp/.state/data.sqlite-journal").exists(), "{moved}");
    }
}

#[test]
fn two_default_databases_are_an_error_that_names_both() {
    let project = with_rows();
    std::fs::copy(project.file(".tgp/data.sqlite"), project.file(".tgp/.state/data.sqlite")).unwrap();
    let refused = project.run(&COUNT).expect_code(2);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("ECONFIG"), "{said}");
    for place in [".tgp/.state/data.sqlite", ".tgp/data.sqlite"] {
        assert!(said.contains(project.file(place).to_str().unwrap()), "{said}");
    }
    for word in ["delete", "remove"] {
        assert!(!said.contains(word), "{said}");
    }
    // Everything else works meanwhile.
    project.run(&["list"]).expect_code(0);
    project.run(&["audit", "verify"]).expect_code(0);
    assert!(project.file(".tgp/.state/data.sqlite").exists() && project.file(".tgp/data.sqlite").exists());
}

#[test]
fn a_link_in_the_place_of_the_database_is_not_followed() {
    for name in NAMES {
        let project = Project::initialised();
        std::fs::write(project.path("precious"), "kept").unwrap();
        symlink(project.path("precious"), project.file(&format!(".tgp/{name}"))).unwrap();
        let refused = project.run(&["sql", "CREATE TABLE t (x)"]).expect_code(3);
        assert!(refused.stderr.contains("ESECURITY") && refused.stderr.contains(name), "{refused:?}");
        assert_eq!(std::fs::read_to_string(project.path("precious")).unwrap(), "kept");
    }
}
