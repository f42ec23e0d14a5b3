//! Projects of another user, and projects that cannot be written. Only root can give files away, so most of it needs root.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project::{Project, Ran};

const DOUBLE: &str =
    "/** Doubles a number. */\nexport default (args: { n: number }): number => args.n * 2;\n";
const RUN: [&str; 3] = ["exec", "tools/double.ts", r#"{"n": 2}"#];
/// A user without anything.
const OTHER: u32 = 65534;

fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        println!("skipped: another owner (needs root)");
    }
    is_root
}

fn name_of_other() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(OTHER)).unwrap();
    user.expect("the system has a user without anything").name
}

/// A project that has been worked in.
fn used() -> Project {
    let project = Project::initialised();
    project.write(".tgp/tools/double.ts", DOUBLE);
    project.write("src/a.ts", "export const a = 1;\n");
    project.run(&["sync"]).expect_code(0);
    project.run(&RUN).expect_code(0);
    project.run(&["sql", "CREATE TABLE t (x)"]).expect_code(0);
    // What a command leaves to the next one is done.
    project.run(&["search", "double a number"]).expect_code(0);
    project
}

/// Every path below a directory that is not a link, the directory first.
fn paths(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        if path.is_dir() && !path.is_symlink() {
            found.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        next += 1;
    }
    found
}

fn give(directory: &Path, owner: u32) {
    for path in paths(directory) {
        chown(path, Some(owner), Some(owner)).unwrap();
    }
}

/// Owner, mode, time of the last change and bytes of every file.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, (u32, u32, i64, i64, Vec<u8>)> {
    let facts = |path: PathBuf| {
        let found = path.symlink_metadata().unwrap();
        let bytes = if found.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        (path, (found.uid(), found.mode(), found.mtime(), found.mtime_nsec(), bytes))
    };
    paths(directory).into_iter().map(facts).collect()
}

#[track_caller]
fn assert_unchanged(
    directory: &Path,
    before: &BTreeMap<PathBuf, (u32, u32, i64, i64, Vec<u8>)>,
    after: &str,
) {
    let now = snapshot(directory);
    let names = |from: &BTreeMap<PathBuf, _>| from.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&now), names(before), "after `{after}`");
    for (path, facts) in before {
        assert!(now[path] == *facts, "`{}` was changed by `{after}`", path.display());
    }
}

/// The command of another user, whose home is beside the project.
fn as_other(project: &Project, arguments: &[&str]) -> Command {
    let program = project.path("bin/tgp-of-other");
    if !program.exists() {
        let built = env!("CARGO_BIN_EXE_tgp");
        std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(drop)).unwrap();
        for name in ["home-of-other", "cache-of-other"] {
            std::fs::create_dir(project.path(name)).unwrap();
            chown(project.path(name), Some(OTHER), Some(OTHER)).unwrap();
        }
        for directory in [project.path(""), project.path("bin"), project.path("tmp")] {
            std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
    }
    let mut command = project.program(program.to_str().unwrap());
    command
        .args(arguments)
        .env("HOME", project.path("home-of-other"))
        .env("TGP_HOME", project.path("home-of-other/state"))
        .env("TGP_CACHE_DIR", project.path("cache-of-other"))
        .uid(OTHER)
        .gid(OTHER);
    command
}

fn run_as_other(project: &Project, arguments: &[&str]) -> Ran {
    project.finish(as_other(project, arguments))
}

const READING: [&[&str]; 12] = [
    &["list"],
    &["read", "tools/double.ts"],
    &["search", "double a number"],
    &["log"],
    &["doctor"],
    &["audit", "verify"],
    &["audit", "tail"],
    &["check", "tools/double.ts"],
    &["policy", "check"],
    &["state", "show"],
    &["sessions", "list"],
    &["call", "fs_read", r#"{"path": "src/a.ts"}"#],
];

const WRITING: [&[&str]; 10] = [
    &["write", "tools/b.ts", "--content", "export default () => 1;"],
    &RUN,
    &["sql", "INSERT INTO t VALUES (1)"],
    &["sync"],
    &["init"],
    &["state", "set", "halted"],
    &["call", "fs_write", r#"{"path": "src/b.ts", "content": "1"}"#, "--yes"],
    &["call", "shell_exec", r#"{"command": "touch x"}"#, "--yes"],
    &["call", "fs_delete", r#"{"path": "src/a.ts"}"#, "--yes"],
    &["trust", "--yes"],
];

/// `sudo tgp list` left an anchor of root, and every later command of the owner failed.
#[test]
fn bug_root_in_another_owners_project_locked_the_owner_out() {
    if !is_root() {
        return;
    }
    let project = used();
    let here = project.file("");
    give(&here, OTHER);
    let before = snapshot(&here);
    for command in READING {
        let ran = project.run(command);
        assert!(ran.code == Some(0) || command[0] == "doctor", "{command:?}: {ran:?}");
        assert_unchanged(&here, &before, &command.join(" "));
    }
    for command in WRITING {
        let refused = project.run(command);
        assert!(matches!(refused.code, Some(2 | 3)), "{command:?}: {refused:?}");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains("ECONFIG"), "{command:?}: {refused:?}");
        assert!(said.contains(&name_of_other()), "{command:?}: {refused:?}");
        if command[0] != "trust" {
            assert!(said.contains(&format!("sudo -u {} tgp", name_of_other())), "{command:?}: {refused:?}");
        }
        assert_unchanged(&here, &before, &command.join(" "));
    }
    run_as_other(&project, &["list"]).expect_code(0);
    run_as_other(&project, &RUN).expect_code(0);
    run_as_other(&project, &["audit", "verify"]).expect_code(0);
}

#[test]
fn root_works_in_another_owners_project_with_its_hash_and_leaves_the_kernels_files() {
    if !is_root() {
        return;
    }
    let project = used();
    give(&project.file(""), OTHER);
    let printed = project.run(&["trust", "--print"]).expect_code(0);
    let hash = printed.stdout.split_whitespace().find(|word| word.len() == 64).unwrap().to_owned();
    let (kernel, before) = (project.file(".tgp"), snapshot(&project.file(".tgp")));
    let trusted = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("TGP_TRUST", &hash);
        project.finish(command)
    };
    assert_eq!(trusted(&RUN).expect_code(0).stdout, "4\n");
    trusted(&["sql", "CREATE TABLE own (x)"]).expect_code(0);
    let write = r#"{"path": "README.md", "content": "hello"}"#;
    trusted(&["call", "fs_write", write, "--yes"]).expect_code(0);
    assert_eq!(project.read("README.md"), "hello");
    let refused = trusted(&["write", "tools/b.ts", "--content", "export default () => 1;"]);
    assert!(refused.stderr.contains("EPERMISSION"), "{refused:?}");
    assert!(trusted(&["audit", "tail"]).expect_code(0).stdout.contains("exec_tool"));
    assert_unchanged(&kernel, &before, "commands with TGP_TRUST");
    // The hash is for this project, and for this owner.
    give(&project.file(""), OTHER - 1);
    assert!(trusted(&RUN).expect_code(2).stderr.contains("ECONFIG"));
}

const BROKEN: &str = "version: 1\ninvariants:\n  - {name: no-source, query: \"MATCH (f:File) WHERE f.path STARTS WITH 'src/' RETURN f.path\", expect: none, message: none}\n";

/// What root adds to a chronicle belongs to root, and the owner could neither lift a halt nor write there.
#[test]
fn bug_an_assertion_of_root_halted_the_work_of_another_owner() {
    if !is_root() {
        return;
    }
    let project = used();
    project.write(".sage/invariants.yml", BROKEN);
    project.write("src/old.ts.sage", "");
    project.shell("git init -q && git add -A && git -c user.name=Ann -c user.email=a@b.c commit -qm one");
    give(&project.file(""), OTHER);
    let before = snapshot(&project.file(""));
    let broken = project.run(&["guardian", "assert"]);
    assert!(broken.code != Some(0) && broken.stderr.contains("no-source"), "{broken:?}");
    let refused = project.run(&["chronicle", "migrate"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("sudo -u"), "{refused:?}");
    assert_unchanged(&project.file(""), &before, "`guardian assert` and `chronicle migrate` of root");
    project.write(".sage/invariants.yml", "version: 1\ninvariants: []\n");
    chown(project.file(".sage/invariants.yml"), Some(OTHER), Some(OTHER)).unwrap();
    run_as_other(&project, &["guardian", "assert"]).expect_code(0);
}

/// The line was in the chronicle of the project, and its record in the audit of root.
#[test]
fn bug_work_of_root_with_its_hash_made_the_chronicle_of_the_owner_look_forged() {
    if !is_root() {
        return;
    }
    let project = used();
    project.write(".sage/invariants.yml", &BROKEN.replace("'src/'", "'none/'"));
    project.shell("git init -q && git add -A && git -c user.name=Ann -c user.email=a@b.c commit -qm one");
    give(&project.file(""), OTHER);
    run_as_other(&project, &["call", "fs_write", r#"{"path": "src/b.md", "content": "b"}"#, "--yes"])
        .expect_code(0);
    let printed = project.run(&["trust", "--print"]).expect_code(0);
    let hash = printed.stdout.split_whitespace().find(|word| word.len() == 64).unwrap().to_owned();
    let trusted = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("TGP_TRUST", &hash);
        project.finish(command)
    };
    let before = snapshot(&project.file(".sage"));
    // libgit2 refuses a repository of another user, and with it every write that an invariant judges.
    for call in [
        &["call", "fs_write", r#"{"path": "src/b.md", "content": "c"}"#, "--yes"][..],
        &["call", "git_status", "{}"],
        &["guardian", "assert"],
    ] {
        trusted(call).expect_code(0);
    }
    assert_unchanged(&project.file(".sage"), &before, "work of root");
    let added = r#"{"type": "DECISION", "timestamp": "2026-11-15T12:00:00Z", "actor": {"agent": "person", "id": "ann"}}"#;
    let refused = trusted(&["chronicle", "append", "src/b.md", added]);
    assert!(refused.stderr.contains("EPERMISSION"), "{refused:?}");
    run_as_other(&project, &["chronicle", "verify"]).expect_code(0);
}

#[test]
fn bug_a_project_of_another_owner_was_used_without_a_confirmation() {
    if !is_root() {
        return;
    }
    let project = used();
    project.write("tgp.policy.yaml", "version: 1\nrules:\n  - {id: no-sql, effect: deny, tools: exec_sql}\n");
    std::fs::set_permissions(project.file(".tgp/.state"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = snapshot(&project.file(""));
    assert_eq!(run_as_other(&project, &["list"]).expect_code(0).stdout, "tools/double.ts\n");
    let refused = run_as_other(&project, &RUN).expect_code(2);
    assert!(
        refused.stderr.contains("belongs to root") && refused.stderr.contains("tgp trust"),
        "{refused:?}"
    );
    let denied = run_as_other(&project, &["sql", "SELECT 1"]);
    assert_ne!(denied.code, Some(0), "{denied:?}");
    assert_unchanged(&project.file(""), &before, "commands of another user");
    run_as_other(&project, &["trust", "--yes"]).expect_code(0);
    assert_eq!(run_as_other(&project, &RUN).expect_code(0).stdout, "4\n");
    let denied = run_as_other(&project, &["sql", "SELECT 1"]).expect_code(3);
    assert!(denied.stderr.contains("no-sql"), "the rules of the project hold: {denied:?}");
    assert_unchanged(&project.file(""), &before, "commands of another user after `tgp trust`");
}

/// The project's own audit is of its owner.
#[test]
fn what_another_user_decides_is_in_the_audit_of_that_user() {
    if !is_root() {
        return;
    }
    let project = used();
    std::fs::set_permissions(project.file(".tgp/.state"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = snapshot(&project.file(""));
    let tail = |place: &[&str]| run_as_other(&project, &[&["audit", "tail"], place].concat());
    run_as_other(&project, &["approve", "--clear"]).expect_code(0);
    run_as_other(&project, &["trust", "--yes"]).expect_code(0);
    let own = tail(&["--user"]).expect_code(0).stdout;
    assert!(own.contains("approvals_clear") && own.contains("trust_confirm"), "{own}");
    assert!(own.contains(&format!("by {}", name_of_other())), "{own}");
    // From then on there is an audit for this project.
    run_as_other(&project, &["token", "mint", "--all"]).expect_code(0);
    run_as_other(&project, &["approve", "--clear"]).expect_code(0);
    let here = tail(&[]).expect_code(0).stdout;
    assert!(here.contains("token_mint") && here.contains("approvals_clear"), "{here}");
    for place in [&["audit", "verify"][..], &["audit", "verify", "--user"]] {
        run_as_other(&project, place).expect_code(0);
    }
    assert_unchanged(&project.file(""), &before, "decisions of another user");
    // A decision of root that cannot hold is in no audit.
    give(&project.file(""), OTHER);
    let refused = project.run(&["trust", "--yes"]);
    assert!(refused.stderr.contains("ECONFIG"), "{refused:?}");
    assert_ne!(project.run(&["audit", "tail", "--user"]).code, Some(0));
}

#[test]
fn bug_a_read_only_project_could_not_even_be_listed() {
    if !is_root() {
        return;
    }
    let project = used();
    let here = project.file("");
    give(&here, OTHER);
    for path in paths(&here).into_iter().rev() {
        let mode = path.symlink_metadata().unwrap().mode() & 0o555;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = snapshot(&here);
    for command in READING.into_iter().chain([&RUN[..]]) {
        let ran = run_as_other(&project, command);
        assert!(ran.code == Some(0) || command[0] == "doctor", "{command:?}: {ran:?}");
    }
    let refused = run_as_other(&project, &["write", "tools/b.ts", "--content", "export default () => 1;"]);
    let place = project.file(".tgp/.state");
    assert!(refused.stderr.contains("EPERMISSION"), "{refused:?}");
    assert!(refused.stderr.contains(place.to_str().unwrap()), "{refused:?}");
    assert!(refused.stderr.contains("Permission denied"), "{refused:?}");
    assert_unchanged(&here, &before, "commands in a read-only project");
}

/// The help was to remove `.state`, with the audit and the database in it.
#[test]
fn bug_a_permission_problem_was_answered_with_advice_to_remove_the_state() {
    if !is_root() {
        return;
    }
    let project = used();
    give(&project.file(""), OTHER);
    // What an earlier version left behind when root had used it.
    let anchor = project.file(".tgp/.state/audit-anchor");
    std::fs::write(&anchor, "tgp-audit-head-1\n").unwrap();
    std::fs::set_permissions(&anchor, std::fs::Permissions::from_mode(0o600)).unwrap();
    chown(&anchor, Some(0), Some(0)).unwrap();
    let refused = run_as_other(&project, &["list"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_names(&refused, &anchor, "belongs to root (mode 0600)");
    std::fs::remove_file(&anchor).unwrap();
    // A directory of the state that another user has made.
    let sessions = project.file(".tgp/.state/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    std::fs::set_permissions(&sessions, std::fs::Permissions::from_mode(0o000)).unwrap();
    chown(&sessions, Some(OTHER), None).unwrap();
    let refused = run_as_other(&project, &["list"]);
    assert_names(&refused, &project.file(".tgp/.state"), "EPERMISSION");
}

#[track_caller]
fn assert_names(refused: &Ran, path: &Path, text: &str) {
    let said = &refused.stderr;
    assert!(said.contains(path.to_str().unwrap()) && said.contains(text), "{said}");
    for word in ["remove", "delete", "rm -"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}

#[test]
fn a_state_directory_of_another_user_is_named_with_its_owner() {
    if !is_root() {
        return;
    }
    let project = used();
    give(&project.file(""), OTHER);
    // `sudo` may keep the home of who called it: root must not write there.
    let home = project.path("home-of-ann");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(OTHER), Some(OTHER)).unwrap();
    let mut command = project.command(&["list"]);
    command.env("TGP_HOME", home.join("state"));
    let refused = project.finish(command).expect_code(2);
    assert!(refused.stderr.contains(home.to_str().unwrap()), "{refused:?}");
    assert!(refused.stderr.contains(&name_of_other()) && refused.stderr.contains("TGP_HOME"), "{refused:?}");
    assert!(!home.join("state").exists());
    // And one that this user cannot read is named with its owner as well.
    let home = project.path("home-of-root");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = as_other(&project, &["list"]);
    command.env("TGP_HOME", &home);
    let ran = project.finish(command);
    assert!(ran.stderr.contains(home.to_str().unwrap()) && ran.stderr.contains("root"), "{ran:?}");
}
