//! What is ignored, and what happens when the rules change.

use tgp_valve::ValveEvent;

use crate::support::{EVERYTHING, World};

#[tokio::test]
async fn rules_of_git_and_ripgrep_are_respected() {
    let world = World::scoped(EVERYTHING);
    // With the mark that some editors put before everything.
    world.write(".gitignore", "\u{feff}*.log\n/build/\n!keep.log\n");
    world.write("a/.gitignore", "local\n");
    world.write("a/b/.ignore", "!local\nown.txt\n");
    world.write(".git/info/exclude", "excluded\n");
    world.write(".git/config", "x");
    world.scan().await;
    let ignored = [
        "x.log",
        "a/x.log",
        "build/out",
        "a/local",
        "excluded",
        "a/b/own.txt",
        ".git/HEAD",
        ".tgp/x",
        ".sage/notes.md",
        "docs/a.ts.sage",
        "src/a.ts.sage.torn-1234",
    ];
    let told = [
        "keep.log",
        "a/build/out",
        "local",
        "a/b/local",
        "own.txt",
        ".github/x",
        "sage",
        "folder.sage/x",
        // The kernel's own directory is at the top alone.
        "a/.tgp/x",
        ".tgpx",
        ".Git/y",
        "x.sage.torn-1.ts",
    ];
    for name in ignored.iter().chain(&told) {
        world.write(name, *name);
    }
    world.scan().await;
    let mut expected: Vec<String> = told.iter().map(|name| format!("all: created {name}")).collect();
    expected.sort();
    let mut said = world.told().await;
    said.sort();
    assert_eq!(said, expected);
}

#[tokio::test]
async fn files_that_become_ignored_leave_in_silence_and_come_back_as_they_were_told() {
    let world = World::new(EVERYTHING);
    world.write("a.log", "1");
    world.write("b.txt", "1");
    world.write("out/c", "1");
    world.scan().await;
    world.write(".gitignore", "*.log\nout\n");
    world.write("b.txt", "2");
    let report = world.scan().await;
    assert_eq!((report.files, report.changes), (2, 2), "{report:?}");
    let mut told = world.told().await;
    told.sort();
    assert_eq!(told, ["all: changed b.txt", "all: created .gitignore"]);
    world.write("old.log", "there before the next look");
    // The stamps of files lag behind the clock by some milliseconds, and the valve allows for them.
    let written = std::fs::metadata(world.disk("old.log")).unwrap().modified().unwrap();
    crate::support::wait_until("some ticks of the file system", || {
        written.elapsed().is_ok_and(|passed| passed > std::time::Duration::from_millis(100))
    });
    world.scan().await;
    // They change while they are ignored, and a new one comes beside them.
    world.write("a.log", "2");
    world.write("new.log", "new");
    world.write(".gitignore", "out\n");
    world.write("new.txt", "new");
    world.scan().await;
    let mut told = world.told().await.split_off(2);
    told.sort();
    let expected =
        ["all: changed .gitignore", "all: changed a.log", "all: created new.log", "all: created new.txt"];
    assert_eq!(told, expected, "what was there and did not change is not told");
    assert_eq!(world.events("a.log.sage").await[0].fields["before"], crate::support::hash("1"));
    // From now on they are like all others.
    world.write("old.log", "3");
    world.remove("new.log");
    world.scan().await;
    assert_eq!(world.told().await[6..], ["all: deleted new.log", "all: changed old.log"]);
    // What goes while it is ignored is reported when that ends.
    world.write(".ignore", "b.txt\n");
    world.scan().await;
    world.remove("b.txt");
    world.remove(".ignore");
    world.scan().await;
    assert_eq!(
        world.told().await[8..],
        ["all: created .ignore", "all: deleted .ignore", "all: deleted b.txt"]
    );
    // A file that is renamed to an ignored name is gone, and one that is renamed back is new.
    world.rename("a.log", "out/a.log");
    world.scan().await;
    world.rename("out/a.log", "a.log");
    world.scan().await;
    assert_eq!(world.told().await[11..], ["all: deleted a.log", "all: created a.log"]);
}

#[tokio::test]
async fn rules_that_change_while_watching() {
    let world = World::new(EVERYTHING);
    world.write("logs/a.log", "1");
    world.write("logs/b.txt", "1");
    world.scan().await;
    let mut watch = world.watch();
    watch.started().await;
    world.write("logs/.gitignore", "*.log\n");
    watch.told("all: created logs/.gitignore").await;
    world.write("logs/a.log", "2");
    world.write("logs/b.txt", "2");
    watch.told("all: changed logs/b.txt").await;
    world.remove("logs/.gitignore");
    watch.told("all: deleted logs/.gitignore").await;
    world.write("logs/a.log", "3");
    watch.told("all: changed logs/a.log").await;
    // Git's own rules are not in the tree, and count all the same.
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world.write(".git/info/exclude", "nothing");
    watch.rescanner.rescan("the test makes a repository");
    watch.until("a whole look", |event| matches!(event, ValveEvent::Rescanned { .. })).await;
    world.write(".git/info/exclude", "*.log");
    watch
        .until(
            "a look by new rules",
            |event| matches!(event, ValveEvent::Rescanned { reason, .. } if reason.contains("git")),
        )
        .await;
    world.write("logs/a.log", "4");
    world.write("logs/b.txt", "4");
    watch.told("all: changed logs/b.txt").await;
    watch.end().await;
    let events = world.events("logs/a.log.sage").await;
    assert!(events.iter().any(|event| event.fields["after"] == crate::support::hash("3")), "{events:#?}");
    assert!(events.iter().all(|event| event.fields["after"] != crate::support::hash("4")), "{events:#?}");
}
