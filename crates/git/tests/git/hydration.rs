//! Taking in what the remote has: clones, updates, local commits on top, and remotes that are not there.

use std::fs;

use tgp_contract::Code;
use tgp_git::{HydrateOutcome, Remote, ToolRepo};

use crate::support::{
    World, arrived, assert_clean, assert_consistent, forge, git, lines, options, read, show, time_goes_by,
    write,
};

#[tokio::test]
async fn a_clone_is_shallow_and_of_one_branch_and_can_push() {
    let world = World::with(&[("tools/a.ts", "a")]);
    world.person("Second", &[("tools/b.ts", "b")]);
    world.person("Third", &[("tools/c.ts", "c")]);
    git(&world.remote(), &["branch", "other", "main~1"]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    assert_eq!(lines(&git(&root, &["log", "--format=%s"])), ["Third"]);
    let references = git(&root, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(lines(&references), ["refs/heads/main", "refs/remotes/origin/main"]);
    assert!(memory.status().await.unwrap().shallow);
    arrived(memory.persist(forge("tools/d.ts", "d")).await);
    world.person("Fifth", &[("tools/e.ts", "e")]);
    assert!(matches!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Updated { .. }));
    assert_eq!(world.remote_log(), ["Fifth", "Forge: tools/d.ts", "Third", "Second", "Start"]);
    assert_eq!(lines(&git(&root, &["log", "--format=%s"])), ["Fifth", "Forge: tools/d.ts", "Third"]);
    assert_clean(&root);
    git(&root, &["fsck", "--strict"]);
    git(&world.remote(), &["fsck", "--strict"]);
}

#[tokio::test]
async fn nothing_is_fetched_when_nothing_moved() {
    let world = World::with(&[("tools/a.ts", "a")]);
    world.kernel("agent").await;
    let log = world.at("log");
    let mut options = world.options("agent");
    options.surroundings.path = world.logged_git(&log);
    let memory = ToolRepo::open(options).await.unwrap();
    let commands = || {
        let text = fs::read_to_string(&log).unwrap();
        fs::remove_file(&log).unwrap();
        let known = ["ls-remote", "fetch", "push", "clone"];
        let word = |line: &str| line.split(' ').find(|word| known.contains(word)).unwrap().to_owned();
        text.lines().map(word).collect::<Vec<String>>()
    };
    assert_eq!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Unchanged);
    assert_eq!(commands(), ["ls-remote"]);
    world.person("Second", &[("tools/b.ts", "b")]);
    assert!(matches!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Updated { .. }));
    assert_eq!(commands(), ["ls-remote", "fetch"]);
    arrived(memory.persist(forge("tools/c.ts", "c")).await);
    assert_eq!(commands(), ["push"]);
    // Our own push is not new.
    assert_eq!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Unchanged);
    assert_eq!(commands(), ["ls-remote"]);
}

#[tokio::test]
async fn an_unborn_remote_is_filled_by_the_first_push() {
    let world = World::new();
    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    assert_eq!(memory.hydrate().await.unwrap().outcome, HydrateOutcome::Local);
    arrived(memory.persist(forge("tools/a.ts", "a")).await);
    assert_eq!(world.remote_log(), ["Forge: tools/a.ts"]);
    world.assert_consistent();
}

#[tokio::test]
async fn an_unreachable_remote_is_an_error_only_when_nothing_is_here() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    fs::rename(world.remote(), world.at("away")).unwrap();
    let HydrateOutcome::Offline { why } = memory.hydrate().await.unwrap().outcome else { panic!("offline") };
    assert!(why.contains("remote.git") && !why.contains('\n'), "{why}");
    let other = ToolRepo::open(world.options("other")).await.unwrap();
    let error = other.hydrate().await.unwrap_err();
    assert_eq!(error.code, Code::Git);
    assert!(error.help_of().unwrap().contains("git.url"), "{error:?}");
    // It comes back, and the same repository continues.
    fs::rename(world.at("away"), world.remote()).unwrap();
    assert!(matches!(other.hydrate().await.unwrap().outcome, HydrateOutcome::Cloned { .. }));
}

#[tokio::test]
async fn unrelated_histories_become_one() {
    let world = World::with(&[("tools/theirs.ts", "theirs"), ("tools/both.ts", "same")]);
    let root = world.root("agent");
    let local = ToolRepo::open(options(&root, None)).await.unwrap();
    local.persist(forge("tools/ours.ts", "ours")).await.unwrap();
    local.persist(forge("tools/both.ts", "same")).await.unwrap();
    let dated = git(&root, &["log", "--reverse", "--format=%at %an %s"]);
    let dated = dated.lines().next().unwrap();

    let memory = world.kernel("agent").await;
    let synced = memory.sync().await.unwrap();
    assert_eq!((synced.pushed, synced.conflicts.len(), synced.why), (1, 0, None));
    // The commit whose change the remote has already became empty and is gone; the other is as it was.
    assert_eq!(world.remote_log(), ["Forge: tools/ours.ts", "Start"]);
    assert_eq!(git(&world.remote(), &["log", "-1", "--format=%at %an %s", "main"]).trim(), dated);
    assert_eq!(world.remote_tools(), ["tools/both.ts", "tools/ours.ts", "tools/theirs.ts"]);
    world.assert_consistent();
    assert_clean(&root);
}

#[tokio::test]
async fn files_that_were_there_before_the_first_hydration_stay() {
    let world = World::with(&[("tools/a.ts", "theirs"), (".gitignore", "/.state/\n"), ("meta.json", "{}")]);
    let root = world.root("agent");
    for (name, content) in [
        ("tools/mine.ts", "mine"),
        ("tools/a.ts", "my draft"),
        (".gitignore", "/.state/\n"),
        ("meta.json", "old"),
    ] {
        write(&root, name, content);
    }
    git(&root, &["init", "--quiet", "--initial-branch=main", "--template="]);
    let memory = ToolRepo::open(world.options("agent")).await.unwrap();
    let hydrated = memory.hydrate().await.unwrap();
    assert!(matches!(hydrated.outcome, HydrateOutcome::Cloned { .. }));
    assert_eq!(read(&root, "tools/mine.ts").unwrap(), "mine");
    assert_eq!(read(&root, "tools/a.ts").unwrap(), "theirs");
    assert_eq!(read(&root, "meta.json").unwrap(), "{}", "a derived file is nobody's draft");
    let [conflict] = hydrated.conflicts.as_slice() else { panic!("{hydrated:?}") };
    assert_eq!(conflict.path.as_str(), "tools/a.ts");
    assert_eq!(show(&root, &conflict.branch, "tools/a.ts").unwrap(), "my draft");
    assert_eq!(git(&root, &["status", "--porcelain"]), "?? tools/mine.ts\n");
}

#[tokio::test]
async fn local_commits_are_carried_over_the_remotes() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    fs::rename(world.remote(), world.at("away")).unwrap();
    for number in 0..3 {
        let name = format!("tools/offline{number}.ts");
        let persisted = memory.persist(forge(&name, "x")).await.unwrap();
        assert!(!persisted.pushed && persisted.why.is_some());
    }
    fs::rename(world.at("away"), world.remote()).unwrap();
    time_goes_by(&root);
    let theirs = world.person("Meanwhile", &[("tools/b.ts", "b")]);
    let hydrated = memory.hydrate().await.unwrap();
    assert!(matches!(hydrated.outcome, HydrateOutcome::Updated { .. }));
    assert_eq!(
        lines(&git(&root, &["log", "--format=%s", &format!("{theirs}..main")])),
        ["Forge: tools/offline2.ts", "Forge: tools/offline1.ts", "Forge: tools/offline0.ts"]
    );
    for revision in ["main", "main~1", "main~2"] {
        assert_consistent(&root, revision);
    }
    assert_clean(&root);
    assert_eq!(memory.status().await.unwrap().unpushed, 3);
    assert_eq!(memory.sync().await.unwrap().pushed, 3);
    assert_eq!(memory.status().await.unwrap().unpushed, 0);
}

#[tokio::test]
async fn a_rewritten_remote_is_followed_and_the_old_history_is_kept() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    let old = git(&world.remote(), &["rev-parse", "main"]).trim().to_owned();
    git(&world.remote(), &["update-ref", "refs/heads/main", "main~1"]);
    // A remote that only went back is not followed: what it lost is delivered again.
    memory.sync().await.unwrap();
    assert_eq!(git(&world.remote(), &["rev-parse", "main"]).trim(), old);
    git(&world.remote(), &["update-ref", "refs/heads/main", "main~1"]);
    world.person("Another way", &[("tools/c.ts", "c")]);
    let hydrated = memory.hydrate().await.unwrap();
    let root = world.root("agent");
    assert_eq!(read(&root, "tools/b.ts"), None);
    assert_eq!(read(&root, "tools/c.ts").unwrap(), "c");
    let kept = memory.status().await.unwrap().kept;
    assert_eq!(git(&root, &["rev-parse", &kept[0]]).trim(), old, "{hydrated:?}");
    assert_clean(&root);
}

#[tokio::test]
async fn any_path_can_hold_the_remote_and_the_tools() {
    let world =
        World::with(&[("tools/-dash.ts", "1"), ("tools/ein Größe.ts", "2"), ("tools/deep/er/x.ts", "3")]);
    let odd = world.at("-re mote ü;$(x)'.git");
    fs::rename(world.remote(), &odd).unwrap();
    let root = world.root("agent one's");
    for remote in [odd.to_str().unwrap().to_owned(), "../-re mote ü;$(x)'.git".to_owned()] {
        let mut options = options(&root, None);
        options.remote = Some(Remote::Url(remote));
        let memory = ToolRepo::open(options).await.unwrap();
        memory.hydrate().await.unwrap();
        arrived(memory.persist(forge("tools/日本 -x.ts", "4")).await);
    }
    assert_eq!(read(&root, "tools/ein Größe.ts").unwrap(), "2");
    assert_eq!(show(&odd, "main", "tools/日本 -x.ts").unwrap(), "4");
    assert_clean(&root);
    assert_consistent(&odd, "main");
}
