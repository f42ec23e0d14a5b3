//! Results that the disk has overtaken neither admit nor block anything.

use tgp_contract::{Root, TddMode, TddState, Verdict};
use tgp_tdd::{Scope, WriteKind};

use crate::support::{NEW_CODE, NEW_TEST, OLD_CODE, OLD_TEST, World};

fn refused_by(verdict: Verdict) -> String {
    match verdict {
        Verdict::Deny { rule, .. } => rule,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failing_test_that_was_edited_outside_admits_nothing_until_it_fails_again() {
    for state in [TddState::Red, TddState::CodeAllowed] {
        let world = World::at(TddMode::Strict, state);
        for edit in [Some("weakened"), None] {
            world.outside(NEW_TEST, edit);
            assert_eq!(refused_by(world.judge(WriteKind::Create, "src/c.ts")), "tdd/stale-failure");
            assert_eq!(refused_by(world.judge(WriteKind::Modify, OLD_CODE)), "tdd/stale-failure");
            assert!(world.tdd.standing(&world.scope, &world.disk).unwrap().stale);
        }
        // Put back as it was, it is the same test.
        world.outside(NEW_TEST, Some("new test"));
        assert!(world.may(WriteKind::Create, "src/c.ts"));
        // Or run as it is now.
        world.outside(NEW_TEST, Some("stronger"));
        world.fails(Some(&[NEW_TEST]));
        assert!(world.may(WriteKind::Create, "src/c.ts"));
        // Other files are not part of the admission.
        world.outside(OLD_CODE, Some("by hand"));
        world.outside(OLD_TEST, Some("by hand"));
        assert!(world.may(WriteKind::Create, "src/c.ts"));
    }
}

#[test]
fn a_pass_that_was_overtaken_admits_no_refactoring_and_no_end() {
    for state in [TddState::Green, TddState::Refactor] {
        for file in [OLD_CODE, OLD_TEST, NEW_CODE, NEW_TEST] {
            for edit in [Some("by hand"), None] {
                let world = World::at(TddMode::Strict, state);
                assert!(world.may(WriteKind::Modify, NEW_CODE));
                world.outside(file, edit);
                assert_eq!(refused_by(world.judge(WriteKind::Modify, NEW_CODE)), "tdd/stale-pass", "{file}");
                assert!(world.tdd.finish(&world.scope, &world.disk).is_err());
                // Dead code may go all the same: that rests on no run.
                assert!(world.may(WriteKind::Delete, NEW_CODE));
                // A change that is noted on top of it does not hide it.
                world.write(file, Some("on top"));
                if world.state() == TddState::Refactor {
                    assert_eq!(refused_by(world.judge(WriteKind::Modify, NEW_CODE)), "tdd/stale-pass");
                }
                // After a run of the current files work continues, whichever way it ends.
                let failing = World::at(TddMode::Strict, state);
                failing.outside(file, edit);
                let state_after = failing.fails(Some(&["tests/other.test.ts"])).state_after;
                assert_eq!(state_after, TddState::Refactor);
                assert!(failing.may(WriteKind::Modify, OLD_CODE));
                assert_eq!(world.passes().state_after, TddState::Green);
                assert!(world.may(WriteKind::Modify, NEW_CODE));
                world.tdd.finish(&world.scope, &world.disk).unwrap();
            }
        }
    }
}

#[test]
fn changes_that_are_noted_make_nothing_stale() {
    let world = World::at(TddMode::Strict, TddState::Green);
    for round in 0..3 {
        world.write(OLD_CODE, Some(&format!("step {round}")));
        assert!(world.may(WriteKind::Modify, OLD_CODE));
    }
    world.write(NEW_CODE, None);
    world.write("README.md", Some("words"));
    assert!(world.may(WriteKind::Modify, OLD_CODE));
    assert!(!world.tdd.standing(&world.scope, &world.disk).unwrap().stale);
}

#[test]
fn dead_code_is_deleted_while_nothing_is_under_way_and_then_the_tests_decide() {
    let world = World::at(TddMode::Strict, TddState::Green);
    assert!(world.may(WriteKind::Delete, OLD_CODE));
    world.write(OLD_CODE, None);
    assert_eq!(world.state(), TddState::Refactor);
    assert_eq!(world.fails(None).state_after, TddState::Refactor);
    // It was not dead. Other code can be fixed, but a file that is gone is a new one.
    assert!(world.may(WriteKind::Modify, NEW_CODE));
    assert!(!world.may(WriteKind::Create, OLD_CODE));
    assert_eq!(world.passes().state_after, TddState::Green);
    assert!(World::new(TddMode::Strict).may(WriteKind::Delete, OLD_CODE));
}

#[test]
fn a_tools_pass_also_rests_on_the_tools_it_uses() {
    let mut world = World::new(TddMode::Strict);
    world.scope = Scope::parse("tools/a.ts").unwrap();
    world.outside("tools/used.ts", Some("used"));
    world.outside("tools/used.test.ts", Some("its test"));
    world.write("tools/a.test.ts", Some("test"));
    assert_eq!(world.fails(None).state_after, TddState::Red);
    world.write("tools/a.ts", Some("code"));
    assert_eq!(world.passes().state_after, TddState::Green);
    assert!(world.may(WriteKind::Modify, "tools/a.ts"));
    world.disk.put(Root::Tools, "tools/used.ts", Some("other"));
    assert_eq!(refused_by(world.judge(WriteKind::Modify, "tools/a.ts")), "tdd/stale-pass");
    // The test of another tool is not this one's: that it is new does not make this one red.
    world.passes();
    world.disk.put(Root::Tools, "tools/used.test.ts", Some("changed"));
    assert_eq!(world.fails(None).state_after, TddState::Refactor);
}
