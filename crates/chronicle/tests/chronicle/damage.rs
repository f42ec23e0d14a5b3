//! Chronicles that were changed from outside.

use tgp_chronicle::Start;
use tgp_contract::Code;

use crate::support::{Project, assert_code, at, event, number};

const FILE: &str = ".sage/project.sage";

#[test]
fn every_changed_byte_of_a_line_is_found() {
    let lines = Project::lines(3);
    let project = Project::new();
    for place in 0..lines[1].len() - 1 {
        let mut changed = lines.clone();
        // Another character of the same kind, so that the line stays JSON as often as possible.
        let byte = &mut changed[1][place];
        *byte = if byte.is_ascii_digit() { b'0' + (*byte - b'0' + 1) % 10 } else { *byte ^ 1 };
        project.write(FILE, changed.concat());
        let report = project.chronicle.verify(&at(FILE)).unwrap();
        assert_eq!(report.events, 2, "the change of byte {place} was not found");
        assert_eq!(report.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [2]);
    }
}

#[test]
fn verify_names_what_is_wrong_with_each_line() {
    let lines: Vec<String> =
        Project::lines(4).into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
    let first = &lines[0];
    let cases: [(String, &str); 8] = [
        ("no json\n".to_owned(), "not JSON"),
        ("\n".to_owned(), "not JSON"),
        ("{\"a\":1}\n".to_owned(), "not an event"),
        (first.replace("EDIT", "VOID"), "but the hash of the event is"),
        (first.replace(",\"", ", \""), "not the canonical JSON"),
        (first.replace("\"type\"", "\"zzz\":null,\"type\""), "but the hash of the event is"),
        (first.replace("{\"actor\"", "{\"actor\":{\"agent\":\"x\",\"id\":\"y\"},\"actor\""), "not an event"),
        (lines[3].replace("\"number\":3", "\"number\":3.0"), "not the canonical JSON"),
    ];
    for (line, expected) in cases {
        let project = Project::new();
        project.write(FILE, [&lines[1], &line, &lines[2]].map(String::as_str).concat());
        let report = project.chronicle.verify(&at(FILE)).unwrap();
        assert!(!report.is_intact());
        assert_eq!(report.problems.len(), 1, "{line}: {report:?}");
        assert_eq!(report.problems[0].line, 2);
        assert!(report.problems[0].problem.contains(expected), "{line}: {}", report.problems[0].problem);
        assert!(report.torn.is_none());
    }
}

#[test]
fn a_broken_line_is_an_error_with_its_place_and_the_events_around_it_are_there() {
    let lines = Project::lines(4);
    let project = Project::new();
    project.write(FILE, [&lines[0][..], &lines[1], b"{\"type\":1}\n", &lines[2]].concat());
    let entries: Vec<_> = project.chronicle.read(&at(FILE), Start::Beginning).unwrap().collect();
    assert_eq!(entries.len(), 4);
    let place = entries[2].clone().unwrap_err().place_of().unwrap();
    assert_eq!((place.file.as_str(), place.line), (FILE, 3));
    let good = entries.iter().filter_map(|entry| entry.as_ref().ok()).map(|entry| number(&entry.event));
    assert_eq!(good.collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(project.chronicle.tail_blocking(&at(FILE), 1).unwrap().len(), 1);
    let error = assert_code(project.chronicle.tail_blocking(&at(FILE), 2), Code::Integrity);
    assert_eq!(error.place_of().unwrap().line, 3);
    // An append continues after it, and knows the whole lines.
    assert_eq!(project.append(FILE, event(2)), Ok(false));
    assert_eq!(project.append(FILE, event(3)), Ok(true));
    let report = &project.chronicle.verify_all().unwrap()[0];
    assert_eq!((report.events, report.problems.len()), (4, 1));
}

#[test]
fn what_others_do_to_the_file_is_noticed_before_an_event_counts_as_there() {
    let lines = Project::lines(6);
    let project = Project::new();
    for number in 0..4 {
        project.append(FILE, event(number)).unwrap();
    }
    // Replaced by an older one, as git does when it changes branch.
    std::fs::remove_file(project.disk(FILE)).unwrap();
    project.write(FILE, lines[..2].concat());
    assert_eq!(project.append(FILE, event(3)), Ok(true));
    assert_eq!(project.append(FILE, event(1)), Ok(false));
    // Written over in place, shorter, of the same length, and longer.
    for content in [lines[..1].concat(), lines[4].clone(), lines[3..6].concat()] {
        project.write(FILE, &content);
        let known: Vec<usize> = project.events(FILE).unwrap().iter().map(number).collect();
        for candidate in 0..6 {
            project.write(FILE, &content);
            assert_eq!(
                project.append(FILE, event(candidate)),
                Ok(!known.contains(&candidate)),
                "{known:?} {candidate}"
            );
        }
    }
    // Removed.
    std::fs::remove_file(project.disk(FILE)).unwrap();
    assert_eq!(project.events(FILE).unwrap(), []);
    assert_code(project.chronicle.verify(&at(FILE)), Code::NotFound);
    assert_eq!(project.append(FILE, event(0)), Ok(true));
}

#[test]
fn a_place_that_is_no_line_is_no_place_to_begin() {
    let project = Project::new();
    project.append(FILE, event(0)).unwrap();
    let size = project.bytes(FILE).len() as u64;
    for offset in [1, size - 1, size + 1, u64::MAX] {
        assert_code(project.chronicle.read(&at(FILE), Start::Offset(offset)).map(|_| ()), Code::Validation);
    }
    assert_eq!(project.chronicle.read(&at(FILE), Start::Offset(size)).unwrap().count(), 0);
    assert_eq!(project.chronicle.read(&at(FILE), Start::Line(2)).unwrap().count(), 0);
    assert_eq!(project.chronicle.read(&at(FILE), Start::Line(0)).unwrap().count(), 1);
}

/// Two branches that were merged line by line: an event that both have is there twice.
#[test]
fn a_line_that_a_merge_repeats_is_counted_and_is_no_damage() {
    let lines = Project::lines(3);
    let project = Project::new();
    project.write(FILE, [&lines[0][..], &lines[1], &lines[0], &lines[2], &lines[1]].concat());
    let report = project.chronicle.verify(&at(FILE)).unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.events, report.repeated), (5, 2));
}
