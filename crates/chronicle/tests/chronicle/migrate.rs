//! Chronicles that an earlier version left beside the sources, and the way to the tree.

use tgp_chronicle::{Migration, MigrationReport};
use tgp_contract::{ChronicleEvent, Code};

use crate::layout::tree;
use crate::support::{Project, at, event, number};

fn numbers(events: &[ChronicleEvent]) -> Vec<usize> {
    events.iter().map(number).collect()
}

fn moved(report: &MigrationReport) -> Vec<(&str, &str, u64, bool)> {
    let row = |moved: &'_ tgp_chronicle::Migrated| (moved.events, moved.merged);
    report.moved.iter().map(|one| (one.from.as_str(), one.to.as_str(), row(one).0, row(one).1)).collect()
}

#[test]
fn chronicles_beside_the_sources_are_moved_once() {
    let project = tree(&[]);
    project.write("src/a.ts.sage", Project::lines(3).concat());
    project.write("src/deep/b.ts.sage", Project::lines(1).concat());
    project.write(".sage/project.sage", Project::lines(1).concat());
    project.write("src/curve.sage", "R.<x> = QQ[]\n");
    let seen = project.chronicle.migrate(Migration::DryRun).unwrap();
    assert!(
        project.disk("src/a.ts.sage").exists() && !project.disk(".sage/files").exists(),
        "a dry run changes nothing"
    );
    let report = project.chronicle.migrate(Migration::Apply).unwrap();
    assert_eq!(report, seen);
    assert_eq!(
        moved(&report),
        [
            ("src/a.ts.sage", ".sage/files/src/a.ts.sage", 3, false),
            ("src/deep/b.ts.sage", ".sage/files/src/deep/b.ts.sage", 1, false),
        ]
    );
    assert!(report.refused.is_empty());
    assert_eq!(project.bytes(".sage/files/src/a.ts.sage"), Project::lines(3).concat());
    assert!(!project.disk("src/a.ts.sage").exists());
    assert_eq!(
        project.bytes("src/curve.sage"),
        b"R.<x> = QQ[]\n",
        "a source of SageMath is nobody's chronicle"
    );
    assert_eq!(project.chronicle.migrate(Migration::Apply).unwrap(), MigrationReport::default());
    assert_eq!(project.chronicle.files_blocking().unwrap().len(), 3);
    assert!(project.chronicle.verify_all().unwrap().iter().all(tgp_chronicle::ChronicleReport::is_intact));
}

#[test]
fn events_of_both_places_are_kept_once_and_the_old_ones_come_first() {
    let project = tree(&[]);
    project.write("src/a.ts.sage", Project::lines(3).concat());
    for number in [1, 7, 8] {
        project.append("src/a.ts.sage", event(number)).unwrap();
    }
    let report = project.chronicle.migrate(Migration::Apply).unwrap();
    assert_eq!(moved(&report), [("src/a.ts.sage", ".sage/files/src/a.ts.sage", 3, true)]);
    assert_eq!(numbers(&project.events("src/a.ts.sage").unwrap()), [0, 1, 2, 7, 8]);
    // A process that had it open before continues with the new file.
    assert!(!project.append("src/a.ts.sage", event(2)).unwrap());
    assert!(project.append("src/a.ts.sage", event(9)).unwrap());
    assert_eq!(numbers(&project.events("src/a.ts.sage").unwrap()), [0, 1, 2, 7, 8, 9]);
}

/// A migration that was killed leaves one of these; the next one ends it.
#[test]
fn a_migration_that_was_killed_is_gone_on_with() {
    let states: [&dyn Fn(&Project); 3] = [
        // While it copied.
        &|project| {
            let digits = tgp_contract::canonical::sha256_hex(b".sage/files/src/a.ts.sage");
            project.write(
                &format!(".sage/files/src/.tgp-migrate-{}", &digits[..16]),
                &Project::lines(2).concat()[..40],
            );
        },
        // After the rename, and before the old file was removed.
        &|project| project.write(".sage/files/src/a.ts.sage", Project::lines(3).concat()),
        // The same, and another process has appended meanwhile.
        &|project| {
            project.write(".sage/files/src/a.ts.sage", Project::lines(3).concat());
            project.append("src/a.ts.sage", event(9)).unwrap();
        },
    ];
    for (index, state) in states.into_iter().enumerate() {
        let project = tree(&[]);
        project.write("src/a.ts.sage", Project::lines(3).concat());
        state(&project);
        let report = project.chronicle.migrate(Migration::Apply).unwrap();
        assert_eq!((report.moved.len(), report.refused.len()), (1, 0), "state {index}");
        let expected: &[usize] = if index == 2 { &[0, 1, 2, 9] } else { &[0, 1, 2] };
        assert_eq!(numbers(&project.events("src/a.ts.sage").unwrap()), expected, "state {index}");
        let left: Vec<_> = std::fs::read_dir(project.disk(".sage/files/src")).unwrap().collect();
        assert_eq!(left.len(), 1, "state {index}: {left:?}");
        assert!(!project.disk("src/a.ts.sage").exists());
    }
}

#[test]
fn what_is_not_intact_stays_where_it_is_and_says_why() {
    let lines = Project::lines(3);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let project = tree(&[]);
    project.write("src/changed.ts.sage", text(&lines.concat()).replace("the 1. event", "the 9. event"));
    project.write("src/first.ts.sage", text(&lines.concat()).replace("the 0. event", "the 9. event"));
    project.write("src/foreign.ts.sage", [lines[0].as_slice(), b"print(1)"].concat());
    project.write("src/named.ts.sage", &lines[0]);
    std::fs::hard_link(project.disk("src/named.ts.sage"), project.disk("other-name")).unwrap();
    project.write("src/fine.ts.sage", &lines[0]);
    let before = project.bytes("src/changed.ts.sage");
    let report = project.chronicle.migrate(Migration::Apply).unwrap();
    assert_eq!(moved(&report), [("src/fine.ts.sage", ".sage/files/src/fine.ts.sage", 1, false)]);
    let refused: Vec<(&str, &str)> =
        report.refused.iter().map(|one| (one.path.as_str(), one.reason.as_str())).collect();
    for (path, reason) in [
        ("src/changed.ts.sage", "line 2"),
        ("src/first.ts.sage", "line 1"),
        ("src/foreign.ts.sage", "not an event"),
        ("src/named.ts.sage", "second name"),
    ] {
        assert!(refused.iter().any(|(at, why)| *at == path && why.contains(reason)), "{path}: {refused:?}");
    }
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert_eq!(project.bytes("src/changed.ts.sage"), before);
    let left: Vec<String> = std::fs::read_dir(project.disk(".sage/files/src"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["fine.ts.sage"], "nothing half is left");
}

#[test]
fn a_torn_line_is_set_aside_and_comes_along() {
    let project = tree(&[]);
    let lines = Project::lines(2);
    project.write("src/a.ts.sage", [lines[0].as_slice(), &lines[1][..20]].concat());
    project.write("src/a.ts.sage.torn-00000000", "not what its name says");
    let report = project.chronicle.migrate(Migration::Apply).unwrap();
    assert_eq!(moved(&report), [("src/a.ts.sage", ".sage/files/src/a.ts.sage", 1, false)]);
    let checked = project.chronicle.verify(&at("src/a.ts.sage")).unwrap();
    assert!(checked.is_intact() && checked.torn.is_none());
    assert_eq!(checked.set_aside.len(), 1, "{checked:?}");
    assert_eq!(project.bytes(checked.set_aside[0].as_str()), &lines[1][..20]);
    let beside: Vec<_> =
        std::fs::read_dir(project.disk("src")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["a.ts.sage.torn-00000000"]);
}

#[test]
fn a_link_and_what_is_outside_of_the_scope_are_left_alone() {
    let project = tree(&[]);
    project.write("lib/a.ts.sage", Project::lines(1).concat());
    project.write("src/real.txt", Project::lines(1).concat());
    std::os::unix::fs::symlink("real.txt", project.disk("src/link.ts.sage")).unwrap();
    assert_eq!(project.chronicle.migrate(Migration::Apply).unwrap(), MigrationReport::default());
    // A link in place of the tree is not followed.
    project.write("src/a.ts.sage", Project::lines(1).concat());
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.disk(".sage")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), project.disk(".sage/files")).unwrap();
    let report = project.chronicle.migrate(Migration::Apply).unwrap();
    assert_eq!((report.moved.len(), report.refused.len()), (0, 1), "{report:?}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert!(project.disk("src/a.ts.sage").exists());
}

#[test]
fn the_tree_is_moved_beside_the_sources_where_the_layout_says_so() {
    let project = tree(&[]);
    project.append("src/a.ts.sage", event(1)).unwrap();
    project.append("src/x.sage/b.ts.sage", event(2)).unwrap();
    let beside = project.again();
    assert!(beside.tail_blocking(&at("src/a.ts.sage"), 10).unwrap().is_empty());
    let report = beside.migrate(Migration::Apply).unwrap();
    assert_eq!(
        moved(&report),
        [
            (".sage/files/src/a.ts.sage", "src/a.ts.sage", 1, false),
            (".sage/files/src/x.sage.d/b.ts.sage", "src/x.sage/b.ts.sage", 1, false),
        ]
    );
    assert_eq!(numbers(&beside.tail_blocking(&at("src/a.ts.sage"), 10).unwrap()), [1]);
    // A source of SageMath that is in the way is not overwritten.
    let project = tree(&[]);
    project.append("src/curve.sage", event(1)).unwrap();
    project.write("src/curve.sage", "R.<x> = QQ[]");
    let report = project.again().migrate(Migration::Apply).unwrap();
    assert_eq!((report.moved.len(), report.refused.len()), (0, 1), "{report:?}");
    assert_eq!(project.bytes("src/curve.sage"), b"R.<x> = QQ[]");
    assert!(project.disk(".sage/files/src/curve.sage").exists());
}

#[test]
fn events_that_are_appended_during_a_migration_are_kept() {
    let project = tree(&[]);
    project.write("src/a.ts.sage", Project::lines(200).concat());
    let chronicle = project.chronicle.clone();
    let appending = std::thread::spawn(move || {
        for number in 1000..1100 {
            let outcome = chronicle.append_blocking(&at("src/a.ts.sage"), event(number));
            assert!(outcome.is_ok() || outcome.is_err_and(|error| error.code == Code::Conflict));
        }
    });
    let report = project.chronicle.migrate(Migration::Apply).unwrap();
    appending.join().unwrap();
    assert_eq!((report.moved.len(), report.refused.len()), (1, 0), "{report:?}");
    let mut found = numbers(&project.events("src/a.ts.sage").unwrap());
    assert_eq!(found.len(), 300);
    found.sort_unstable();
    assert_eq!(found, (0..200).chain(1000..1100).collect::<Vec<_>>());
}
