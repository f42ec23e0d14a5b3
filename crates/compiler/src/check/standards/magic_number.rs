//! The rule `magic-number`: a number whose meaning cannot be read needs a name, or belongs into an argument.
//!
//! Names are generous: a constant, a variable, a property, a default, a table. So are the numbers that everyone knows
//! (`well_known`). What is left is worth a warning, never a refusal: counting literals cannot tell a tax rate from a
//! coefficient.

use std::collections::HashSet;

use oxc::ast::AstKind;
use oxc::ast::ast::{AssignmentOperator, BinaryExpression, BinaryOperator, CallExpression, Expression};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::tree::{MAX_STEPS, Tree, peel, static_call};
use super::defaults::is_default_value;
use super::schema::is_schema;
use super::well_known::{is_small, is_status, is_well_known};

const MAGIC_NUMBER: Rule = Rule {
    name: "magic-number",
    severity: Severity::Warning,
    reason: "Logic is kept apart from the data it works on: rates, limits and sizes have names or come in as arguments \
             (standards 1, abstract, and 7, no hardcoded values).",
};

/// A formula full of coefficients is one matter, not twenty.
const MAX_PER_TOOL: usize = 3;

/// Methods whose numbers are positions, widths or digits.
const INDEX_METHODS: [&str; 20] = [
    "at",
    "slice",
    "substring",
    "substr",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "fromCharCode",
    "fromCodePoint",
    "splice",
    "toSpliced",
    "subarray",
    "with",
    "flat",
    "padStart",
    "padEnd",
    "repeat",
    "toFixed",
    "toPrecision",
    "toExponential",
];

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    let mut seen: HashSet<u64> = HashSet::new();
    for (node, kind) in tree.each() {
        let (value, span) = match kind {
            AstKind::NumericLiteral(literal) => (literal.value, literal.span),
            AstKind::BigIntLiteral(literal) => (literal.value.parse().unwrap_or(f64::MAX), literal.span),
            _ => continue,
        };
        let text = tree.program().source_text.get(span.start as usize..span.end as usize).unwrap_or("number");
        if is_well_known(value, text) || has_meaning(tree, node, value) || !seen.insert(value.to_bits()) {
            continue;
        }
        if seen.len() > MAX_PER_TOOL {
            break;
        }
        report.add(
            &MAGIC_NUMBER,
            span,
            format!("number {text} has no name: a reader cannot see what it means, nor a caller change it; name it"),
            format!(
                "Write `const NAME = {text}`, or take it as an argument with a default: `args.name ?? {text}`. Where the \
                 number has to stay, write `// tgp-allow magic-number: why` above the line."
            ),
        );
    }
}

/// True where the place of a number says what it means.
fn has_meaning<'a>(tree: &Tree<'_, 'a>, literal: NodeId, value: f64) -> bool {
    let (node, span) = with_sign(tree, literal);
    let Some((parent_node, parent)) = tree.parent(node) else { return false };
    if let AstKind::BinaryExpression(binary) = parent
        && (is_small(value) || is_compared_status(value, span, binary))
    {
        return true;
    }
    is_structural(tree, span, value, parent_node, parent)
        || is_default_value(tree, node)
        || is_named(tree, node)
}

/// The literal together with the sign before it.
fn with_sign(tree: &Tree<'_, '_>, literal: NodeId) -> (NodeId, Span) {
    let mut node = literal;
    while let Some((parent, AstKind::UnaryExpression(unary))) = tree.parent(node) {
        if !unary.operator.is_arithmetic() && !unary.operator.is_bitwise() {
            break;
        }
        node = parent;
    }
    (node, tree.kind(node).span())
}

/// `response.status === 404`.
fn is_compared_status<'a>(value: f64, span: Span, binary: &'a BinaryExpression<'a>) -> bool {
    let other = if binary.left.span() == span { &binary.right } else { &binary.left };
    let name = match peel(other) {
        AstKind::IdentifierReference(reference) => Some(reference.name.as_str()),
        _ => property_name(other),
    };
    is_status(value)
        && (binary.operator.is_equality() || binary.operator.is_compare())
        && name.is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            name.contains("status") || name.ends_with("code")
        })
}

/// True for the value of a constant, a variable, a property or an enum member, also as a branch of a condition, as
/// part of a product of constants, or as an item of a list.
fn is_named(tree: &Tree<'_, '_>, literal: NodeId) -> bool {
    let mut node = literal;
    for _ in 0..MAX_STEPS {
        let span = tree.kind(node).span();
        let Some((parent_node, parent)) = tree.parent(node) else { return false };
        match parent {
            AstKind::UnaryExpression(_)
            | AstKind::ParenthesizedExpression(_)
            | AstKind::TSAsExpression(_)
            | AstKind::TSSatisfiesExpression(_)
            | AstKind::ArrayExpression(_)
            | AstKind::SpreadElement(_)
            | AstKind::LogicalExpression(_) => {}
            AstKind::ConditionalExpression(condition) if condition.test.span() != span => {}
            AstKind::BinaryExpression(binary) => {
                let other = if binary.left.span() == span { &binary.right } else { &binary.left };
                let mut steps_left = MAX_STEPS;
                if !is_constant(other, &mut steps_left) {
                    return false;
                }
            }
            AstKind::CallExpression(call) => {
                if static_call(tree, &call.callee) != Some(("Object", "freeze")) {
                    return false;
                }
            }
            AstKind::NewExpression(new) => {
                if !matches!(tree.global_expression(&new.callee), Some("Map" | "Set")) {
                    return false;
                }
            }
            AstKind::AssignmentExpression(assignment) => {
                return assignment.operator == AssignmentOperator::Assign && assignment.right.span() == span;
            }
            AstKind::VariableDeclarator(_)
            | AstKind::ObjectProperty(_)
            | AstKind::PropertyDefinition(_)
            | AstKind::TSEnumMember(_)
            | AstKind::SwitchCase(_) => return true,
            _ => return false,
        }
        node = parent_node;
    }
    false
}

/// A literal, a constant by its spelling, or a sum or product of these.
fn is_constant(expression: &Expression<'_>, steps_left: &mut usize) -> bool {
    let Some(left) = steps_left.checked_sub(1) else { return false };
    *steps_left = left;
    match expression.get_inner_expression() {
        Expression::NumericLiteral(_) | Expression::BigIntLiteral(_) => true,
        Expression::Identifier(reference) => !reference.name.chars().any(char::is_lowercase),
        Expression::UnaryExpression(unary) => is_constant(&unary.argument, steps_left),
        Expression::BinaryExpression(binary) => {
            is_constant(&binary.left, steps_left) && is_constant(&binary.right, steps_left)
        }
        _ => false,
    }
}

/// True where a number says how the code is built: an index, a length, a base, a bit mask, a key, a type.
fn is_structural<'a>(
    tree: &Tree<'_, 'a>,
    span: Span,
    value: f64,
    parent_node: NodeId,
    parent: AstKind<'a>,
) -> bool {
    match parent {
        AstKind::TSLiteralType(_) | AstKind::TSEnumDeclaration(_) => true,
        AstKind::BindingProperty(property) => property.key.span() == span,
        AstKind::MethodDefinition(method) => method.key.span() == span,
        AstKind::TSPropertySignature(property) => property.key.span() == span,
        AstKind::ComputedMemberExpression(member) => member.expression.span() == span,
        AstKind::BinaryExpression(binary) => {
            let other = if binary.left.span() == span { &binary.right } else { &binary.left };
            binary.operator.is_bitwise()
                || binary.operator.is_bitshift()
                || (binary.operator == BinaryOperator::Exponential && binary.right.span() == span)
                || ((binary.operator.is_equality() || binary.operator.is_compare())
                    && matches!(property_name(other), Some("length" | "size" | "byteLength")))
                || is_character_code(other)
                || is_part_of_index(tree, parent_node)
        }
        AstKind::AssignmentExpression(assignment) => assignment.operator.is_bitwise(),
        AstKind::CallExpression(call) => is_structural_argument(tree, span, value, call),
        AstKind::NewExpression(new) => tree
            .global_expression(&new.callee)
            .is_some_and(|name| name.ends_with("Array") || matches!(name, "ArrayBuffer" | "Date")),
        _ => false,
    }
}

/// `letter.charCodeAt(0) - 65`.
fn is_character_code(expression: &Expression<'_>) -> bool {
    matches!(expression.get_inner_expression(), Expression::CallExpression(call)
        if matches!(method(call), Some("charCodeAt" | "codePointAt")))
}

/// `row[offset + 3]`.
fn is_part_of_index(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    let mut node = node;
    for _ in 0..MAX_STEPS {
        let span = tree.kind(node).span();
        match tree.parent(node) {
            Some((parent, AstKind::BinaryExpression(_) | AstKind::UnaryExpression(_))) => node = parent,
            Some((_, AstKind::ComputedMemberExpression(member))) => return member.expression.span() == span,
            _ => return false,
        }
    }
    false
}

fn is_structural_argument<'a>(
    tree: &Tree<'_, 'a>,
    span: Span,
    value: f64,
    call: &'a CallExpression<'a>,
) -> bool {
    let position = call.arguments.iter().position(|argument| argument.span() == span);
    let name = match peel(&call.callee) {
        AstKind::IdentifierReference(reference) => Some(reference.name.as_str()),
        _ => method(call),
    };
    let Some(name) = name else { return false };
    match (name, position) {
        (name, _) if INDEX_METHODS.contains(&name) => true,
        // A base, an exponent, digits, a share, the depth of indentation, a start position.
        ("toString", Some(0))
        | ("parseInt" | "pow" | "indexOf" | "includes" | "lastIndexOf" | "round" | "quantile", Some(1))
        | ("stringify", Some(2)) => true,
        // The parts of a date and of a time.
        ("UTC", _) => true,
        (name, _) if name.starts_with("setUTC") || name.starts_with("setHours") => true,
        // A default by another name.
        ("default" | "catch" | "prefault", Some(0)) => true,
        ("Array", _) => true,
        _ if is_small(value) && matches!(static_call(tree, &call.callee), Some(("Math", _))) => true,
        _ => is_schema(tree, &call.callee),
    }
}

/// `length` in `list.length`.
fn property_name<'a>(expression: &'a Expression<'a>) -> Option<&'a str> {
    match peel(expression) {
        AstKind::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        _ => None,
    }
}

/// `slice` in `list.slice(…)`.
fn method<'a>(call: &'a CallExpression<'a>) -> Option<&'a str> {
    property_name(&call.callee)
}
