//! The rule `sql-template`: values go into a statement as parameters, never as text.
//!
//! The text of the statement is put together as the source does it (templates, sums, conditions that are joined) into
//! pieces of known text and holes. A hole in the place of a value is an error, since a parameter always can replace
//! it; a hole in the place of a table or column is a warning, since no parameter can.

mod constants;
mod pieces;

use std::collections::HashSet;

use oxc::ast::AstKind;
use oxc::ast::ast::{BindingIdentifier, CallExpression, Expression};
use oxc::semantic::SymbolId;
use oxc::span::Span;
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::tree::{Tree, peel, static_call};
use pieces::{Guards, Piece, Pieces};

const SQL_TEMPLATE: Rule = Rule {
    name: "sql-template",
    severity: Severity::Error,
    reason: "A value that is pasted into SQL can change the statement: a quote in a name breaks it, and an attacker \
             deletes a table with it (standard 6, general by params).",
};

/// Words after which a name follows, and words after which a value follows.
const NAME_WORDS: [&str; 13] = [
    "FROM", "JOIN", "INTO", "UPDATE", "TABLE", "BY", "SELECT", "DISTINCT", "INDEX", "AS", "ASC", "DESC",
    "EXISTS",
];
const VALUE_WORDS: [&str; 15] = [
    "WHERE", "AND", "OR", "NOT", "LIKE", "GLOB", "IN", "VALUES", "SET", "LIMIT", "OFFSET", "HAVING",
    "BETWEEN", "WHEN", "THEN",
];

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    /// The cost of all statements together.
    const MAX_STEPS: usize = 200_000;
    let mut steps_left = MAX_STEPS;
    let mut guards = None;
    let runners = runners(tree);
    for (_, kind) in tree.each() {
        let AstKind::CallExpression(call) = kind else { continue };
        let runs_sql = is_sql_call(tree, call)
            || matches!(peel(&call.callee), AstKind::IdentifierReference(reference)
                if tree.symbol(reference).is_some_and(|symbol| runners.contains(&symbol)));
        let Some(statement) = first_argument(call).filter(|_| runs_sql) else { continue };
        let guards: &Guards<'_> = guards.get_or_insert_with(|| Guards::of(tree));
        let pieces = Pieces::of(tree, guards, statement, &mut steps_left);
        if pieces.has_sql() {
            check_pieces(tree, &pieces, report);
        }
    }
}

fn is_sql_call<'a>(tree: &Tree<'_, 'a>, call: &'a CallExpression<'a>) -> bool {
    matches!(static_call(tree, &call.callee), Some(("tgp", "exec_sql" | "query")))
}

fn first_argument<'a>(call: &'a CallExpression<'a>) -> Option<&'a Expression<'a>> {
    call.arguments.first().and_then(|argument| argument.as_expression())
}

/// Functions of this file that hand their first parameter on as the statement: `const run = (sql) => tgp.exec_sql(sql)`.
fn runners(tree: &Tree<'_, '_>) -> HashSet<SymbolId> {
    let mut found = HashSet::new();
    for (node, kind) in tree.each() {
        let AstKind::CallExpression(call) = kind else { continue };
        let Some(AstKind::IdentifierReference(statement)) =
            first_argument(call).map(peel).filter(|_| is_sql_call(tree, call))
        else {
            continue;
        };
        let Some((function_node, function)) = tree.functions_around(node).next() else { continue };
        let (params, name) = match function {
            AstKind::Function(function) => (&function.params, function.id.as_ref()),
            AstKind::ArrowFunctionExpression(arrow) => (&arrow.params, None),
            _ => continue,
        };
        let first = params.items.first().and_then(|parameter| parameter.pattern.get_binding_identifier());
        if first.is_none() || first.map(BindingIdentifier::symbol_id) != tree.symbol(statement) {
            continue;
        }
        let bound = match tree.parent(function_node) {
            Some((_, AstKind::VariableDeclarator(declarator))) => declarator.id.get_binding_identifier(),
            _ => name,
        };
        found.extend(bound.map(BindingIdentifier::symbol_id));
    }
    found
}

/// What a hole is in the place of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Value,
    Name,
}

fn check_pieces(tree: &Tree<'_, '_>, pieces: &Pieces, report: &mut Report<'_>) {
    let mut before = String::new();
    let mut last: Option<Position> = None;
    for piece in pieces.list() {
        match piece {
            Piece::Text(text) => {
                if !text.trim().is_empty() {
                    last = None;
                }
                before.push_str(text);
            }
            Piece::Break => {
                before.clear();
                last = None;
            }
            Piece::Hole(span) => {
                let position = last.unwrap_or_else(|| position(&before));
                add(tree, *span, position, report);
                last = Some(position);
                before.push_str("hole");
            }
        }
    }
}

fn add(tree: &Tree<'_, '_>, span: Span, position: Position, report: &mut Report<'_>) {
    const LONGEST: usize = 40;
    let text = tree.program().source_text.get(span.start as usize..span.end as usize).unwrap_or("");
    let text = if text.len() <= LONGEST && !text.contains('\n') { text } else { "a value" };
    match position {
        Position::Value => report.add(
            &SQL_TEMPLATE,
            span,
            format!("`{text}` is pasted into the SQL: it can change the statement; pass it as a parameter"),
            "Write `?` in its place and give the value in the second argument: \
             `tgp.exec_sql('… WHERE name = ?', [args.name])`. A list needs `list.map(() => '?').join(', ')`.",
        ),
        Position::Name => report.add_as(
            Severity::Warning,
            &SQL_TEMPLATE,
            span,
            format!("`{text}` is pasted into the SQL as a name: it can change the statement; choose it from a list"),
            "A parameter cannot be a table or a column. Take it from a constant table, `COLUMNS[args.sortBy]`, or refuse \
             what is not listed: `if (!TABLES.includes(args.table)) throw …`.",
        ),
    }
}

/// Whether the text before a hole asks for a value or for a name.
fn position(before: &str) -> Position {
    if before.matches('\'').count() % 2 == 1 {
        return Position::Value;
    }
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let ends_with_operator = before.trim_end().ends_with(['=', '<', '>', '+', '-', '*', '/', '|', '%']);
    if ends_with_operator {
        return Position::Value;
    }
    let words = before.split(|character: char| !is_word(character)).rev();
    for word in words.map(str::to_ascii_uppercase) {
        if NAME_WORDS.contains(&word.as_str()) {
            return Position::Name;
        }
        if VALUE_WORDS.contains(&word.as_str()) {
            return Position::Value;
        }
    }
    Position::Name
}
