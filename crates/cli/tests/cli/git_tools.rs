//! The tools for the project's repository through the program: rules, approval, identity and the agent.

use serde_json::json;

use crate::agent::{call, results, say, script, session};
use crate::project::Project;

const IDENTITY: &str = "git config user.name Ann && git config user.email ann@example.org";

/// A project that is a repository with one commit.
fn repository() -> Project {
    let project = Project::initialised();
    project.write("src/a.txt", "one\n");
    project.write(".gitignore", ".tgp/\n");
    project
        .shell(&format!("git init -q -b main && {IDENTITY} && git add -A && git commit -q -m First"))
        .expect_code(0);
    project
}

fn git(project: &Project, line: &str) -> String {
    project.shell(&format!("git {line}")).expect_code(0).stdout.trim_end().to_owned()
}

#[test]
fn rules_decide_about_branches_and_files_of_a_commit() {
    let project = repository();
    project.write(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: not-main, effect: deny, tools: [git_commit], where: {target: 'branch:main'}, reason: people commit there}\n  \
         - {id: no-keys, effect: deny, tools: '*', where: {path: 'keys/**'}, reason: not for agents}\n  \
         - {id: agents, effect: allow, tools: [git_commit], where: {target: 'branch:agent/*', path: 'src/**'}}\n",
    );
    project.shell("git add tgp.policy.yaml && git commit -q --amend --no-edit").expect_code(0);
    project.write("src/a.txt", "two\n");
    let refused = project.run(&["call", "git_commit", r#"{"message": "X"}"#, "--yes"]).expect_code(3);
    assert!(refused.stdout.contains("not-main"), "{refused:?}");
    // The rule that allows it needs no consent.
    let message = r#"{"message": "By an agent", "branch": "agent/one"}"#;
    let done = project.run(&["call", "git_commit", message]).expect_code(0).document();
    assert_eq!(done["data"]["changes"][0]["path"], "src/a.txt");
    assert_eq!(git(&project, "log --format=%s agent/one"), "By an agent\nFirst");
    assert_eq!(git(&project, "log --format=%s main"), "First");
    // A file that the rule does not name is asked about, and a hidden one is not part of any commit.
    project.write("other.txt", "other\n");
    project.write("keys/k.txt", "hidden-content\n");
    let refused = project.run(&["call", "git_commit", message]).expect_code(3);
    assert!(refused.stdout.contains("EAPPROVAL"), "{refused:?}");
    let shown = project.run(&["call", "git_commit", message, "--dry-run"]).expect_code(0);
    assert!(shown.stdout.contains("other.txt") && !shown.stdout.contains("keys/"), "{shown:?}");
    let named = r#"{"message": "X", "branch": "agent/one", "paths": ["keys/k.txt"]}"#;
    project.run(&["call", "git_commit", named, "--yes"]).expect_code(3);
    project.run(&["call", "git_commit", message, "--yes"]).expect_code(0);
    let files = git(&project, "ls-tree -r --name-only agent/one");
    assert!(files.contains("other.txt") && !files.contains("keys"), "{files}");
    let records = project.run(&["audit", "tail", "-n", "20", "--json"]).expect_code(0).stdout;
    assert!(records.contains("agent/one") && !records.contains("hidden-content"), "{records}");
}

/// `git log origin/main` showed the commit of an agent, and a rule about `branch:main` did not see `MAIN`.
#[test]
fn bug_a_commit_went_to_a_name_that_is_read_as_another_branch() {
    let project = repository();
    project.shell("git remote add Upstream ../nowhere && git branch feature").expect_code(0);
    project.write("src/a.txt", "two\n");
    for branch in
        ["upstream/main", "Upstream/x", "heads/main", "HEADS/main", "tags/v1", "remotes/x", "MAIN", "Feature"]
    {
        let call = json!({ "message": "X", "branch": branch }).to_string();
        let refused = project.run(&["call", "git_commit", &call, "--yes"]).expect_code(2);
        assert!(refused.stdout.contains("can be taken for another branch"), "{branch}: {refused:?}");
    }
    let call = json!({ "message": "X", "branch": "agent/main" }).to_string();
    project.run(&["call", "git_commit", &call, "--yes"]).expect_code(0);
    assert_eq!(git(&project, "branch '--format=%(refname)'").lines().count(), 3);
}

#[test]
fn a_commit_needs_a_person_to_commit_as() {
    let project = repository();
    project.shell("git config --unset user.name; git config --unset user.email").expect_code(0);
    project.write("src/a.txt", "two\n");
    let call = ["call", "git_commit", r#"{"message": "X"}"#, "--yes"];
    let refused = project.run(&call).expect_code(2);
    assert!(refused.stdout.contains("ECONFIG") && refused.stdout.contains("user.name"), "{refused:?}");
    std::fs::write(project.path("home/.gitconfig"), "[user]\n\tname = Eve\n\temail = eve@example.org\n")
        .unwrap();
    project.run(&call).expect_code(0);
    assert_eq!(git(&project, "log -1 '--format=%an <%ae> %s'"), "Eve <eve@example.org> X");
    assert_eq!(git(&project, "status --porcelain"), "");
}

#[test]
fn an_agent_reads_the_repository_unasked_and_commits_when_it_is_approved() {
    let project = repository();
    let turns = |message: &str| {
        vec![
            vec![
                call("fs_write", json!({ "path": "src/b.txt", "content": format!("{message}\n") })),
                call("git_status", json!({})),
                call("git_diff", json!({ "from": "HEAD" })),
                call("git_log", json!({ "limit": 1 })),
                call("git_commit", json!({ "message": message })),
            ],
            vec![say("Done.")],
        ]
    };
    let provider = script(&project, "refused.json", &turns("Refused"));
    let (ran, events) = session(&project, &["commit it", "--provider", &provider]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let verdicts: Vec<String> = results(&events).into_iter().map(|(_, verdict, _)| verdict).collect();
    assert_eq!(verdicts, ["refused", "allowed", "allowed", "allowed", "refused"]);
    assert_eq!(git(&project, "log --format=%s"), "First");
    let provider = script(&project, "approved.json", &turns("Approved"));
    let (ran, events) = session(&project, &["commit it", "--provider", &provider, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(results(&events).iter().all(|(_, _, code)| code.is_empty()), "{events:?}");
    assert_eq!(git(&project, "log --format=%s"), "Approved\nFirst");
    assert_eq!(git(&project, "show HEAD:src/b.txt"), "Approved");
}

/// Without `.gitignore` a commit of all changes contained thousands of installed files.
#[test]
fn bug_a_commit_without_paths_took_installed_packages() {
    let project = repository();
    project.write("node_modules/left-pad/index.js", "module.exports = 1;\n");
    project.write("tests/__pycache__/a.pyc", "x\n");
    project.write("src/b.txt", "new\n");
    let done =
        project.run(&["call", "git_commit", r#"{"message": "Add b"}"#, "--yes"]).expect_code(0).document();
    assert_eq!(git(&project, "show --format= --name-only HEAD"), "src/b.txt");
    let left_out = done["data"]["leftOut"].to_string();
    assert!(left_out.contains("\"node_modules\"") && left_out.contains("tests/__pycache__"), "{left_out}");
    // Who names them means them.
    let named = r#"{"message": "Add packages", "paths": ["node_modules"]}"#;
    project.run(&["call", "git_commit", named, "--yes"]).expect_code(0);
    assert_eq!(git(&project, "show --format= --name-only HEAD"), "node_modules/left-pad/index.js");
    // What is in the repository is followed.
    project.write("node_modules/left-pad/index.js", "module.exports = 2;\n");
    project.run(&["call", "git_commit", r#"{"message": "Change"}"#, "--yes"]).expect_code(0);
    assert_eq!(git(&project, "show --format= --name-only HEAD"), "node_modules/left-pad/index.js");
}
