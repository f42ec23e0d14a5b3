//! The labelled set: tools as models write them for real work, sorted by a reviewer into good and bad.
//!
//! The sources do not aim at the rules; `bad/labels.txt` names what a reviewer objects to, also where no rule sees it.
//! The test prints a confusion table and keeps the promises of `docs/checking.md`: good tools are hardly ever refused,
//! most bad ones are noticed, and each rule finds something that it exists for.

#![allow(clippy::print_stdout, reason = "the confusion table is read by people")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tgp_compiler::{SourceRole, Unit, check};
use tgp_contract::{Finding, Severity};

use super::options;
use super::rules::RULES;

/// One tool with its findings.
struct Checked {
    name: String,
    findings: Vec<Finding>,
}

impl Checked {
    fn is_refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    fn has_rule(&self, rule: &str) -> bool {
        self.findings.iter().any(|finding| finding.rule == rule)
    }
}

pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/labelled").join(name)
}

fn checked(folder_name: &str) -> Vec<Checked> {
    let mut names: Vec<String> = std::fs::read_dir(folder(folder_name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "labels.txt")
        .collect();
    names.sort();
    let check_one = |name: String| {
        let source = std::fs::read_to_string(folder(folder_name).join(&name)).unwrap();
        let unit = Unit { id: format!("tools/labelled/{name}"), source, role: SourceRole::Tool };
        Checked { findings: check(&unit, &options()), name }
    };
    names.into_iter().map(check_one).collect()
}

/// The rule a reviewer named for each bad tool.
fn labels() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder("bad").join("labels.txt")).unwrap();
    let label = |line: &str| {
        let parts: Vec<&str> = line.split(" | ").collect();
        assert_eq!(parts.len(), 3, "expected `file | rule | what is wrong`: {line}");
        (parts[0].to_owned(), parts[1].to_owned())
    };
    text.lines().map(label).collect()
}

fn print_findings(checked: &Checked) {
    for finding in &checked.findings {
        println!(
            "    {}:{}:{} {:?} {}: {}",
            checked.name,
            finding.place.line,
            finding.place.column,
            finding.severity,
            finding.rule,
            finding.message
        );
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole as f64
}

#[test]
fn good_tools_are_hardly_ever_refused() {
    let good = checked("good");
    let refused: Vec<&Checked> = good.iter().filter(|tool| tool.is_refused()).collect();
    let warned: Vec<&Checked> =
        good.iter().filter(|tool| !tool.is_refused() && !tool.findings.is_empty()).collect();
    println!(
        "good tools: {}, refused {} ({:.1} %), with warnings only {} ({:.1} %), without findings {}",
        good.len(),
        refused.len(),
        percent(refused.len(), good.len()),
        warned.len(),
        percent(warned.len(), good.len()),
        good.len() - refused.len() - warned.len(),
    );
    println!("  refused:");
    refused.iter().for_each(|tool| print_findings(tool));
    println!("  warned:");
    warned.iter().for_each(|tool| print_findings(tool));
    assert!(good.len() >= 120, "{} good tools", good.len());
    assert!(refused.len() * 50 <= good.len(), "more than 2 % of the good tools are refused");
    assert!(warned.len() * 10 <= good.len(), "more than 10 % of the good tools have warnings");
}

#[test]
fn bad_tools_are_mostly_noticed() {
    let bad = checked("bad");
    let labels = labels();
    let names: BTreeSet<&str> = bad.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, labels.keys().map(String::as_str).collect(), "labels.txt and the folder differ");
    let mut table: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for tool in &bad {
        let label = labels[&tool.name].as_str();
        let row = table.entry(label).or_default();
        row[0] += 1;
        row[1] += usize::from(tool.is_refused());
        row[2] += usize::from(!tool.is_refused() && !tool.findings.is_empty());
        row[3] += usize::from(tool.findings.is_empty());
        row[4] += usize::from(tool.has_rule(label));
    }
    println!(
        "{:20} {:>5} {:>8} {:>7} {:>7} {:>14}",
        "label", "tools", "refused", "warned", "missed", "by that rule"
    );
    for (label, [tools, refused, warned, missed, by_rule]) in &table {
        println!("{label:20} {tools:5} {refused:8} {warned:7} {missed:7} {by_rule:14}");
    }
    let caught = bad.iter().filter(|tool| !tool.findings.is_empty()).count();
    println!("bad tools: {}, noticed {caught} ({:.1} %)", bad.len(), percent(caught, bad.len()));
    bad.iter().filter(|tool| tool.findings.is_empty()).for_each(|tool| println!("  missed: {}", tool.name));
    for tool in bad.iter().filter(|tool| !tool.has_rule(&labels[&tool.name])) {
        print_findings(tool);
    }
    assert!(bad.len() >= 100, "{} bad tools", bad.len());
    assert!(caught * 5 >= bad.len() * 4, "fewer than 80 % of the bad tools are noticed");
    for rule in RULES {
        let found = bad.iter().any(|tool| labels[&tool.name] == rule && tool.has_rule(rule));
        assert!(found, "no tool of the labelled set shows the rule `{rule}` at work");
    }
}
