//! Whether a use of a name changes what the name stands for.

use oxc::ast::AstKind;
use oxc::ast::ast::{Expression, UnaryOperator};
use oxc::semantic::NodeId;
use oxc::span::GetSpan;

use super::super::tree::{Tree, peel, static_call};

/// Methods that change the list, map or set they are called on.
const MUTATORS: [&str; 15] = [
    "push",
    "pop",
    "shift",
    "unshift",
    "splice",
    "sort",
    "reverse",
    "fill",
    "copyWithin",
    "set",
    "add",
    "delete",
    "clear",
    "append",
    "setTime",
];

/// How a reference changes its object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutation<'a> {
    /// `x.a = 1`, `x[0]++`, `delete x.a`, `Object.assign(x, …)`.
    Property,
    /// `x.push(1)`, by the name of the method: only a change when `x` is a container.
    Method(&'a str),
}

/// The change a reference makes, following `x.a.b` to its end.
pub(super) fn of_reference<'a>(tree: &Tree<'_, 'a>, reference: NodeId) -> Option<Mutation<'a>> {
    let mut node = reference;
    let mut last_property = None;
    loop {
        let use_site = tree.use_of(node)?;
        match use_site.parent {
            AstKind::StaticMemberExpression(member) if member.object.span() == use_site.span => {
                last_property = Some(member.property.name.as_str());
                node = use_site.parent_node;
            }
            AstKind::ComputedMemberExpression(member) if member.object.span() == use_site.span => {
                last_property = match peel(&member.expression) {
                    AstKind::StringLiteral(key) => Some(key.value.as_str()),
                    _ => Some(""),
                };
                node = use_site.parent_node;
            }
            AstKind::CallExpression(call) if call.callee.span() == use_site.span => {
                return last_property
                    .filter(|name| MUTATORS.contains(name) || is_date_setter(name))
                    .map(Mutation::Method);
            }
            AstKind::CallExpression(call) => {
                let is_first = call.arguments.first().is_some_and(|first| first.span() == use_site.span);
                let changes = matches!(
                    static_call(tree, &call.callee),
                    Some(
                        ("Object", "assign" | "defineProperty" | "defineProperties" | "setPrototypeOf")
                            | ("Reflect", "set" | "defineProperty" | "deleteProperty" | "setPrototypeOf")
                    )
                );
                return (is_first && changes).then_some(Mutation::Property);
            }
            AstKind::UnaryExpression(unary) => {
                return (last_property.is_some() && unary.operator == UnaryOperator::Delete)
                    .then_some(Mutation::Property);
            }
            parent => {
                let written = tree
                    .kind(use_site.node)
                    .as_member_expression_kind()
                    .is_some_and(|member| member.is_assigned_to_in_parent(&parent));
                return written.then_some(Mutation::Property);
            }
        }
    }
}

fn is_date_setter(name: &str) -> bool {
    ["setDate", "setMonth", "setFullYear", "setHours", "setMinutes", "setSeconds", "setMilliseconds"]
        .contains(&name)
        || name.starts_with("setUTC")
}

/// True for a value that holds others and can be changed in place.
pub(super) fn is_container<'a>(tree: &Tree<'_, 'a>, value: &'a Expression<'a>) -> bool {
    match peel(value) {
        AstKind::ArrayExpression(_) | AstKind::ObjectExpression(_) => true,
        AstKind::NewExpression(new) => tree.global_expression(&new.callee).is_some_and(|name| {
            name.ends_with("Array")
                || matches!(
                    name,
                    "Map"
                        | "Set"
                        | "WeakMap"
                        | "WeakSet"
                        | "Date"
                        | "URLSearchParams"
                        | "Headers"
                        | "FormData"
                        | "Object"
                )
        }),
        AstKind::CallExpression(call) => {
            tree.global_expression(&call.callee) == Some("Array")
                || matches!(
                    static_call(tree, &call.callee),
                    Some(
                        ("Array", "from" | "of")
                            | ("Object", "create" | "fromEntries" | "assign" | "keys" | "values" | "entries")
                            | ("Map", "groupBy")
                    )
                )
        }
        _ => false,
    }
}
