//! Changes that are gathered while a persona is quiet about a file.

use std::sync::atomic::Ordering;

use crate::support::{World, hash};

const PATIENT: &str = "personas:\n  - {name: calm, filters: [src/], cooldown: 30s}\n";

#[tokio::test]
async fn further_changes_are_gathered_and_told_as_one_when_it_is_over() {
    let world = World::scoped(PATIENT);
    let pass = |milliseconds: u64| world.clock.fetch_add(milliseconds, Ordering::Relaxed);
    world.write("src/a", "0");
    world.write("src/b", "b");
    world.scan().await;
    world.write("src/a", "1");
    assert_eq!(world.scan().await.triggered, 1);
    for content in ["2", "3", "4"] {
        pass(5_000);
        world.write("src/a", content);
        assert_eq!(world.scan().await.triggered, 0);
        assert_eq!(world.status().held_changes, 1);
    }
    // Another file has its own cooldown.
    world.write("src/b", "b2");
    assert_eq!(world.scan().await.triggered, 1);
    pass(14_999);
    assert_eq!(world.scan().await.triggered, 0);
    pass(1);
    assert_eq!(world.scan().await.triggered, 1);
    let events = world.events("src/a.sage").await;
    let chain: Vec<_> =
        events.iter().map(|event| (&event.fields["before"], &event.fields["after"])).collect();
    let (first, second, last) = (hash("0"), hash("1"), hash("4"));
    assert_eq!(chain, [(&first.into(), &second.clone().into()), (&second.into(), &last.into())]);
    // What was reported late begins a cooldown too.
    world.write("src/a", "5");
    assert_eq!(world.scan().await.triggered, 0);
    pass(30_000);
    assert_eq!(world.scan().await.triggered, 1);
    assert_eq!(world.status().held_changes, 0);
}

#[tokio::test]
async fn what_cancels_itself_out_is_not_told_and_a_rename_does_not_wait() {
    let world = World::scoped(PATIENT);
    world.write("src/a", "0");
    world.write("src/b", "zero");
    world.scan().await;
    for (path, content) in [("src/a", "1"), ("src/b", "one"), ("src/a", "2"), ("src/b", "two")] {
        world.write(path, content);
        world.scan().await;
    }
    assert_eq!(world.status().held_changes, 2);
    // Back to what was last reported: there is nothing left to report.
    world.write("src/a", "1");
    world.scan().await;
    assert_eq!(world.status().held_changes, 1);
    world.rename("src/b", "src/c");
    assert_eq!(world.scan().await.triggered, 2, "what was gathered, then the rename");
    let told = world.told().await;
    assert_eq!(told[2..], ["calm: changed src/b", "calm: renamed src/c < src/b"]);
    // Deleted, made again: changed.
    world.remove("src/a");
    world.scan().await;
    world.write("src/a", "3");
    world.scan().await;
    world.clock.fetch_add(60_000, Ordering::Relaxed);
    world.scan().await;
    let last = world.events("src/a.sage").await.pop().unwrap();
    assert_eq!(last.fields["change"], "changed");
    assert_eq!((&last.fields["before"], &last.fields["after"]), (&hash("1").into(), &hash("3").into()));
}

#[tokio::test]
async fn what_was_gathered_is_not_told_of_a_file_that_is_another_by_then() {
    let personas = "
personas:
  - {name: edits, filters: ['*'], changes: [created, changed], cooldown: 3s}
  - {name: keys, filters: ['*'], contents: [KEY], cooldown: 3s}
";
    let world = World::new(personas);
    world.scan().await;
    for content in ["KEY 1", "KEY 2"] {
        world.write("a", content);
        world.write("b", content);
        world.scan().await;
    }
    assert_eq!(world.status().held_changes, 4);
    world.remove("a");
    world.write("b", "clean");
    world.scan().await;
    world.clock.fetch_add(3_000, Ordering::Relaxed);
    world.scan().await;
    let told = world.told().await.split_off(4);
    assert_eq!(told, ["edits: changed b"], "one is gone, and in the other there is no key");
    assert_eq!(world.events("b.sage").await[2].fields["after"], hash("clean"));
}
