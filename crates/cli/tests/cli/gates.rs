//! Gates and records as a person meets them: refusals, a broken audit, rules with mistakes, tokens.

use std::fs;

use rusqlite::Connection;
use serde_json::json;

use crate::knowledge::git;
use crate::project::{Project, Ran};

/// The audit without its protection against honest mistakes.
pub(crate) fn audit(project: &Project) -> Connection {
    let connection = Connection::open(project.file(".tgp/.state/audit.sqlite")).unwrap();
    // The protection against honest mistakes is not what an attacker meets.
    let triggers: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for trigger in triggers {
        connection.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    connection
}

/// A project in which a few calls were made.
fn used() -> Project {
    let project = Project::with_fixtures();
    for n in ["1", "2", "3"] {
        project.run(&["exec", "tools/math/fib.ts", "--args", &format!("{{\"n\": {n}}}")]).expect_code(0);
    }
    project
}

fn assert_broken(ran: &Ran, word: &str) {
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("EINTEGRITY") && ran.stderr.contains(word), "{ran:?}");
    assert!(ran.stderr.contains("tgp audit"), "no next step: {ran:?}");
}

#[test]
fn an_edited_entry_is_found_and_named() {
    let project = used();
    let intact = project.run(&["audit", "verify"]).expect_code(0);
    assert!(intact.stdout.contains("intact: 3 entries"), "{intact:?}");
    let edited = audit(&project)
        .execute("UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'fib.ts', 'fob.ts') AS BLOB) WHERE sequence = 2", [])
        .unwrap();
    assert_eq!(edited, 1);
    assert_broken(&project.run(&["audit", "verify"]), "2");
}

#[test]
fn a_shortened_a_lost_and_a_foreign_record_stop_the_kernel() {
    let project = used();
    audit(&project).execute("DELETE FROM entries WHERE sequence = 3", []).unwrap();
    assert_broken(&project.run(&["list"]), "entr");
    assert_broken(&project.run(&["audit", "verify"]), "entr");

    let project = used();
    for name in ["audit.sqlite", "audit.sqlite-wal", "audit.sqlite-shm"] {
        let _ = fs::remove_file(project.file(&format!(".tgp/.state/{name}")));
    }
    assert_broken(&project.run(&["list"]), "audit");

    let (project, other) = (used(), used());
    for name in ["audit.sqlite", "audit.sqlite-wal", "audit.sqlite-shm"] {
        let _ = fs::remove_file(project.file(&format!(".tgp/.state/{name}")));
        let _ = fs::copy(
            other.file(&format!(".tgp/.state/{name}")),
            project.file(&format!(".tgp/.state/{name}")),
        );
    }
    assert_broken(&project.run(&["list"]), "chain");
    // A person reads it, gives a reason and continues; the broken record is kept.
    let restarted = project.run(&["audit", "restart", "--reason", "a test has replaced it"]).expect_code(0);
    assert!(restarted.stderr.contains("kept at"), "{restarted:?}");
    project.run(&["list"]).expect_code(0);
    let tail = project.run(&["audit", "tail", "--json"]).expect_code(0);
    assert!(tail.stdout.contains("a test has replaced it"), "{tail:?}");
    assert!(project.all_files().iter().any(|name| name.contains("audit.sqlite.broken-")));
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn bug_an_anchor_that_cannot_be_read_was_a_fault_of_git_and_outlived_a_restart() {
    for nonsense in ["", "nonsense\n", "ref: refs/heads/main\n"] {
        let project = Project::initialised();
        project
            .run(&["write", "tools/a.ts", "--content", "/** A. */ export default (): number => 1;"])
            .expect_code(0);
        project.write(".tgp/.git/refs/tgp/audit/head", nonsense);
        let broken = project.run(&["list"]).expect_code(4);
        assert!(broken.stderr.contains("EINTEGRITY") && broken.stderr.contains("restart"), "{broken:?}");
        project.run(&["audit", "restart", "--reason", "a test has broken it"]).expect_code(0);
        project.run(&["list"]).expect_code(0);
        project.run(&["audit", "verify"]).expect_code(0);
    }
}

#[test]
fn wrong_rules_are_shown_at_their_place() {
    let project = Project::initialised();
    project.write(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - id: one\n    efect: deny\n    tools: '*'\n    reason: because\n",
    );
    let ran = project.run(&["policy", "check"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--> tgp.policy.yaml:3:5"), "{ran:?}");
    assert!(ran.stderr.contains("tgp.policy.yaml:4:5: `efect` is not a field of a rule"), "{ran:?}");
    assert!(ran.stderr.contains("^"), "no caret: {ran:?}");
    project.write(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: one, effect: deny, tools: fs_read, reason: because, match: [{tool: fs_write, arguments: {path: a, content: b}}]}\n",
    );
    let ran = project.run(&["policy", "check"]);
    assert_eq!(ran.code, Some(2), "a failing example refuses the file: {ran:?}");
    project.write(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: private, effect: deny, tools: fs_read, where: {path: 'private/**'}, reason: not yours}\n",
    );
    let good = project.run(&["policy", "check"]).expect_code(0);
    assert!(good.stdout.contains("deny private (tgp.policy.yaml:3"), "{good:?}");
    let explained = project.run(&["policy", "explain", "fs_read", r#"{"path": "private/x"}"#]).expect_code(0);
    assert!(explained.stdout.starts_with("deny by private"), "{explained:?}");
    let other = project.run(&["policy", "explain", "Read", r#"{"path": "public/x"}"#]).expect_code(0);
    assert!(other.stdout.starts_with("allow by default/read"), "{other:?}");
    assert!(other.stdout.contains("deny private:"), "why the other rule did not decide: {other:?}");
    let refused = project.run(&["call", "fs_read", r#"{"path": "private/x"}"#]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    let tried = project.run(&["policy", "test"]).expect_code(0);
    assert!(tried.stderr.contains("1 recorded call"), "{tried:?}");
}

#[test]
fn a_wrong_extension_rule_is_shown_at_its_place() {
    let project = Project::initialised();
    project.write(".tgp/policy/guard.ts", "export default (call) => {\n  return call.;\n};\n");
    let ran = project.run(&["policy", "check"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--> .tgp/policy/guard.ts:2:"), "{ran:?}");
    assert!(ran.stderr.contains("return call.;") && ran.stderr.contains('^'), "no line and caret: {ran:?}");
}

#[test]
fn a_halted_project_does_nothing_until_it_is_lifted() {
    let project = Project::with_fixtures();
    project.run(&["state", "set", "halted"]).expect_code(0);
    let ran = project.run(&["exec", "tools/math/fib.ts", "--args", r#"{"n": 1}"#]);
    assert!(ran.code == Some(3) && ran.stderr.contains("ESTATE"), "{ran:?}");
    assert!(ran.stderr.contains("tgp state set idle"), "no way out: {ran:?}");
    project.run(&["state", "set", "idle"]).expect_code(0);
    project.run(&["exec", "tools/math/fib.ts", "--args", r#"{"n": 1}"#]).expect_code(0);
    let claimed = project.run(&["state", "set", "green"]);
    assert!(
        claimed.code == Some(3) && claimed.stderr.contains("ESTATE"),
        "green cannot be claimed: {claimed:?}"
    );
    let unknown = project.run(&["state", "set", "purple"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn a_token_goes_with_a_call() {
    let project = Project::with_fixtures();
    let token = project.run(&["token", "mint", "--tools", "read_file", "--expires", "1h"]).expect_code(0);
    let token = token.stdout.trim();
    let read = ["call", "read_file", r#"{"path": "tools/math/fib.ts"}"#, "--token", token];
    project.run(&read).expect_code(0);
    let list = project.run(&["call", "list_files", "{}", "--token", token]);
    assert!(list.code == Some(3) && list.stdout.contains("EPOLICY"), "{list:?}");
    let narrow =
        project.run(&["token", "attenuate", token, "--paths", "tools:tools/other/**"]).expect_code(0);
    let narrowed = ["call", "read_file", r#"{"path": "tools/math/fib.ts"}"#, "--token", narrow.stdout.trim()];
    assert_eq!(project.run(&narrowed).code, Some(3));
    let nothing = project.run(&["token", "attenuate", token]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert_eq!(project.run(&["token", "check", "tgp1.nonsense"]).code, Some(3));
    let hidden = project.run(&["audit", "export"]).expect_code(0);
    assert!(!hidden.stdout.contains(token), "a token stands in the audit");
}

#[test]
fn examples_of_rules_may_leave_arguments_out() {
    let project = Project::initialised();
    let rule = "version: 1\nrules:\n  - {id: m, effect: deny, where: {path: \"migrations/**\"}, \
                match: [{tool: fs_write, arguments: {path: migrations/1.sql}}, {tool: search_grep, arguments: {path: migrations/x}}], \
                not_match: [{tool: Write, arguments: {path: src/a.ts}}]}\n";
    project.write("tgp.policy.yaml", rule);
    project.run(&["policy", "check"]).expect_code(0);
}

#[test]
fn bug_a_person_was_told_to_run_a_tool_and_not_a_command() {
    if !tgp::sandbox::process_support().complete() {
        println!("skipped: commands cannot be jailed here");
        return;
    }
    let project = Project::initialised();
    project.write("tgp.config.ts", "export default { tdd: { command: 'true' } };\n");
    project.write("src/a.py", "x = 1\n");
    project.trust();
    let refused = project.run(&["state", "set", "done"]).expect_code(3);
    assert!(refused.stderr.contains("tgp call test_run '{}' --yes"), "{refused:?}");
    // What is printed works, and leads where it says.
    let ran = project.shell("tgp call test_run '{}' --yes");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    project.run(&["state", "set", "done"]).expect_code(0);
}

/// Git keeps its files where it is configured to, and runs the hooks that are there.
#[test]
fn bug_a_git_directory_with_another_name_could_be_written() {
    type Prepare = fn(&Project);
    let layouts: [(&str, &str, Prepare); 5] = [
        ("separate", "meta", |project| {
            git(project, &["init", "--quiet", "--separate-git-dir=meta"]);
        }),
        ("link", "store/git", |project| {
            git(project, &["init", "--quiet"]);
            std::fs::create_dir_all(project.path("here/store")).unwrap();
            std::fs::rename(project.path("here/.git"), project.path("here/store/git")).unwrap();
            std::os::unix::fs::symlink("store/git", project.path("here/.git")).unwrap();
        }),
        ("bare", ".bare", |project| {
            git(project, &["init", "--quiet", "--bare", ".bare"]);
            project.write(".git", "gitdir: ./.bare\n");
        }),
        ("nested", "submeta", |project| {
            git(project, &["init", "--quiet"]);
            git(project, &["init", "--quiet", "--separate-git-dir=submeta", "sub"]);
        }),
        ("another bare one", "fixtures/a.git", |project| {
            git(project, &["init", "--quiet"]);
            git(project, &["init", "--quiet", "--bare", "fixtures/a.git"]);
        }),
    ];
    for (layout, place, prepare) in layouts {
        let project = Project::empty();
        prepare(&project);
        project.run(&["init"]).expect_code(0);
        project.explore();
        let config = project.path(&format!("here/{place}/config"));
        let before = std::fs::read_to_string(&config).unwrap();
        for file in
            ["hooks/post-checkout", "config", "info/exclude", "hooks/x/y", "rebase-merge/git-rebase-todo"]
        {
            let path = format!("{place}/{file}");
            let write = json!({ "path": path, "content": "evil" }).to_string();
            let refused = project.run(&["call", "fs_write", &write, "--yes"]).expect_code(3);
            assert!(refused.stdout.contains("builtin/git"), "{refused:?}");
            let shell =
                json!({ "command": format!("mkdir -p {place}/hooks/x; echo evil > {path}") }).to_string();
            project.run(&["call", "shell_exec", &shell, "--yes"]);
            let now = std::fs::read_to_string(project.path(&format!("here/{path}"))).unwrap_or_default();
            assert!(!now.contains("evil"), "{layout}: {path}");
        }
        let read = json!({ "path": format!("{place}/config") }).to_string();
        assert!(
            !project.run(&["call", "fs_read", &read]).expect_code(3).stdout.contains("[core]"),
            "{layout}"
        );
        let replace = json!({ "command": format!("mv {place} elsewhere || mv .git elsewhere") }).to_string();
        project.run(&["call", "shell_exec", &replace, "--yes"]);
        assert_eq!(std::fs::read_to_string(&config).unwrap(), before, "{layout}");
        // A command can still use git.
        let status = json!({ "command": "git status --short" }).to_string();
        project.run(&["call", "shell_exec", &status, "--yes"]).expect_code(0);
    }
}
