//! Whether a literal is a default that an argument can replace, or has a name.

use oxc::ast::AstKind;
use oxc::ast::ast::{AssignmentOperator, Expression, LogicalOperator};
use oxc::semantic::NodeId;
use oxc::span::GetSpan;

use super::super::tree::{MAX_STEPS, Tree, is_function};

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

/// True for a literal that is the whole value of a variable: the name says what it is for.
pub(super) fn is_named_constant(tree: &Tree<'_, '_>, literal: NodeId) -> bool {
    let mut node = literal;
    for _ in 0..MAX_STEPS {
        match tree.parent(node) {
            Some((parent, AstKind::TSAsExpression(_) | AstKind::TSSatisfiesExpression(_))) => node = parent,
            Some((_, AstKind::VariableDeclarator(_))) => return true,
            _ => return false,
        }
    }
    false
}
