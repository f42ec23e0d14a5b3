//! `cargo test`: libtest on stdout, cargo and the compiler on stderr.

use std::collections::HashMap;

use tgp_contract::RelativePath;

use super::super::counts::{Output, Tally};
use super::super::text::{number_of, path_of_place, project_path};

pub(in super::super) fn read(output: &Output<'_>, is_single_package: bool) -> Tally {
    let mut tally = Tally::default();
    let targets = read_cargo(output, &mut tally);
    read_libtest(output, &targets, is_single_package, &mut tally);
    tally
}

/// Reads errors, and gives the source of each test binary in the order in which they ran. It is relative to its package,
/// and empty for documentation tests.
fn read_cargo<'a>(output: &Output<'a>, tally: &mut Tally) -> Vec<&'a str> {
    let mut targets = Vec::new();
    let mut error: Option<&str> = None;
    let does_not_compile = output.stderr.contains("error: could not compile");
    for line in output.stderr.lines() {
        let words = line.trim();
        if let Some(target) = words.strip_prefix("Running ") {
            let target = target.strip_prefix("unittests ").unwrap_or(target);
            targets.push(target.split(" (").next().unwrap_or_default());
        } else if words.starts_with("Doc-tests ") {
            targets.push("");
        } else if words.starts_with("process didn't exit successfully") && words.contains("(signal: ") {
            tally.broken("a test binary crashed", None);
        } else if line.starts_with("error") && does_not_compile {
            error = Some(line);
        } else if let (Some(message), Some(place)) = (error, words.strip_prefix("--> ")) {
            tally.broken(message, project_path(output.root, path_of_place(place)));
            error = None;
        }
    }
    if does_not_compile && !tally.has_broken() {
        tally.broken("the code does not compile", None);
    }
    tally.is_understood |= does_not_compile;
    targets
}

fn read_libtest(output: &Output<'_>, targets: &[&str], is_single_package: bool, tally: &mut Tally) {
    // With its own harness a binary prints no such line, and then the order says nothing.
    let blocks = output.stdout.lines().filter(|line| is_beginning(line)).count();
    let targets = if blocks == targets.len() { targets } else { &[] };
    let mut remaining = targets.iter().copied();
    let mut target = None;
    let mut failed: Vec<&str> = Vec::new();
    let mut panics: HashMap<&str, &str> = HashMap::new();
    let mut current = None;
    // Of each binary the last one is its own: what a test prints is above it.
    let mut result: Option<&str> = None;
    let settle = |result: Option<&str>,
                  failed: &mut Vec<&str>,
                  target: Option<&str>,
                  panics: &HashMap<&str, &str>,
                  tally: &mut Tally| {
        let Some(numbers) = result else { return };
        tally.passed(number_of(numbers, &["passed"]).unwrap_or(0));
        tally.failed(number_of(numbers, &["failed"]).unwrap_or(0));
        tally.skipped(number_of(numbers, &["ignored"]).unwrap_or(0));
        tally.is_understood = true;
        for name in failed.drain(..) {
            let panic = panics.get(name).copied();
            tally.name(name, file_of(output.root, name, target, panic, is_single_package));
        }
    };
    for line in output.stdout.lines() {
        if is_beginning(line) {
            settle(result.take(), &mut failed, target, &panics, tally);
            target = remaining.next().filter(|target| !target.is_empty());
            failed.clear();
            panics.clear();
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            failed.push(name.strip_suffix(" - should panic").unwrap_or(name));
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            current = Some(name);
        } else if let (Some(name), Some((_, place))) = (current, line.split_once(" panicked at ")) {
            panics.entry(name).or_insert_with(|| path_of_place(place));
        } else if let Some(own) = line.strip_prefix("test result: ") {
            result = Some(own.split_once(". ").map_or("", |(_, numbers)| numbers));
            current = None;
        }
    }
    settle(result, &mut failed, target, &panics, tally);
}

fn is_beginning(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
        .is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The file of a failing test: where it panicked, if that is part of the test's own sources; else the target, if that
/// can only be one file.
fn file_of(
    root: Option<&str>,
    name: &str,
    target: Option<&str>,
    panic: Option<&str>,
    is_single_package: bool,
) -> Option<RelativePath> {
    // A documentation test is called after its file, which is named from the root.
    if let Some((file, _)) = name.split_once(" - ") {
        return project_path(root, file);
    }
    let target = target?;
    let (folder, file) = target.rsplit_once('/').unwrap_or(("", target));
    if let Some(place) = panic.and_then(|place| project_path(root, place)) {
        // A panic's place is relative to the workspace, the target's to its package.
        let is_own = if matches!(file, "main.rs" | "lib.rs" | "mod.rs") {
            place.parent().as_str() == folder || format!("/{place}").contains(&format!("/{folder}/"))
        } else {
            place.as_str() == target || place.as_str().ends_with(&format!("/{target}"))
        };
        if is_own {
            return Some(place);
        }
    }
    let is_one_file = folder == "tests" && !name.contains("::");
    if is_one_file && is_single_package { project_path(root, target) } else { None }
}
