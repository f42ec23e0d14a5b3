//! Whether a call describes arguments with zod, which is what numbers are meant to do.

use oxc::ast::AstKind;
use oxc::ast::ast::Expression;

use super::super::tree::{MAX_STEPS, Tree, peel};

/// True for a chain that begins at an import of zod.
pub(super) fn is_schema<'a>(tree: &Tree<'_, 'a>, callee: &'a Expression<'a>) -> bool {
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
