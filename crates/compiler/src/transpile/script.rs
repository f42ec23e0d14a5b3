//! Scripts become modules: `import …; export default async function (args) { … }`.
//!
//! This happens on the tree and before any analysis, so that scopes, TypeScript's transforms and the source map
//! all see the code where it really runs.

use oxc::allocator::{Allocator, ArenaVec, TakeIn};
use oxc::ast::ast::*;
use oxc::ast::builder::AstBuilder;
use oxc::span::SPAN;

use super::shape::{is_erased, is_type_export};

/// Wraps the code of a script in the default export. The last expression becomes the result when
/// `result` says so.
pub(super) fn wrap<'a>(program: &mut Program<'a>, allocator: &'a Allocator, result: ScriptResult) {
    let builder = AstBuilder::new(allocator);
    let mut outside = ArenaVec::new_in(&builder);
    let mut inside = ArenaVec::new_in(&builder);
    for statement in program.body.take_in(&builder) {
        if stands_outside(&statement) {
            outside.push(statement);
        } else if !is_type_export(&statement) && !is_ambient(&statement) {
            inside.push(statement);
        }
    }
    let mut directives = program.directives.take_in(&builder);
    if result == ScriptResult::LastExpression {
        return_last_expression(&mut inside, &mut directives, &builder);
    }

    let parameter = FormalParameter::new_plain(
        SPAN,
        BindingPattern::new_binding_identifier(SPAN, "args", &builder),
        &builder,
    );
    let parameters =
        FormalParameters::boxed(SPAN, FormalParameterKind::FormalParameter, [parameter], None, &builder);
    let body = FunctionBody::boxed(SPAN, directives, inside, &builder);
    let function = Function::boxed(
        SPAN,
        FunctionType::FunctionDeclaration,
        None,
        false,
        true,
        false,
        None,
        None,
        parameters,
        None,
        Some(body),
        &builder,
    );
    let declaration = ExportDefaultDeclarationKind::FunctionDeclaration(function);
    outside.push(Statement::new_export_default_declaration(SPAN, declaration, &builder));
    program.body = outside;
}

/// What a script gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptResult {
    /// Its own top-level `return`.
    Return,
    /// Its last expression, if it ends in one.
    LastExpression,
}

/// Statements that the language allows only at the top of a module.
fn stands_outside(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ImportDeclaration(_) | Statement::TSImportEqualsDeclaration(_) => true,
        Statement::TSNamespaceDeclaration(namespace) => !namespace.declare,
        _ => false,
    }
}

/// `declare const args: …` would clash with the parameter; like every ambient declaration it leaves no code.
fn is_ambient(statement: &Statement<'_>) -> bool {
    is_erased(statement)
        && !matches!(
            statement,
            Statement::TSTypeAliasDeclaration(_)
                | Statement::TSInterfaceDeclaration(_)
                | Statement::FunctionDeclaration(_)
        )
        || matches!(statement, Statement::FunctionDeclaration(function) if function.declare)
}

fn return_last_expression<'a>(
    statements: &mut ArenaVec<'a, Statement<'a>>,
    directives: &mut ArenaVec<'a, Directive<'a>>,
    builder: &AstBuilder<'a>,
) {
    // Functions and types after the last expression are hoisted or erased; they do not hide it.
    let last = statements.iter_mut().rev().find(|statement| {
        !is_erased(statement)
            && !matches!(statement, Statement::EmptyStatement(_) | Statement::FunctionDeclaration(_))
    });
    match last {
        Some(statement) => {
            if let Statement::ExpressionStatement(expression) = statement {
                let span = expression.span;
                let value = expression.expression.take_in(builder);
                *statement = Statement::new_return_statement(span, Some(value), builder);
            }
        }
        // A script that is nothing but a string is a directive to the parser.
        None => {
            if let Some(directive) = directives.pop() {
                let value = Expression::new_string_literal(
                    directive.expression.span,
                    directive.expression.value,
                    directive.expression.raw,
                    builder,
                );
                statements.push(Statement::new_return_statement(directive.span, Some(value), builder));
            }
        }
    }
}
