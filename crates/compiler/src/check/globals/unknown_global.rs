//! The rule `unknown-global`: a name that neither the source nor the engine has fails when the tool runs.

use std::collections::{BTreeSet, HashSet};

use oxc::ast::AstKind;
use oxc::ast::ast::IdentifierReference;
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;
use tgp_text::nearest;

use super::super::report::{Report, Rule};
use super::super::tree::{Tree, static_member};
use super::known::{GLOBALS, KERNEL_FUNCTIONS, hint};
use super::names;

const UNKNOWN_GLOBAL: Rule = Rule {
    name: "unknown-global",
    severity: Severity::Error,
    reason: "The engine has the ECMAScript globals and those that docs/tools.md lists; reading any other name fails \
             when the tool runs.",
};

/// Names that get a suggestion, and names that are compared with each: the comparison is their product.
const MAX_SUGGESTIONS: usize = 20;
const MAX_CANDIDATES: usize = 1000;

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    let probed = probed_names(tree);
    let mut reported: HashSet<&str> = HashSet::new();
    for (node, kind) in tree.each() {
        match kind {
            AstKind::IdentifierReference(reference) => {
                if let Some(name) = unknown_name(tree, reference)
                    && !probed.contains(name)
                    && !is_of_merged_namespace(tree, node, name)
                    && reported.insert(name)
                {
                    let near = if reported.len() <= MAX_SUGGESTIONS { suggestion(tree, name) } else { None };
                    add(name, near, reference.span, report);
                }
            }
            AstKind::StaticMemberExpression(_) | AstKind::ComputedMemberExpression(_) => {
                check_kernel_function(tree, node, kind, report);
            }
            _ => {}
        }
    }
}

/// Names that the source asks for with `typeof` first, and names that it assigns: `stateless` reports those.
fn probed_names<'a>(tree: &Tree<'_, 'a>) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (node, kind) in tree.each() {
        let AstKind::IdentifierReference(reference) = kind else { continue };
        let is_written =
            reference.reference_id.get().is_some_and(|id| tree.scoping().get_reference(id).is_write());
        if is_written || super::is_typeof_operand(tree, node) {
            names.insert(reference.name.as_str());
        }
    }
    names
}

/// A namespace that is declared in several blocks sees the exports of all of them; the scopes know only one block.
fn is_of_merged_namespace(tree: &Tree<'_, '_>, node: NodeId, name: &str) -> bool {
    let is_in_namespace =
        || tree.nodes().ancestor_kinds(node).any(|kind| matches!(kind, AstKind::TSNamespaceDeclaration(_)));
    let scoping = tree.scoping();
    is_in_namespace() && scoping.symbol_ids().any(|symbol| scoping.symbol_name(symbol) == name)
}

/// The name of a reference that nothing declares.
fn unknown_name<'a>(tree: &Tree<'_, 'a>, reference: &'a IdentifierReference<'a>) -> Option<&'a str> {
    let name = tree.global_name(reference)?;
    let is_known =
        GLOBALS.contains(&name) || names::GLOBAL_OBJECTS.contains(&name) || names::remedy(name).is_some();
    (!is_known).then_some(name)
}

fn add(name: &str, near: Option<&str>, span: Span, report: &mut Report<'_>) {
    let fix = match (hint(name), near) {
        (Some(hint), _) => hint.to_owned(),
        (None, Some(near)) if names::remedy(near).is_some() => {
            let remedy = names::remedy(near).unwrap_or_default();
            format!("Did you mean `{near}`? A tool does not have it. {remedy}")
        }
        (None, Some(near)) => format!("Did you mean `{near}`? Otherwise declare or import `{name}`."),
        (None, None) => format!("Declare `{name}`, import it, or take it as an argument: `args.{name}`."),
    };
    report.add(
        &UNKNOWN_GLOBAL,
        span,
        format!("`{name}` is not defined: neither this source nor the engine has it; declare or import it"),
        fix,
    );
}

/// The nearest name that exists.
fn suggestion<'t>(tree: &'t Tree<'_, '_>, name: &str) -> Option<&'t str> {
    let scoping = tree.scoping();
    let own: BTreeSet<&str> =
        scoping.symbol_ids().take(MAX_CANDIDATES).map(|symbol| scoping.symbol_name(symbol)).collect();
    // A forbidden name is suggested too: the help then explains how to do without it.
    let others = GLOBALS.into_iter().chain(names::MISSPELT);
    nearest(name, own.into_iter().filter(|own| *own != name).chain(others))
}

/// `tgp.readFile` for `tgp.read_file`.
fn check_kernel_function<'a>(tree: &Tree<'_, 'a>, node: NodeId, kind: AstKind<'a>, report: &mut Report<'_>) {
    let Some((object, name)) = static_member(kind) else { return };
    if tree.global_expression(object) != Some("tgp") || KERNEL_FUNCTIONS.contains(&name) {
        return;
    }
    let is_called = matches!(tree.parent(node), Some((_, AstKind::CallExpression(call)))
        if call.callee.span() == kind.span());
    if !is_called {
        return;
    }
    // A misspelt name is certain to fail; another one may belong to a newer kernel.
    let (severity, fix) = match nearest(name, KERNEL_FUNCTIONS) {
        Some(near) => (Severity::Error, format!("Did you mean `tgp.{near}`?")),
        None => {
            let all: Vec<String> = KERNEL_FUNCTIONS.iter().map(|name| format!("tgp.{name}")).collect();
            (Severity::Warning, format!("Tools can call {}.", all.join(", ")))
        }
    };
    report.add_as(
        severity,
        &UNKNOWN_GLOBAL,
        kind.span(),
        format!("`tgp.{name}` is not defined: the kernel has no such function; use one that it has"),
        fix,
    );
}
