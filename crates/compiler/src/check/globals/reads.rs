//! Reads of a property by a name that the source decides, in every form the language has for them.

use oxc::ast::AstKind;
use oxc::ast::ast::{CallExpression, Expression};
use oxc::semantic::NodeId;
use oxc::span::Span;

use super::super::constant;
use super::super::tree::{Tree, static_call};

/// One property that is read.
pub(in super::super) struct PropertyRead<'a> {
    /// The node whose value is the property, where there is one: a pattern binds names instead.
    pub(in super::super) value: Option<NodeId>,
    /// The object, where the form shows it.
    pub(in super::super) object: Option<&'a Expression<'a>>,
    /// The names it can have; empty when unknown.
    pub(in super::super) keys: Vec<String>,
    pub(in super::super) span: Span,
}

/// The property read a node stands for.
pub(in super::super) fn property_read<'a>(
    tree: &Tree<'_, 'a>,
    node: NodeId,
    kind: AstKind<'a>,
) -> Option<PropertyRead<'a>> {
    match kind {
        AstKind::StaticMemberExpression(member) => Some(PropertyRead {
            value: Some(node),
            object: Some(&member.object),
            keys: vec![member.property.name.to_string()],
            span: member.span,
        }),
        AstKind::ComputedMemberExpression(member) => Some(PropertyRead {
            value: Some(node),
            object: Some(&member.object),
            keys: constant::strings(tree, &member.expression),
            span: member.span,
        }),
        AstKind::BindingProperty(property) => Some(PropertyRead {
            value: None,
            object: None,
            keys: constant::keys(tree, &property.key, property.computed),
            span: property.span,
        }),
        AstKind::AssignmentTargetPropertyProperty(property) => Some(PropertyRead {
            value: None,
            object: None,
            keys: constant::keys(tree, &property.name, property.computed),
            span: property.span,
        }),
        AstKind::AssignmentTargetPropertyIdentifier(property) => Some(PropertyRead {
            value: None,
            object: None,
            keys: vec![property.binding.name.to_string()],
            span: property.span,
        }),
        AstKind::CallExpression(call) => {
            let (object, key) = reflective_read(tree, call)?;
            Some(PropertyRead {
                value: None,
                object: Some(object),
                keys: constant::strings(tree, key),
                span: call.span,
            })
        }
        _ => None,
    }
}

/// `Reflect.get(object, key)` and its relatives.
pub(super) fn reflective_read<'a>(
    tree: &Tree<'_, 'a>,
    call: &'a CallExpression<'a>,
) -> Option<(&'a Expression<'a>, &'a Expression<'a>)> {
    let reads = matches!(
        static_call(tree, &call.callee)?,
        ("Reflect", "get" | "has" | "getOwnPropertyDescriptor")
            | ("Object", "getOwnPropertyDescriptor" | "hasOwn")
    );
    if !reads {
        return None;
    }
    Some((call.arguments.first()?.as_expression()?, call.arguments.get(1)?.as_expression()?))
}
