//! What dead processes and power failures leave, and that the next boot repairs it.

use std::fs;
use std::time::{Duration, SystemTime};

use tgp_contract::Code;
use tgp_git::{HydrateOutcome, ToolRepo};

use crate::support::{World, arrived, assert_clean, forge, git, lines, options, read, refactor, write};

#[tokio::test]
async fn locks_and_garbage_of_the_dead_are_removed() {
    let world = World::with(&[("tools/a.ts", "a")]);
    arrived(world.kernel("agent").await.persist(forge("tools/b.ts", "b")).await);
    let root = world.root("agent");
    let locks =
        ["index.lock", "HEAD.lock", "refs/heads/main.lock", "shallow.lock", "refs/remotes/origin/main.lock"];
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    // Killed while it worked: our lock file still says so, and theirs are as young as that.
    for (is_ours, made) in [(true, SystemTime::now()), (false, long_ago)] {
        if is_ours {
            write(&root, ".state/git.lock", "busy\n");
        }
        for lock in locks {
            write(&root, &format!(".git/{lock}"), "");
            fs::File::open(root.join(".git").join(lock)).unwrap().set_modified(made).unwrap();
        }
        for (garbage, made) in [("objects/tmp_object_git2_x", made), ("objects/pack/tmp_pack_x", long_ago)] {
            write(&root, &format!(".git/{garbage}"), "half");
            fs::File::open(root.join(".git").join(garbage)).unwrap().set_modified(made).unwrap();
        }
        for garbage in [".state/git-writing-1-1", ".state/git-bench-1-1/config", ".state/git-new-1/.git/HEAD"]
        {
            write(&root, garbage, "half");
        }
        if !is_ours {
            // Without a kill the objects are looked through now and then.
            fs::File::open(root.join(".state/git-swept")).unwrap().set_modified(long_ago).unwrap();
        }
        let memory = ToolRepo::open(world.options("agent")).await.unwrap();
        let hydrated = memory.hydrate().await.unwrap();
        assert!(hydrated.repaired.iter().any(|note| note.contains("index.lock")), "{hydrated:?}");
        for lock in locks {
            assert!(!root.join(".git").join(lock).exists(), "{lock}");
        }
        for garbage in ["git-writing-1-1", "git-bench-1-1", "git-new-1"] {
            assert!(!root.join(".state").join(garbage).exists(), "{garbage}");
        }
        assert!(!root.join(".git/objects/tmp_object_git2_x").exists() || !is_ours);
        assert!(!root.join(".git/objects/pack/tmp_pack_x").exists());
        arrived(memory.persist(refactor("tools/b.ts", &format!("{is_ours}"))).await);
    }
    assert_clean(&root);
}

#[tokio::test]
async fn a_live_git_is_waited_for() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let lock = world.root("agent").join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let holder = {
        let lock = lock.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            fs::remove_file(lock).unwrap();
        })
    };
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    // The holder removed its lock itself: no other process removed it.
    holder.join().unwrap();
}

#[tokio::test]
async fn a_broken_index_is_made_again() {
    let world = World::with(&[("tools/a.ts", "a"), ("tools/b.ts", "b")]);
    world.kernel("agent").await;
    let root = world.root("agent");
    for index in ["", "DIRC garbage", "not an index at all, but long enough to have a header and more"] {
        write(&root, ".git/index", index);
        let memory = ToolRepo::open(world.options("agent")).await.unwrap();
        memory.hydrate().await.unwrap();
        arrived(memory.persist(refactor("tools/a.ts", &format!("a{}", index.len()))).await);
        assert_clean(&root);
    }
    fs::remove_file(root.join(".git/index")).unwrap();
    arrived(ToolRepo::open(world.options("agent")).await.unwrap().persist(forge("tools/c.ts", "c")).await);
    assert_clean(&root);
}

#[tokio::test]
async fn a_branch_that_leads_nowhere_is_restored() {
    // What the reference says, and whether the log can help.
    for (reference, has_log) in
        [("", true), ("1234567812345678123456781234567812345678\n", true), ("garbage\n", true), ("", false)]
    {
        let world = World::with(&[("tools/a.ts", "a")]);
        let memory = world.kernel("agent").await;
        let root = world.root("agent");
        arrived(memory.persist(forge("tools/b.ts", "b")).await);
        fs::rename(world.remote(), world.at("away")).unwrap();
        let last = memory.persist(forge("tools/c.ts", "c")).await.unwrap().commit;
        fs::rename(world.at("away"), world.remote()).unwrap();
        write(&root, ".git/refs/heads/main", reference);
        if !has_log {
            fs::remove_dir_all(root.join(".git/logs")).unwrap();
        }
        let memory = ToolRepo::open(world.options("agent")).await.unwrap();
        let hydrated = memory.hydrate().await.unwrap();
        assert!(hydrated.repaired.iter().any(|note| note.contains("branch `main`")), "{hydrated:?}");
        if has_log {
            assert_eq!(memory.status().await.unwrap().head.unwrap(), last);
        }
        // Nothing is lost either way: the file is still in the working tree.
        let synced = memory.sync().await.unwrap();
        assert_eq!(synced.why, None);
        assert_eq!(
            world.remote_tools(),
            ["tools/a.ts", "tools/b.ts", "tools/c.ts"],
            "{reference:?} {has_log}"
        );
        world.assert_consistent();
        assert_clean(&root);
        git(&root, &["fsck", "--strict"]);
    }
}

#[tokio::test]
async fn half_made_repositories_are_finished() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let root = world.root("agent");
    // An init that was killed before it made its folders.
    write(&root, ".git/config", "[core]\n");
    write(&root, "tools/mine.ts", "mine");
    let memory = world.kernel("agent").await;
    assert_eq!(read(&root, "tools/a.ts").unwrap(), "a");
    assert_eq!(read(&root, "tools/mine.ts").unwrap(), "mine");
    // A HEAD that the power failure emptied.
    write(&root, ".git/HEAD", "");
    let again = ToolRepo::open(world.options("agent")).await.unwrap();
    assert_eq!(again.hydrate().await.unwrap().outcome, HydrateOutcome::Unchanged);
    drop(memory);
    // Files of a repository that `git init` made and that was never used.
    let fresh = world.root("fresh");
    write(&fresh, ".gitignore", "/.state/\n");
    git(&fresh, &["init", "--quiet", "--initial-branch=other"]);
    arrived(world.kernel("fresh").await.persist(forge("tools/f.ts", "f")).await);
    assert_eq!(lines(&git(&fresh, &["branch", "--show-current"])), ["main"]);
}

#[tokio::test]
async fn another_branch_is_not_written_to() {
    let world = World::with(&[("tools/a.ts", "a")]);
    world.kernel("agent").await;
    let root = world.root("agent");
    git(&root, &["checkout", "--quiet", "-b", "experiment"]);
    let error = ToolRepo::open(world.options("agent")).await.unwrap_err();
    assert_eq!(error.code, Code::Git);
    assert!(error.message.contains("experiment") && error.help_of().unwrap().contains("git checkout main"));
    git(&root, &["checkout", "--quiet", "--detach"]);
    assert_eq!(ToolRepo::open(world.options("agent")).await.unwrap_err().code, Code::Git);
    git(&root, &["checkout", "--quiet", "main"]);
    arrived(ToolRepo::open(world.options("agent")).await.unwrap().persist(forge("tools/b.ts", "b")).await);
}

#[tokio::test]
async fn a_lock_that_is_held_is_waited_for_but_not_for_ever() {
    let world = World::new();
    let root = world.root("agent");
    let mut options = options(&root, None);
    options.timeouts.lock = Duration::from_millis(100);
    let memory = ToolRepo::open(options).await.unwrap();
    let held = fs::File::open(root.join(".state/git.lock")).unwrap();
    held.lock().unwrap();
    let error = memory.persist(forge("tools/a.ts", "a")).await.unwrap_err();
    assert_eq!(error.code, Code::Git);
    assert!(error.message.contains("another process"), "{error}");
    drop(held);
    memory.persist(forge("tools/a.ts", "a")).await.unwrap();
}
