//! What the source decides about the parts of a statement: constant tables and lists, and functions of this file.

use oxc::ast::AstKind;
use oxc::ast::ast::{Argument, CallExpression, Expression, ObjectPropertyKind, Statement};
use oxc::semantic::NodeId;

use super::super::super::tree::{Tree, peel, static_call};
use super::pieces::MAX_DEPTH;

/// True for a table of the source whose values are all texts or numbers: looking something up there decides nothing
/// else than which of them it is.
pub(super) fn is_constant_table<'a>(tree: &Tree<'_, 'a>, object: &'a Expression<'a>) -> bool {
    let value = match peel(object) {
        AstKind::IdentifierReference(reference) => {
            let Some(symbol) = tree.symbol(reference) else { return false };
            if matches!(tree.kind(tree.scoping().symbol_declaration(symbol)), AstKind::TSEnumDeclaration(_)) {
                return true;
            }
            match tree.initial_value(reference) {
                Some(value) => peel(value),
                None => return false,
            }
        }
        other => other,
    };
    match value {
        AstKind::ObjectExpression(literal) => literal.properties.iter().all(|property| match property {
            ObjectPropertyKind::ObjectProperty(property) => is_constant(peel(&property.value)),
            ObjectPropertyKind::SpreadProperty(_) => false,
        }),
        AstKind::ArrayExpression(_) => is_constant_list_kind(value),
        _ => false,
    }
}

pub(super) fn is_constant_list<'a>(tree: &Tree<'_, 'a>, list: &'a Expression<'a>) -> bool {
    let mut list = list;
    for _ in 0..MAX_DEPTH {
        match peel(list) {
            AstKind::IdentifierReference(reference) => match tree.initial_value(reference) {
                Some(value) => list = value,
                None => return false,
            },
            AstKind::CallExpression(call) => {
                let first = call.arguments.first().and_then(Argument::as_expression);
                // `Object.keys(TABLE)`.
                if let Some(("Object", "keys" | "values")) = static_call(tree, &call.callee) {
                    return first.is_some_and(|object| is_constant_table(tree, object));
                }
                let AstKind::StaticMemberExpression(member) = peel(&call.callee) else { return false };
                if !matches!(member.property.name.as_str(), "filter" | "slice" | "toSorted" | "toReversed") {
                    return false;
                }
                list = &member.object;
            }
            other => return is_constant_list_kind(other),
        }
    }
    false
}

/// What a function of this file returns when it has nothing else to do, unless its name promises to quote.
pub(super) fn own_result<'a>(
    tree: &Tree<'_, 'a>,
    call: &'a CallExpression<'a>,
) -> Option<&'a Expression<'a>> {
    let AstKind::IdentifierReference(reference) = peel(&call.callee) else { return None };
    let name = reference.name.to_ascii_lowercase();
    if ["quote", "escape", "ident"].iter().any(|word| name.contains(word)) {
        return None;
    }
    let function = match tree.kind(tree.scoping().symbol_declaration(tree.symbol(reference)?)) {
        function @ AstKind::Function(_) => function,
        _ => peel(tree.initial_value(reference)?),
    };
    let body = match function {
        AstKind::ArrowFunctionExpression(arrow) => match arrow.get_expression() {
            Some(result) => return Some(result),
            None => arrow.get_function_body()?,
        },
        AstKind::Function(function) => function.body.as_deref()?,
        _ => return None,
    };
    match body.statements.as_slice() {
        [Statement::ReturnStatement(statement)] => statement.argument.as_ref(),
        _ => None,
    }
}

/// True for a replacement of quotes by two of them.
pub(super) fn doubles_quotes(call: &CallExpression<'_>) -> bool {
    matches!(call.arguments.get(1), Some(Argument::StringLiteral(by)) if matches!(by.value.as_str(), "\"\"" | "''" | "``"))
}

fn is_constant_list_kind(kind: AstKind<'_>) -> bool {
    matches!(kind, AstKind::ArrayExpression(literal)
        if literal.elements.iter().all(|element| element.as_expression().is_some_and(|item| is_constant(peel(item)))))
}

fn is_constant(kind: AstKind<'_>) -> bool {
    match kind {
        AstKind::StringLiteral(_) | AstKind::NumericLiteral(_) => true,
        AstKind::TemplateLiteral(template) => template.is_no_substitution_template(),
        _ => false,
    }
}

/// The list of `for (const table of TABLES)`.
pub(super) fn looped_list<'a>(tree: &Tree<'_, 'a>, declarator: NodeId) -> Option<&'a Expression<'a>> {
    let (declaration, _) = tree.parent(declarator)?;
    match tree.parent(declaration)? {
        (_, AstKind::ForOfStatement(statement)) => Some(&statement.right),
        _ => None,
    }
}

/// The list of `TABLES.map((table) => …)`, for its parameter.
pub(super) fn callback_list<'a>(tree: &Tree<'_, 'a>, parameter: NodeId) -> Option<&'a Expression<'a>> {
    let (function, _) = tree.functions_around(parameter).next()?;
    let (_, AstKind::CallExpression(call)) = tree.parent(function)? else { return None };
    let AstKind::StaticMemberExpression(member) = peel(&call.callee) else { return None };
    Some(&member.object)
}
