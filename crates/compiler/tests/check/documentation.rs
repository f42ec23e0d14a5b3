//! `docs/checking.md` keeps its word: each rule has a section, its first example is reported, its second is not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::findings;
use super::rules::RULES;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checking.md");
    std::fs::read_to_string(path).unwrap()
}

/// The `ts` examples below each `### rule` heading.
fn examples(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rule = None;
    let mut example: Option<String> = None;
    for line in page.lines() {
        if let Some(text) = &mut example {
            if line == "```" {
                sections.entry(rule.clone().unwrap_or_default()).or_default().extend(example.take());
            } else {
                text.push_str(line);
                text.push('\n');
            }
        } else if let Some(name) = line.strip_prefix("### ") {
            rule = Some(name.to_owned());
        } else if line.starts_with("## ") {
            rule = None;
        } else if line == "```ts" {
            example = Some(String::new());
        }
    }
    sections
}

#[test]
fn every_rule_has_a_section_and_a_row_in_the_table() {
    let page = page();
    let documented: BTreeSet<String> = examples(&page).into_keys().filter(|rule| !rule.is_empty()).collect();
    assert_eq!(documented, RULES.iter().map(|&rule| rule.to_owned()).collect());
    for rule in RULES {
        let in_table = page.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{rule}`")));
        assert!(in_table, "`{rule}` is not in the table of rules");
    }
}

#[test]
fn the_first_example_is_reported_and_the_second_is_not() {
    for (rule, examples) in examples(&page()) {
        if rule.is_empty() {
            continue;
        }
        let [bad, good] = examples.as_slice() else { panic!("`{rule}` needs a bad and a good example") };
        let found = findings(bad);
        assert!(
            found.iter().any(|finding| finding.rule == rule),
            "{rule} is not reported for\n{bad}{found:?}"
        );
        let found = findings(good);
        assert!(found.is_empty(), "findings in the good example of {rule}:\n{good}{found:?}");
    }
}

#[test]
fn the_example_of_an_allowed_warning_has_no_finding() {
    let outside = examples(&page()).remove("").unwrap();
    assert_eq!(outside.len(), 1);
    assert_eq!(findings(&outside[0]), []);
}
