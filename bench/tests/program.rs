//! The program itself, with the smallest sizes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Two sections that need nothing but this program.
const CHEAP: [&str; 2] = ["graph", "reuse"];

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tgp-bench")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_smoke_test_prints_one_line_a_section() {
    let output = bench(&["--smoke", CHEAP[0], CHEAP[1]]);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), CHEAP.len(), "{printed}");
    for (line, section) in lines.iter().zip(CHEAP) {
        assert!(line.starts_with(&format!("{section}: ok, ")), "{line}");
    }
}

#[test]
fn the_report_is_json_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("chart.svg");
    let output = bench(&["--smoke", "graph", "--json", "--svg", picture.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = &report["sections"][0];
    assert_eq!(section["name"], "graph");
    assert!(section["rows"].as_array().is_some_and(|rows| rows.len() > 3), "{section}");
    let contenders = section["contenders"].as_array().unwrap();
    assert!(contenders.iter().any(|one| one["side"] == "ours" && one["spread"]["p95"].is_number()));
    let picture = std::fs::read_to_string(picture).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains("graph: query"), "{picture}");
    // A debug build has no numbers for the page.
    let saved = folder.path().join("report.json");
    std::fs::write(&saved, &output.stdout).unwrap();
    let output = bench(&["--docs", saved.to_str().unwrap()]);
    let is_release = report["machine"]["profile"] == "release";
    assert!(is_release || !output.status.success());
    assert!(
        is_release || text(&output.stderr).contains("measure a release build"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_section_that_fails_is_named_and_fails_the_smoke_test() {
    // Alone in a folder the program has no `tgp` beside it.
    let program = Path::new(env!("CARGO_BIN_EXE_tgp-bench"));
    let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let alone = folder.path().join("tgp-bench");
    std::fs::hard_link(program, &alone).unwrap();
    let output = Command::new(alone).args(["--smoke", "sql", "graph"]).output().unwrap();
    let printed = text(&output.stdout);
    assert!(!output.status.success());
    assert!(printed.contains("sql: FAILED after"), "{printed}");
    assert!(printed.contains("graph: ok"), "the other sections run all the same: {printed}");
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        ["no-such-section", "--json"].as_slice(),
        &["--runs", "3"],
        &["--smoke", "--strict"],
        &["--smoke", "--runs", "300"],
        &["--docs"],
        &["--docs", "report.json", "--json"],
        &["--svg"],
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
    let output = bench(&["--docs", "/no/such/report.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot read /no/such/report.json"));
}
