//! The rules a tool must keep: security, imports and the eight standards.
//!
//! Every rule works on the tree of the source as it was written and on its scopes, never on text: a comment or a
//! string cannot trip one, a local variable called `process` is just a variable, and a computed name is worth what it
//! computes to. A finding says where, what, why, and what to write instead.
//!
//! | file | rules |
//! | --- | --- |
//! | (`crate::compile`) | `syntax`: only what compiles is looked at any further |
//! | `globals/` | `forbidden-global`, `forbidden-syntax`, `unknown-global` |
//! | `imports` | `import-not-allowed`, `dynamic-import`, `dynamic-require` |
//! | `intl` | `unsupported-intl` |
//! | `standards/` | the eight standards, a file for each rule |
//! | `suppression` | `suppression`: comments that allow a warning |

mod constant;
mod globals;
mod imports;
mod intl;
mod report;
mod shape;
mod specifier;
mod standards;
mod suppression;
mod tree;

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxc::allocator::Allocator;
use oxc::parser::ParseOptions;
use oxc::semantic::SemanticBuilder;
use oxc::span::{SourceType, Span};
use serde::{Deserialize, Serialize};
use tgp_contract::{CheckReport, Finding, Severity, TypeCheck};

use crate::builtin::is_test_file;
use crate::parse::parse;
use crate::{CompiledModule, SourceRole, Unit, compile};
use report::{Report, Rule};
use shape::Shape;
use tree::Tree;

/// What a check depends on besides the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOptions {
    /// Package names tools may import; `zod` also allows `zod/v4`.
    pub allowed_imports: Vec<String>,
}

/// Checks one tool. What does not compile comes back as findings of the rule `syntax` alone; libraries and
/// configurations are checked for nothing else.
#[must_use]
pub fn check(unit: &Unit, options: &CheckOptions) -> Vec<Finding> {
    let compiled = match compile(unit) {
        Ok(compiled) => compiled,
        Err(error) => {
            let mut findings = error.findings;
            findings.sort();
            return findings;
        }
    };
    if unit.role != SourceRole::Tool || unit.id.ends_with(".json") {
        return Vec::new();
    }
    // A rule that fails must refuse the tool: to say nothing would be to call it valid.
    catch_unwind(AssertUnwindSafe(|| lint(unit, options, &compiled)))
        .ok()
        .flatten()
        .unwrap_or_else(|| failed(unit))
}

/// The errors of a compiled tool as text, as far as they depend on nothing but its source: which imports are allowed is
/// for the configuration to say.
#[must_use]
pub fn tool_errors(unit: &Unit, compiled: &CompiledModule) -> Vec<String> {
    if unit.role != SourceRole::Tool || unit.id.ends_with(".json") || is_test_file(&unit.id) {
        return Vec::new();
    }
    let linted =
        catch_unwind(AssertUnwindSafe(|| lint(unit, &CheckOptions::default(), compiled))).ok().flatten();
    let mut findings = linted.unwrap_or_default();
    findings.retain(|finding| finding.rule != "import-not-allowed");
    CheckReport::new(findings, TypeCheck::Skipped).errors
}

/// Applies the rules; `None` when the source does not parse, which [`compile`] has ruled out.
fn lint(unit: &Unit, options: &CheckOptions, compiled: &CompiledModule) -> Option<Vec<Finding>> {
    let source = unit.source.strip_prefix('\u{feff}').unwrap_or(&unit.source);
    let allocator = Allocator::default();
    let parse_options = ParseOptions {
        allow_return_outside_function: true,
        // Parentheses carry no meaning for any rule; without them a child is the node itself.
        preserve_parens: false,
        ..ParseOptions::default()
    };
    let parsed = parse(&allocator, source, SourceType::ts(), parse_options);
    if parsed.panicked || parsed.diagnostics.has_errors() {
        return None;
    }
    let built = SemanticBuilder::new().with_build_nodes(true).build(&parsed.program);
    let tree = Tree::new(unit, options, &built.semantic);
    let shape = Shape::of(&tree, compiled.shape);
    let mut report = Report::new(&unit.id, source);
    globals::check(&tree, &shape, &mut report);
    imports::check(&tree, &mut report);
    intl::check(&tree, &mut report);
    // Tests name values, repeat themselves and give nothing back; that is what they are for.
    if !is_test_file(&unit.id) {
        standards::check(&tree, &shape, &mut report);
        standards::check_dates(&shape, &compiled.declared, &mut report);
    }
    suppression::apply(&tree, &mut report);
    Some(report.finish())
}

fn failed(unit: &Unit) -> Vec<Finding> {
    let rule = Rule {
        name: "syntax",
        severity: Severity::Error,
        reason: "A tool that cannot be checked cannot be trusted; this is a fault of the checker, not of the source.",
    };
    let mut report = Report::new(&unit.id, &unit.source);
    report.add(
        &rule,
        Span::new(0, 0),
        "The checker failed on this source",
        "Write it in a simpler way, and report the source that made it fail.",
    );
    report.finish()
}
