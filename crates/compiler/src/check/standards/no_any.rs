//! The rule `no-any`: a type that allows everything hides mistakes.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    Expression, FormalParameter, FormalParameters, TSAsExpression, TSType, TSTypeName, TSTypeReference,
};
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::Shape;
use super::super::tree::Tree;

const NO_ANY: Rule = Rule {
    name: "no-any",
    severity: Severity::Error,
    reason: "A type that allows everything hides mistakes from the agent that reuses the tool (standard 5, reusable).",
};

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    for (_, kind) in tree.each() {
        match kind {
            AstKind::TSAnyKeyword(any) => report.add(
                &NO_ANY,
                any.span,
                "Type 'any' is forbidden",
                "Write the type; where it is really open use `unknown` and narrow it.",
            ),
            AstKind::TSTypeReference(reference) if is_function_type(tree, reference) => report.add(
                &NO_ANY,
                reference.span,
                "Type 'Function' accepts any function",
                "Write the signature, such as `(value: string) => number`.",
            ),
            AstKind::TSAsExpression(cast) if is_double_cast(cast) => report.add_as(
                Severity::Warning,
                &NO_ANY,
                cast.type_annotation.span(),
                "a cast through 'unknown' hides what the value is: no check sees a mistake; check the value",
                "Narrow the value with `typeof`, `in` or a zod schema, or give it its type where it is made.",
            ),
            _ => {}
        }
    }
    check_directives(tree, report);
    if is_javascript(&tree.unit.id) {
        return;
    }
    for exported in shape.exported.iter().filter(|exported| !exported.typed_outside) {
        for span in untyped(exported.callable.params()) {
            let name = text(tree, span);
            report.add(
                &NO_ANY,
                span,
                format!(
                    "Parameter '{name}' of exported function '{}' has no type, which makes it 'any'",
                    exported.name
                ),
                format!("Give it a type: `{name}: string`."),
            );
        }
    }
}

/// `value as unknown as User`.
fn is_double_cast(cast: &TSAsExpression<'_>) -> bool {
    matches!(&cast.expression, Expression::TSAsExpression(inner)
        if matches!(inner.type_annotation, TSType::TSUnknownKeyword(_)))
}

/// `@ts-ignore` turns the type checker off.
fn check_directives(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    for comment in &tree.program().comments {
        let content = comment.content_span();
        let directive = text_of(tree, content).trim_start_matches(['*', ' ', '\t', '\n', '\r']);
        if let Some(name) = ["@ts-ignore", "@ts-nocheck"].into_iter().find(|name| directive.starts_with(name))
        {
            report.add_as(
                Severity::Warning,
                &NO_ANY,
                comment.span,
                format!(
                    "`{name}` hides type errors: the next agent trusts types that are wrong; fix the type"
                ),
                "Narrow the value, or write `@ts-expect-error` with the reason.",
            );
        }
    }
}

/// JavaScript has no place to write a type.
pub(super) fn is_javascript(id: &str) -> bool {
    [".js", ".cjs", ".mjs"].iter().any(|extension| id.ends_with(extension))
}

fn is_function_type<'a>(tree: &Tree<'_, 'a>, reference: &'a TSTypeReference<'a>) -> bool {
    matches!(&reference.type_name, TSTypeName::IdentifierReference(name)
        if name.name == "Function" && tree.symbol(name).is_none())
}

/// The parameters without a type. A default value is as good as a type, since it shows one.
pub(super) fn untyped(params: &FormalParameters<'_>) -> Vec<Span> {
    let is_untyped = |parameter: &&FormalParameter<'_>| {
        parameter.type_annotation.is_none() && parameter.initializer.is_none()
    };
    let rest = params
        .rest
        .iter()
        .filter(|rest| rest.type_annotation.is_none())
        .map(|rest| rest.rest.argument.span());
    params.items.iter().filter(is_untyped).map(|parameter| parameter.pattern.span()).chain(rest).collect()
}

fn text_of<'a>(tree: &Tree<'_, 'a>, span: Span) -> &'a str {
    tree.program().source_text.get(span.start as usize..span.end as usize).unwrap_or("")
}

pub(super) fn text<'a>(tree: &Tree<'_, 'a>, span: Span) -> &'a str {
    const LONGEST: usize = 40;
    let text = text_of(tree, span);
    if text.len() <= LONGEST && !text.contains('\n') { text } else { "args" }
}
