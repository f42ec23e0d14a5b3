//! One pass after the other: what counts as which change, and what survives what.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tgp_contract::Code;
use tgp_valve::{TRIGGER_EVENT, Valve, ValveEvent};

use crate::memory::MemoryChronicle;
use crate::support::{EVERYTHING, World, assert_code, hash, never};

#[tokio::test]
async fn each_kind_of_change() {
    let world = World::new(EVERYTHING);
    for name in ["kept", "edited", "gone", "moved", "moved_and_edited", "folder/one", "folder/deep/two"] {
        world.write(name, format!("content of {name}"));
    }
    for name in ["twin_a", "twin_b", "empty"] {
        world.write(name, if name == "empty" { "" } else { "twins" });
    }
    let report = world.scan().await;
    assert!(report.baseline && report.files == 10 && report.events.len() == 1, "{report:?}");
    world.write("edited", "other");
    world.remove("gone");
    world.rename("moved", "elsewhere/moved");
    world.rename("moved_and_edited", "m");
    world.write("m", "edited in place");
    world.rename("folder", "renamed_folder");
    world.write("new", "new");
    world.write("kept", "content of kept");
    // Two files with the same content go and one comes: the inode shows which one it was.
    world.rename("twin_b", "twin_c");
    world.remove("twin_a");
    // An empty file that goes and one that comes say nothing about each other.
    world.write("void", "");
    world.remove("empty");
    world.scan().await;
    let mut told = world.told().await;
    assert_eq!(told[..3], ["all: deleted empty", "all: deleted gone", "all: deleted twin_a"]);
    told.sort();
    let expected = [
        "all: changed edited",
        "all: created new",
        "all: created void",
        "all: deleted empty",
        "all: deleted gone",
        "all: deleted twin_a",
        "all: renamed elsewhere/moved < moved",
        "all: renamed m < moved_and_edited",
        "all: renamed renamed_folder/deep/two < folder/deep/two",
        "all: renamed renamed_folder/one < folder/one",
        "all: renamed twin_c < twin_b",
    ];
    assert_eq!(told, expected);
    let edited = &world.events("m.sage").await[0];
    assert_eq!(edited.fields["before"], hash("content of moved_and_edited"));
    assert_eq!(edited.fields["after"], hash("edited in place"));
}

#[tokio::test]
async fn a_file_that_is_made_where_another_was_deleted_is_no_rename() {
    // The file system gives the inode's number to the next file at once.
    let world = World::new(EVERYTHING);
    world.write("a", "one");
    world.scan().await;
    world.remove("a");
    world.write("b", "quite another");
    world.scan().await;
    assert_eq!(world.told().await, ["all: deleted a", "all: created b"]);
}

#[tokio::test]
async fn a_copy_that_replaces_is_a_rename_by_content_only_when_it_is_certain() {
    let world = World::new(EVERYTHING);
    world.write("a", "unique");
    world.write("b", "alike");
    world.write("c", "alike");
    world.scan().await;
    // Copies have their own inodes.
    for (from, to) in [("a", "x"), ("b", "y"), ("c", "z")] {
        std::fs::copy(world.disk(from), world.disk(to)).unwrap();
    }
    for name in ["a", "b", "c"] {
        world.remove(name);
    }
    world.scan().await;
    let mut told = world.told().await;
    told.sort();
    let expected =
        ["all: created y", "all: created z", "all: deleted b", "all: deleted c", "all: renamed x < a"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_change_that_hides_behind_size_and_time_is_found() {
    let world = World::new(EVERYTHING);
    let old = SystemTime::now() - Duration::from_secs(3_600);
    let backdate = || {
        let file = std::fs::File::options().write(true).open(world.disk("a")).unwrap();
        file.set_modified(old).unwrap();
    };
    world.write("a", "one");
    backdate();
    world.scan().await;
    world.write("a", "two");
    backdate();
    assert_eq!(world.scan().await.changes, 1);
    // In the same tick of the clock, twice.
    for content in ["abc", "abd", "abe"] {
        world.write("a", content);
        assert_eq!(world.scan().await.changes, 1, "{content}");
    }
    // Nothing but the signs has changed.
    backdate();
    assert_eq!(world.scan().await.changes, 0);
}

#[tokio::test]
async fn a_backfill_is_in_the_order_of_the_changes_whatever_time_a_file_claims() {
    use std::os::unix::fs::MetadataExt;
    let world = World::scoped(EVERYTHING);
    let changed = |path: &str| {
        let data = std::fs::metadata(world.disk(path)).unwrap();
        (data.ctime(), data.ctime_nsec())
    };
    let names = ["d", "b", "e", "a", "c"];
    for name in names {
        world.write(name, "0");
    }
    world.scan().await;
    let mut last = None;
    for name in names {
        crate::support::wait_until("the next tick of the file system", || {
            world.write(name, "1");
            let file = std::fs::File::options().write(true).open(world.disk(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
            last.is_none_or(|last| changed(name) > last)
        });
        last = Some(changed(name));
    }
    world.scan().await;
    assert_eq!(world.told().await, names.map(|name| format!("all: changed {name}")));
}

#[tokio::test]
async fn a_scan_that_is_stopped_says_that_it_was() {
    let world = World::new("personas: [{name: slow, filters: ['**'], action: {tool: t.ts}}]");
    let stopped = assert_code(world.open().unwrap().scan(Box::pin(async {})).await, Code::Runtime);
    assert_eq!(stopped.details["cancelled"], true);
    world.scan().await;
    // In the middle of an action it ends it, and what was reported until then stays reported.
    *world.script.hangs.lock().unwrap() = true;
    world.write("a", "1");
    let script = Arc::clone(&world.script);
    let begun: tgp_contract::Cancellation<'_> = Box::pin(async move {
        while script.calls.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let stopped = assert_code(world.open().unwrap().scan(begun).await, Code::Runtime);
    assert_eq!(stopped.details["cancelled"], true);
    let events = world.events("a.sage").await;
    assert_eq!((events.len(), &events[1].fields["message"]), (2, &serde_json::json!("told to end")));
    *world.script.hangs.lock().unwrap() = false;
    assert_eq!(world.scan().await.changes, 0);
}

#[tokio::test]
async fn the_status_counts_what_is_in_chronicles() {
    let memory = Arc::new(MemoryChronicle::default());
    let personas = "personas: [{name: all, filters: [src/], action: {tool: t.ts}}]";
    let world = World::with(tempfile::tempdir().unwrap(), memory.clone(), personas);
    let counts = || {
        let status = world.status();
        (status.told_events, status.last_sequence, status.pending_events, status.skipped)
    };
    world.scan().await;
    assert_eq!(counts(), (0, 0, 0, 0));
    memory.broken.lock().unwrap().insert("src/b.sage".to_owned());
    world.write("src/a", "1");
    world.write("src/b", "1");
    world.scan().await;
    // One trigger with the outcome of its action; the other waits.
    assert_eq!(counts(), (2, 3, 1, 0));
    *memory.is_closed.lock().unwrap() = true;
    world.write("src/c", "1");
    world.scan().await;
    assert_eq!(counts(), (2, 4, 0, 2));
    assert_eq!(world.all_events().await.len(), 2);
}

#[tokio::test]
async fn a_first_look_can_tell_of_everything() {
    let mut world = World::new(EVERYTHING);
    world.all = true;
    world.write("a", "1");
    world.write("b/c", "2");
    let report = world.scan().await;
    assert!(!report.baseline && report.triggered == 2, "{report:?}");
    let mut told = world.told().await;
    told.sort();
    assert_eq!(told, ["all: created a", "all: created b/c"]);
    assert_eq!(world.scan().await.changes, 0);
}

#[tokio::test]
async fn events_of_all_personas_in_the_order_of_their_file() {
    let personas = "
personas:
  - {name: late, filters: ['*.ts', '!src/gen/**'], contents: ['TODO\\b', 'FIXME']}
  - {name: any, filters: ['src/']}
  - {name: deletions, filters: ['**'], changes: [deleted]}
";
    let world = World::new(personas);
    world.scan().await;
    world.write("src/a.ts", "// FIXME");
    world.write("src/gen/b.ts", "// TODO");
    world.write("src/c.ts", "// TODOS");
    world.write("src/binary.ts", b"TODO \xff\xfe");
    world.scan().await;
    world.remove("src/a.ts");
    world.scan().await;
    let told = world.told().await;
    let at =
        |wanted: &str| told.iter().position(|said| said == wanted).unwrap_or_else(|| panic!("{told:#?}"));
    assert_eq!(at("late: created src/a.ts") + 1, at("any: created src/a.ts"));
    assert_eq!(at("any: deleted src/a.ts") + 1, at("deletions: deleted src/a.ts"));
    at("late: created src/binary.ts");
    assert_eq!(told.len(), 8, "{told:#?}");
    let first = &world.events("src/a.ts.sage").await[0];
    assert_eq!(first.fields["trigger"], serde_json::json!({ "type": "content", "details": "FIXME" }));
}

#[tokio::test]
async fn a_chronicle_that_fails_gets_its_events_later_and_in_order() {
    let memory = Arc::new(MemoryChronicle::default());
    let world = World::with(tempfile::tempdir().unwrap(), memory.clone(), EVERYTHING);
    world.scan().await;
    memory.broken.lock().unwrap().insert("src/a.sage".to_owned());
    for content in ["1", "2", "3"] {
        world.write("src/a", content);
        world.write("src/b", content);
        let report = world.scan().await;
        let problems = report.events.iter().filter(|event| matches!(event, ValveEvent::Problem { .. }));
        assert_eq!((report.triggered, problems.count()), (1, 1), "the other file is not held up");
    }
    assert_eq!(world.status().pending_events, 3);
    memory.broken.lock().unwrap().clear();
    let report = world.scan().await;
    assert_eq!((report.triggered, report.pending, report.changes), (3, 0, 0));
    let after: Vec<_> =
        world.events("src/a.sage").await.iter().map(|event| event.fields["after"].clone()).collect();
    assert_eq!(after, [hash("1"), hash("2"), hash("3")]);
    assert_eq!(world.all_events().await.iter().filter(|event| event.kind == TRIGGER_EVENT).count(), 6);
}

#[tokio::test]
async fn a_damaged_journal_is_set_aside_and_said_so() {
    let world = World::new(EVERYTHING);
    world.write("a", "1");
    world.scan().await;
    world.write("a", "2");
    world.scan().await;
    for name in ["valve.sqlite-wal", "valve.sqlite-shm"] {
        let _ = std::fs::remove_file(world.disk(&format!(".tgp/state/{name}")));
    }
    std::fs::write(world.journal(), "this was a journal once, and is not any more".repeat(100)).unwrap();
    world.write("a", "3");
    let report = world.scan().await;
    assert!(report.baseline, "{report:?}");
    let ValveEvent::Problem { error } = &report.events[0] else { panic!("{report:?}") };
    assert_eq!(error.code, Code::Integrity);
    assert!(error.message.contains("set aside"), "{error}");
    let aside = std::fs::read_dir(world.disk(".tgp/state")).unwrap().filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("valve.sqlite.damaged-")
    });
    assert_eq!(aside.count(), 1);
    world.write("a", "4");
    assert_eq!(world.scan().await.triggered, 1);
    let numbers: Vec<u64> =
        world.events("a.sage").await.iter().map(|event| event.fields["sequence"].as_u64().unwrap()).collect();
    assert!(
        numbers.is_sorted() && numbers[0] < numbers[1],
        "numbers of the lost journal came again: {numbers:?}"
    );
}

#[tokio::test]
async fn two_valves_do_not_work_on_one_project() {
    let world = World::new(EVERYTHING);
    let first = world.open().unwrap();
    let error = assert_code(world.open(), Code::Conflict);
    assert!(error.message.contains(&format!("process {}", std::process::id())), "{error}");
    assert_eq!(world.status().watcher.unwrap().pid, std::process::id());
    drop(first);
    assert!(world.status().watcher.is_none());
    world.open().unwrap();
}

#[tokio::test]
async fn what_is_missing_is_said_with_a_next_step() {
    let world = World::new(EVERYTHING);
    world.scan().await;
    world.remove(crate::support::PERSONAS);
    let error = assert_code(world.open(), Code::Config);
    assert!(error.help_of().unwrap().contains("personas:"), "{error}");
    assert!(world.status().personas_error.is_some());
    world.write(crate::support::PERSONAS, "personas: [{name: x}]");
    assert_eq!(assert_code(world.open(), Code::Config).place_of().unwrap().line, 1);
    let mut options = world.options();
    options.project = world.disk("nowhere");
    assert_code(Valve::open(&options), Code::NotFound);
}

#[tokio::test]
async fn a_project_that_is_gone_is_no_thousand_deletions() {
    let world = World::new(EVERYTHING);
    world.write("inner/a", "1");
    world.write("inner/.sage/valve.yml", EVERYTHING);
    let mut options = world.options();
    options.project = world.disk("inner");
    let mut valve = Valve::open(&options).unwrap();
    valve.scan(never()).await.unwrap();
    world.rename("inner", "away");
    assert_code(valve.scan(never()).await, Code::NotFound);
    world.rename("away", "inner");
    assert_eq!(valve.scan(never()).await.unwrap().changes, 0);
}

#[tokio::test]
async fn a_journal_that_is_emptied_or_makes_no_sense_is_a_loss_that_is_told() {
    let world = World::new(EVERYTHING);
    let lost = |report: &tgp_valve::ScanReport| matches!(&report.events[0], ValveEvent::Problem { error } if error.code == Code::Integrity);
    let mut content = 0;
    let mut edit = || {
        content += 1;
        world.write("a", format!("{content}"));
        world.clock.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed);
    };
    edit();
    assert!(!lost(&world.scan().await));
    edit();
    world.scan().await;
    for name in ["valve.sqlite-wal", "valve.sqlite-shm"] {
        let _ = std::fs::remove_file(world.disk(&format!(".tgp/state/{name}")));
    }
    std::fs::write(world.journal(), "").unwrap();
    assert!(lost(&world.scan().await));
    edit();
    world.scan().await;
    // A row that SQLite finds nothing wrong with.
    let connection = rusqlite::Connection::open(world.journal()).unwrap();
    connection.execute("UPDATE file SET path = '../outside' WHERE path = 'a'", []).unwrap();
    drop(connection);
    assert_code(world.open().unwrap().scan(never()).await, Code::Integrity);
    assert!(lost(&world.scan().await), "the next one begins anew");
    edit();
    world.scan().await;
    let events = world.events("a.sage").await;
    let numbers: Vec<u64> = events.iter().map(|event| event.fields["sequence"].as_u64().unwrap()).collect();
    assert!(numbers.len() == 3 && numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[tokio::test]
async fn a_rename_counts_as_what_comes_with_it() {
    let personas = "
personas:
  - {name: guard, filters: ['secret*'], changes: [created, changed], contents: [KEY]}
  - {name: leaver, filters: ['secret*'], changes: [deleted]}
  - {name: editor, filters: ['*.txt'], changes: [changed]}
";
    let world = World::new(personas);
    for name in ["notes.txt", "other.txt", "secret1"] {
        world.write(name, format!("KEY of {name}"));
    }
    world.scan().await;
    world.rename("notes.txt", "secret2");
    world.rename("secret1", "harmless");
    world.rename("other.txt", "third.txt");
    world.write("third.txt", "edited");
    world.scan().await;
    let mut told = world.told().await;
    told.sort();
    let expected = [
        "editor: renamed third.txt < other.txt",
        "guard: renamed secret2 < notes.txt",
        "leaver: renamed harmless < secret1",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_directory_that_was_removed_stays_removed() {
    let world = World::scoped(EVERYTHING);
    for number in 0..20 {
        world.write(&format!("src/old/deep/{number}"), format!("{number}"));
    }
    world.scan().await;
    world.write("src/old/deep/3", "three");
    world.scan().await;
    std::fs::remove_dir_all(world.disk("src/old")).unwrap();
    assert_eq!(world.scan().await.triggered, 20);
    assert!(!world.disk("src/old").exists(), "the chronicle has made it again");
    assert_eq!(world.events(tgp_valve::PROJECT_CHRONICLE).await.len(), 20);
    // A file that is deleted alone is reported in the chronicle that has its history.
    world.write("src/a", "1");
    world.scan().await;
    world.remove("src/a");
    world.scan().await;
    assert_eq!(world.events("src/a.sage").await[1].fields["change"], "deleted");
}

#[tokio::test]
async fn another_folder_in_the_place_of_the_project_is_not_taken_for_it() {
    let world = World::new(EVERYTHING);
    for folder in ["one", "two"] {
        world.write(&format!("{folder}/a"), folder);
        world.write(&format!("{folder}/.sage/valve.yml"), EVERYTHING);
    }
    let mut options = world.options();
    options.project = world.disk("one");
    let mut valve = Valve::open(&options).unwrap();
    valve.scan(never()).await.unwrap();
    world.rename("one", "away");
    world.rename("two", "one");
    let error = assert_code(valve.scan(never()).await, Code::NotFound);
    assert!(error.message.contains("another folder"), "{error}");
}

#[tokio::test]
async fn nobody_mutes_a_file_by_what_stands_in_the_place_of_its_chronicle() {
    let world = World::scoped(EVERYTHING);
    for name in ["src/a", "src/b", "src/c", "src/m/x"] {
        world.write(name, "1");
    }
    world.scan().await;
    std::fs::create_dir(world.disk("src/a.sage")).unwrap();
    world.write("src/b.sage", "garbage\n");
    std::os::unix::fs::symlink("/tmp/nowhere", world.disk("src/c.sage")).unwrap();
    std::fs::remove_dir_all(world.disk("src/m")).unwrap();
    for name in ["src/a", "src/b", "src/c", "src/m"] {
        world.write(name, "2");
    }
    let report = world.scan().await;
    assert_eq!((report.triggered, report.pending), (5, 0), "{report:#?}");
    let problems = report.events.iter().filter(|event| matches!(event, ValveEvent::Problem { .. })).count();
    assert_eq!(problems, 3, "{report:#?}");
    assert_eq!(world.events(tgp_valve::PROJECT_CHRONICLE).await.len(), 4);
}
