//! `tgp undo`: what a session changed, put back; and what is refused or left.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::agent::{call, say, script, session, summary};
use crate::project::Project;

/// A session that creates, edits, deletes and runs a command. Returns its id.
fn worked() -> (Project, String) {
    let project = Project::initialised();
    project.explore();
    project.write("docs/old.md", "first\nsecond\n");
    project.write("docs/gone.sh", "#!/bin/sh\n");
    std::fs::set_permissions(project.file("docs/gone.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    let provider = script(
        &project,
        "model.json",
        &[
            vec![
                call("fs_edit", json!({ "path": "docs/old.md", "search": "first", "replace": "1st" })),
                call("fs_edit", json!({ "path": "docs/old.md", "search": "second", "replace": "2nd" })),
                call("fs_write", json!({ "path": "docs/deep/new.md", "content": "new\n" })),
                call("fs_delete", json!({ "path": "docs/gone.sh" })),
                call("shell_exec", json!({ "command": "echo command > made.txt; echo more >> docs/old.md" })),
                call("exec_sql", json!({ "sql": "CREATE TABLE t (n INTEGER)" })),
            ],
            vec![say("Done.")],
        ],
    );
    let (ran, events) = session(&project, &["do the work", "--provider", &provider, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let id = summary(&events)["session"].as_str().unwrap().to_owned();
    assert_eq!(project.read("docs/old.md"), "1st\n2nd\nmore\n");
    assert!(!project.file("docs/gone.sh").exists());
    (project, id)
}

fn assert_undone(project: &Project) {
    assert_eq!(project.read("docs/old.md"), "first\nsecond\n");
    assert!(!project.file("docs/deep").exists(), "the directory was made for the file");
    assert!(!project.file("made.txt").exists());
    assert_eq!(project.read("docs/gone.sh"), "#!/bin/sh\n");
    let mode = std::fs::metadata(project.file("docs/gone.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750, "with its permissions");
}

#[test]
fn bug_an_undo_gave_others_rights_that_a_person_had_taken_from_them() {
    let (project, id) = worked();
    std::fs::set_permissions(project.file("docs/old.md"), std::fs::Permissions::from_mode(0o600)).unwrap();
    project.run(&["undo", &id]).expect_code(0);
    assert_undone(&project);
    let mode = std::fs::metadata(project.file("docs/old.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_session_is_undone_as_a_whole_and_once() {
    let (project, id) = worked();
    let before = project.contents();
    let shown = project.run(&["undo", &id, "--dry-run"]).expect_code(0);
    for line in
        ["revert   docs/old.md", "delete   docs/deep/new.md", "restore  docs/gone.sh", "delete   made.txt"]
    {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.stdout);
    }
    assert!(shown.stdout.contains("+first"), "{}", shown.stdout);
    assert!(shown.stderr.contains("not undone: database (1 call"), "{}", shown.stderr);
    assert!(project.contents() == before, "a dry run changes nothing");
    let undone = project.run(&["undo", &id, "--json"]).expect_code(0).document();
    assert_eq!(undone["data"]["changes"].as_array().unwrap().len(), 4, "{undone}");
    assert_eq!(undone["data"]["notUndone"][0]["kind"], "database");
    assert_undone(&project);
    let again = project.run(&["undo", &id]).expect_code(0);
    assert!(again.stderr.contains("nothing to undo"), "{again:?}");
    let records = project.run(&["audit", "tail", "-n", "5", "--json"]).expect_code(0).stdout;
    assert!(records.contains("undo_session") && records.contains("docs/gone.sh"), "{records}");
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn a_file_that_changed_since_is_refused_and_the_others_can_be_named() {
    let (project, _) = worked();
    project.write("made.txt", "mine\n");
    let before = project.contents();
    let refused = project.run(&["undo", "last"]).expect_code(1);
    assert!(refused.stderr.contains("ECONFLICT") && refused.stderr.contains("`made.txt`"), "{refused:?}");
    assert!(refused.stderr.contains("docs/old.md"), "the others are named: {refused:?}");
    assert!(project.contents() == before, "nothing half-done");
    project.run(&["undo", "last", "docs"]).expect_code(0);
    assert_eq!(project.read("docs/old.md"), "first\nsecond\n");
    assert_eq!(project.read("made.txt"), "mine\n");
    project.write("made.txt", "command\n");
    project.run(&["undo", "last"]).expect_code(0);
    assert_undone(&project);
    let missing = project.run(&["undo", "last", "docs/old.md"]).expect_code(1);
    assert!(missing.stderr.contains("ENOTFOUND"), "{missing:?}");
    project.run(&["undo", "20200101-000000-none"]).expect_code(1);
}

#[test]
fn a_deny_still_denies_and_what_is_kept_is_private() {
    let (project, id) = worked();
    let folder = project.file(&format!(".tgp/.state/sessions/{id}/undo"));
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{entry:?}");
    }
    // A rule about the file tools means the file however it is changed.
    for tools in ["'effect:write'", "fs_delete", "undo_session"] {
        let rule = format!(
            "{{id: keep, effect: deny, tools: [{tools}], where: {{path: made.txt}}, reason: keep it}}"
        );
        project.write("tgp.policy.yaml", &format!("version: 1\nrules:\n  - {rule}\n"));
        for words in [&["undo", &id, "--dry-run"][..], &["undo", &id]] {
            let refused = project.run(words).expect_code(3);
            assert!(refused.stderr.contains("`keep`"), "{tools}: {refused:?}");
        }
        assert!(project.file("made.txt").exists() && project.file("docs/deep/new.md").exists(), "{tools}");
    }
    project.run(&["undo", &id, "docs"]).expect_code(0);
    assert!(!project.file("docs/deep/new.md").exists());
}

#[test]
fn files_beyond_the_bound_are_named() {
    let project = Project::initialised();
    project.explore();
    project.write("large.txt", &"0123456789abcdef".repeat(300_000));
    let provider = script(
        &project,
        "model.json",
        &[
            vec![
                call("fs_write", json!({ "path": "large.txt", "content": "small\n" })),
                call("fs_write", json!({ "path": "small.txt", "content": "small\n" })),
            ],
            vec![say("Done.")],
        ],
    );
    session(&project, &["do the work", "--provider", &provider, "--yes"]);
    let undone = project.run(&["undo", "last"]).expect_code(0);
    assert!(undone.stderr.contains("large.txt cannot be undone: the file had more than"), "{undone:?}");
    assert!(!project.file("small.txt").exists());
    assert_eq!(project.read("large.txt"), "small\n");
}
