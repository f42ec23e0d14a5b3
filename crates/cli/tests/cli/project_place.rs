//! Where a command finds its project, and what `tgp init` leaves alone in one.

use std::os::unix::fs::chown;

use crate::project::{Project, Ran};

const DOUBLE: &str = "export default (args: { n: number }): number => args.n * 2;\n";

fn run_in(project: &Project, folder: &str, arguments: &[&str]) -> Ran {
    std::fs::create_dir_all(project.file(folder)).unwrap();
    let mut command = project.command(arguments);
    command.current_dir(project.file(folder));
    project.finish(command)
}

fn with_tool() -> Project {
    let project = Project::initialised();
    project.write(".tgp/tools/double.ts", DOUBLE);
    project
}

#[test]
fn bug_a_project_was_not_found_from_its_subdirectories() {
    let project = with_tool();
    assert_eq!(run_in(&project, "src/shop", &["list"]).expect_code(0).stdout, "tools/double.ts\n");
    assert_eq!(run_in(&project, "src/shop", &["exec", "tools/double.ts", r#"{"n": 2}"#]).stdout, "4\n");
    let named = run_in(&project, "src/shop", &["-C", "../..", "list"]).expect_code(0);
    assert_eq!(named.stdout, "tools/double.ts\n");
    // Files that a person names are relative to where the person is.
    project.write("src/shop/in.json", "{\"n\": 3}");
    assert_eq!(run_in(&project, "src/shop", &["exec", "tools/double.ts", "@in.json"]).stdout, "6\n");
    assert!(!project.file("src/shop/.tgp").exists());
}

#[test]
fn no_project_is_taken_from_another_owner_or_above_the_home() {
    let project = with_tool();
    // The home is inside the project: what is above it belongs to the machine.
    std::fs::create_dir_all(project.file("users/me/work")).unwrap();
    let mut command = project.command(&["list"]);
    command.current_dir(project.file("users/me/work")).env("HOME", project.file("users/me"));
    let above = project.finish(command).expect_code(2);
    assert!(above.stderr.contains("ECONFIG"), "{above:?}");
    // Only root can give a directory away.
    if chown(project.file(".tgp"), Some(65534), None).is_err() {
        println!("skipped: another owner (needs root)");
        return;
    }
    std::fs::remove_file(project.file("tgp.config.ts")).unwrap();
    let foreign = run_in(&project, "src", &["list"]).expect_code(2);
    assert!(foreign.stderr.contains("ECONFIG"), "{foreign:?}");
}

#[test]
fn init_in_a_folder_of_a_project_says_so() {
    let project = with_tool();
    let nested = run_in(&project, "packages/a", &["init"]).expect_code(0);
    assert!(nested.stderr.contains("inside the project"), "{nested:?}");
    assert_eq!(run_in(&project, "packages/a/src", &["list"]).expect_code(0).stdout, "");
}

#[test]
fn a_work_tree_shares_the_tools_and_records_and_has_its_own_state_of_tests() {
    let project = with_tool();
    if project.shell("git --version").code != Some(0) {
        println!("skipped: git is not installed");
        return;
    }
    project.write("tests/all.sh", "true\n");
    project.write("src/a.py", "x = 1\n");
    project.write("tgp.config.ts", "export default { tdd: { command: 'sh tests/all.sh' } };\n");
    project.trust();
    project
        .shell("git init -q . && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm first")
        .expect_code(0);
    project.shell("git worktree add -q ../tree -b other").expect_code(0);
    let tree = project.path("tree");
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.current_dir(tree.join("src"));
        project.finish(command)
    };
    assert_eq!(run(&["list"]).expect_code(0).stdout, "tools/double.ts\n");
    assert!(!tree.join(".tgp").exists(), "nothing is made beside the files");
    // The configuration of the tree is a file of its own, which a person confirms.
    run(&["trust", "--yes"]).expect_code(0);
    if tgp::sandbox::process_support().complete() {
        run(&["call", "test_run", "{}", "--yes"]).expect_code(0);
        assert!(run(&["state", "show"]).stdout.contains("project: green"));
        assert!(project.run(&["state", "show"]).stdout.contains("project: idle"), "other files, other state");
    }
    run(&["call", "fs_read", r#"{"path": "src/a.py"}"#]).expect_code(0);
    let audit = project.run(&["audit", "tail"]).expect_code(0);
    assert!(audit.stdout.contains("fs_read"), "one audit for all trees: {}", audit.stdout);
    // Once it has its own, what was shared is out of sight: it is said.
    let mut init = project.command(&["init"]);
    init.current_dir(&tree);
    let made = project.finish(init).expect_code(0);
    assert!(made.stderr.contains("this work tree has used the tools"), "{made:?}");
    assert!(made.stderr.contains("rename `.tgp` here"), "{made:?}");
    assert_eq!(run(&["list"]).expect_code(0).stdout, "");
}

#[test]
fn a_file_that_only_claims_to_be_a_work_tree_leads_nowhere() {
    let project = with_tool();
    project
        .shell("git init -q . && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m first")
        .expect_code(0);
    project.shell("git worktree add -q ../tree -b other").expect_code(0);
    let fake = project.path("fake");
    std::fs::create_dir(&fake).unwrap();
    std::fs::copy(project.path("tree/.git"), fake.join(".git")).unwrap();
    let mut command = project.command(&["list"]);
    command.current_dir(&fake);
    let refused = project.finish(command).expect_code(2);
    assert!(refused.stderr.contains("ECONFIG"), "{refused:?}");
}

#[test]
fn bug_init_broke_the_type_check_of_a_project_without_the_client() {
    let project = Project::empty();
    let package = "{\"name\":\"app\",\"scripts\":{\"test\":\"vitest\"}}\n";
    project.write("package.json", package);
    project.run(&["init"]).expect_code(0);
    assert_eq!(project.read("package.json"), package);
    let config = project.read("tgp.config.ts");
    assert!(!config.contains("import {") && config.contains("export default {"), "{config}");
    // Where the client is a dependency, its types and its program are there.
    let project = Project::empty();
    project.write("package.json", "{\"name\":\"app\",\"devDependencies\":{\"@tgp/core\":\"^0.1.0\"}}\n");
    project.run(&["init"]).expect_code(0);
    assert_eq!(
        project.read("package.json"),
        "{\"name\":\"app\",\"devDependencies\":{\"@tgp/core\":\"^0.1.0\"},\"scripts\":{\"tgp\":\"tgp\"}}\n"
    );
    let config = project.read("tgp.config.ts");
    assert!(config.starts_with("import { defineTGPConfig } from '@tgp/core';\n"), "{config}");
    assert!(config.trim_end().ends_with("});"), "{config}");
    project.run(&["list"]).expect_code(0);
}

#[test]
fn bug_a_tool_ran_without_the_arguments_that_it_requires() {
    let project = with_tool();
    for arguments in [&["exec", "tools/double.ts"][..], &["exec", "tools/double.ts", "--args", "5"]] {
        let refused = project.run(arguments).expect_code(2);
        assert!(refused.stderr.contains("{ n: number }"), "{refused:?}");
    }
}

#[test]
fn arguments_come_from_a_file_or_from_standard_input() {
    let project = with_tool();
    project.write("in.json", "{\"n\": 21}\n");
    assert_eq!(project.run(&["exec", "tools/double.ts", "--args", "@in.json"]).expect_code(0).stdout, "42\n");
    let piped = project.run_with_input(&["exec", "tools/double.ts", "-"], "{\"n\": 4}").expect_code(0);
    assert_eq!(piped.stdout, "8\n");
    let call = project
        .run_with_input(&["call", "exec_tool", "-", "--yes"], r#"{"path":"tools/double.ts","args":{"n":1}}"#);
    assert!(call.expect_code(0).stdout.contains("\"result\":2"));
    for (arguments, words) in [
        (["exec", "tools/double.ts", "@nope.json"], "cannot open `nope.json`"),
        (["exec", "tools/double.ts", "@"], "names no file"),
        (["exec", "tools/double.ts", "@."], "cannot be read"),
    ] {
        let refused = project.run(&arguments).expect_code(2);
        assert!(refused.stderr.contains(words), "{refused:?}");
        assert!(refused.stderr.contains("`@FILE`"), "{refused:?}");
    }
}
