//! Gatekeeper mode: a branch for each tool, and what becomes of it when somebody merges.

use std::fs;

use tempfile::TempDir;
use tgp_contract::Code;
use tgp_git::{HydrateOutcome, Memory, Provider, Strategy};

use crate::api::{Server, gatekeeper};
use crate::support::{World, assert_clean, forge, git, lines, read, refactor, show, write};

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

#[tokio::test]
async fn the_branch_waits_and_the_tool_can_be_run() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let server = Server::start(Provider::GitHub).await;
    let memory = Memory::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
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
        let memory = Memory::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
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
    let memory = Memory::open(gatekeeper(&world, "agent", Provider::GitHub, &server)).await.unwrap();
    memory.persist(forge("tools/x.ts", "ours")).await.unwrap();
    squash(&world, "feat/x", Some(("tools/x.ts", "reviewed")), true);
    let hydrated = memory.hydrate().await.unwrap();
    let root = world.root("agent");
    assert_eq!(hydrated.conflicts, [], "ours is on its branch, and the review decided");
    assert_eq!(read(&root, "tools/x.ts").unwrap(), "reviewed");
    assert_eq!(show(&root, "feat/x", "tools/x.ts").unwrap(), "ours");
    // Work that goes on from the old version is a conflict, and is kept.
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
    let memory = Memory::open(gatekeeper(&world, "agent", Provider::GitLab, &server)).await.unwrap();
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
    let memory = Memory::open(gatekeeper(&world, "agent", Provider::Bitbucket, &server)).await.unwrap();
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
    let memory = Memory::open(options).await.unwrap();
    let persisted = memory.persist(forge("tools/x.ts", "x")).await.unwrap();
    assert!(persisted.pushed);
    assert_eq!(persisted.why.unwrap(), "branch `feat/x` is pushed; open the request by hand");
    assert_eq!(show(&world.remote(), "feat/x", "tools/x.ts").unwrap(), "x");
}
