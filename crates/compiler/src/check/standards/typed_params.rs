//! The rule `typed-params`: the types of its arguments are the manual of a tool.

use oxc::ast::AstKind;
use oxc::ast::ast::{Expression, VariableDeclarator};
use oxc::span::GetSpan;
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::{Callable, Entry, Shape};
use super::super::tree::{Tree, peel};
use super::no_any::{is_javascript, text, untyped};

const TYPED_PARAMS: Rule = Rule {
    name: "typed-params",
    severity: Severity::Error,
    reason: "Arguments control what a tool does, so their types are its manual (standard 6, general by params).",
};

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    if shape.is_script() {
        for (_, kind) in tree.each() {
            if let AstKind::VariableDeclarator(declarator) = kind {
                check_script_destructuring(tree, declarator, report);
            }
        }
    }
    if let Entry::Callable { callable, typed_outside: false } = shape.entry
        && !is_javascript(&tree.unit.id)
    {
        check_entry(tree, callable, report);
    }
}

fn check_entry<'a>(tree: &Tree<'_, 'a>, callable: Callable<'a>, report: &mut Report<'_>) {
    for span in untyped(callable.params()) {
        let name = text(tree, span);
        report.add(
            &TYPED_PARAMS,
            span,
            format!("Parameter '{name}' of the tool has no type"),
            format!("Give it a type: `{name}: {{ limit: number }}`."),
        );
    }
    let Callable::Function(function) = callable else { return };
    for (node, kind) in tree.each() {
        let AstKind::IdentifierReference(reference) = kind else { continue };
        if reference.name == "arguments"
            && tree
                .functions_around(node)
                .find(|(_, kind)| matches!(kind, AstKind::Function(_)))
                .map(|(id, _)| id)
                == Some(function.node_id.get())
        {
            report.add(
                &TYPED_PARAMS,
                reference.span,
                "'arguments' reads parameters that have no name and no type",
                "Declare the parameters: `(args: { limit: number })`.",
            );
        }
    }
}

/// In a script, `const { a } = args` takes whatever comes.
fn check_script_destructuring<'a>(
    tree: &Tree<'_, 'a>,
    declarator: &'a VariableDeclarator<'a>,
    report: &mut Report<'_>,
) {
    let (Some(init), true) = (&declarator.init, declarator.id.is_destructuring_pattern()) else { return };
    // A cast gives the type, so only the bare name counts.
    let bare = matches!(init, Expression::Identifier(_));
    if bare && declarator.type_annotation.is_none() && is_args(tree, init) {
        report.add_as(
            Severity::Warning,
            &TYPED_PARAMS,
            declarator.id.span(),
            "Arguments are destructured without types",
            "Add them: `const { limit }: { limit: number } = args`, or read `args.limit`.",
        );
    }
}

/// The `args` a script is given; with `declare const args: …` the script has typed it itself.
fn is_args<'a>(tree: &Tree<'_, 'a>, expression: &'a Expression<'a>) -> bool {
    matches!(peel(expression), AstKind::IdentifierReference(reference)
        if tree.global_name(reference) == Some("args") && !tree.is_declared(reference))
}
