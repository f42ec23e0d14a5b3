//! The case files as data: what they cover together, and which ones the loader refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use tgp_hostile::{families, load};

/// Attacks in addition to the TypeScript corpus, one file each.
const LEAST_ATTACKS: usize = 400;

#[test]
fn every_family_is_tried_through_enough_entry_points() {
    let cases = load::all(&load::folder()).unwrap();
    let gaps = families::gaps(&cases);
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
    assert!(cases.len() >= LEAST_ATTACKS, "{} case files only", cases.len());
}

/// The smallest case, with other lines instead of its own.
fn case(entries: &str, rest: &str) -> String {
    format!("about: \"A test.\"\nentries: {entries}\n{rest}")
}

const STEP: &str = "steps:\n  - {call: fs_read, arguments: {path: a}, expect: ok}\n";

#[test]
fn a_case_says_what_its_format_knows() {
    let text = case(
        "[cli, socket]",
        "steps:\n  - call: fs_read\n    expect: {cli: EPOLICY, otherwise: [ok, ENOTFOUND]}\n",
    );
    let case = load::parse(&text).unwrap();
    let expected = case.steps.first().and_then(|step| step.expect.clone()).unwrap();
    let [cli, socket] = [case.entries.first(), case.entries.last()].map(|entry| *entry.unwrap());
    assert_eq!(expected.at(cli), ["EPOLICY"]);
    assert_eq!(expected.at(socket), ["ok", "ENOTFOUND"]);
}

#[test]
fn a_case_that_cannot_be_run_is_refused_with_the_reason() {
    let script = "steps:\n  - {script: 'true'}\n";
    for (text, reason) in [
        (case("[cli]", &format!("extra: 1\n{STEP}")), "extra"),
        (case("[door]", STEP), "door"),
        (case("[]", STEP), "at least one entry point"),
        (case("[cli, cli]", STEP), "named twice"),
        (case("[tool]", STEP), "a forged tool has no `tgp.fs_read`"),
        (case("[session]", script), "`cli` only"),
        (case("[aql]", &STEP.replace("expect", "dry_run: true, expect")), "preview"),
        (case("[cli]", &STEP.replace("ok", "EFOO")), "neither `ok` nor an error code"),
        (case("[cli]", &STEP.replace(", expect: ok", "")), "`expect` says nothing"),
        (case("[cli, socket]", &STEP.replace("ok", "{cli: ok}")), "`expect` says nothing"),
        (case("[cli]", &STEP.replace("ok", "{door: ok}")), "neither an entry point"),
        (case("[cli]", "steps:\n  - {expect: ok}\n"), "exactly one of"),
        (case("[cli]", "steps:\n  - {call: a, script: b, expect: ok}\n"), "exactly one of"),
        (case("[cli]", "steps:\n  - {script: a, expect: ok}\n"), "`exit`"),
        (case("[cli]", "steps: []\n"), "one step"),
        (case("[cli]", &STEP.replace("fs_read", "fs_read, exit: 1")), "`exit` belongs"),
        (case("[persona]", &format!("files: {{.sage/valve.yml: x}}\n{STEP}")), "of its own"),
        (case("[cli]", &format!("seconds: 9000\n{STEP}")), "`seconds`"),
    ] {
        let error = load::parse(&text).expect_err(&text);
        assert!(format!("{error:#}").contains(reason), "{text}\n{error:#}");
    }
}
