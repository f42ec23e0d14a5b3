//! Small tools with the findings they must get, one idea a file.
//!
//! `ok/` holds tools that may run: at most warnings. `err/` holds tools that are refused. Beside each `name.ts` lies
//! `name.expected`, a finding a line; `UPDATE_GOLDEN=1` writes them anew, for a person to read in the diff.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tgp_compiler::{SourceRole, Unit, check};
use tgp_contract::{Finding, Severity};

use super::options;
use super::rules::RULES;

pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/corpus").join(name)
}

pub(super) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ts"))
        .collect();
    paths.sort();
    paths
}

fn check_file(path: &Path) -> Vec<Finding> {
    let source = std::fs::read_to_string(path).unwrap();
    let id = format!("tools/corpus/{}", path.file_name().unwrap().to_str().unwrap());
    check(&Unit { id, source, role: SourceRole::Tool }, &options())
}

fn render(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(
            text,
            "{} {severity} {}:{} {}",
            finding.rule, finding.place.line, finding.place.column, finding.message
        )
        .unwrap();
    }
    text
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

fn check_folder(name: &str, accepts: impl Fn(&[Finding]) -> bool, demand: &str) {
    let mut problems = Vec::new();
    for path in sources(&folder(name)) {
        let found = check_file(&path);
        let actual = render(&found);
        if !accepts(&found) {
            problems.push(format!("{}: {demand}, but found:\n{actual}", path.display()));
        }
        let golden = path.with_extension("expected");
        if is_update() {
            std::fs::write(&golden, &actual).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if expected != actual {
            problems.push(format!("{}:\n--- expected\n{expected}--- actual\n{actual}", path.display()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn is_error(finding: &Finding) -> bool {
    finding.severity == Severity::Error
}

#[test]
fn good_tools_pass() {
    check_folder("ok", |found| !found.iter().any(is_error), "a tool in ok/ must have no error");
}

#[test]
fn bad_tools_are_refused() {
    check_folder("err", |found| found.iter().any(is_error), "a tool in err/ must have an error");
}

#[test]
fn corpus_is_large_and_complete() {
    let (good, bad) = (sources(&folder("ok")), sources(&folder("err")));
    assert!(good.len() + bad.len() >= 90, "{} + {} files", good.len(), bad.len());
    // While the goldens are written anew, one of them may not be there yet.
    let folders = if is_update() { &[][..] } else { &["ok", "err"] };
    for folder_name in folders {
        for entry in std::fs::read_dir(folder(folder_name)).unwrap() {
            let path = entry.unwrap().path();
            let partner = if path.extension().unwrap() == "ts" { "expected" } else { "ts" };
            assert!(path.with_extension(partner).exists(), "{} stands alone", path.display());
        }
    }
}

#[test]
fn corpus_shows_every_rule_at_work() {
    let shown: BTreeSet<String> = ["ok", "err"]
        .iter()
        .flat_map(|name| sources(&folder(name)))
        .flat_map(|path| check_file(&path))
        .map(|finding| finding.rule)
        .collect();
    assert_eq!(shown, RULES.iter().map(|&rule| rule.to_owned()).collect());
}

#[test]
fn every_finding_says_where_what_why_and_what_to_do() {
    for path in sources(&folder("ok")).into_iter().chain(sources(&folder("err"))) {
        for finding in check_file(&path) {
            let shown = format!("{}: {finding:?}", path.display());
            assert!(finding.place.line >= 1 && finding.place.column >= 1, "{shown}");
            assert!(
                (finding.end.line, finding.end.column) >= (finding.place.line, finding.place.column),
                "{shown}"
            );
            assert!(!finding.message.is_empty() && !finding.message.ends_with('.'), "{shown}");
            assert!(finding.reason.len() > 20 && finding.fix.len() > 10, "{shown}");
        }
    }
}
