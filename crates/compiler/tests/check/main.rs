//! `check_tool`'s rules: a golden corpus, the cases of unit plan 3, and properties that hold for any source.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod corpus;
mod documentation;
mod globals;
mod labelled;
mod plan;
mod properties;
mod rules;
mod suppression;

use tgp_compiler::{CheckOptions, SourceRole, Unit, check};
use tgp_contract::{Finding, Severity};

/// A tool somewhere below the tool root.
fn tool(source: &str) -> Unit {
    Unit { id: "tools/sample/tool.ts".to_owned(), source: source.to_owned(), role: SourceRole::Tool }
}

/// What a project allows out of the box.
fn options() -> CheckOptions {
    CheckOptions { allowed_imports: ["@tgp/std", "zod", "date-fns"].map(str::to_owned).to_vec() }
}

fn findings(source: &str) -> Vec<Finding> {
    check(&tool(source), &options())
}

fn has_rule(source: &str, rule: &str) -> bool {
    findings(source).iter().any(|finding| finding.rule == rule)
}

fn error_messages(source: &str) -> Vec<String> {
    findings(source)
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("{}: {}", finding.rule, finding.message))
        .collect()
}
