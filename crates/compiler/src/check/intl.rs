//! The rule `unsupported-intl`: the few constructors of `Intl` that a worker does not have.

use tgp_contract::Severity;

use super::globals::property_read;
use super::report::{Report, Rule};
use super::tree::Tree;

const UNSUPPORTED_INTL: Rule = Rule {
    name: "unsupported-intl",
    severity: Severity::Error,
    reason: "The sandbox has most of Intl, but not this constructor: the tool would fail when it runs.",
};

/// The missing constructors, and what to use instead.
const MISSING: [(&str, &str); 1] = [(
    "DurationFormat",
    "Format each unit with `new Intl.NumberFormat(locale, { style: 'unit', unit: 'hour' })` and join them with `Intl.ListFormat`.",
)];

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        let Some(read) = property_read(tree, node, kind) else { continue };
        if read.object.and_then(|object| tree.global_expression(object)) != Some("Intl") {
            continue;
        }
        for (name, fix) in MISSING {
            if read.keys.iter().any(|key| key == name) {
                report.add(
                    &UNSUPPORTED_INTL,
                    read.span,
                    format!("'Intl.{name}' does not exist in the sandbox"),
                    fix,
                );
            }
        }
    }
}
