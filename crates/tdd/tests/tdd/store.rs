//! What a store keeps, and what it refuses.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tgp_contract::{Code, FileEffect, Root, TddMode, TddState, Verdict};
use tgp_tdd::{Scope, SourceSnapshot, Store, Tdd, TddOptions, TestOutcome, TestRun, WriteKind};

use crate::support::{NEW_TEST, OLD_CODE, World, path};

pub fn open(file: &Path) -> Tdd {
    Tdd::open(Store::open(file).unwrap(), &TddOptions::default()).unwrap()
}

#[test]
fn a_restart_in_any_state_goes_on_where_it_was() {
    for state in TddState::ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tdd.db");
        let mut world = World::at(TddMode::Strict, *state);
        // The same steps, in a store on disk.
        let kept = World::with(open(&file));
        let steps: &[&dyn Fn(&World)] = &[
            &|world| world.write(NEW_TEST, Some("new test")),
            &|world| drop(world.fails(Some(&[NEW_TEST]))),
            &|world| world.write("src/b.ts", Some("new code")),
            &|world| drop(world.passes()),
            &|world| world.write(OLD_CODE, Some("tidied code")),
        ];
        for step in steps {
            if kept.state() == *state {
                break;
            }
            step(&kept);
        }
        if kept.state() != *state {
            // `done` and `halted` are set by command, `done` only from green.
            kept.passes();
            kept.tdd.set(&Scope::Project, *state, &kept.disk).unwrap();
        }
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let World { disk, tdd, .. } = kept;
        drop(tdd);
        let kept = World { tdd: open(&file), disk, scope: Scope::Project };
        assert_eq!(kept.state(), *state);
        for kind in [WriteKind::Create, WriteKind::Modify, WriteKind::Delete] {
            assert_eq!(kept.may(kind, OLD_CODE), world.may(kind, OLD_CODE), "{kind:?} in {state:?}");
        }
        // And so do the facts behind it: what was new still is, and what was seen is still compared.
        world.outside(NEW_TEST, Some("edited"));
        kept.outside(NEW_TEST, Some("edited"));
        assert_eq!(kept.may(WriteKind::Modify, OLD_CODE), world.may(WriteKind::Modify, OLD_CODE));
        world.scope = Scope::Project;
        assert_eq!(kept.fails(None).state_after, world.fails(None).state_after, "{state:?}");
    }
}

#[test]
fn runs_are_kept_whole_and_only_the_last_of_them() {
    let world = World::at(TddMode::Strict, TddState::TestWritten);
    let run = TestRun { command: "é".repeat(4000), ..world.run(1, 3, 1) };
    world.note(&run);
    let last = world.tdd.last_run(&Scope::Project).unwrap().unwrap();
    assert_eq!((last.exit_code, last.passed, last.failed), (Some(1), Some(3), Some(1)));
    assert_eq!(
        (last.outcome, last.state_before, last.state_after),
        (TestOutcome::Failed, TddState::TestWritten, TddState::Red)
    );
    assert_eq!((last.started_ms, last.duration_ms), (1_700_000_000_000, 12));
    assert_eq!(last.command, "é".repeat(2048));
    assert_eq!(last.fingerprint.len(), 64);
    for number in 0..205 {
        world.note(&TestRun { command: number.to_string(), ..world.run(0, 1, 0) });
    }
    let runs = world.tdd.runs(&Scope::Project, usize::MAX).unwrap();
    assert_eq!(runs.len(), 200);
    assert_eq!(runs[0].command, "204");
    assert!(runs.windows(2).all(|pair| pair[0].id > pair[1].id));
    // The same files have the same fingerprint, others another.
    assert_eq!(runs[0].fingerprint, last.fingerprint);
    world.outside(OLD_CODE, Some("other"));
    world.passes();
    assert_ne!(world.tdd.last_run(&Scope::Project).unwrap().unwrap().fingerprint, last.fingerprint);
}

#[test]
fn scopes_are_listed_with_the_last_one_first_and_the_oldest_are_forgotten() {
    let world = World::at(TddMode::Strict, TddState::Red);
    let halted = Scope::parse("tools/halted.ts").unwrap();
    world.tdd.set(&halted, TddState::Halted, &world.disk).unwrap();
    let changes: Vec<FileEffect> = (0..10_050)
        .map(|number| FileEffect {
            root: Root::Tools,
            path: path(&format!("tools/t{number:05}.test.ts")),
            before: None,
            after: Some("0".repeat(64)),
            diff: None,
            executable: None,
            event: None,
        })
        .collect();
    world.tdd.note_changes(&changes).unwrap();
    let scopes = world.tdd.scopes().unwrap();
    assert_eq!(scopes.len(), 10_000);
    assert_eq!(scopes[0], (Scope::parse("tools/t10049.ts").unwrap(), TddState::TestWritten));
    assert!(scopes.contains(&(Scope::Project, TddState::Red)));
    assert!(scopes.contains(&(halted, TddState::Halted)));
    // A forgotten scope admits nothing, also in the process that had it in memory.
    for (number, expected) in [(0, TddState::Idle), (10_049, TddState::TestWritten)] {
        let scope = Scope::parse(&format!("tools/t{number:05}.ts")).unwrap();
        assert_eq!(world.tdd.state(&scope).unwrap(), expected);
    }
    let oldest = world.tdd.scopes().unwrap().iter().rev().find_map(|(scope, _)| match scope {
        Scope::Tool(tool) if tool.as_str() != "tools/halted.ts" => Some(scope.clone()),
        _ => None,
    });
    let oldest = oldest.unwrap();
    assert_eq!(world.tdd.state(&oldest).unwrap(), TddState::TestWritten);
    world.tdd.set(&Scope::parse("tools/one_more.ts").unwrap(), TddState::Halted, &world.disk).unwrap();
    assert_eq!(world.tdd.state(&oldest).unwrap(), TddState::Idle);
}

#[test]
fn a_snapshot_is_bounded_and_holds_hashes_only() {
    let mut snapshot = SourceSnapshot::new();
    for bad in ["", "abc", &"A".repeat(64), &"g".repeat(64)] {
        assert!(snapshot.insert(path("a"), bad.to_owned()).is_err(), "{bad}");
    }
    for number in 0..50_000 {
        snapshot.insert(path(&number.to_string()), "0".repeat(64)).unwrap();
    }
    assert!(snapshot.insert(path("more"), "0".repeat(64)).is_err());
    snapshot.insert(path("7"), "1".repeat(64)).unwrap();
    assert_eq!((snapshot.len(), snapshot.get(&path("7"))), (50_000, Some("1".repeat(64).as_str())));
}

#[test]
fn a_store_that_is_none_is_refused_and_denies() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tdd.db");
    std::fs::write(&file, "this is not a database at all, but it is long enough to look like one").unwrap();
    assert_eq!(Store::open(&file).unwrap_err().code, Code::Integrity);
    assert_eq!(Store::open(&folder.path().join("no/folder.db")).unwrap_err().code, Code::Internal);

    let change = |sql: &str| {
        let file = folder.path().join("damaged.db");
        let world = World::with(open(&file));
        world.write(NEW_TEST, Some("new test"));
        rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let answer = world.judge(WriteKind::Create, "src/c.ts");
        let reopened = Store::open(&file).map(drop);
        drop(world);
        std::fs::remove_file(&file).unwrap();
        (answer, reopened)
    };
    for damage in [
        "UPDATE machine SET state = 'splendid'",
        "UPDATE machine SET cycle = 'often'",
        "UPDATE file SET path = '../up'",
        "UPDATE file SET role = 'guest'",
    ] {
        let Verdict::Deny { rule, error } = change(damage).0 else { panic!("{damage} is not noticed") };
        assert_eq!((rule.as_str(), error.code), ("tdd/store", Code::Integrity), "{damage}");
    }
    // Pages are gone: the file is named, with what a person can do.
    let short = folder.path().join("short.db");
    drop(World::with(open(&short)));
    std::fs::OpenOptions::new().write(true).open(&short).unwrap().set_len(8192).unwrap();
    let error = Store::open(&short).unwrap_err();
    assert_eq!(error.code, Code::Integrity, "{error:?}");
    assert!(error.help_of().is_some_and(|help| help.contains("rename")), "{error:?}");
    let (_, reopened) = change("PRAGMA user_version = 9");
    assert_eq!(reopened.unwrap_err().code, Code::Config);
}
