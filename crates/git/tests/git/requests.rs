//! Gatekeeper mode: a branch for each tool, and what happens to it after a merge.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tgp_contract::{Code, ToolError};
use tgp_git::{ChangeSet, HydrateOutcome, Persisted, Provider, Strategy, ToolRepo};

use crate::api::{Server, gatekeeper};
use crate::support::{
    World, assert_clean, forge, git, lines, path, read, refactor, show, time_goes_by, write,
};

/// A person merges a branch as providers do by default, and removes it or not.
fn squash(world: &World, branch: &str, amend: Option<(&str, &str)>, removes: bool) {
    let clone = TempDir::new().unwrap();
    git(clone.path(), &["clone", "--quiet", "--", world.remote().to_str().unwrap(), "."]);
    git(clone.path(), &["merge", "--quiet", "--squash", &format!("origin/{branch}")]);
    if let Some((name, content)) = amend {
        fs::write(clone.path().join(name), content).unwrap();
        git(clone.path(), &["add", "--all"]);
    }
    git(clone.path(), &["commit", "--quiet", "--message", "Merged"]);
    git(clone.path(), &["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    if removes {
        git(clone.path(), &["push", "--quiet", "origin", &format!(":refs/heads/{branch}")]);
    }
}

/// Writes the file and persists it, as a kernel does.
async fn written(memory: &ToolRepo, root: &Path, work: ChangeSet) -> Result<Persisted, ToolError> {
    for file in &work.files {
        write(root, file.path.as_str(), std::str::from_utf8(file.content.as_ref().unwrap()).unwrap());
    }
    memory.persist(work).await
}

#[tokio::test]
async fn the_branch_waits_and_the_tool_can_be_run() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let server = Server::start(Provider::GitHub).await;
    let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
    memory.hydrate().await.unwrap();
    let before = git(&world.remote(), &["rev-parse", "main"]);
    for tool in ["tools/x.ts", "tools/math/fib.ts"] {
        memory.persist(forge(tool, tool)).await.unwrap();
    }
    let root = world.root("agent");
    assert_eq!(git(&world.remote(), &["rev-parse", "main"]), before);
    assert_eq!(git(&root, &["rev-parse", "main"]), before);
    assert_eq!(read(&root, "tools/math/fib.ts").unwrap(), "tools/math/fib.ts");
    // One commit on top of the remote's branch, with nothing but the tool: requests do not conflict.
    for (branch, tool) in [("feat/x", "tools/x.ts"), ("feat/math-fib", "tools/math/fib.ts")] {
        let changed = git(&world.remote(), &["diff", "--name-only", "main", branch]);
        assert_eq!(changed.trim(), tool);
        assert_eq!(git(&world.remote(), &["rev-list", "--count", &format!("main..{branch}")]).trim(), "1");
    }
    squash(&world, "feat/x", None, true);
    squash(&world, "feat/math-fib", None, true);
    let hydrated = memory.hydrate().await.unwrap();
    assert!(matches!(hydrated.outcome, HydrateOutcome::Updated { .. }));
    assert_eq!(hydrated.conflicts, []);
    assert_clean(&root);
}

#[tokio::test]
async fn after_a_merge_the_next_change_starts_anew() {
    for removes in [true, false] {
        let world = World::with(&[("tools/a.ts", "a")]);
        let server = Server::start(Provider::GitHub).await;
        let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
        memory.persist(forge("tools/x.ts", "1")).await.unwrap();
        squash(&world, "feat/x", None, removes);
        memory.hydrate().await.unwrap();
        let persisted = memory.persist(refactor("tools/x.ts", "2")).await.unwrap();
        assert!(persisted.pushed, "{persisted:?}");
        let log = git(&world.remote(), &["log", "--format=%s", "main..feat/x"]);
        assert_eq!(lines(&log), ["Refactor: tools/x.ts"], "only what is new (branch removed: {removes})");
        assert_eq!(show(&world.remote(), "feat/x", "tools/x.ts").unwrap(), "2");
        // Merged as it is: there is nothing left to ask for.
        squash(&world, "feat/x", None, removes);
        let persisted = memory.persist(refactor("tools/x.ts", "2")).await.unwrap();
        assert!(persisted.pushed && persisted.why.unwrap().contains("has it already"));
    }
}

#[tokio::test]
async fn what_the_reviewer_changed_is_what_stands() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let server = Server::start(Provider::GitHub).await;
    let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
    memory.persist(forge("tools/x.ts", "ours")).await.unwrap();
    squash(&world, "feat/x", Some(("tools/x.ts", "reviewed")), true);
    let hydrated = memory.hydrate().await.unwrap();
    let root = world.root("agent");
    assert_eq!(hydrated.conflicts, [], "ours is on its branch, and the review decided");
    assert_eq!(read(&root, "tools/x.ts").unwrap(), "reviewed");
    assert_eq!(show(&root, "feat/x", "tools/x.ts").unwrap(), "ours");
    // Work that continues from the old version is a conflict, and is kept.
    let error = memory.persist(refactor("tools/x.ts", "ours, further")).await.unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    let branch = error.details["branch"].as_str().unwrap();
    assert_eq!(show(&root, branch, "tools/x.ts").unwrap(), "ours, further");
    // From there on the request starts from the reviewed version.
    assert!(memory.persist(refactor("tools/x.ts", "reviewed, further")).await.unwrap().pushed);
    assert_eq!(git(&world.remote(), &["rev-list", "--count", "main..feat/x"]).trim(), "1");
}

#[tokio::test]
async fn a_branch_that_others_pushed_to_is_built_upon() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let server = Server::start(Provider::GitLab).await;
    let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::GitLab, &server)).await.unwrap();
    memory.persist(forge("tools/x.ts", "1")).await.unwrap();
    let clone = TempDir::new().unwrap();
    git(
        clone.path(),
        &["clone", "--quiet", "--branch", "feat/x", "--", world.remote().to_str().unwrap(), "."],
    );
    write(clone.path(), "tools/x.test.ts", "a test of the reviewer");
    git(clone.path(), &["add", "--all"]);
    git(clone.path(), &["commit", "--quiet", "--message", "Add a test"]);
    git(clone.path(), &["push", "--quiet", "origin", "feat/x"]);
    assert!(memory.persist(refactor("tools/x.ts", "2")).await.unwrap().pushed);
    let log = lines(&git(&world.remote(), &["log", "--format=%s", "main..feat/x"]));
    assert_eq!(log, ["Refactor: tools/x.ts", "Add a test", "Forge: tools/x.ts"], "nothing was forced");
    assert_eq!(show(&world.remote(), "feat/x", "tools/x.test.ts").unwrap(), "a test of the reviewer");
}

#[tokio::test]
async fn offline_requests_wait_and_go_out_with_sync() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let server = Server::start(Provider::Bitbucket).await;
    let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::Bitbucket, &server)).await.unwrap();
    memory.hydrate().await.unwrap();
    let root = world.root("agent");
    fs::rename(world.remote(), world.at("away")).unwrap();
    let persisted = memory.persist(forge("tools/x.ts", "1")).await.unwrap();
    assert!(!persisted.pushed && persisted.why.is_some());
    fs::rename(world.at("away"), world.remote()).unwrap();
    write(&root, "tools/left.ts", "left over");
    let synced = memory.sync().await.unwrap();
    let committed: Vec<&str> = synced.committed.iter().map(tgp_contract::RelativePath::as_str).collect();
    assert_eq!(committed, ["tools/left.ts"], "the other one is on its branch already");
    assert_eq!((synced.requests.len(), synced.pushed, synced.why), (2, 2, None));
    assert_eq!(show(&world.remote(), "feat/left", "tools/left.ts").unwrap(), "left over");
    assert_eq!(world.remote_tools(), ["tools/a.ts"], "the branch is for people to move");
    let again = memory.sync().await.unwrap();
    assert_eq!((again.committed, again.requests), (vec![], vec![]));
}

#[tokio::test]
async fn without_a_provider_the_request_is_opened_by_hand() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let mut options = world.options("agent");
    options.strategy = Strategy::Request;
    let memory = ToolRepo::open(options).await.unwrap();
    let persisted = memory.persist(forge("tools/x.ts", "x")).await.unwrap();
    assert!(persisted.pushed);
    assert_eq!(persisted.why.unwrap(), "branch `feat/x` is pushed; open the request for `main` by hand");
    assert_eq!(show(&world.remote(), "feat/x", "tools/x.ts").unwrap(), "x");
}

#[tokio::test]
async fn bug_a_branch_that_is_pushed_is_delivered_when_people_open_requests() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let mut options = world.options("agent");
    options.strategy = Strategy::Request;
    let memory = ToolRepo::open(options).await.unwrap();
    memory.hydrate().await.unwrap();
    assert!(memory.persist(forge("tools/x.ts", "x")).await.unwrap().pushed);
    assert_eq!(memory.status().await.unwrap().pending, Vec::<String>::new());
    write(&world.root("agent"), "tools/left.ts", "left over");
    let synced = memory.sync().await.unwrap();
    assert_eq!(synced.pushed, 1, "only what moved");
    assert_eq!(synced.why.unwrap(), "branch `feat/left` is pushed; open the request for `main` by hand");
    for _ in 0..2 {
        let synced = memory.sync().await.unwrap();
        assert_eq!((synced.pushed, synced.why, synced.committed), (0, None, vec![]));
    }
    // A mark of the time when there was a provider is not waited for either.
    git(&world.root("agent"), &["update-ref", "refs/tgp/pending/feat/x", "feat/x"]);
    let synced = memory.sync().await.unwrap();
    assert_eq!((synced.pushed, synced.why), (0, None));
    assert_eq!(memory.status().await.unwrap().pending, Vec::<String>::new());
}

#[tokio::test]
async fn bug_a_squash_merge_of_several_commits_is_no_conflict() {
    for (removes, hydrates, merged_early) in [
        (true, false, false),
        (true, true, false),
        (false, false, false),
        (false, true, false),
        (true, true, true),
    ] {
        let world = World::with(&[("tools/b.ts", "b")]);
        let server = Server::start(Provider::GitHub).await;
        let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
        let root = world.root("agent");
        memory.hydrate().await.unwrap();
        written(&memory, &root, forge("tools/a.ts", "1")).await.unwrap();
        written(&memory, &root, refactor("tools/a.ts", "2")).await.unwrap();
        if merged_early {
            // A third one comes too late for the merge, and is made here while the remote is away.
            squash(&world, "feat/a", None, removes);
            fs::rename(world.remote(), world.at("away")).unwrap();
            assert!(!written(&memory, &root, refactor("tools/a.ts", "2b")).await.unwrap().pushed);
            fs::rename(world.at("away"), world.remote()).unwrap();
            time_goes_by(&root);
        } else {
            squash(&world, "feat/a", None, removes);
        }
        if hydrates {
            assert_eq!(memory.hydrate().await.unwrap().conflicts, []);
        }
        let persisted = written(&memory, &root, refactor("tools/a.ts", "3")).await.unwrap();
        assert!(persisted.pushed, "{persisted:?}");
        assert_eq!(show(&world.remote(), "feat/a", "tools/a.ts").unwrap(), "3");
        let log = lines(&git(&world.remote(), &["log", "--format=%s", "main..feat/a"]));
        assert_eq!(log.len(), 1 + usize::from(merged_early), "only what is new: {log:?}");
        assert_eq!(memory.status().await.unwrap().kept, Vec::<String>::new());
    }
}

#[tokio::test]
async fn bug_the_history_of_a_tool_has_what_its_request_has() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let server = Server::start(Provider::GitHub).await;
    let memory = ToolRepo::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
    let root = world.root("agent");
    memory.hydrate().await.unwrap();
    written(&memory, &root, forge("tools/b.ts", "1")).await.unwrap();
    fs::rename(world.remote(), world.at("away")).unwrap();
    written(&memory, &root, refactor("tools/b.ts", "2")).await.unwrap();
    let versions = async |name: &str| -> Vec<(String, Option<bool>)> {
        let history = memory.history(Some(&path(name)), 10).await.unwrap();
        history.versions.into_iter().map(|version| (version.subject, version.pushed)).collect()
    };
    let row = |subject: &str, pushed| (subject.to_owned(), Some(pushed));
    let open = [row("Refactor: tools/b.ts", false), row("Forge: tools/b.ts", true)];
    assert_eq!(versions("tools/b.ts").await, open);
    assert_eq!(versions("tools/a.ts").await, [row("Start", true)]);
    assert_eq!(memory.history(Some(&path("tools/b.ts")), 1).await.unwrap().versions.len(), 1);
    fs::rename(world.at("away"), world.remote()).unwrap();
    memory.sync().await.unwrap();
    assert_eq!(versions("tools/b.ts").await, [row("Refactor: tools/b.ts", true), open[1].clone()]);
    // A merge is reported once.
    squash(&world, "feat/b", None, true);
    memory.hydrate().await.unwrap();
    assert_eq!(versions("tools/b.ts").await, [row("Merged", true)]);
}
