//! Small changes to the finished tree that the engine or the packages need.

use oxc::allocator::{Allocator, TakeIn};
use oxc::ast::ast::*;
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{VisitMut, walk_mut};
use oxc::semantic::Scoping;
use oxc::span::SPAN;

use super::shape::is_free;

/// Drops import attributes: what `with { type: 'json' }` asks for, the graph has already done.
pub(super) fn drop_import_attributes(program: &mut Program<'_>) {
    for statement in &mut program.body {
        match statement {
            Statement::ImportDeclaration(import) => import.with_clause = None,
            Statement::ExportFromDeclaration(export) => export.with_clause = None,
            Statement::ExportAllDeclaration(export) => export.with_clause = None,
            _ => {}
        }
    }
    if program.source_text.contains("import(") {
        DropOptions.visit_program(program);
    }
}

struct DropOptions;

impl<'a> VisitMut<'a> for DropOptions {
    fn visit_import_expression(&mut self, import: &mut ImportExpression<'a>) {
        import.options = None;
        walk_mut::walk_import_expression(self, import);
    }
}

/// In packages `process.env.NODE_ENV` is `"production"`, and a branch that this decides against is dropped, so that
/// the graph does not load what never runs. `Function('return this')()` is how older ones spell `globalThis`; the
/// engine makes no function from text.
pub(super) fn fold_globals<'a>(program: &mut Program<'a>, scoping: &Scoping, allocator: &'a Allocator) {
    if program.source_text.contains("NODE_ENV") || program.source_text.contains("return this") {
        Folder { scoping, builder: AstBuilder::new(allocator) }.visit_program(program);
    }
}

struct Folder<'a, 's> {
    scoping: &'s Scoping,
    builder: AstBuilder<'a>,
}

impl Folder<'_, '_> {
    fn is_node_env(&self, expression: &Expression<'_>) -> bool {
        let Some(member) = expression.as_member_expression() else { return false };
        if member.static_property_name() != Some("NODE_ENV") {
            return false;
        }
        let Some(env) = member.object().as_member_expression() else { return false };
        env.static_property_name() == Some("env")
            && matches!(env.object(), Expression::Identifier(process)
                if process.name == "process" && is_free(process, self.scoping))
    }
}

impl Folder<'_, '_> {
    /// `Function('return this')()`, also with `new`.
    fn is_global_this(&self, expression: &Expression<'_>) -> bool {
        let Expression::CallExpression(outer) = expression else { return false };
        let (callee, arguments) = match &outer.callee {
            Expression::CallExpression(inner) => (&inner.callee, &inner.arguments),
            Expression::NewExpression(inner) => (&inner.callee, &inner.arguments),
            _ => return false,
        };
        let (Expression::Identifier(function), [Argument::StringLiteral(text)]) =
            (callee, arguments.as_slice())
        else {
            return false;
        };
        outer.arguments.is_empty()
            && function.name == "Function"
            && is_free(function, self.scoping)
            && text.value.trim_end_matches(';') == "return this"
    }
}

impl<'a> VisitMut<'a> for Folder<'a, '_> {
    fn visit_expression(&mut self, expression: &mut Expression<'a>) {
        if self.is_global_this(expression) {
            *expression = Expression::new_identifier(SPAN, "globalThis", &self.builder);
            return;
        }
        if self.is_node_env(expression) {
            *expression = Expression::new_string_literal(SPAN, "production", None, &self.builder);
            return;
        }
        walk_mut::walk_expression(self, expression);
    }

    fn visit_statement(&mut self, statement: &mut Statement<'a>) {
        walk_mut::walk_statement(self, statement);
        let Statement::IfStatement(branch) = statement else { return };
        let Some(holds) = decided(&branch.test) else { return };
        let kept = if holds {
            Some(branch.consequent.take_in(&self.builder))
        } else {
            branch.alternate.as_mut().map(|alternate| alternate.take_in(&self.builder))
        };
        // A `var` in the dropped branch would be undeclared; in practice packages only `require` there.
        *statement = kept.unwrap_or_else(|| Statement::new_empty_statement(SPAN, &self.builder));
    }
}

/// The value of a comparison of two string literals.
fn decided(test: &Expression<'_>) -> Option<bool> {
    let Expression::BinaryExpression(comparison) = test else { return None };
    let (Expression::StringLiteral(left), Expression::StringLiteral(right)) =
        (&comparison.left, &comparison.right)
    else {
        return None;
    };
    match comparison.operator {
        BinaryOperator::Equality | BinaryOperator::StrictEquality => Some(left.value == right.value),
        BinaryOperator::Inequality | BinaryOperator::StrictInequality => Some(left.value != right.value),
        _ => None,
    }
}
