//! What a crash leaves at the end of a file, cut at every byte.

use tgp_chronicle::Start;
use tgp_contract::Code;

use crate::support::{Project, assert_code, at, event, number};

const FILE: &str = "src/a.ts.sage";

/// A file of two whole lines and `rest`.
fn project_with(rest: &[u8]) -> (Project, Vec<u8>) {
    let project = Project::new();
    let before = Project::lines(2).concat();
    project.write(FILE, [&before, rest].concat());
    (project, before)
}

fn numbers(project: &Project) -> Vec<usize> {
    project.events(FILE).unwrap().iter().map(number).collect()
}

#[test]
fn a_line_cut_at_any_byte_is_set_aside_whole_and_nothing_before_it_is_touched() {
    let third = Project::lines(3).pop().unwrap();
    for cut in 1..third.len() {
        let rest = &third[..cut];
        let (project, before) = project_with(rest);

        // A reader sees the events before it, and a report of it.
        assert_eq!(numbers(&project), [0, 1], "cut at {cut}");
        let torn = project.chronicle.read(&at(FILE), Start::Beginning).unwrap().torn().cloned().unwrap();
        assert_eq!((torn.offset, torn.bytes), (before.len() as u64, cut as u64));
        assert_eq!(
            project.chronicle.tail_blocking(&at(FILE), 1).unwrap().iter().map(number).collect::<Vec<_>>(),
            [1]
        );
        let report = project.chronicle.verify(&at(FILE)).unwrap();
        assert!(report.is_intact() && report.events == 2, "cut at {cut}: {report:?}");
        assert_eq!(report.torn, Some(torn));
        assert_eq!(project.bytes(FILE).len(), before.len() + cut, "reading changes nothing");

        // The event that was cut off is not there, so it is kept now.
        let outcome = project.chronicle.append_blocking(&at(FILE), event(2)).unwrap();
        assert!(outcome.appended.appended);
        let kept = outcome.set_aside.unwrap();
        assert_eq!(project.bytes(kept.kept.as_str()), rest, "cut at {cut}");
        assert_eq!((kept.offset, kept.bytes, kept.file), (before.len() as u64, cut as u64, at(FILE)));
        assert_eq!(project.bytes(FILE), [&before, &third[..]].concat(), "cut at {cut}");
        let report = project.chronicle.verify(&at(FILE)).unwrap();
        assert!(report.torn.is_none() && report.set_aside == [kept.kept.clone()], "{report:?}");
        assert_eq!(
            project.chronicle.take_set_aside().iter().map(|note| &note.kept).collect::<Vec<_>>(),
            [&kept.kept]
        );
    }
}

#[test]
fn a_line_that_the_disk_lost_a_part_of_is_torn_although_it_ends() {
    let third = Project::lines(3).pop().unwrap();
    let mut holes = third.clone();
    holes[20..60].fill(0);
    let zeros = [&vec![0; 300][..], b"\n"].concat();
    for rest in [holes, zeros, vec![0; 5000]] {
        let (project, before) = project_with(&rest);
        assert_eq!(numbers(&project), [0, 1]);
        let kept = project.chronicle.append_blocking(&at(FILE), event(1)).unwrap().set_aside.unwrap();
        assert_eq!(project.bytes(kept.kept.as_str()), rest);
        assert_eq!(project.bytes(FILE), before, "the event was there already");
    }
}

#[test]
fn a_file_that_is_nothing_but_a_torn_line_becomes_a_chronicle() {
    let project = Project::new();
    project.write(FILE, b"{\"actor\":{\"ag");
    assert_eq!(project.events(FILE).unwrap(), []);
    assert_eq!(project.append(FILE, event(0)), Ok(true));
    assert_eq!(numbers(&project), [0]);
}

#[test]
fn setting_aside_goes_on_after_a_crash_in_the_middle_of_it() {
    let rest = b"{\"actor\":{\"agent\":";
    // The copy was made and the file not yet cut.
    let (project, before) = project_with(rest);
    let kept = project.chronicle.append_blocking(&at(FILE), event(2)).unwrap().set_aside.unwrap();
    project.write(FILE, [&before, &rest[..]].concat());
    let again = project.chronicle.append_blocking(&at(FILE), event(2)).unwrap();
    assert!(again.appended.appended);
    assert_eq!(again.set_aside.unwrap().kept, kept.kept);
    assert_eq!(std::fs::read_dir(project.disk("src")).unwrap().count(), 2);

    // Only a part of the copy was made: those bytes are left alone, and the copy gets a longer name.
    project.write(kept.kept.as_str(), &rest[..5]);
    project.write(FILE, [&before, &rest[..]].concat());
    let other = project.chronicle.append_blocking(&at(FILE), event(2)).unwrap().set_aside.unwrap();
    assert!(other.kept.as_str().starts_with(kept.kept.as_str()) && other.kept != kept.kept, "{}", other.kept);
    assert_eq!(project.bytes(kept.kept.as_str()), &rest[..5]);
    assert_eq!(project.bytes(other.kept.as_str()), rest);
    assert_eq!(numbers(&project), [0, 1, 2]);
}

#[test]
fn a_file_of_somebody_else_is_never_appended_to_nor_cut() {
    for content in ["print(factor(2^64+1))", "x = 1\nprint(x)\n", "\n", " {\"actor\":1}x", "[1,2,3"] {
        let project = Project::new();
        project.write("src/primes.sage", content);
        assert_code(project.append("src/primes.sage", event(0)), Code::Integrity);
        assert_eq!(project.bytes("src/primes.sage"), content.as_bytes());
        assert_code(project.events("src/primes.sage"), Code::Integrity);
        assert_code(project.chronicle.tail_blocking(&at("src/primes.sage"), 5), Code::Integrity);
        assert!(!project.chronicle.verify(&at("src/primes.sage")).unwrap().is_intact());
        assert_eq!(std::fs::read_dir(project.disk("src")).unwrap().count(), 1);
    }
}
