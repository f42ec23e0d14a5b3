//! The same tool changed on both sides: the remote's version stays, ours is kept, and both are named.

use std::fs;

use tgp_contract::{Code, ToolError};
use tgp_git::{ChangeSet, CommitKind, PersistFile, ToolRepo};

use crate::support::{
    World, arrived, assert_clean, assert_consistent, forge, git, path, read, refactor, removal, show, write,
};

/// What the error of a conflict names: branch, our commit, their commit.
#[track_caller]
fn names(error: &ToolError, at: &str) -> (String, String, String) {
    assert_eq!(error.code, Code::Conflict, "{error:?}");
    let detail = |key: &str| error.details[key].as_str().unwrap().to_owned();
    let (branch, ours, theirs) = (detail("branch"), detail("ours"), detail("theirs"));
    assert_eq!(detail("path"), at);
    for word in [at, branch.as_str(), &ours[..8], &theirs[..8]] {
        assert!(error.message.contains(word), "{word} is not in {}", error.message);
    }
    (branch, ours, theirs)
}

#[tokio::test]
async fn the_loser_is_named_and_kept() {
    let world = World::with(&[("tools/x.ts", "base"), ("tools/y.ts", "base")]);
    let (a, b) = (world.kernel("a").await, world.kernel("b").await);
    arrived(a.persist(refactor("tools/x.ts", "from a")).await);
    let theirs = git(&world.remote(), &["rev-parse", "main"]);
    let root = world.root("b");
    write(&root, "tools/x.ts", "from b");
    let error = b.persist(refactor("tools/x.ts", "from b")).await.unwrap_err();
    let (branch, ours, named) = names(&error, "tools/x.ts");
    assert_eq!(named, theirs.trim());
    assert!(branch.starts_with("conflict/x-"), "{branch}");
    for repository in [&root, &world.remote()] {
        assert_eq!(git(repository, &["rev-parse", &format!("refs/heads/{branch}")]).trim(), ours);
        assert_eq!(show(repository, &branch, "tools/x.ts").unwrap(), "from b");
    }
    assert_eq!(read(&root, "tools/x.ts").unwrap(), "from a");
    assert_eq!(world.remote_file("tools/x.ts").unwrap(), "from a");
    assert_clean(&root);
    // A writer that has seen the other version can continue from it.
    arrived(b.persist(refactor("tools/x.ts", "from b, after a")).await);
    world.assert_consistent();
    assert_eq!(a.status().await.unwrap().kept, Vec::<String>::new());
    assert_eq!(b.status().await.unwrap().kept, [branch]);
}

#[tokio::test]
async fn each_kind_of_clash_is_found() {
    // Ours, theirs, and whether it is a conflict; an empty content is a removal.
    for (ours, theirs, is_conflict) in [
        (Some("ours"), Some("theirs"), true),
        (Some("ours"), None, true),
        (None, Some("theirs"), true),
        (Some("same"), Some("same"), false),
        (None, None, false),
    ] {
        let world = World::with(&[("tools/x.ts", "base"), ("tools/other.ts", "o")]);
        let memory = world.kernel("agent").await;
        world.person("Theirs", &[("tools/x.ts", theirs.unwrap_or_default())]);
        let work = ours.map_or_else(|| removal("tools/x.ts"), |content| refactor("tools/x.ts", content));
        let persisted = memory.persist(work).await;
        let root = world.root("agent");
        if is_conflict {
            let (branch, ..) = names(&persisted.unwrap_err(), "tools/x.ts");
            assert_eq!(show(&root, &branch, "tools/x.ts").as_deref(), ours);
        } else {
            arrived(persisted);
            assert_eq!(world.remote_log(), ["Theirs", "Start"], "the same change needs no second commit");
        }
        assert_eq!(read(&root, "tools/x.ts").as_deref(), theirs);
        assert_eq!(world.remote_file("tools/x.ts").as_deref(), theirs);
        assert_clean(&root);
    }
}

#[tokio::test]
async fn a_file_against_a_folder_is_a_conflict_too() {
    for (ours, theirs) in [("tools/x", "tools/x/y.ts"), ("tools/x/y.ts", "tools/x")] {
        let world = World::with(&[("tools/other.ts", "o")]);
        let memory = world.kernel("agent").await;
        world.person("Theirs", &[(theirs, "theirs")]);
        let (branch, ..) = names(&memory.persist(forge(ours, "ours")).await.unwrap_err(), ours);
        let root = world.root("agent");
        assert_eq!(show(&root, &branch, ours).unwrap(), "ours");
        assert_eq!(read(&root, theirs).unwrap(), "theirs");
        assert_clean(&root);
    }
}

#[tokio::test]
async fn a_folder_can_become_a_file_where_both_agree() {
    let world = World::with(&[("tools/x/y.ts", "y"), ("tools/z.ts", "z")]);
    let memory = world.kernel("agent").await;
    let files = vec![
        PersistFile { path: path("tools/x/y.ts"), content: None },
        PersistFile { path: path("tools/x"), content: Some(b"file".to_vec()) },
    ];
    arrived(memory.persist(ChangeSet { files, verb: CommitKind::Refactor }).await);
    let other = world.kernel("other").await;
    assert_eq!(read(&world.root("other"), "tools/x").unwrap(), "file");
    let files = vec![
        PersistFile { path: path("tools/x"), content: None },
        PersistFile { path: path("tools/x/y.ts"), content: Some(b"again".to_vec()) },
    ];
    arrived(other.persist(ChangeSet { files, verb: CommitKind::Refactor }).await);
    memory.hydrate().await.unwrap();
    assert_eq!(read(&world.root("agent"), "tools/x/y.ts").unwrap(), "again");
    assert_clean(&world.root("agent"));
    world.assert_consistent();
}

#[tokio::test]
async fn of_several_files_only_the_clashing_one_is_lost() {
    let world = World::with(&[("tools/x.ts", "base")]);
    let memory = world.kernel("agent").await;
    world.person("Theirs", &[("tools/x.ts", "theirs")]);
    let files = ["tools/x.ts", "tools/new.ts"]
        .map(|name| PersistFile { path: path(name), content: Some(b"ours".to_vec()) });
    let work = ChangeSet { files: files.to_vec(), verb: CommitKind::Forge };
    names(&memory.persist(work).await.unwrap_err(), "tools/x.ts");
    assert_eq!(world.remote_file("tools/new.ts").unwrap(), "ours", "the rest is delivered");
    assert_eq!(world.remote_file("tools/x.ts").unwrap(), "theirs");
    world.assert_consistent();
}

#[tokio::test]
async fn conflicts_of_offline_work_are_reported_and_the_last_version_is_kept() {
    let world = World::with(&[("tools/x.ts", "base"), ("tools/y.ts", "base")]);
    let memory = world.kernel("agent").await;
    fs::rename(world.remote(), world.at("away")).unwrap();
    for work in [
        refactor("tools/x.ts", "one"),
        refactor("tools/y.ts", "mine"),
        refactor("tools/x.ts", "two"),
        forge("tools/z.ts", "z"),
    ] {
        memory.persist(work).await.unwrap();
    }
    fs::rename(world.at("away"), world.remote()).unwrap();
    world.person("Theirs", &[("tools/x.ts", "theirs")]);
    let synced = memory.sync().await.unwrap();
    let [conflict] = synced.conflicts.as_slice() else { panic!("{synced:?}") };
    assert_eq!(conflict.path.as_str(), "tools/x.ts");
    assert_eq!((synced.pulled, synced.pushed, synced.why), (1, 2, None));
    let root = world.root("agent");
    assert_eq!(show(&world.remote(), &conflict.branch, "tools/x.ts").unwrap(), "two");
    assert_eq!(
        show(&root, &format!("{}~2", conflict.branch), "tools/x.ts").unwrap(),
        "one",
        "with its history"
    );
    assert_eq!(world.remote_log(), ["Forge: tools/z.ts", "Refactor: tools/y.ts", "Theirs", "Start"]);
    for revision in ["main", "main~1"] {
        assert_consistent(&world.remote(), revision);
    }
    assert_clean(&root);
}

#[tokio::test]
async fn an_uncommitted_draft_is_kept_before_it_gives_way() {
    let world = World::with(&[("tools/x.ts", "base"), ("tools/y.ts", "base"), ("tools/z.ts", "base")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    for (name, content) in
        [("tools/x.ts", "draft"), ("tools/y.ts", "also a draft"), ("tools/untracked.ts", "new draft")]
    {
        write(&root, name, content);
    }
    world.person("Theirs", &[("tools/x.ts", "theirs"), ("tools/untracked.ts", "theirs too")]);
    let hydrated = memory.hydrate().await.unwrap();
    let mut lost: Vec<&str> = hydrated.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    lost.sort_unstable();
    assert_eq!(lost, ["tools/untracked.ts", "tools/x.ts"]);
    let branch = &hydrated.conflicts[0].branch;
    assert_eq!(show(&root, branch, "tools/x.ts").unwrap(), "draft");
    assert_eq!(show(&root, branch, "tools/untracked.ts").unwrap(), "new draft");
    assert_eq!(read(&root, "tools/x.ts").unwrap(), "theirs");
    assert_eq!(read(&root, "tools/y.ts").unwrap(), "also a draft", "nobody else touched it");
    // The agent that wrote the draft learns of it when it persists it; one that insists after that succeeds.
    let error = memory.persist(refactor("tools/x.ts", "draft")).await.unwrap_err();
    assert_eq!(&names(&error, "tools/x.ts").0, branch);
    arrived(memory.persist(refactor("tools/x.ts", "draft")).await);
    assert_eq!(git(&root, &["status", "--porcelain"]), " M tools/y.ts\n");
}

#[tokio::test]
async fn the_derived_file_never_conflicts() {
    let world = World::with(&[("tools/a.ts", "a"), ("meta.json", "written by hand")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    write(&root, "meta.json", "touched by somebody");
    world.person("Theirs", &[("tools/b.ts", "b"), ("meta.json", "by hand again")]);
    arrived(memory.persist(forge("tools/c.ts", "c")).await);
    world.assert_consistent();
    assert_clean(&root);
    let error = memory.persist(forge("meta.json", "mine")).await.unwrap_err();
    assert_eq!(error.code, Code::Validation);
    // Where the remote removed it, it is made again.
    world.person("Without", &[("meta.json", "")]);
    let other: ToolRepo = world.kernel("other").await;
    assert_eq!(read(&world.root("other"), "meta.json"), None);
    arrived(other.persist(forge("tools/d.ts", "d")).await);
    world.assert_consistent();
}
