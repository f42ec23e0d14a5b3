//! Every function's `constructor` is `Function`, which makes code from text: no route may lead there.

use oxc::ast::AstKind;
use oxc::ast::ast::{BinaryOperator, UnaryOperator};
use oxc::semantic::NodeId;
use oxc::span::GetSpan;

use super::super::report::Report;
use super::super::tree::{Tree, peel};
use super::{FORBIDDEN_GLOBAL, PropertyRead, property_read};

const CONSTRUCTOR: &str = "constructor";

/// Refuses a read of `constructor` unless what happens to it is harmless: a comparison, its name, `typeof`, or a class
/// that makes another of its own kind.
pub(super) fn check<'a>(tree: &Tree<'_, 'a>, read: &PropertyRead<'a>, report: &mut Report<'_>) {
    if !read.keys.iter().any(|key| key == CONSTRUCTOR) || is_harmless(tree, read) || is_inner(tree, read) {
        return;
    }
    report.add(
        &FORBIDDEN_GLOBAL,
        read.span,
        "Global 'Function' is forbidden (reached through 'constructor')",
        "Name the class itself; to tell kinds apart use `instanceof`, `typeof` or a `kind` property.",
    );
}

fn is_harmless<'a>(tree: &Tree<'_, 'a>, read: &PropertyRead<'a>) -> bool {
    let Some(value) = read.value else { return false };
    let Some((_, parent)) = tree.parent(value) else { return false };
    if tree
        .kind(value)
        .as_member_expression_kind()
        .is_some_and(|member| member.is_assigned_to_in_parent(&parent))
    {
        return true;
    }
    let of_instance = read.object.is_some_and(|object| matches!(peel(object), AstKind::ThisExpression(_)))
        && is_inside_instance_method(tree, value);
    let Some(use_site) = tree.use_of(value) else { return false };
    match use_site.parent {
        AstKind::BinaryExpression(binary) => {
            binary.operator.is_equality() || binary.operator == BinaryOperator::Instanceof
        }
        AstKind::UnaryExpression(unary) => {
            matches!(unary.operator, UnaryOperator::Typeof | UnaryOperator::LogicalNot)
        }
        AstKind::StaticMemberExpression(member) => match member.property.name.as_str() {
            "name" => true,
            CONSTRUCTOR | "call" | "apply" | "bind" => false,
            _ => of_instance,
        },
        AstKind::NewExpression(_) => of_instance,
        _ => false,
    }
}

/// In `x.constructor.constructor` one finding is enough, for the whole of it.
fn is_inner<'a>(tree: &Tree<'_, 'a>, read: &PropertyRead<'a>) -> bool {
    read.value.and_then(|value| tree.use_of(value)).is_some_and(|use_site| {
        property_read(tree, use_site.parent_node, use_site.parent).is_some_and(|outer| {
            outer.object.is_some_and(|object| object.span() == use_site.span)
                && outer.keys.iter().any(|key| key == CONSTRUCTOR)
        })
    })
}

/// In a static method `this` is the class, and the constructor of a class is `Function` again.
fn is_inside_instance_method(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    tree.functions_around(node).find(|(_, kind)| matches!(kind, AstKind::Function(_))).is_some_and(
        |(function, _)| {
            matches!(tree.parent(function), Some((_, AstKind::MethodDefinition(method))) if !method.r#static)
        },
    )
}
