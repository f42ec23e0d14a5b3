//! `git_status`, `git_diff`, `git_log` and `git_commit`: what they show, what they commit, and that nothing runs.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tgp_contract::{Code, Target};

use crate::project_support::BlockingPool;

/// Runs git without any configuration of this machine.
fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(directory)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

fn git(desk: &BlockingPool, arguments: &[&str]) -> String {
    git_in(&desk.file(""), arguments)
}

fn initialise(directory: &Path) {
    git_in(directory, &["init", "--quiet", "--initial-branch=main"]);
    git_in(directory, &["config", "user.name", "Ann"]);
    git_in(directory, &["config", "user.email", "ann@example.org"]);
    git_in(directory, &["config", "commit.gpgsign", "false"]);
}

/// A repository with one commit of `a.txt` and `b.txt`.
fn repository() -> BlockingPool {
    let desk = BlockingPool::new();
    initialise(&desk.file(""));
    desk.put("a.txt", "one\n");
    desk.put("b.txt", "two\n");
    desk.put(".gitignore", ".tgp/\n*.log\n");
    git(&desk, &["add", "--all"]);
    git(&desk, &["commit", "--quiet", "--message", "First"]);
    desk
}

fn paths(list: &Value) -> Vec<String> {
    let path = |entry: &Value| entry.get("path").unwrap_or(entry).as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(path).collect()
}

#[tokio::test]
async fn a_change_is_shown_previewed_exactly_and_committed() {
    let desk = repository();
    desk.put("a.txt", "one\nmore\n");
    desk.put("new/c.txt", "three\n");
    std::fs::remove_file(desk.file("b.txt")).unwrap();
    let state = desk.done("git_status", json!({})).await;
    assert_eq!(state["branch"], "main");
    assert_eq!(paths(&state["unstaged"]), ["a.txt", "b.txt"]);
    assert_eq!(state["unstaged"][1]["change"], "deleted");
    assert_eq!(state["untracked"], json!(["new/c.txt"]));
    let shown = desk.done("git_diff", json!({})).await;
    assert_eq!(shown["files"][0]["diff"], "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+more\n");
    let before = git(&desk, &["rev-parse", "HEAD"]);
    let objects = git(&desk, &["count-objects"]);
    let arguments = json!({ "message": "Second\n\nWith a body.\n" });
    let preview = desk.preview("git_commit", arguments.clone()).await.into_result().unwrap();
    assert_eq!(paths(&preview["changes"]), ["a.txt", "b.txt", "new/c.txt"]);
    assert_eq!((&preview["dry_run"], &preview["author"]), (&json!(true), &json!("Ann <ann@example.org>")));
    assert!(preview["changes"][0]["diff"].as_str().unwrap().contains("+more"), "{preview}");
    assert_eq!(git(&desk, &["rev-parse", "HEAD"]), before, "a dry run commits nothing");
    assert_eq!(git(&desk, &["count-objects"]), objects, "a dry run writes no object");
    let done = desk.done("git_commit", arguments).await;
    assert_eq!(done["tree"], preview["tree"], "the preview was exact");
    assert_eq!(git(&desk, &["rev-parse", "HEAD"]), done["commit"].as_str().unwrap());
    assert_eq!(git(&desk, &["rev-parse", "HEAD^{tree}"]), preview["tree"].as_str().unwrap());
    assert_eq!(git(&desk, &["rev-parse", "HEAD~1"]), before);
    assert_eq!(git(&desk, &["status", "--porcelain"]), "", "the index has followed");
    assert_eq!(
        git(&desk, &["log", "-1", "--format=%an <%ae>|%B"]),
        "Ann <ann@example.org>|Second\n\nWith a body."
    );
    git(&desk, &["fsck", "--strict"]);
    let targets = desk.last_record().targets;
    assert!(targets.contains(&Target::Branch { name: "main".to_owned() }), "{targets:?}");
    let listed = desk.done("git_log", json!({ "path": "a.txt" })).await;
    assert_eq!(listed["commits"].as_array().unwrap().len(), 2);
    let listed = desk.done("git_log", json!({ "path": "new" })).await;
    assert_eq!(listed["commits"][0]["message"], "Second\n\nWith a body.");
    let shown = desk.done("git_diff", json!({ "from": "HEAD~1", "to": "HEAD" })).await;
    assert_eq!(paths(&shown["files"]), ["a.txt", "b.txt", "new/c.txt"]);
    assert_eq!(desk.refused("git_commit", json!({ "message": "Again" })).await, Code::Validation);
}

#[tokio::test]
async fn only_named_paths_are_committed_and_what_is_staged_stays_staged() {
    let desk = repository();
    desk.put("a.txt", "changed\n");
    desk.put("b.txt", "staged\n");
    git(&desk, &["add", "b.txt"]);
    assert_eq!(paths(&desk.done("git_status", json!({})).await["staged"]), ["b.txt"]);
    desk.done("git_commit", json!({ "message": "A", "paths": ["a.txt"] })).await;
    assert_eq!(git(&desk, &["status", "--porcelain"]), "M  b.txt");
    assert_eq!(paths(&desk.done("git_diff", json!({ "staged": true })).await["files"]), ["b.txt"]);
    assert_eq!(
        desk.refused("git_commit", json!({ "message": "N", "paths": ["none"] })).await,
        Code::NotFound
    );
}

#[tokio::test]
async fn a_branch_of_its_own_leaves_head_and_index_as_they_are() {
    let desk = repository();
    desk.put("a.txt", "agent\n");
    let done = desk.done("git_commit", json!({ "message": "One", "branch": "agent/fix" })).await;
    assert_eq!(done["createsBranch"], true);
    assert_eq!(git(&desk, &["log", "--format=%s", "agent/fix"]), "One\nFirst");
    assert_eq!(git(&desk, &["log", "--format=%s"]), "First");
    assert_eq!(git(&desk, &["status", "--porcelain"]), " M a.txt", "the index has not moved");
    desk.put("a.txt", "agent again\n");
    desk.done("git_commit", json!({ "message": "Two", "branch": "agent/fix" })).await;
    assert_eq!(git(&desk, &["log", "--format=%s", "agent/fix"]), "Two\nOne\nFirst");
    assert_eq!(git(&desk, &["show", "agent/fix:a.txt"]), "agent again");
    // A branch that does not contain HEAD is not a place for changes of HEAD.
    git(&desk, &["checkout", "--quiet", "--orphan", "alone"]);
    git(&desk, &["commit", "--quiet", "--message", "Alone"]);
    desk.put("a.txt", "more\n");
    assert_eq!(
        desk.refused("git_commit", json!({ "message": "X", "branch": "agent/fix" })).await,
        Code::Conflict
    );
}

#[tokio::test]
async fn bug_a_branch_could_have_a_name_that_git_refuses_or_reads_as_something_else() {
    let desk = repository();
    desk.put("a.txt", "agent\n");
    let ids = ["0123456789abcdef0123456789ABCDEF01234567".to_owned(), "ab".repeat(32), "x".repeat(201)];
    let names = [
        "@",
        "-x",
        "HEAD",
        "head",
        "FETCH_HEAD",
        "ORIG_HEAD",
        "MERGE_HEAD",
        "OWN_HEAD",
        "AUTO_MERGE",
        "stash",
        "refs/heads/x",
        "refs/x",
        "heads/x",
        "tags/x",
        "remotes/x",
        "a..b",
        "a b",
        "",
        ".",
        ".a",
        "a/.b",
        "a.",
        "a.lock",
        "a.lock/b",
        "a@{1}",
        "@{-1}",
        "/a",
        "a/",
        "a//b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[b",
        "a\\b",
        "a\u{7f}b",
        "a\nb",
        "a\u{85}b",
        "a\u{200b}b",
        "a\u{202e}b",
    ];
    for name in names.into_iter().chain(ids.iter().map(String::as_str)) {
        let refused = desk.refused("git_commit", json!({ "message": "X", "branch": name })).await;
        assert_eq!(refused, Code::Validation, "{name:?}");
    }
    assert_eq!(git(&desk, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    for name in ["agent/fix-@", "fix_head", "deadbeef", "größe", "v1.2"] {
        desk.done("git_commit", json!({ "message": "One", "branch": name })).await;
        assert_eq!(git(&desk, &["log", "--format=%s", &format!("refs/heads/{name}")]), "One\nFirst");
        desk.put("a.txt", format!("for {name}\n"));
    }
}

#[tokio::test]
async fn hostile_configuration_and_attributes_run_nothing() {
    let desk = repository();
    let mark = desk.outside("mark");
    let program = desk.outside("program.sh");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
    let run = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    run(&program);
    let hooks = desk.file(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in ["pre-commit", "commit-msg", "post-commit", "post-index-change", "reference-transaction"] {
        std::fs::copy(&program, hooks.join(hook)).unwrap();
        run(&hooks.join(hook));
    }
    let program = program.display().to_string();
    desk.put("plain.md", "plain\n");
    desk.put("evil.txt", "evil\n");
    desk.put(".gitattributes", "*.txt filter=evil diff=evil\n");
    desk.put("a.txt", "changed\n");
    let config = std::fs::read_to_string(desk.file(".git/config")).unwrap();
    let hostile = format!(
        "{config}\n[core]\n\tfsmonitor = {program}\n\teditor = {program}\n\tpager = {program}\n\tsshCommand = {program}\n\
         \tworktree = /etc\n[filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n\trequired = true\n\
         [diff]\n\texternal = {program}\n[diff \"evil\"]\n\tcommand = {program}\n\ttextconv = {program}\n\
         [commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {program}\n[alias]\n\tstatus = !{program}\n"
    );
    std::fs::write(desk.file(".git/config"), hostile).unwrap();
    let state = desk.done("git_status", json!({})).await;
    assert_eq!(state["untracked"], json!([".gitattributes", "evil.txt", "plain.md"]), "{state}");
    desk.done("git_diff", json!({})).await;
    desk.done("git_diff", json!({ "from": "HEAD" })).await;
    desk.done("git_log", json!({})).await;
    // A filter would have to run, so the file is refused and not stored as it is.
    assert_eq!(desk.refused("git_commit", json!({ "message": "All" })).await, Code::Git);
    let done = desk.done("git_commit", json!({ "message": "Plain", "paths": ["plain.md"] })).await;
    let notes = done["notes"].to_string();
    assert!(notes.contains("not signed") && notes.contains("pre-commit"), "{notes}");
    assert!(!mark.exists(), "a program of the repository's configuration was started");
    assert!(!Path::new("/etc/plain.md").exists());
    std::fs::write(desk.file(".git/config"), config).unwrap();
    std::fs::remove_dir_all(&hooks).unwrap();
    assert_eq!(git(&desk, &["show", "--format=%s", "--stat", "--oneline", "HEAD"]).lines().count(), 3);
}

#[tokio::test]
async fn a_repository_in_the_middle_of_something_is_refused() {
    let desk = repository();
    desk.put("a.txt", "changed\n");
    let head = git(&desk, &["rev-parse", "HEAD"]);
    desk.put(".git/MERGE_HEAD", format!("{head}\n"));
    assert_eq!(desk.done("git_status", json!({})).await["operation"], "merge");
    assert_eq!(desk.refused("git_commit", json!({ "message": "X" })).await, Code::Conflict);
    std::fs::remove_file(desk.file(".git/MERGE_HEAD")).unwrap();
    git(&desk, &["checkout", "--quiet", "--detach"]);
    assert_eq!(desk.done("git_status", json!({})).await["branch"], Value::Null);
    assert_eq!(desk.refused("git_commit", json!({ "message": "X" })).await, Code::Conflict);
    desk.done("git_commit", json!({ "message": "Kept", "branch": "kept" })).await;
    assert_eq!(git(&desk, &["log", "-1", "--format=%s", "kept"]), "Kept");
    // Another process holds the index.
    git(&desk, &["checkout", "--quiet", "main"]);
    desk.put(".git/index.lock", "");
    assert_eq!(desk.refused("git_commit", json!({ "message": "X" })).await, Code::Git);
    assert_eq!(git(&desk, &["rev-parse", "main"]), head, "nothing was committed");
}

#[tokio::test]
async fn the_first_commit_a_work_tree_and_a_project_below_the_top_work() {
    let desk = BlockingPool::new();
    assert_eq!(desk.refused("git_status", json!({})).await, Code::NotFound);
    initialise(&desk.outside(""));
    std::fs::write(desk.outside("outside.txt"), "not the project's\n").unwrap();
    desk.put("a.txt", "one\n");
    assert_eq!(
        desk.refused("git_commit", json!({ "message": "X", "branch": "other" })).await,
        Code::Conflict
    );
    let done = desk.done("git_commit", json!({ "message": "First" })).await;
    assert_eq!((&done["parent"], paths(&done["changes"])), (&Value::Null, vec!["a.txt".to_owned()]));
    assert_eq!(git(&desk, &["ls-tree", "-r", "--name-only", "--full-tree", "HEAD"]), "project/a.txt");
}

/// The files of git are elsewhere, and `.git` is a file that says where.
#[tokio::test]
async fn a_work_tree_commits_to_its_own_branch_and_not_to_one_that_is_checked_out_elsewhere() {
    let desk = BlockingPool::new();
    let first = desk.outside("first");
    std::fs::create_dir(&first).unwrap();
    initialise(&first);
    git_in(&first, &["commit", "--quiet", "--allow-empty", "--message", "First"]);
    git_in(&first, &["worktree", "add", "--quiet", "-b", "side", desk.outside("tree").to_str().unwrap()]);
    std::fs::rename(desk.outside("tree/.git"), desk.file(".git")).unwrap();
    std::fs::write(first.join(".git/worktrees/tree/gitdir"), format!("{}\n", desk.file(".git").display()))
        .unwrap();
    desk.put("a.txt", "one\n");
    assert_eq!(desk.refused("git_status", json!({})).await, Code::Config, "not confirmed yet");
    let desk = desk.with_confirmed_repository();
    assert_eq!(desk.done("git_status", json!({})).await["branch"], "side");
    assert_eq!(desk.refused("git_commit", json!({ "message": "X", "branch": "main" })).await, Code::Conflict);
    desk.done("git_commit", json!({ "message": "On the side" })).await;
    assert_eq!(git_in(&first, &["log", "--format=%s", "side"]), "On the side\nFirst");
    assert_eq!(git_in(&first, &["log", "--format=%s", "main"]), "First");
    assert_eq!(git(&desk, &["status", "--porcelain", "--", "a.txt"]), "");
}

#[tokio::test]
async fn ignored_and_hidden_files_are_never_committed() {
    let desk = repository();
    desk.put("build.log", "ignored\n");
    desk.put(".env", "SECRET=1\n");
    desk.put("server.pem", "-----BEGIN KEY-----\n");
    desk.put(".tgp/.state/audit", "state\n");
    desk.put("a.txt", "changed\n");
    std::fs::create_dir_all(desk.file("nested/.git")).unwrap();
    desk.put("nested/x.txt", "of another repository\n");
    let state = desk.done("git_status", json!({})).await;
    assert_eq!(state["untracked"], json!([]), "{state}");
    assert_eq!(
        desk.refused("git_commit", json!({ "message": "X", "paths": ["build.log"] })).await,
        Code::Validation
    );
    let done = desk.done("git_commit", json!({ "message": "A" })).await;
    assert_eq!(paths(&done["changes"]), ["a.txt"]);
    // A credential that a person has committed stays out of sight.
    git(&desk, &["add", "--force", ".env"]);
    git(&desk, &["commit", "--quiet", "--message", "Oops"]);
    desk.put(".env", "SECRET=2\n");
    let shown = [
        desk.done("git_status", json!({})).await,
        desk.done("git_diff", json!({})).await,
        desk.done("git_diff", json!({ "from": "HEAD~1", "to": "HEAD" })).await,
    ];
    assert!(shown.iter().all(|answer| !answer.to_string().contains(".env")), "{shown:?}");
    assert_eq!(desk.refused("git_commit", json!({ "message": "X" })).await, Code::Validation);
}

#[tokio::test]
async fn files_that_changed_since_the_dry_run_are_a_conflict() {
    let desk = repository();
    desk.put("a.txt", "shown\n");
    let preview = desk.preview("git_commit", json!({ "message": "A" })).await.into_result().unwrap();
    desk.put("a.txt", "other\n");
    let arguments = json!({ "message": "A", "expected_tree": preview["tree"] });
    assert_eq!(desk.refused("git_commit", arguments.clone()).await, Code::Conflict);
    desk.put("a.txt", "shown\n");
    desk.done("git_commit", arguments).await;
}

#[tokio::test]
async fn line_endings_and_modes_are_stored_as_git_stores_them() {
    let desk = repository();
    desk.put(".gitattributes", "* text=auto\n*.bin -text\n");
    git(&desk, &["add", ".gitattributes"]);
    git(&desk, &["commit", "--quiet", "--message", "Attributes"]);
    desk.put("a.txt", "one\r\n");
    assert_eq!(
        desk.done("git_status", json!({})).await["unstaged"],
        json!([]),
        "only the line endings differ"
    );
    desk.put("a.txt", "one\r\ntwo\r\n");
    desk.put("x.bin", "one\r\ntwo\r\n");
    desk.put("run.sh", "#!/bin/sh\n");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(desk.file("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a.txt", desk.file("link")).unwrap();
    desk.done("git_commit", json!({ "message": "Both" })).await;
    assert_eq!(git(&desk, &["status", "--porcelain"]), "?? link", "links are left out");
    assert_eq!(git(&desk, &["cat-file", "-s", "HEAD:a.txt"]), "8");
    assert_eq!(git(&desk, &["cat-file", "-s", "HEAD:x.bin"]), "10");
    assert!(git(&desk, &["ls-tree", "HEAD", "run.sh"]).starts_with("100755"));
}

#[tokio::test]
async fn revisions_are_names_and_not_searches() {
    let desk = repository();
    for revision in [":/First", "HEAD^{/First}", "-x", "HEAD:a.txt", "HEAD..HEAD", "a b", ""] {
        assert_eq!(
            desk.refused("git_log", json!({ "from": revision })).await,
            Code::Validation,
            "{revision}"
        );
    }
    assert_eq!(desk.refused("git_log", json!({ "from": "none" })).await, Code::NotFound);
    assert_eq!(desk.refused("git_diff", json!({ "to": "HEAD" })).await, Code::Validation);
    for number in 0..3 {
        desk.put("a.txt", number.to_string());
        desk.done("git_commit", json!({ "message": format!("Number {number}") })).await;
    }
    let page = desk.done("git_log", json!({ "limit": 2, "offset": 1 })).await;
    assert_eq!((page["commits"].as_array().unwrap().len(), &page["nextOffset"]), (2, &json!(3)));
}
