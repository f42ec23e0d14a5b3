//! The rules `forbidden-global` and `forbidden-syntax`: what the sandbox does not have is refused before it runs.
//!
//! Three ways lead to a forbidden global: its name, a property of the global object, and the `constructor` of a
//! function. Each has a file here. Names are resolved through scopes, so a local `process` is just a variable.

mod constructor;
mod global_object;
mod names;
mod reads;

use oxc::ast::AstKind;
use oxc::ast::ast::{BinaryOperator, CallExpression, IdentifierReference, UnaryOperator};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::constant;
use super::report::{Report, Rule};
use super::tree::Tree;
use super::{imports, intl, shape::Shape};
use crate::ToolShape;

pub(super) use reads::{PropertyRead, property_read};

const FORBIDDEN_GLOBAL: Rule = Rule {
    name: "forbidden-global",
    severity: Severity::Error,
    reason: "Tools run in a sandbox without a process, a file system, a network or code made from text; what a tool \
             may do comes in through `args` and `tgp`.",
};

const FORBIDDEN_SYNTAX: Rule = Rule {
    name: "forbidden-syntax",
    severity: Severity::Error,
    reason: "Names must mean what they say where they stand, or no check of a tool would hold.",
};

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        match kind {
            AstKind::IdentifierReference(reference) => {
                check_reference(tree, shape, node, reference, report);
                global_object::check_reference(tree, node, reference, report);
            }
            AstKind::ThisExpression(_) => global_object::check_this(tree, node, report),
            AstKind::TSImportEqualsDeclaration(declaration) => {
                global_object::check_import_equals(tree, declaration, report);
            }
            AstKind::CallExpression(call) => check_text_timer(tree, call, report),
            AstKind::WithStatement(statement) => report.add(
                &FORBIDDEN_SYNTAX,
                Span::new(statement.span.start, statement.span.start + 4),
                "'with' is forbidden",
                "Name the object: `object.name`, or destructure what is needed.",
            ),
            AstKind::DebuggerStatement(statement) => report.add(
                &FORBIDDEN_SYNTAX,
                statement.span,
                "'debugger' is forbidden",
                "Remove it; use `console.log` or `tgp.log`, whose lines come back with the result.",
            ),
            _ => {}
        }
        if let Some(read) = property_read(tree, node, kind) {
            constructor::check(tree, &read, report);
        }
    }
}

fn check_reference<'a>(
    tree: &Tree<'_, 'a>,
    shape: &Shape<'a>,
    node: NodeId,
    reference: &'a IdentifierReference<'a>,
    report: &mut Report<'_>,
) {
    let Some(name) = tree.global_name(reference) else { return };
    if is_typeof_operand(tree, node) {
        return;
    }
    match name {
        // The global object under its other names is judged by what is read from it, `require` by what it loads.
        name if names::GLOBAL_OBJECTS.contains(&name) || name == "require" => {}
        "module" | "exports" => check_commonjs(tree, shape, node, name, reference.span, report),
        "arguments" if !tree.functions_around(node).any(|(_, kind)| matches!(kind, AstKind::Function(_))) => {
            // The wrapper of a CommonJS module hands `require` and `module` in as arguments.
            forbid(report, "arguments", "Use `args`, or a rest parameter with a type.", reference.span);
        }
        // The class itself makes no code; calling it would.
        "Function" if is_instanceof_class(tree, node) => {}
        _ => forbid_name(report, name, reference.span),
    }
}

/// `module.exports` and `exports.name` are how a CommonJS tool gives its result; anything else leads to the loader.
fn check_commonjs<'a>(
    tree: &Tree<'_, 'a>,
    shape: &Shape<'a>,
    node: NodeId,
    name: &str,
    span: Span,
    report: &mut Report<'_>,
) {
    let fix = "Use `export default`, or `module.exports = …` in a file without `import` and `export`.";
    if shape.has_module_syntax || !matches!(shape.tool_shape, ToolShape::CommonJs) {
        return forbid(report, name, fix, span);
    }
    if name == "module" {
        let reads_exports = tree.use_of(node).is_some_and(|use_site| match use_site.parent {
            AstKind::StaticMemberExpression(member) => member.property.name == "exports",
            AstKind::ComputedMemberExpression(member) => {
                constant::strings(tree, &member.expression) == ["exports"]
            }
            _ => false,
        });
        if !reads_exports {
            forbid(report, name, fix, span);
        }
    }
}

fn is_typeof_operand(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    matches!(tree.parent(node), Some((_, AstKind::UnaryExpression(unary))) if unary.operator == UnaryOperator::Typeof)
}

/// True for the class of `value instanceof Class`.
fn is_instanceof_class(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    matches!(
        tree.parent(node),
        Some((_, AstKind::BinaryExpression(binary)))
            if binary.operator == BinaryOperator::Instanceof && binary.right.span() == tree.kind(node).span()
    )
}

/// `setTimeout('code')` is `eval` with a delay.
fn check_text_timer<'a>(tree: &Tree<'_, 'a>, call: &'a CallExpression<'a>, report: &mut Report<'_>) {
    let Some("setTimeout" | "setInterval") = tree.global_expression(&call.callee) else { return };
    let Some(first) = call.arguments.first().and_then(|argument| argument.as_expression()) else { return };
    if !constant::strings(tree, first).is_empty() {
        forbid(report, "eval", "Pass a function instead of text.", call.span);
    }
}

/// Reports a name if it is forbidden.
fn forbid_name(report: &mut Report<'_>, name: &str, span: Span) {
    if name == "Intl" {
        intl::report_intl(report, span);
    } else if name == "require" {
        imports::report_indirect_require(report, span);
    } else if let Some(fix) = names::remedy(name) {
        forbid(report, name, fix, span);
    }
}

fn forbid(report: &mut Report<'_>, name: &str, fix: &str, span: Span) {
    report.add(&FORBIDDEN_GLOBAL, span, format!("Global '{name}' is forbidden"), fix);
}
