//! What the families as a whole must cover.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::{Act, Case};
use crate::entry::Entry;

/// Families through which the worst was possible: they are tried through every entry point that can express a call of theirs.
pub const CRITICAL: [&str; 10] = [
    "hidden-files",
    "hidden-graph",
    "large-projects",
    "oracle-plan",
    "rule-files",
    "runs-later",
    "sql-kinds",
    "sql-reads",
    "trust-config",
    "trust-policy",
];

/// Entry points that every family is tried through at least.
const LEAST: usize = 2;

/// Whether a family is one of the critical ones.
#[must_use]
pub fn is_critical(family: &str) -> bool {
    CRITICAL.contains(&family)
}

/// The cases by family.
#[must_use]
pub fn by_family(cases: &[Case]) -> BTreeMap<&str, Vec<&Case>> {
    let mut families: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        families.entry(&case.family).or_default().push(case);
    }
    families
}

/// What is missing, one sentence each.
#[must_use]
pub fn gaps(cases: &[Case]) -> Vec<String> {
    let families = by_family(cases);
    let mut gaps = Vec::new();
    for family in CRITICAL {
        if !families.contains_key(family) {
            gaps.push(format!("the critical family `{family}` has no cases"));
        }
    }
    for (family, cases) in families {
        let used: BTreeSet<Entry> = cases.iter().flat_map(|case| case.file.entries.clone()).collect();
        if used.len() < LEAST {
            gaps.push(format!("the family `{family}` is tried through one entry point only"));
        }
        if is_critical(family) {
            for entry in expressible(&cases).difference(&used) {
                gaps.push(format!("the critical family `{family}` is not tried through `{entry}`"));
            }
        }
    }
    gaps
}

/// The entry points that can express at least one call of these cases.
fn expressible(cases: &[&Case]) -> BTreeSet<Entry> {
    let can = |entry: Entry, case: &Case| {
        let mut calls = case.file.steps.iter().filter(|step| matches!(step.act(), Some(Act::Call { .. })));
        calls.any(|step| entry.cannot_express(&case.file, step).is_none())
    };
    Entry::ALL.into_iter().filter(|&entry| cases.iter().any(|case| can(entry, case))).collect()
}
