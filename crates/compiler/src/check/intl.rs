//! The rule `unsupported-intl`: the engine has no locale data, and its `toLocale…` methods ignore their arguments
//! without a word. A wrong result that looks right is worse than an error.

use oxc::ast::AstKind;
use oxc::ast::ast::CallExpression;
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::globals::property_read;
use super::report::{Report, Rule};
use super::tree::Tree;

const UNSUPPORTED_INTL: Rule = Rule {
    name: "unsupported-intl",
    severity: Severity::Error,
    reason: "The sandbox engine has no Intl: locale arguments are ignored silently, so the result would be wrong.",
};

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        let Some(read) = property_read(tree, node, kind) else { continue };
        for key in &read.keys {
            let Some((arguments_allowed, fix)) = locale_method(key) else { continue };
            let arguments =
                read.value.and_then(|value| call_of(tree, value)).map(|call| call.arguments.len());
            if arguments.is_none_or(|count| arguments_allowed.is_none_or(|allowed| count > allowed)) {
                report.add(&UNSUPPORTED_INTL, read.span, message(key, arguments_allowed.is_some()), fix);
            }
        }
    }
}

/// The methods that need locale data: how many arguments they can do without it, and what to use instead.
fn locale_method(name: &str) -> Option<(Option<usize>, &'static str)> {
    match name {
        "toLocaleString" => Some((
            None,
            "Use `toFixed(digits)` and join the parts, `toISOString()`, or `format` of date-fns.",
        )),
        "toLocaleDateString" | "toLocaleTimeString" => {
            Some((None, "Use `toISOString().slice(0, 10)`, or `format` of date-fns."))
        }
        "toLocaleUpperCase" => Some((Some(0), "Use `toUpperCase()`.")),
        "toLocaleLowerCase" => Some((Some(0), "Use `toLowerCase()`.")),
        "localeCompare" => {
            Some((Some(1), "Compare with `<` and `>`, after `toLowerCase()` where case is unimportant."))
        }
        _ => None,
    }
}

fn message(name: &str, only_arguments: bool) -> String {
    if only_arguments {
        format!("'{name}' cannot take a locale or options in the sandbox")
    } else {
        format!("'{name}' does not work in the sandbox")
    }
}

fn call_of<'a>(tree: &Tree<'_, 'a>, member: NodeId) -> Option<&'a CallExpression<'a>> {
    let use_site = tree.use_of(member)?;
    match use_site.parent {
        AstKind::CallExpression(call) if call.callee.span() == use_site.span => Some(call),
        _ => None,
    }
}

/// A use of `Intl` itself.
pub(super) fn report_intl(report: &mut Report<'_>, span: Span) {
    report.add(
        &UNSUPPORTED_INTL,
        span,
        "'Intl' does not exist in the sandbox",
        "Format numbers with `toFixed`, dates with `toISOString()` or date-fns, and compare text with `<` and `>`.",
    );
}
