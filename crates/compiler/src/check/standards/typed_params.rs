//! The rule `typed-params`: the types of its arguments are the manual of a tool.

use oxc::ast::AstKind;
use oxc::ast::ast::{Expression, VariableDeclarator};
use oxc::span::GetSpan;
use tgp_contract::{DeclaredType, DeclaredTypes, Severity};

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

/// Fields of the arguments that are looked at for dates.
const MAX_FIELDS: usize = 200;

/// A parameter of the type `Date`: arguments are JSON, which has no dates.
pub(in super::super) fn check_dates(shape: &Shape<'_>, declared: &DeclaredTypes, report: &mut Report<'_>) {
    let Entry::Callable { callable, .. } = shape.entry else { return };
    let Some(parameter) = callable.params().items.first() else { return };
    let DeclaredType::Object(object) = declared.resolve(&declared.parameters) else { return };
    for (name, field) in object.fields.iter().take(MAX_FIELDS) {
        let is_date = match declared.resolve(&field.ty) {
            DeclaredType::Date => true,
            // A tool that takes text as well knows what arrives.
            DeclaredType::OneOf(options) => {
                let has = |wanted: &DeclaredType| options.iter().any(|ty| declared.resolve(ty) == wanted);
                has(&DeclaredType::Date) && !has(&DeclaredType::String)
            }
            _ => false,
        };
        if is_date {
            report.add_as(
                Severity::Warning,
                &TYPED_PARAMS,
                parameter.span,
                format!("`{name}` is declared as `Date`: arguments are JSON, so that text arrives; declare `string`"),
                format!("Write `{name}: string`, and `new Date(args.{name})` where the date is used."),
            );
        }
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
