//! Every state and every event: one table.

use tgp_contract::{Code, Root, TddMode, TddState};
use tgp_tdd::{Scope, Selection, SourceSnapshot, TestOutcome, TestRun, WriteKind};

use crate::support::{Disk, NEW_CODE, NEW_TEST, OLD_CODE, OLD_TEST, World, path, store_in_memory};

/// Brings the event about, and says whether it was accepted.
type Event = fn(&World) -> bool;

fn set(world: &World, state: TddState) -> bool {
    match world.tdd.set(&world.scope, state, &world.disk) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.code, Code::State);
            assert!(error.help_of().is_some());
            false
        }
    }
}

const fn yes<T>(_: &T) -> bool {
    true
}

/// A failing run of some tests, by its name.
fn fails_in_part(world: &World, files: Option<&[&str]>) -> TestOutcome {
    let failing_files = files.map(|files| files.iter().map(|file| path(file)).collect());
    world.note(&TestRun { selection: Selection::Part, failing_files, ..world.run(1, 1, 1) }).outcome
}

#[rustfmt::skip]
const TABLE: &[(&str, Event, &str)] = &[
    // One letter for each state that follows, from: Idle, Test written, Red, Code allowed, Green, reFactor, Done, Halted.
    ("begin again",      |w| yes(&w.tdd.begin(&w.scope, &SourceSnapshot::new()).unwrap()),           "ITRCGFDH"),
    ("new test",         |w| yes(&w.write("tests/c.test.ts", Some("c"))),                      "TTTTTTTH"),
    ("changed test",     |w| yes(&w.write(OLD_TEST, Some("changed"))),                         "TTTTTTTH"),
    ("deleted test",     |w| yes(&w.write(OLD_TEST, None)),                                    "ITTTTTDH"),
    ("same test again",  |w| yes(&w.write(OLD_TEST, Some("old test"))),                        "ITRCGFDH"),
    ("new code",         |w| yes(&w.write("src/c.ts", Some("c"))),                             "ITCCFFIH"),
    ("changed code",     |w| yes(&w.write(OLD_CODE, Some("changed"))),                         "ITCCFFIH"),
    ("deleted code",     |w| yes(&w.write(OLD_CODE, None)),                                    "ITCCFFIH"),
    ("exempt file",      |w| yes(&w.write("README.md", Some("words"))),                        "ITRCGFDH"),
    ("pass",             |w| w.passes().outcome == TestOutcome::Passed,                            "GGGGGGGH"),
    ("pass of a part",   |w| yes(&w.note(&TestRun { selection: Selection::Part, ..w.run(0, 1, 0) })), "ITRCGFDH"),
    ("failure somewhere", |w| w.fails(None).outcome == TestOutcome::Failed,                        "FRRCFFFH"),
    ("failure in new",   |w| w.fails(Some(&[OLD_TEST, NEW_TEST])).outcome == TestOutcome::Failed,  "FRRCFFFH"),
    ("failure in old",   |w| w.fails(Some(&[OLD_TEST])).outcome == TestOutcome::Failed,            "FFRCFFFH"),
    ("a part, unknown",  |w| fails_in_part(w, None) == TestOutcome::Inconclusive,                  "ITRCGFDH"),
    ("a part, no file",  |w| fails_in_part(w, Some(&[])) == TestOutcome::Inconclusive,             "ITRCGFDH"),
    ("a part, in new",   |w| fails_in_part(w, Some(&[NEW_TEST])) == TestOutcome::Failed,           "IRRCFFFH"),
    ("a part, in old",   |w| fails_in_part(w, Some(&[OLD_TEST])) == TestOutcome::Failed,           "FFRCFFFH"),
    ("no test ran",      |w| w.note(&w.run(0, 0, 0)).outcome == TestOutcome::Inconclusive,         "ITRCGFDH"),
    ("runner broke",     |w| w.note(&w.run(2, 0, 0)).outcome == TestOutcome::Inconclusive,         "ITRCGFDH"),
    ("out of time",      |w| w.note(&TestRun { exit_code: None, ..w.run(1, 0, 1) }).outcome == TestOutcome::Inconclusive, "ITRCGFDH"),
    ("words contradict", |w| w.note(&w.run(0, 1, 1)).outcome == TestOutcome::Inconclusive,         "ITRCGFDH"),
    ("no file hashed",   |w| w.note(&TestRun { before: SourceSnapshot::new(), after: SourceSnapshot::new(), ..w.run(1, 0, 1) }).outcome == TestOutcome::Inconclusive, "ITRCGFDH"),
    ("stale pass",       |w| w.note(&TestRun { after: SourceSnapshot::new(), ..w.run(0, 2, 0) }).outcome == TestOutcome::Stale, "ITRCGFDH"),
    ("stale failure",    |w| w.note(&TestRun { after: SourceSnapshot::new(), ..w.run(1, 0, 1) }).outcome == TestOutcome::Stale, "ITRCGFDH"),
    ("set idle",         |w| set(w, TddState::Idle),                                           "IIIIIIII"),
    ("set halted",       |w| set(w, TddState::Halted),                                         "HHHHHHHH"),
    ("claim test",       |w| !set(w, TddState::TestWritten),                                   "ITRCGFDH"),
    ("claim red",        |w| !set(w, TddState::Red),                                           "ITRCGFDH"),
    ("claim code",       |w| !set(w, TddState::CodeAllowed),                                   "ITRCGFDH"),
    ("claim green",      |w| !set(w, TddState::Green),                                         "ITRCGFDH"),
    ("claim refactor",   |w| !set(w, TddState::Refactor),                                      "ITRCGFDH"),
    ("finish",           |w| set(w, TddState::Done) == (w.state() == TddState::Done),          "ITRCDFDH"),
];

fn letter(state: TddState) -> char {
    match state {
        TddState::Idle => 'I',
        TddState::TestWritten => 'T',
        TddState::Red => 'R',
        TddState::CodeAllowed => 'C',
        TddState::Green => 'G',
        TddState::Refactor => 'F',
        TddState::Done => 'D',
        TddState::Halted => 'H',
    }
}

#[test]
fn every_event_in_every_state_leads_where_the_table_says() {
    for mode in TddMode::ALL {
        for (name, event, expected) in TABLE {
            let mut reached = String::new();
            for state in TddState::ALL {
                let world = World::at(*mode, *state);
                assert!(event(&world), "`{name}` in {state:?}");
                reached.push(letter(world.state()));
            }
            assert_eq!(&reached, expected, "`{name}` in mode {mode:?}");
        }
    }
}

#[test]
fn a_failing_run_leads_back_to_where_the_code_was_written() {
    // For a failing test: it is corrected, passes now, and the code has broken an old one.
    let world = World::at(TddMode::Strict, TddState::CodeAllowed);
    world.write(NEW_TEST, Some("new test, corrected"));
    assert_eq!(world.fails(Some(&[OLD_TEST])).state_after, TddState::Red);
    // While refactoring.
    let world = World::at(TddMode::Strict, TddState::Refactor);
    world.write(OLD_TEST, Some("old test, tidied"));
    assert_eq!(world.state(), TddState::TestWritten);
    assert_eq!(world.fails(Some(&["tests/elsewhere.test.ts"])).state_after, TddState::Refactor);
    // A test that was reverted admits no new code.
    let world = World::at(TddMode::Strict, TddState::CodeAllowed);
    world.write(NEW_TEST, None);
    assert_eq!(world.fails(None).state_after, TddState::Refactor);
    assert!(!world.may(WriteKind::Create, "src/c.ts"));
}

#[test]
fn what_is_new_is_measured_against_the_last_green_run() {
    let world = World::at(TddMode::Strict, TddState::Green);
    // Nothing is new any more, so a failure of the same test admits nothing new.
    world.tdd.set(&world.scope, TddState::Idle, &world.disk).unwrap();
    assert_eq!(world.fails(Some(&[NEW_TEST])).state_after, TddState::Refactor);
    assert!(!world.may(WriteKind::Create, "src/c.ts"));
    // Changed and changed back is not changed.
    world.write(NEW_TEST, Some("other"));
    world.write(NEW_TEST, Some("new test"));
    assert_eq!(world.fails(None).state_after, TddState::Refactor);
    // A test that another author wrote is as new as any other.
    world.outside("tests/by_hand.test.ts", Some("by hand"));
    assert_eq!(world.fails(Some(&["tests/by_hand.test.ts"])).state_after, TddState::Red);
}

#[test]
fn a_test_of_which_nothing_is_known_is_not_new() {
    // It was not reported what was there as the work began, so only what was seen to change is new.
    let world = World { tdd: store_in_memory(TddMode::Strict), disk: Disk::default(), scope: Scope::Project };
    world.outside(OLD_TEST, Some("old test"));
    world.outside(OLD_CODE, Some("old code"));
    assert_eq!(world.fails(None).state_after, TddState::Refactor);
    world.write(NEW_TEST, Some("new test"));
    assert_eq!(world.fails(Some(&[OLD_TEST])).state_after, TddState::Refactor);
    assert!(!world.may(WriteKind::Create, NEW_CODE));
    assert_eq!(world.fails(None).state_after, TddState::Red);
    let standing = world.tdd.standing(&world.scope, &world.disk).unwrap();
    assert_eq!(standing.failing_tests, [path(NEW_TEST)]);
    // A beginning that is reported late does not revoke what is known, and makes the rest old.
    world.tdd.begin(&world.scope, &world.disk.snapshot(Root::Project)).unwrap();
    assert_eq!(world.fails(Some(&[NEW_TEST])).state_after, TddState::Red);
    world.write("tests/c.test.ts", Some("c"));
    assert!(world.tdd.standing(&world.scope, &world.disk).unwrap().failing_tests.is_empty());
}

#[test]
fn without_numbers_the_exit_code_decides() {
    for (exit_code, expected) in [
        (0, TestOutcome::Passed),
        (1, TestOutcome::Failed),
        (101, TestOutcome::Failed),
        (126, TestOutcome::Inconclusive),
        (127, TestOutcome::Inconclusive),
    ] {
        let world = World::at(TddMode::Strict, TddState::TestWritten);
        let run = TestRun { passed: None, failed: None, ..world.run(exit_code, 0, 0) };
        assert_eq!(world.note(&run).outcome, expected, "{exit_code}");
    }
}

#[test]
fn bug_a_filter_blames_no_changed_test_that_did_not_run() {
    // A runner that says nothing of files, with a filter that matches nothing or something old.
    let world = World::at(TddMode::Strict, TddState::TestWritten);
    for (passed, failed) in [(None, None), (Some(0), Some(0)), (Some(1), Some(1))] {
        let run = TestRun { selection: Selection::Part, passed, failed, ..world.run(1, 0, 0) };
        let noted = world.note(&run);
        assert_eq!((noted.outcome, noted.state_after), (TestOutcome::Inconclusive, TddState::TestWritten));
        assert!(noted.why.contains("run all tests"), "{}", noted.why);
    }
    // The new test was changed after it failed, and only an old one runs.
    let world = World::at(TddMode::Strict, TddState::CodeAllowed);
    world.write(NEW_TEST, Some("new test, changed"));
    assert_eq!(fails_in_part(&world, Some(&[OLD_TEST])), TestOutcome::Failed);
    assert_eq!(world.state(), TddState::TestWritten);
    assert_eq!(fails_in_part(&world, Some(&[OLD_TEST, NEW_TEST])), TestOutcome::Failed);
    assert_eq!(world.state(), TddState::Red);
}
