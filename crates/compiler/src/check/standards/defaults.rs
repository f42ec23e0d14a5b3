//! Where a literal stands: as a default that an argument can replace, or in a table at the head of the file.

use oxc::ast::AstKind;
use oxc::ast::ast::{AssignmentOperator, Expression, LogicalOperator, TSType, TSTypeName};
use oxc::semantic::NodeId;
use oxc::span::GetSpan;

use super::super::tree::{MAX_STEPS, Tree, is_function, static_call};

/// True for a literal that is a parameter's default, the default in a destructuring, or the right side of `??`/`||`.
pub(super) fn is_default_value(tree: &Tree<'_, '_>, literal: NodeId) -> bool {
    let mut node = literal;
    // Inside `a ?? …` only what is plainly the value counts, not the arguments of a call made there.
    let mut is_value = true;
    for _ in 0..MAX_STEPS {
        let span = tree.kind(node).span();
        let Some((parent_node, parent)) = tree.parent(node) else { return false };
        match parent {
            AstKind::FormalParameter(parameter) => {
                return parameter.initializer.as_ref().is_some_and(|init| init.span() == span);
            }
            AstKind::AssignmentPattern(pattern) => return pattern.right.span() == span,
            AstKind::AssignmentTargetWithDefault(target) => return target.init.span() == span,
            AstKind::AssignmentTargetPropertyIdentifier(_) => return true,
            AstKind::LogicalExpression(logical)
                if is_value
                    && matches!(logical.operator, LogicalOperator::Coalesce | LogicalOperator::Or)
                    && logical.right.span() == span =>
            {
                return true;
            }
            AstKind::AssignmentExpression(assignment) => {
                return is_value
                    && matches!(
                        assignment.operator,
                        AssignmentOperator::LogicalNullish | AssignmentOperator::LogicalOr
                    );
            }
            AstKind::ConditionalExpression(condition)
                if is_value && condition.test.span() != span && tests_undefined(tree, &condition.test) =>
            {
                return true;
            }
            AstKind::CallExpression(_) | AstKind::NewExpression(_) => is_value = false,
            _ if is_function(parent) || parent.is_statement() || parent.is_declaration() => return false,
            _ => {}
        }
        node = parent_node;
    }
    false
}

/// `args.limit === undefined ? 20 : args.limit`, the long form of `??`.
fn tests_undefined<'a>(tree: &Tree<'_, 'a>, test: &'a Expression<'a>) -> bool {
    let Expression::BinaryExpression(binary) = test else { return false };
    binary.operator.is_equality()
        && [&binary.left, &binary.right]
            .into_iter()
            .any(|side| side.is_null() || tree.global_expression(side) == Some("undefined"))
}

/// True for a literal inside an array or object that is a constant of the module, or marked `as const`.
pub(super) fn is_lookup_table(tree: &Tree<'_, '_>, literal: NodeId) -> bool {
    let mut node = literal;
    let mut in_table = false;
    for _ in 0..MAX_STEPS {
        let Some((parent_node, parent)) = tree.parent(node) else { return false };
        match parent {
            AstKind::ArrayExpression(_) | AstKind::ObjectExpression(_) => in_table = true,
            AstKind::ObjectProperty(_)
            | AstKind::UnaryExpression(_)
            | AstKind::TSSatisfiesExpression(_)
            | AstKind::SpreadElement(_) => {}
            AstKind::TSAsExpression(cast) => {
                if in_table && is_const(&cast.type_annotation) {
                    return true;
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
            AstKind::VariableDeclarator(_) => {
                let is_const_declaration = matches!(tree.parent(parent_node),
                    Some((_, AstKind::VariableDeclaration(declaration))) if declaration.kind.is_const());
                return in_table && is_const_declaration && !tree.is_inside_function(parent_node);
            }
            AstKind::PropertyDefinition(property) => {
                return in_table && property.r#static && property.readonly;
            }
            _ => return false,
        }
        node = parent_node;
    }
    false
}

fn is_const(annotation: &TSType<'_>) -> bool {
    matches!(annotation, TSType::TSTypeReference(reference)
        if matches!(&reference.type_name, TSTypeName::IdentifierReference(name) if name.name == "const"))
}
