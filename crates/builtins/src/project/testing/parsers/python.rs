//! pytest and unittest.

use tgp_contract::RelativePath;

use super::super::counts::{Output, Tally};
use super::super::text::{number_of, project_path};

pub(in super::super) fn read_pytest(output: &Output<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut summary = None;
    for line in output.stdout.lines() {
        if let Some(test) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) {
            // The message follows the last part of the name; a parameter may hold anything but a line's end.
            let test = test.split(" - ").next().unwrap_or_default().trim_end();
            let file = test.split("::").next().unwrap_or_default();
            if file.ends_with(".py") {
                tally.name(test, project_path(output.root, file));
            }
        } else if let Some(numbers) = pytest_summary(line) {
            summary = Some(numbers);
        }
    }
    if let Some(numbers) = summary {
        tally.is_understood = true;
        let count = |words: &[&str]| number_of(numbers, words).unwrap_or(0);
        tally.passed(count(&["passed"]).saturating_add(count(&["xpassed"])));
        tally.failed(count(&["failed"]).saturating_add(count(&["error", "errors"])));
        tally.skipped(count(&["skipped"]).saturating_add(count(&["xfailed"])));
    }
    tally
}

/// `1 failed, 3 passed in 0.17s`, with or without a frame of `=`.
fn pytest_summary(line: &str) -> Option<&str> {
    let (numbers, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let is_time =
        time.split(' ').next()?.strip_suffix('s')?.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_list = numbers == "no tests ran"
        || numbers.split(", ").all(|item| {
            item.split_once(' ').is_some_and(|(number, word)| {
                !number.is_empty()
                    && number.bytes().all(|digit| digit.is_ascii_digit())
                    && word.bytes().all(|letter| letter.is_ascii_lowercase())
            })
        });
    (is_time && is_list).then_some(numbers)
}

pub(in super::super) fn read_unittest(output: &Output<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut ran: Option<u64> = None;
    let mut open: Option<(&str, Option<RelativePath>)> = None;
    for line in output.stderr.lines() {
        if let Some(test) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) {
            if let Some((name, file)) = open.replace((test, None)) {
                tally.name(name, file);
            }
        } else if let (Some((_, file @ None)), Some(frame)) =
            (&mut open, line.trim_start().strip_prefix("File \""))
        {
            // The first frame inside the project is the test; those of the library come before it when it cannot load.
            *file = frame.split('"').next().and_then(|path| project_path(output.root, path));
        } else if let Some(rest) = line.strip_prefix("Ran ") {
            ran = rest.split(' ').next().and_then(|number| number.parse().ok());
        } else if let (Some(all), true) = (ran, is_unittest_result(line)) {
            tally.is_understood = true;
            let count = |word: &str| unittest_number(line, word);
            let failed = count("failures")
                .saturating_add(count("errors"))
                .saturating_add(count("unexpected successes"));
            let skipped = count("skipped").saturating_add(count("expected failures"));
            tally.failed(failed);
            tally.skipped(skipped);
            tally.passed(all.saturating_sub(failed).saturating_sub(skipped));
            ran = None;
        }
    }
    if let Some((name, file)) = open {
        tally.name(name, file);
    }
    tally
}

fn is_unittest_result(line: &str) -> bool {
    ["OK", "FAILED", "NO TESTS RAN"]
        .iter()
        .any(|word| line == *word || line.starts_with(&format!("{word} (")))
}

/// The number after `word=` in `FAILED (failures=1, errors=2)`.
fn unittest_number(line: &str, word: &str) -> u64 {
    let list = line.split_once('(').map_or("", |(_, list)| list.trim_end_matches(')'));
    list.split(", ")
        .filter_map(|item| item.split_once('='))
        .find(|(name, _)| *name == word)
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(0)
}
