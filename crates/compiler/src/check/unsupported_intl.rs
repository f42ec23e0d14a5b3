//! The rule `unsupported-intl`: the parts of `Intl` that the engine does not have.

use oxc::ast::AstKind;
use oxc::ast::ast::Expression;
use oxc::span::Span;
use tgp_contract::Severity;

use super::globals::property_read;
use super::report::{Report, Rule};
use super::tree::{Tree, peel};

const UNSUPPORTED_INTL: Rule = Rule {
    name: "unsupported-intl",
    severity: Severity::Error,
    reason: "The sandbox engine has the parts of Intl that format and compare; reading another part fails when the tool \
             runs.",
};

/// What the engine has of `Intl`.
const SUPPORTED: [&str; 11] = [
    "Collator",
    "DateTimeFormat",
    "DisplayNames",
    "ListFormat",
    "Locale",
    "NumberFormat",
    "PluralRules",
    "RelativeTimeFormat",
    "Segmenter",
    "getCanonicalLocales",
    "supportedValuesOf",
];

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        let Some(read) = property_read(tree, node, kind) else { continue };
        if !read.object.is_some_and(|object| is_intl(tree, object)) {
            continue;
        }
        for key in read.keys.iter().filter(|key| !SUPPORTED.contains(&key.as_str())) {
            add(key, read.span, report);
        }
    }
}

fn add(key: &str, span: Span, report: &mut Report<'_>) {
    let fix = format!("Use one of {}.", SUPPORTED.map(|name| format!("`Intl.{name}`")).join(", "));
    report.add(
        &UNSUPPORTED_INTL,
        span,
        format!(
            "`Intl.{key}` does not exist in the sandbox: the engine has only a part of Intl; use another way"
        ),
        fix,
    );
}

/// `Intl`, also as a property of the global object.
fn is_intl<'a>(tree: &Tree<'_, 'a>, object: &'a Expression<'a>) -> bool {
    match peel(object) {
        AstKind::IdentifierReference(reference) => tree.global_name(reference) == Some("Intl"),
        AstKind::StaticMemberExpression(member) => {
            member.property.name == "Intl"
                && matches!(tree.global_expression(&member.object), Some("globalThis" | "self" | "global"))
        }
        _ => false,
    }
}
