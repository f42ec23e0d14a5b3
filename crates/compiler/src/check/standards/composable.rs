//! The rule `composable`: a tool is one function that others can call.

use oxc::ast::AstKind;
use oxc::ast::ast::{Class, ClassElement};
use oxc::span::GetSpan;
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::{Entry, Shape};
use super::super::tree::Tree;

const COMPOSABLE: Rule = Rule {
    name: "composable",
    severity: Severity::Error,
    reason: "A tool does one thing and returns a result that other functions can use (standard 2, composable).",
};

pub(super) fn check(tree: &Tree<'_, '_>, shape: &Shape<'_>, report: &mut Report<'_>) {
    if let Entry::NotCallable { span, what } = shape.entry {
        report.add(
            &COMPOSABLE,
            span,
            format!("The tool is {what}, not a function"),
            "Export a function: `export default function tool(args: Args) { return … }`.",
        );
    }
    for (_, kind) in tree.each() {
        if let AstKind::Class(class) = kind {
            check_statics(class, report);
        }
    }
}

/// A static that can be assigned is a global variable in disguise.
fn check_statics(class: &Class<'_>, report: &mut Report<'_>) {
    for element in &class.body.body {
        let ClassElement::PropertyDefinition(property) = element else { continue };
        if property.r#static && !property.readonly && !property.declare {
            let name = property.key.name().unwrap_or_default();
            report.add(
                &COMPOSABLE,
                property.key.span(),
                format!("Static property '{name}' can be changed, so calls would influence each other"),
                "Make it `static readonly`, or pass the value as an argument and return the new one.",
            );
        }
    }
}
