//! What is undone of a list of changes.

use super::*;

fn change(batch: &str, path: &str, before: Option<&str>, after: Option<&str>) -> ImageLine {
    let before = match before {
        Some(hash) => LoggedBefore::File { sha256: hash.to_owned(), mode: 0o644 },
        None => LoggedBefore::Absent { missing_parents: 0 },
    };
    let path = RelativePath::new(path).unwrap();
    ImageLine::Change(LoggedChange {
        batch: batch.to_owned(),
        root: Root::Project,
        path,
        before,
        after: after.map(str::to_owned),
    })
}

fn ended(batch: &str, made: bool) -> ImageLine {
    ImageLine::Ended { batch: batch.to_owned(), made }
}

/// The hash each file is put back to.
fn restored(lines: &[ImageLine], now: Option<&str>) -> Vec<(String, Option<String>, bool)> {
    let plan = UndoPlan::of(lines, &|_| now.map(str::to_owned));
    let step = |step: &UndoStep| {
        (step.path.to_string(), step.restore.sha256().map(str::to_owned), step.keeps_other_change)
    };
    plan.steps.iter().map(step).collect()
}

#[test]
fn several_changes_of_one_file_go_back_to_its_first_content() {
    let lines = [
        change("1", "a", Some("s0"), Some("s1")),
        ended("1", true),
        change("2", "a", Some("s1"), Some("s2")),
        ended("2", true),
    ];
    assert_eq!(restored(&lines, Some("s2")), [("a".to_owned(), Some("s0".to_owned()), false)]);
}

#[test]
fn what_another_program_wrote_in_between_is_not_lost() {
    let lines = [
        change("1", "a", Some("s0"), Some("s1")),
        ended("1", true),
        change("2", "a", Some("mine"), Some("s2")),
        ended("2", true),
    ];
    assert_eq!(restored(&lines, Some("s2")), [("a".to_owned(), Some("mine".to_owned()), true)]);
}

#[test]
fn a_change_that_was_not_made_counts_for_nothing() {
    let lines = [change("1", "a", Some("s0"), Some("s1")), ended("1", false)];
    assert!(restored(&lines, Some("s0")).is_empty());
}

#[test]
fn a_change_that_a_kill_cut_off_counts_when_the_file_has_it() {
    let lines = [change("1", "a", None, Some("s1"))];
    assert_eq!(restored(&lines, Some("s1")), [("a".to_owned(), None, false)]);
    assert!(restored(&lines, None).is_empty());
}

#[test]
fn what_was_undone_is_not_undone_again() {
    let path = RelativePath::new("a").unwrap();
    let mut lines = vec![
        change("1", "a", Some("s0"), Some("s1")),
        ended("1", true),
        ImageLine::Undone { paths: vec![path] },
    ];
    assert!(restored(&lines, Some("s0")).is_empty());
    lines.extend([change("2", "a", Some("s0"), Some("s3")), ended("2", true)]);
    assert_eq!(restored(&lines, Some("s3")), [("a".to_owned(), Some("s0".to_owned()), false)]);
}
