//! The rule `magic-number`: a number with a meaning belongs into an argument.

use oxc::ast::AstKind;
use oxc::ast::ast::{BinaryOperator, CallExpression, Expression};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::tree::{MAX_STEPS, Tree, peel};
use super::defaults::{is_default_value, is_lookup_table};

const MAGIC_NUMBER: Rule = Rule {
    name: "magic-number",
    severity: Severity::Error,
    reason: "Logic is kept apart from the data it works on: rates, limits and sizes come in as arguments \
             (standards 1, abstract, and 7, no hardcoded values).",
};

/// Numbers that are part of how one counts.
const PLAIN: [f64; 5] = [0.0, 1.0, 2.0, 10.0, 100.0];

/// Numbers that are the same everywhere: time, angles, bytes and metric prefixes.
const UNITS: [f64; 19] = [
    7.0,
    12.0,
    24.0,
    60.0,
    90.0,
    180.0,
    360.0,
    365.0,
    1000.0,
    1024.0,
    1440.0,
    3600.0,
    10_000.0,
    86_400.0,
    60_000.0,
    3_600_000.0,
    86_400_000.0,
    1_000_000.0,
    1_000_000_000.0,
];

/// Methods whose numbers are positions or widths in a list or a text.
const INDEX_METHODS: [&str; 14] = [
    "at",
    "slice",
    "substring",
    "substr",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "splice",
    "toSpliced",
    "subarray",
    "with",
    "flat",
    "padStart",
    "padEnd",
];

/// What a number's place says about it.
enum Verdict {
    Fine,
    Doubtful(&'static str),
    Magic,
}

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        let (value, span) = match kind {
            AstKind::NumericLiteral(literal) => (literal.value, literal.span),
            AstKind::BigIntLiteral(literal) => (literal.value.parse().unwrap_or(f64::MAX), literal.span),
            _ => continue,
        };
        if PLAIN.contains(&value) {
            continue;
        }
        let text = tree.program().source_text.get(span.start as usize..span.end as usize).unwrap_or("number");
        match verdict(tree, node, value) {
            Verdict::Fine => {}
            Verdict::Doubtful(why) => report.add_as(
                Severity::Warning,
                &MAGIC_NUMBER,
                span,
                format!("Number {text} {why}"),
                fix(text),
            ),
            Verdict::Magic => {
                report.add(&MAGIC_NUMBER, span, format!("Magic number {text}"), fix(text));
            }
        }
    }
}

fn fix(text: &str) -> String {
    format!("Make it an argument with a default: `args.name ?? {text}`, or a parameter `name = {text}`.")
}

fn verdict<'a>(tree: &Tree<'_, 'a>, literal: NodeId, value: f64) -> Verdict {
    let (node, span) = with_sign(tree, literal);
    let Some((parent_node, parent)) = tree.parent(node) else { return Verdict::Magic };
    if is_structural(tree, span, parent_node, parent) || is_default_value(tree, node) {
        return Verdict::Fine;
    }
    match parent {
        AstKind::TSEnumMember(_) => return Verdict::Doubtful("is hard-coded in an enum"),
        AstKind::SwitchCase(_) => return Verdict::Doubtful("is hard-coded in a case"),
        AstKind::BinaryExpression(binary)
            if binary.operator.is_equality() || binary.operator.is_compare() =>
        {
            let other = if binary.left.span() == span { &binary.right } else { &binary.left };
            if matches!(property_name(other), Some("status" | "statusCode" | "code")) {
                return Verdict::Doubtful("is a hard-coded status");
            }
        }
        AstKind::CallExpression(call) if matches!(method(call), Some("toFixed" | "toPrecision")) => {
            return Verdict::Doubtful("is a hard-coded precision");
        }
        _ => {}
    }
    if is_lookup_table(tree, node) {
        return Verdict::Doubtful("is hard-coded in a lookup table");
    }
    if UNITS.contains(&value) {
        return Verdict::Doubtful("is a hard-coded unit");
    }
    Verdict::Magic
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

/// True where a number says how the code is built: an index, a length, a base, a bit mask, a key, a type.
fn is_structural<'a>(tree: &Tree<'_, 'a>, span: Span, parent_node: NodeId, parent: AstKind<'a>) -> bool {
    match parent {
        AstKind::TSLiteralType(_) | AstKind::TSEnumDeclaration(_) => true,
        AstKind::ObjectProperty(property) => {
            property.key.span() == span || is_length_option(tree, parent_node, property.key.name().as_deref())
        }
        AstKind::BindingProperty(property) => property.key.span() == span,
        AstKind::PropertyDefinition(property) => property.key.span() == span,
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
                || is_part_of_index(tree, parent_node)
        }
        AstKind::AssignmentExpression(assignment) => assignment.operator.is_bitwise(),
        AstKind::CallExpression(call) => is_structural_argument(tree, span, call),
        AstKind::NewExpression(new) => tree
            .global_expression(&new.callee)
            .is_some_and(|name| name.ends_with("Array") || matches!(name, "ArrayBuffer")),
        _ => false,
    }
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

/// `Array.from({ length: 5 })`.
fn is_length_option(tree: &Tree<'_, '_>, property: NodeId, name: Option<&str>) -> bool {
    name == Some("length")
        && tree.parent(property).and_then(|(object, _)| tree.parent(object)).is_some_and(
            |(_, kind)| matches!(kind, AstKind::CallExpression(call) if method(call) == Some("from")),
        )
}

fn is_structural_argument<'a>(tree: &Tree<'_, 'a>, span: Span, call: &'a CallExpression<'a>) -> bool {
    let position = call.arguments.iter().position(|argument| argument.span() == span);
    let name = match peel(&call.callee) {
        AstKind::IdentifierReference(reference) => Some(reference.name.as_str()),
        _ => method(call),
    };
    let Some(name) = name else { return false };
    match (name, position) {
        (name, _) if INDEX_METHODS.contains(&name) => true,
        // A base, an exponent, the depth of indentation, a start position.
        ("toString", Some(0)) | ("parseInt" | "pow" | "indexOf" | "includes" | "lastIndexOf", Some(1)) => {
            true
        }
        ("stringify", Some(2)) => true,
        // A default by another name.
        ("default" | "catch" | "prefault", Some(0)) => true,
        ("Array" | "fill", _) => name == "Array",
        _ => is_schema(tree, &call.callee),
    }
}

/// A chain that begins at an import of zod describes arguments, which is what numbers are meant to do.
fn is_schema<'a>(tree: &Tree<'_, 'a>, callee: &'a Expression<'a>) -> bool {
    let mut expression = callee;
    for _ in 0..MAX_STEPS {
        match peel(expression) {
            AstKind::StaticMemberExpression(member) => expression = &member.object,
            AstKind::CallExpression(call) => expression = &call.callee,
            AstKind::IdentifierReference(reference) => {
                let Some(symbol) = tree.symbol(reference) else { return false };
                let declaration = tree.scoping().symbol_declaration(symbol);
                return match tree.kind(declaration) {
                    AstKind::VariableDeclarator(declarator) => {
                        declarator.init.as_ref().is_some_and(is_zod_require)
                    }
                    _ => tree
                        .nodes()
                        .ancestor_kinds(declaration)
                        .find_map(AstKind::as_import_declaration)
                        .is_some_and(|import| is_zod(&import.source.value)),
                };
            }
            _ => return false,
        }
    }
    false
}

fn is_zod_require(init: &Expression<'_>) -> bool {
    let mut expression = init.get_inner_expression();
    while let Expression::StaticMemberExpression(member) = expression {
        expression = member.object.get_inner_expression();
    }
    matches!(expression, Expression::CallExpression(call)
        if call.common_js_require().is_some_and(|specifier| is_zod(&specifier.value)))
}

fn is_zod(specifier: &str) -> bool {
    specifier == "zod" || specifier.starts_with("zod/")
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
