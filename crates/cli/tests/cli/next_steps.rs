//! What errors, warnings and `tgp doctor` tell a newcomer to do next.

use serde_json::{Value, json};

use crate::agent::{call, say, script, session};
use crate::packages::RULES;
use crate::project::{Project, Ran};
use crate::pty::Terminal;

fn can_jail() -> bool {
    let complete = tgp::sandbox::process_support().complete();
    if !complete {
        println!("skipped: commands cannot be jailed here");
    }
    complete
}

/// The answer of `test_run`.
#[track_caller]
fn tested(project: &Project, arguments: &Value) -> Value {
    let ran = project.run(&["call", "test_run", &arguments.to_string(), "--yes"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    answer["data"].clone()
}

/// The row of `tgp doctor` about tests: how it is, and its text.
fn tests_row(project: &Project) -> (String, String) {
    let document = project.run(&["doctor", "--json"]).document();
    let checks = document["data"]["checks"].as_array().unwrap().clone();
    let row = checks.iter().find(|row| row["name"] == "tests").unwrap().clone();
    (row["health"].as_str().unwrap().to_owned(), row["text"].as_str().unwrap().to_owned())
}

fn help_of(ran: &Ran) -> String {
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    answer["error"]["details"]["help"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn bug_the_rule_that_an_approval_suggests_opened_all_file_tools() {
    let project = Project::initialised();
    let arguments = json!({ "path": "Makefile", "content": "all:\n" }).to_string();
    let refused = project.run(&["call", "fs_write", &arguments, "--yes"]).expect_code(3);
    let help = help_of(&refused);
    assert!(help.contains("tools: [fs_write], where: {path: \"Makefile\"}}"), "{help}");
    assert!(!help.contains("fs_*"), "{help}");
    // The rule as it is printed lifts the question, for this tool and no other.
    let rule = help.split("tgp.policy.yaml: ").nth(1).unwrap().split("}}").next().unwrap();
    project.write("tgp.policy.yaml", &format!("version: 1\nrules:\n  {rule}}}}}\n"));
    project.run(&["call", "fs_write", &arguments, "--yes"]).expect_code(0);
    let other = json!({ "path": "Makefile" }).to_string();
    project.run(&["call", "fs_delete", &other, "--yes"]).expect_code(3);
}

#[test]
fn bug_a_wildcard_in_the_text_of_a_command_went_unnoticed() {
    let project = Project::initialised();
    project.write(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: npm, effect: allow, tools: shell_exec, where: {command: \"npm install *\"}}\n",
    );
    let checked = project.run(&["policy", "check"]).expect_code(0);
    assert!(checked.stderr.contains("write `command: {regex: \"npm install .*\"}`"), "{checked:?}");
}

#[test]
fn bug_a_runner_that_is_not_installed_was_a_script_that_is_not_plain() {
    let project = Project::initialised();
    for name in ["vitest", "jest"] {
        let package = json!({ "scripts": { "test": format!("{name} --silent=false") } }).to_string();
        project.write("package.json", &package);
        let (health, row) = tests_row(&project);
        assert_eq!(health, "weak", "{row}");
        for text in [&format!("{name} is not installed in `node_modules`"), "package_install", "npm install"]
        {
            assert!(row.contains(text), "{text}: {row}");
        }
        if !can_jail() {
            continue;
        }
        let run = tested(&project, &json!({}));
        assert_eq!(run["state"]["why"].as_str().unwrap(), row, "{run}");
    }
}

#[test]
fn bug_the_doctor_was_content_with_tests_that_cannot_count() {
    let project = Project::initialised();
    for script in ["npx vitest run", "tsc --noEmit && vitest run"] {
        project.write("package.json", &json!({ "scripts": { "test": script } }).to_string());
        let (health, row) = tests_row(&project);
        assert_eq!(health, "weak", "{script}: {row}");
        assert!(row.contains("is not a plain call") && row.contains("tdd.command"), "{script}: {row}");
        if can_jail() {
            let run = tested(&project, &json!({}));
            assert_eq!(run["state"]["why"].as_str().unwrap(), row, "{run}");
        }
    }
    project.write("package.json", &json!({ "scripts": { "test": "node --test" } }).to_string());
    assert_eq!(tests_row(&project).0, "good");
}

#[test]
fn bug_an_interpreter_that_commands_cannot_see_was_not_named() {
    let project = Project::initialised();
    let hidden = tempfile::tempdir().unwrap();
    let python = hidden.path().join("bin/python3.12");
    std::fs::create_dir(hidden.path().join("bin")).unwrap();
    std::fs::write(&python, "#!/bin/sh\n").unwrap();
    project.write("pytest.ini", "");
    project.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    std::fs::create_dir(project.file(".venv/bin")).unwrap();
    std::os::unix::fs::symlink(&python, project.file(".venv/bin/python")).unwrap();
    let (health, row) = tests_row(&project);
    assert_eq!(health, "weak", "{row}");
    assert!(row.contains("which commands cannot see") && row.contains("jail.readable"), "{row}");
    let refused = project.run(&["call", "test_run", "{}", "--yes"]).expect_code(2);
    assert!(refused.stdout.contains("ECAPABILITY") && refused.stdout.contains("cannot see"), "{refused:?}");
}

#[test]
fn bug_a_filter_without_tests_was_a_failure_in_an_unknown_file() {
    if !can_jail() {
        return;
    }
    let project = Project::initialised();
    project.write("package.json", &json!({ "scripts": { "test": "node --test" } }).to_string());
    project.write("a.test.js", "require('node:test').test('adds', () => {});\n");
    for only in ["no such test", "no-such.test.js"] {
        let run = tested(&project, &json!({ "only": only }));
        let why = run["state"]["why"].as_str().unwrap();
        assert!(why.contains(&format!("no test matches `{only}`")) && why.contains("`only`"), "{run}");
    }
    let run = tested(&project, &json!({ "only": "adds" }));
    assert_eq!(run["passed"], 1, "{run}");
    assert!(!run["state"]["why"].as_str().unwrap().contains("no test matches"), "{run}");
}

#[test]
fn bug_a_run_that_reached_its_limit_did_not_name_it() {
    if !can_jail() {
        return;
    }
    let project = Project::initialised();
    project.write("package.json", &json!({ "scripts": { "test": "node --test" } }).to_string());
    project.write(
        "a.test.js",
        "require('node:test').test('waits', () => new Promise((done) => setTimeout(done, 60000)));\n",
    );
    let run = tested(&project, &json!({ "timeout_ms": 1500 }));
    let why = run["state"]["why"].as_str().unwrap();
    assert!(why.contains("time limit of 1500 ms (`timeout_ms`)"), "{run}");
}

#[test]
fn bug_the_doctor_named_another_file_than_the_one_that_is_read() {
    let project = Project::initialised();
    let home = project.path("own");
    let mut command = project.command(&["doctor"]);
    let ran = Ran::from(command.env("TGP_HOME", &home).output().unwrap());
    let shown = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&home.join("config/config.toml").display().to_string()), "{ran:?}");
    assert!(!shown.contains("~/.config"), "{ran:?}");
}

#[test]
fn bug_git_that_writes_failed_without_help() {
    if !can_jail() {
        return;
    }
    let project = Project::initialised();
    project.write("a.txt", "a\n");
    project.shell("git init -q . && git add a.txt");
    for line in ["git mv a.txt b.txt", "git config user.name x"] {
        let ran = project.run(&["call", "shell_exec", &json!({ "command": line }).to_string(), "--yes"]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let help = answer["data"]["help"].as_str().unwrap_or_else(|| panic!("{line}: {answer}"));
        assert!(help.contains("`mv`") && help.contains("git_commit"), "{help}");
    }
}

#[test]
fn bug_a_call_that_asks_another_question_was_blamed_on_random_values() {
    let project = Project::initialised();
    project.write("tgp.policy.yaml", "version: 1\nrules:\n  - {id: all, effect: ask, tools: fs_write}\n");
    project.write("notes.md", "one\n");
    let arguments = json!({ "path": "notes.md", "content": "two\n" }).to_string();
    let refused = project.run(&["call", "fs_write", &arguments]).expect_code(3);
    let answer: Value = serde_json::from_str(&refused.stdout).unwrap();
    let id =
        answer["error"]["details"]["needs_approval"]["id"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let mut terminal = Terminal::start(project.command(&["approve", id]));
    terminal.wait_for("Allow it?");
    terminal.type_keys("y\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    project.write("notes.md", "other\n");
    let help = help_of(&project.run(&["call", "fs_write", &arguments]).expect_code(3));
    assert!(help.contains("what the call would change is different"), "{help}");
    assert!(!help.contains("random"), "{help}");
}

#[test]
fn bug_undo_did_not_say_how_packages_follow_their_manifest() {
    if !can_jail() || !std::path::Path::new("/usr/bin/npm").exists() {
        return;
    }
    let project = Project::initialised();
    project.explore();
    project.write("tgp.policy.yaml", RULES);
    project.write("package.json", "{\"name\": \"shop\", \"private\": true}\n");
    let turns = [vec![call("package_install", json!({}))], vec![say("Done.")]];
    let provider = script(&project, "model.json", &turns);
    let (ran, _) = session(&project, &["install the packages", "--provider", &provider, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = project.run(&["undo", "last", "--dry-run"]).expect_code(0);
    let text =
        "not undone: installed packages (1 call of the session); run `tgp call package_install '{}' --yes`";
    assert!(shown.stderr.contains(text), "{shown:?} {ran:?}");
}

#[test]
fn bug_who_wanted_to_rename_a_file_was_sent_to_read_it() {
    let project = Project::initialised();
    for name in ["fs_rename", "move_file", "mv"] {
        let refused = project.run(&["call", name, "{}", "--yes"]);
        assert!(refused.stdout.contains("run `mv` or `cp` with `shell_exec`"), "{refused:?}");
    }
    assert!(project.run(&["call", "fs_raed", "{}"]).stdout.contains("did you mean `fs_read`?"));
}

#[test]
fn bug_the_state_did_not_say_that_files_may_be_moved() {
    if !can_jail() {
        return;
    }
    let project = Project::initialised();
    project.write("package.json", &json!({ "scripts": { "test": "node --test" } }).to_string());
    project.write("a.test.js", "require('node:test').test('adds', () => {});\n");
    let run = tested(&project, &json!({}));
    assert_eq!(run["state"]["state_after"], "green", "{run}");
    let shown = project.run(&["state", "show"]).expect_code(0);
    assert!(shown.stdout.contains("change code, delete code, move and split files"), "{shown:?}");
}

/// One installation asks about several hosts, whose questions looked alike.
#[test]
fn bug_a_question_about_a_host_did_not_name_it() {
    if !can_jail() || std::process::Command::new("npm").arg("--version").output().is_err() {
        println!("skipped: npm is not installed");
        return;
    }
    let project = Project::initialised();
    project.write("package.json", r#"{"name": "shop", "private": true}"#);
    project.write(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: npm, effect: allow, tools: [package_install], where: {command: {regex: 'npm install .*'}}}\n",
    );
    let wanted = json!({ "packages": ["left-pad"] }).to_string();
    let refused = crate::packages::run(&project, &["call", "package_install", &wanted]).expect_code(3);
    let answer: Value = serde_json::from_str(&refused.stdout).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("was not approved for the host `"), "{message}");
    let listed = crate::packages::run(&project, &["approve"]).expect_code(0);
    assert!(listed.stdout.contains("[host "), "{listed:?}");
}
