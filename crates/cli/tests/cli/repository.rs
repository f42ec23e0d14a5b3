//! A `.git` that leads out of the project, through the program: what reads and writes it, and what a person confirms.

use crate::project::{Project, Ran};

const IDENTITY: &str = "git config user.name Ann && git config user.email ann@example.org";

/// A project beside a private repository with one commit; without its own `.git`.
fn project() -> Project {
    let project = Project::initialised();
    project.write("src/a.ts", "export const a = 1;\n");
    project.write(".gitignore", ".tgp/\n");
    project
        .shell(&format!(
            "mkdir ../private && cd ../private && git init -q -b main && {IDENTITY} \
             && echo PRIVATE-CONTENT > secret.txt && git add -A && git commit -q -m PRIVATE-COMMIT"
        ))
        .expect_code(0);
    project
}

fn own_repository(project: &Project) {
    project
        .shell(&format!("git init -q -b main && {IDENTITY} && git add -A && git commit -q -m First"))
        .expect_code(0);
}

/// What the private repository has: branches, logs, files of git's.
fn private_state(project: &Project) -> String {
    project
        .shell("cd ../private && git for-each-ref && git reflog && find . -type f | sort | xargs md5sum")
        .expect_code(0)
        .stdout
}

/// Calls that read a repository, and those that write one.
const CALLS: [&[&str]; 7] = [
    &["call", "git_status", "{}"],
    &["call", "git_log", "{}"],
    &["call", "git_diff", r#"{"from": "HEAD"}"#],
    &["call", "git_commit", r#"{"message": "X", "branch": "evil"}"#, "--yes"],
    &["call", "git_commit", r#"{"message": "X"}"#, "--dry-run"],
    &["graph", "ingest"],
    &["call", "graph_query", r#"{"query": "MATCH (c:Commit) RETURN c.message", "commit": "HEAD"}"#],
];

fn assert_refused(project: &Project, title: &str, code: &str) {
    let before = private_state(project);
    for call in CALLS {
        let refused = project.run(call);
        let shown = format!("{}{}", refused.stdout, refused.stderr);
        assert!(shown.contains(code), "{title}: {call:?}: {refused:?}");
        assert!(!shown.contains("PRIVATE-"), "{title}: {call:?}: {refused:?}");
    }
    assert_eq!(private_state(project), before, "{title}");
    // Everything else works, the graph of the files as they are too.
    project.run(&["call", "fs_read", r#"{"path": "src/a.ts"}"#]).expect_code(0);
    let query = r#"{"query": "MATCH (f:File) RETURN f.path", "commit": "WORKTREE"}"#;
    let answer = project.run(&["call", "graph_query", query]).expect_code(0);
    assert!(answer.stdout.contains("src/a.ts"), "{title}: {answer:?}");
    assert!(!answer.stdout.contains("secret.txt"), "{title}: {answer:?}");
}

#[test]
fn bug_a_git_that_led_out_of_the_project_was_read_and_written() {
    let leads = [
        ("a file", "printf 'gitdir: %s/private/.git' \"$(dirname \"$PWD\")\" > .git"),
        ("a link", "ln -s ../private/.git .git"),
        (
            "commondir",
            "mkdir .git && echo 'ref: refs/heads/main' > .git/HEAD && echo ../../private/.git > .git/commondir",
        ),
        (
            "objects",
            "git init -q -b main && rm -rf .git/objects && ln -s ../../private/.git/objects .git/objects && cp ../private/.git/refs/heads/main .git/refs/heads/",
        ),
    ];
    for (title, lead) in leads {
        let project = project();
        project.shell(lead).expect_code(0);
        assert_refused(&project, title, "ECONFIG");
        let shown = project.run(&["trust", "--yes"]).expect_code(0);
        let text = format!("{}{}", shown.stdout, shown.stderr);
        assert!(text.contains("repository") && text.contains("private/.git"), "{title}: {text}");
        let log = project.run(&["call", "git_log", "{}"]).expect_code(0);
        assert!(log.stdout.contains("PRIVATE-COMMIT"), "{title}: {log:?}");
        // Another place is another question.
        project.shell("cp -R ../private ../other").expect_code(0);
        project.shell("rm -rf .git; ln -s ../other/.git .git").expect_code(0);
        assert!(project.run(CALLS[1]).stdout.contains("ECONFIG"), "{title}");
    }
}

#[test]
fn bug_borrowed_objects_and_links_among_the_files_of_git_were_followed() {
    let leads = [
        ("alternates", "ECONFIG", "echo ../../../private/.git/objects > .git/objects/info/alternates"),
        (
            "a chain of alternates",
            "ECONFIG",
            "mkdir -p store/info && echo \"$(dirname \"$PWD\")/private/.git/objects\" > store/info/alternates \
             && echo ../../store > .git/objects/info/alternates",
        ),
        ("an included file", "ECONFIG", "git config include.path ../../private/.git/config"),
        ("a log", "ESECURITY", "ln -sf ../../../private/secret.txt .git/logs/HEAD"),
        ("a branch", "ESECURITY", "ln -sf ../../../../private/.git/refs/heads/main .git/refs/heads/main"),
    ];
    for (title, code, lead) in leads {
        let project = project();
        own_repository(&project);
        project.run(CALLS[1]).expect_code(0);
        project.shell(lead).expect_code(0);
        assert_refused(&project, title, code);
    }
}

#[test]
fn variables_choose_no_repository() {
    let project = project();
    own_repository(&project);
    let private = project.path("private");
    let mut command = project.command(&["call", "git_log", "{}"]);
    command
        .env("GIT_DIR", private.join(".git"))
        .env("GIT_COMMON_DIR", private.join(".git"))
        .env("GIT_WORK_TREE", &private)
        .env("GIT_INDEX_FILE", private.join(".git/index"))
        .env("GIT_OBJECT_DIRECTORY", private.join(".git/objects"))
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", private.join(".git/objects"))
        .env("GIT_NAMESPACE", "private")
        .env("GIT_CEILING_DIRECTORIES", project.root());
    let log = project.finish(command).expect_code(0);
    assert!(log.stdout.contains("First") && !log.stdout.contains("PRIVATE-"), "{log:?}");
}

fn run_in(project: &Project, folder: &str, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    command.current_dir(project.path(folder));
    project.finish(command)
}

#[test]
fn a_confirmed_repository_covers_its_work_trees_and_submodules() {
    let project = project();
    own_repository(&project);
    // A person has not made this one a project.
    let made = "git worktree add -q ../tree -b other && git -c protocol.file.allow=always submodule --quiet add ../private sub";
    project.shell(made).expect_code(0);
    let log: &[&str] = &["call", "git_log", "{}"];
    assert!(run_in(&project, "tree", log).stdout.contains("ECONFIG"));
    // Now a person says so; `tgp init` of one that is there already changes nothing else.
    project.run(&["init"]).expect_code(0);
    let shown = run_in(&project, "tree", log).expect_code(0);
    assert!(shown.stdout.contains("First"), "{shown:?}");
    assert!(!shown.stderr.contains("not confirmed"), "{shown:?}");
    let sub = project.file("sub");
    let in_module = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.current_dir(&sub);
        project.finish(command)
    };
    in_module(&["init"]).expect_code(0);
    assert!(in_module(log).expect_code(0).stdout.contains("PRIVATE-COMMIT"));
    // A copy of the work tree is no work tree of it: the repository names the other one.
    project.shell("cp -R ../tree ../copy").expect_code(0);
    let copy = |arguments: &[&str]| run_in(&project, "copy", arguments);
    copy(&["init"]).expect_code(0);
    assert!(copy(log).stdout.contains("ECONFIG"));
    // A hash of another project confirms nothing, and its own does.
    let hash = copy(&["trust", "--print"]).expect_code(0).stdout.trim().to_owned();
    let with_hash = |folder: &str, hash: &str| {
        let mut command = project.command(log);
        command.current_dir(project.path(folder)).env("TGP_TRUST", hash);
        project.finish(command)
    };
    with_hash("copy", &hash).expect_code(0);
    project
        .shell("mkdir ../third && cp ../copy/.git ../third/.git && cp -R .tgp ../third/.tgp")
        .expect_code(0);
    assert!(with_hash("third", &hash).stdout.contains("ECONFIG"));
}

#[test]
fn init_confirms_no_repository_that_leads_out() {
    let project = project();
    project.shell("ln -s ../private/.git .git").expect_code(0);
    project.run(&["init"]).expect_code(0);
    assert!(project.run(&["call", "git_log", "{}"]).stdout.contains("ECONFIG"));
}

/// Ways of a tool repository into the private one.
const TOOL_LEADS: [&str; 4] = [
    "ln -s ../../private/.git .tgp/.git",
    "printf 'gitdir: ../../private/.git' > .tgp/.git",
    "git init -q .tgp && echo ../../../../private/.git/objects > .tgp/.git/objects/info/alternates",
    "git init -q .tgp && mkdir -p .tgp/.git/logs && ln -s ../../../../private/secret.txt .tgp/.git/logs/HEAD",
];

/// A decision is recorded before any kernel has looked at the tool repository.
#[test]
fn a_decision_does_not_put_the_head_of_the_audit_into_another_repository() {
    for lead in TOOL_LEADS {
        let project = project();
        project.write("tgp.config.ts", "export default { tdd: { mode: 'explore' } };\n");
        project.shell(&format!("rm -rf .tgp/.git && {lead}")).expect_code(0);
        let before = private_state(&project);
        let restart: &[&str] = &["audit", "restart", "--reason", "a test", "--yes"];
        for decision in [&["trust", "--yes"][..], restart] {
            let refused = project.run(decision);
            assert!(refused.code != Some(0) && refused.stderr.contains("ESECURITY"), "{lead}: {refused:?}");
            assert_eq!(private_state(&project), before, "{lead}: {decision:?}");
        }
        assert!(project.run(&["trust", "--list"]).expect_code(0).stdout.is_empty(), "{lead}");
    }
}

#[test]
fn init_records_that_it_confirms_a_repository() {
    let project = Project::empty();
    project.shell("git init -q").expect_code(0);
    let recorded = || project.run(&["audit", "tail"]).stdout.matches("trust_confirm").count();
    project.run(&["init"]).expect_code(0);
    assert_eq!(recorded(), 1);
    // Confirming the same again needs no record.
    project.run(&["init"]).expect_code(0);
    assert_eq!(recorded(), 1);
}

#[test]
fn bug_the_tool_repository_could_lead_to_another_one() {
    for lead in TOOL_LEADS {
        let project = project();
        project.shell(&format!("rm -rf .tgp/.git && {lead}")).expect_code(0);
        let before = private_state(&project);
        let content = "export default (n: number): number => n;\n";
        let refused = project.run(&["write", "tools/x.ts", "--content", content]);
        let shown = format!("{}{}", refused.stdout, refused.stderr);
        assert!(refused.code != Some(0) && shown.contains("ESECURITY"), "{lead}: {shown}");
        assert_eq!(private_state(&project), before, "{lead}");
    }
}
