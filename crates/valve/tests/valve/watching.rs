//! A watch that runs: directories that come, go and move, hints that are lost, personas that change.

use std::collections::BTreeMap;
use std::time::Duration;

use tgp_contract::Code;
use tgp_valve::{ScanRequest, ValveEvent};

use crate::model::Dice;
use crate::support::{EVERYTHING, PERSONAS, World, hash};

#[tokio::test]
async fn directories_that_come_move_and_go_are_followed() {
    let world = World::new(EVERYTHING);
    world.write("a/b/file", "1");
    let mut watch = world.watch();
    let started = watch.started().await;
    assert!(matches!(started, ValveEvent::Started { files: 1, baseline: true, backfilled: 0, personas: 1 }));
    // A whole tree at once, of which most was there before it could be watched.
    for depth in 1..6 {
        world.write(&format!("new/{}file", "x/".repeat(depth)), format!("{depth}"));
    }
    watch.told("all: created new/x/x/x/x/x/file").await;
    world.write("new/x/x/x/x/x/later", "1");
    watch.told("all: created new/x/x/x/x/x/later").await;
    // Moved, changed at its new place, and moved again.
    world.rename("a", "c");
    watch.told("all: renamed c/b/file < a/b/file").await;
    world.write("c/b/file", "2");
    watch.told("all: changed c/b/file").await;
    world.rename("c/b", "b");
    watch.told("all: renamed b/file < c/b/file").await;
    world.write("b/file", "3");
    watch.told("all: changed b/file").await;
    // Two that change places.
    world.write("p/file", "p");
    world.write("q/file", "q");
    watch.told("all: created q/file").await;
    world.rename("p", "r");
    world.rename("q", "p");
    world.rename("r", "q");
    watch.told("all: changed q/file").await;
    world.write("p/file", "p2");
    watch.told("all: changed p/file").await;
    world.write("q/file", "q2");
    watch.told("all: changed q/file").await;
    std::fs::remove_dir_all(world.disk("new")).unwrap();
    watch.told("all: deleted new/x/x/x/x/x/later").await;
    world.write("new/again", "1");
    watch.told("all: created new/again").await;
    watch.end().await;
    assert_eq!(world.scan().await.changes, 0);
}

#[tokio::test]
async fn an_editor_that_saves_by_renaming_changes_the_file() {
    let world = World::new(EVERYTHING);
    world.write("notes", "1");
    let mut watch = world.watch();
    watch.started().await;
    for round in 2..5 {
        world.write(".gitignored.tmp", format!("{round}"));
        world.rename(".gitignored.tmp", "notes");
        watch
            .until("the save", |event| {
                matches!(event, ValveEvent::Triggered { event, .. }
                    if event.fields["after"] == hash(format!("{round}")) && event.file_path.as_deref() == Some("notes"))
            })
            .await;
    }
    watch.end().await;
    let events = world.events("notes.sage").await;
    assert!(events.iter().all(|event| event.fields["change"] == "changed"), "{events:#?}");
}

#[tokio::test]
async fn what_a_full_queue_has_lost_is_found() {
    let world = World::new(EVERYTHING);
    world.write("a", "1");
    let mut watch = world.watch();
    watch.started().await;
    watch.rescanner.rescan("the queue of the system was full");
    let rescanned = watch.until("a look", |event| matches!(event, ValveEvent::Rescanned { .. })).await;
    assert!(matches!(rescanned, ValveEvent::Rescanned { files: 1, changes: 0, .. }), "{rescanned:?}");
    // The watches of the new scan work, and a change during a rescan is reported once.
    world.write("b/c", "1");
    watch.told("all: created b/c").await;
    for round in 2..12 {
        world.write("a", format!("{round}"));
        world.write(&format!("b/{round}"), "1");
        watch.rescanner.rescan("again");
        watch.told(&format!("all: created b/{round}")).await;
    }
    watch.end().await;
    assert_eq!(world.scan().await.changes, 0);
    let told = world.told().await;
    assert_eq!(told.iter().filter(|said| said.starts_with("all: created b/")).count(), 11);
    let events = world.events("a.sage").await;
    assert_eq!(events.last().unwrap().fields["after"], hash("11"));
}

#[tokio::test]
async fn more_changes_than_hints_are_kept_for_are_found_by_a_whole_look() {
    let world = World::new("personas: [{name: rare, filters: [needle]}]");
    let mut watch = world.watch();
    watch.started().await;
    std::fs::create_dir(world.disk("hay")).unwrap();
    for number in 0..10_500 {
        std::fs::write(world.disk(&format!("hay/{number}")), "").unwrap();
    }
    world.write("hay/needle", "1");
    watch.told("rare: created hay/needle").await;
    watch.end().await;
    assert_eq!(world.status().files, 10_501);
    assert_eq!(world.scan().await.changes, 0);
}

#[tokio::test]
async fn personas_are_read_again_and_broken_ones_are_not_used() {
    let world = World::new(EVERYTHING);
    let mut watch = world.watch();
    watch.started().await;
    world.write(PERSONAS, "personas:\n  - {name: second, filters: [b]}\n");
    watch.until("new personas", |event| matches!(event, ValveEvent::Reloaded { personas: 1 })).await;
    world.write("a", "1");
    world.write("b", "1");
    watch.told("second: created b").await;
    world.write(PERSONAS, "personas:\n  - {name: third, filtres: [b]}\n");
    let problem = watch.until("the problem", |event| matches!(event, ValveEvent::Problem { .. })).await;
    let ValveEvent::Problem { error } = problem else { unreachable!() };
    assert_eq!((error.code, error.help_of()), (Code::Config, Some("did you mean `filters`?")));
    world.write("b", "2");
    watch.told("second: changed b").await;
    // An editor that replaces the whole folder.
    world.rename(".sage", ".sage-old");
    watch.until("that it is gone", |event| matches!(event, ValveEvent::Problem { .. })).await;
    world.write("b", "3");
    watch.told("second: changed b").await;
    world.write(".sage-new/valve.yml", "personas:\n  - {name: fourth, filters: [b]}\n");
    world.rename(".sage-new", ".sage");
    watch.until("the last personas", |event| matches!(event, ValveEvent::Reloaded { .. })).await;
    world.write("b", "4");
    watch.told("fourth: changed b").await;
    watch.end().await;
}

#[tokio::test]
async fn personas_that_are_saved_by_half_leave_the_old_ones_in_force() {
    let world = World::new(EVERYTHING);
    let mut watch = world.watch();
    watch.started().await;
    for (number, half) in ["", "personas:\n", "# nothing yet\n"].into_iter().enumerate() {
        world.write(PERSONAS, half);
        watch
            .until("the mistake", |event| {
                matches!(event, ValveEvent::Problem { error }
                    if error.code == Code::Config && error.help_of().unwrap().contains("for none"))
            })
            .await;
        assert!(world.status().personas_error.is_some());
        world.write(&format!("secret{number}"), "1");
        watch.told(&format!("all: created secret{number}")).await;
    }
    // An empty list is a decision, and has to be written down.
    world.write(PERSONAS, "personas: []\n");
    watch.until("no personas", |event| matches!(event, ValveEvent::Reloaded { personas: 0 })).await;
    watch.end().await;
    assert_eq!(world.told().await.len(), 3);
}

/// Looks fall between the halves of some renames and into the middle of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rename_is_never_told_as_a_deletion_and_a_creation() {
    // To and fro, so often that many a file moves on while it is searched for.
    rename_without_a_pause(200, |dice, _, number, place| match place.strip_prefix("work/a/") {
        Some(name) => (dice.below(200), format!("work/z/{name}")),
        None => (dice.below(200), format!("work/a/{number}")),
    })
    .await;
    // One after the other to new names, and into folders that are found before the rename is reported.
    rename_without_a_pause(1_000, |dice, round, number, place| {
        let to = match dice.below(8) {
            0 => format!("work/new{round}/{number}"),
            1 => format!("work/a/{number}.{round}"),
            _ if place.starts_with("work/z") => format!("work/a/{number}"),
            _ => format!("work/z/{number}"),
        };
        ((number + 1) % 1_000, to)
    })
    .await;
}

/// Renames one of some files after the other. `plan` is given dice, the number of the round and of the file, and where
/// it is; it answers which file comes next and where this one goes.
async fn rename_without_a_pause(
    files: usize,
    plan: impl Fn(&mut Dice, usize, usize, &str) -> (usize, String),
) {
    const RENAMES: usize = 2_000;
    let world = World::scoped(EVERYTHING);
    let mut places = Vec::new();
    for number in 0..files {
        world.write(&format!("work/a/{number}"), format!("{number}"));
        places.push(format!("work/a/{number}"));
    }
    let mut watch = world.watch();
    watch.started().await;
    let mut dice = Dice::new(28);
    let mut number = 0;
    tokio::task::block_in_place(|| {
        for round in 0..RENAMES {
            let (next, to) = plan(&mut dice, round, number, &places[number]);
            world.rename(&places[number], &to);
            places[number] = to;
            number = next;
            std::thread::sleep(Duration::from_millis(1));
        }
        let last: BTreeMap<String, String> = places
            .iter()
            .enumerate()
            .map(|(number, path)| (path.clone(), hash(number.to_string())))
            .collect();
        let first = (0..files).map(|number| (format!("work/a/{number}"), hash(number.to_string())));
        let runtime = tokio::runtime::Handle::current();
        crate::support::wait_until("that all was told", || {
            let mut known: BTreeMap<String, String> = first.clone().collect();
            for event in runtime.block_on(world.all_events()) {
                let text = |name: &str| event.fields.get(name).and_then(|value| value.as_str());
                let path = event.file_path.clone().unwrap();
                known.remove(text("from").unwrap_or(&path));
                known.extend(text("after").map(|after| (path, after.to_owned())));
            }
            known == last
        });
    });
    watch.end().await;
    assert_eq!(world.scan().await.changes, 0);
    let told = world.told().await;
    let wrong: Vec<&String> = told.iter().filter(|said| !said.starts_with("all: renamed ")).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), told.len());
    assert!(told.len() > files / 2, "the looks were too few to fall between: {}", told.len());
}

#[tokio::test]
async fn a_deletion_is_told_while_other_files_change_without_a_pause() {
    let world = World::new(EVERYTHING);
    world.write("gone", "1");
    world.write("folder/below", "1");
    let mut watch = world.watch();
    watch.started().await;
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (over, noisy) = (std::sync::Arc::clone(&is_over), world.disk("noisy"));
    let noise = std::thread::spawn(move || {
        let mut round = 0_u64;
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            round += 1;
            std::fs::write(&noisy, format!("{round}")).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    world.remove("gone");
    watch.told("all: deleted gone").await;
    std::fs::remove_dir_all(world.disk("folder")).unwrap();
    watch.told("all: deleted folder/below").await;
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    noise.join().unwrap();
    watch.end().await;
}

#[tokio::test]
async fn a_tree_that_cannot_be_watched_is_looked_at_again_and_again() {
    let mut world = World::new(EVERYTHING);
    world.look = ScanRequest::Every(Duration::from_millis(20));
    world.write("a", "1");
    let mut watch = world.watch();
    watch.started().await;
    world.write("a", "2");
    watch.told("all: changed a").await;
    world.write("b/c", "1");
    watch.told("all: created b/c").await;
    world.write(PERSONAS, "personas: [{name: other, filters: [b]}]");
    watch.until("new personas", |event| matches!(event, ValveEvent::Reloaded { .. })).await;
    world.rename("b", "d");
    watch.told("other: renamed d/c < b/c").await;
    watch.end().await;
}

#[tokio::test]
async fn a_watch_holds_the_lock_and_says_so() {
    let world = World::new(EVERYTHING);
    let mut watch = world.watch();
    watch.started().await;
    let error = crate::support::assert_code(world.open(), Code::Conflict);
    assert!(error.message.contains("(watch)"), "{error}");
    let status = world.status();
    assert_eq!(status.watcher.unwrap().purpose, "watch");
    assert_eq!((status.has_journal, status.personas.len()), (true, 1));
    watch.end().await;
    world.scan().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cooldown_ends_by_itself() {
    let world = World::new("personas: [{name: calm, filters: ['**'], cooldown: 200ms}]");
    world.write("a", "0");
    world.scan().await;
    let mut watch = world.watch();
    watch.started().await;
    world.write("a", "1");
    watch.told("calm: changed a").await;
    world.write("a", "2");
    tokio::task::block_in_place(|| {
        crate::support::wait_until("a held change", || world.status().held_changes == 1);
    });
    world.clock.fetch_add(200, std::sync::atomic::Ordering::Relaxed);
    watch.told("calm: changed a").await;
    watch.end().await;
    assert_eq!(world.events("a.sage").await[1].fields["after"], hash("2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_takes_nothing_holds_up_nothing() {
    let world = World::new(EVERYTHING);
    world.scan().await;
    let mut valve = world.open().unwrap();
    let (sender, mut events) = tokio::sync::mpsc::channel(4);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let cancelled: tgp_contract::Cancellation<'_> = Box::pin(async move {
            let _ = stopped.await;
        });
        valve.watch(sender, cancelled).await
    });
    for number in 0..50 {
        world.write(&format!("f{number}"), "1");
    }
    tokio::task::block_in_place(|| {
        crate::support::wait_until("that all was recorded", || {
            let status = world.status();
            status.files == 50 && status.pending_events == 0
        });
    });
    let _ = stop.send(());
    // It ends, though the listener has not taken an event yet.
    tokio::time::timeout(crate::support::PATIENCE, task).await.unwrap().unwrap().unwrap();
    let told = world.told().await;
    assert_eq!(told.iter().filter(|said| said.starts_with("all: created")).count(), 50);
    assert!(matches!(events.recv().await, Some(ValveEvent::Started { .. })));
}
