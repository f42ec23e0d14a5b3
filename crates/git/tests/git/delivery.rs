//! Persisting and pushing: exactly the named bytes, one push for many, and remotes that say no.

use std::fs;
use std::time::Duration;

use tgp_contract::Code;
use tgp_git::{ChangeSet, CommitKind, PersistFile, ToolRepo};

use crate::support::{
    World, arrived, assert_clean, forge, git, lines, options, path, read, refactor, removal, time_goes_by,
    write,
};

#[tokio::test]
async fn without_a_remote_everything_is_kept_here() {
    let world = World::new();
    let root = world.root("agent");
    let memory = ToolRepo::open(options(&root, None)).await.unwrap();
    let persisted = memory.persist(forge("tools/a.ts", "a")).await.unwrap();
    assert!(!persisted.pushed && persisted.why.unwrap().contains("no remote"));
    memory.persist(refactor("tools/a.ts", "b")).await.unwrap();
    memory.persist(removal("tools/a.ts")).await.unwrap();
    assert_eq!(
        lines(&git(&root, &["log", "--format=%s"])),
        ["Remove: tools/a.ts", "Refactor: tools/a.ts", "Forge: tools/a.ts"]
    );
    assert_eq!(read(&root, "tools/a.ts"), None);
    assert!(root.join("tools").is_dir(), "the folder of tools stays");
    assert_clean(&root);
}

#[tokio::test]
async fn nothing_but_the_named_files_is_committed() {
    let world = World::with(&[("tools/a.ts", "a"), ("tools/b.ts", "b"), (".gitignore", "*.log\n")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    write(&root, "tools/a.ts", "draft of a person");
    write(&root, "tools/staged.ts", "staged by a person");
    write(&root, "tools/x.log", "ignored");
    write(&root, ".state/db", "state");
    git(&root, &["add", "tools/staged.ts"]);
    // The bytes are the caller's, although the file says something else by now.
    write(&root, "tools/new.ts", "newer draft");
    arrived(memory.persist(forge("tools/new.ts", "as written")).await);
    assert_eq!(git(&world.remote(), &["diff", "--name-only", "main~1", "main"]), "meta.json\ntools/new.ts\n");
    assert_eq!(world.remote_file("tools/new.ts").unwrap(), "as written");
    assert_eq!(read(&root, "tools/new.ts").unwrap(), "newer draft");
    assert_eq!(read(&root, "tools/a.ts").unwrap(), "draft of a person");
    assert_eq!(
        git(&root, &["status", "--porcelain"]),
        " M tools/a.ts\n M tools/new.ts\nA  tools/staged.ts\n"
    );
    world.assert_consistent();
}

#[tokio::test]
async fn several_files_are_one_commit() {
    let world = World::new();
    let memory = world.kernel("agent").await;
    let file = |name: &str| PersistFile { path: path(name), content: Some(name.into()) };
    let files = vec![file("tools/b.ts"), file("tools/b.test.ts"), file("tools/a/c.ts")];
    arrived(memory.persist(ChangeSet { files, verb: CommitKind::Forge }).await);
    let message = git(&world.remote(), &["log", "-1", "--format=%B", "main"]);
    assert_eq!(message.trim_end(), "Forge: tools/b.ts\n\nAlso:\n- tools/b.test.ts\n- tools/a/c.ts");
    for (name, code) in [(".git/config", Code::Security), (".state/x", Code::Security), ("", Code::Security)]
    {
        assert_eq!(memory.persist(forge(name, "x")).await.unwrap_err().code, code, "{name}");
    }
    let twice = ChangeSet { files: vec![file("tools/b.ts"), file("tools/b.ts")], verb: CommitKind::Forge };
    assert_eq!(memory.persist(twice).await.unwrap_err().code, Code::Validation);
    let none = ChangeSet { files: Vec::new(), verb: CommitKind::Forge };
    assert_eq!(memory.persist(none).await.unwrap_err().code, Code::Validation);
    assert_eq!(world.remote_log().len(), 1);
}

#[tokio::test]
async fn what_was_written_offline_is_delivered_later() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    fs::rename(world.remote(), world.at("away")).unwrap();
    let persisted = memory.persist(forge("tools/b.ts", "b")).await.unwrap();
    assert!(!persisted.pushed);
    assert_eq!(git(&root, &["rev-parse", "main"]).trim(), persisted.commit);
    let synced = memory.sync().await.unwrap();
    assert!(synced.pushed == 0 && synced.why.is_some(), "{synced:?}");
    fs::rename(world.at("away"), world.remote()).unwrap();
    time_goes_by(&root);
    // The same content again is not a commit, but it delivers what waits.
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    assert_eq!(world.remote_log(), ["Forge: tools/b.ts", "Start"]);
    write(&root, "tools/c.ts", "left over");
    write(&root, "tools/a.ts", "changed by hand");
    fs::remove_file(root.join("tools/b.ts")).unwrap();
    write(&root, ".state/session", "not source");
    write(&root, "tools/.tgp-tmp-1-2", "half written");
    let synced = memory.sync().await.unwrap();
    let committed: Vec<&str> = synced.committed.iter().map(tgp_contract::RelativePath::as_str).collect();
    assert_eq!(committed, ["tools/c.ts", "tools/a.ts"]);
    assert_eq!((synced.removed, synced.warnings), (vec![path("tools/b.ts")], vec![]));
    assert_eq!((synced.pushed, synced.why), (3, None));
    assert_eq!(world.remote_log()[..3], ["Remove: tools/b.ts", "Refactor: tools/a.ts", "Forge: tools/c.ts"]);
    assert_eq!(world.remote_tools(), ["tools/a.ts", "tools/c.ts"]);
    world.assert_consistent();
    assert_clean(&root);
}

#[tokio::test]
async fn bug_a_library_that_vanished_is_put_back_and_not_removed() {
    // How many tools there are, how many of them are gone, and how many removals are meant.
    for (had, gone, removed) in
        [(1, 1, 0), (2, 2, 0), (2, 1, 1), (9, 8, 8), (10, 5, 5), (10, 6, 0), (12, 12, 0)]
    {
        let names: Vec<String> = (0..had).map(|number| format!("tools/t{number:02}.ts")).collect();
        let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "content")).collect();
        files.extend([("tools/.gitkeep", "keep"), ("README.md", "read")]);
        let world = World::with(&files);
        let memory = world.kernel("agent").await;
        let root = world.root("agent");
        for name in &names[..gone] {
            fs::remove_file(root.join(name)).unwrap();
        }
        let synced = memory.sync().await.unwrap();
        assert_eq!((synced.committed, synced.removed.len()), (vec![], removed), "{gone} of {had}");
        assert_eq!(world.remote_tools().len(), had + 1 - removed, "{gone} of {had}");
        let expected = match gone - removed {
            0 => vec![],
            1 => vec![
                "1 tool was missing from the working tree and was put back; remove the last tool with git"
                    .to_owned(),
            ],
            count => vec![format!(
                "{count} tools were missing from the working tree and were put back; remove tools one by one, or with git"
            )],
        };
        assert_eq!(synced.warnings, expected, "{gone} of {had}");
        assert_clean(&root);
    }
}

#[tokio::test]
async fn an_emptied_working_tree_is_put_back_as_a_whole() {
    let world = World::with(&[("tools/a.ts", "a"), ("tools/deep/b.ts", "b"), ("README.md", "read")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    fs::remove_dir_all(root.join("tools")).unwrap();
    fs::remove_file(root.join("README.md")).unwrap();
    write(&root, "tools/new.ts", "new");
    let synced = memory.sync().await.unwrap();
    assert_eq!((synced.committed, synced.removed), (vec![path("tools/new.ts")], vec![]));
    assert_eq!(world.remote_tools(), ["tools/a.ts", "tools/deep/b.ts", "tools/new.ts"]);
    assert_eq!(
        (read(&root, "tools/deep/b.ts").unwrap(), read(&root, "README.md").unwrap()),
        ("b".into(), "read".into())
    );
    assert_clean(&root);
}

#[tokio::test]
async fn what_cannot_be_committed_is_named() {
    let world = World::with(&[("tools/a.ts", "a"), (".gitignore", "*.log\n")]);
    let memory = world.kernel("agent").await;
    let root = world.root("agent");
    for name in ["tools/link.ts", "tools/ignored.log"] {
        std::os::unix::fs::symlink("a.ts", root.join(name)).unwrap();
    }
    write(&root, "tools/two\nlines.ts", "x");
    write(&root, "tools/.tgp-tmp-1-2", "half written");
    write(&root, "tools/fine.ts", "fine");
    let synced = memory.sync().await.unwrap();
    assert_eq!(synced.committed, [path("tools/fine.ts")]);
    assert_eq!(
        synced.warnings,
        [
            "`tools/link.ts` was not committed: it is a link, or something else that is not a plain file",
            "`tools/two?lines.ts` was not committed: its name is not a name for a file of the tool repository",
        ]
    );
}

#[tokio::test]
async fn a_refusal_is_told_in_one_sentence_and_loses_nothing() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    world.hook("pre-receive", "#!/bin/sh\necho 'tools are frozen until Monday' >&2\nexit 1\n");
    let persisted = memory.persist(forge("tools/b.ts", "b")).await.unwrap();
    let why = persisted.why.unwrap();
    assert!(!persisted.pushed);
    assert!(why.contains("refused") && why.contains("frozen until Monday") && !why.contains('\n'), "{why}");
    assert_eq!(world.remote_log(), ["Start"]);
    fs::remove_file(world.remote().join("hooks/pre-receive")).unwrap();
    assert_eq!(memory.sync().await.unwrap().pushed, 1);
    assert_eq!(world.remote_log(), ["Forge: tools/b.ts", "Start"]);
}

/// Pushes its own commit in the middle of the first three pushes of others.
const RIVAL: &str = r#"#!/bin/sh
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
export GIT_AUTHOR_NAME=r GIT_AUTHOR_EMAIL=r GIT_COMMITTER_NAME=r GIT_COMMITTER_EMAIL=r
count=$(cat count 2>/dev/null || echo 0)
[ "$count" -ge 3 ] && exit 0
echo $((count + 1)) > count
tip=$(git commit-tree -p main -m "Rival $count" main^{tree})
git update-ref refs/heads/main "$tip"
"#;

#[tokio::test]
async fn a_push_that_loses_the_race_tries_again() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    world.hook("pre-receive", RIVAL);
    let persisted = arrived(memory.persist(forge("tools/b.ts", "b")).await);
    assert_eq!(world.remote_log(), ["Forge: tools/b.ts", "Rival 2", "Rival 1", "Rival 0", "Start"]);
    assert_eq!(git(&world.remote(), &["rev-parse", "main"]).trim(), persisted.commit, "the id it has now");
    world.assert_consistent();
    assert_clean(&world.root("agent"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_share_a_push() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    world.hook("post-receive", "#!/bin/sh\necho push >> pushes\n");
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let memory = memory.clone();
            tokio::spawn(async move { memory.persist(forge(&format!("tools/t{number}.ts"), "t")).await })
        })
        .collect();
    for task in tasks {
        arrived(task.await.unwrap());
    }
    assert_eq!(world.remote_tools().len(), 21);
    let pushes = lines(&read(&world.remote(), "pushes").unwrap()).len();
    assert!(pushes < 20, "{pushes} pushes for 20 tools");
    world.assert_consistent();
    assert_clean(&world.root("agent"));
}

#[tokio::test]
async fn bug_a_lock_that_a_killed_git_left_in_the_remote_made_a_write_wait_for_minutes() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    let lock = world.remote().join("refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let written =
        tokio::time::timeout(Duration::from_secs(60), memory.persist(forge("tools/b.ts", "b"))).await;
    let persisted = written.expect("it waits as long as for a busy remote").unwrap();
    let why = persisted.why.unwrap_or_default();
    assert!(!persisted.pushed && why.contains("main.lock") && why.contains("locked"), "{why}");
    fs::remove_file(&lock).unwrap();
    arrived(memory.persist(forge("tools/b.ts", "b")).await);
    assert_eq!(world.remote_log(), ["Forge: tools/b.ts", "Start"]);
}
