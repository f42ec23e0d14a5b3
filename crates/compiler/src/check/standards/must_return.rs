//! The rule `must-return`: a tool that returns nothing cannot be composed, and an agent cannot see what it did.

use oxc::ast::ast::{Statement, TSType};
use oxc::ast_visit::Visit;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::{Callable, Entry, Returns, Shape, top_level_returns};
use super::super::tree::Tree;
use super::completion::{falls_through, is_log_call};
use crate::ToolShape;

const MUST_RETURN: Rule = Rule {
    name: "must-return",
    severity: Severity::Error,
    reason: "A tool returns its result to its caller; logs are not results (standard 2, composable).",
};

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    match shape.tool_shape {
        ToolShape::ReturnScript => check_return_script(tree, report),
        ToolShape::ExpressionScript => check_expression_script(tree, report),
        _ => {}
    }
    if let Entry::Callable { callable, .. } = shape.entry {
        check_callable(tree, callable, "The tool", Kind::Entry, report);
    }
    for exported in &shape.exported {
        let name = format!("Exported function '{}'", exported.name);
        check_callable(tree, exported.callable, &name, Kind::Exported, report);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Entry,
    Exported,
}

fn check_callable<'a>(
    tree: &Tree<'_, 'a>,
    callable: Callable<'a>,
    name: &str,
    kind: Kind,
    report: &mut Report<'_>,
) {
    let declared = callable.return_type().map(|annotation| returns_nothing(&annotation.type_annotation));
    let Some(body) = callable.body() else {
        if kind == Kind::Entry
            && declared != Some(Nothing::Void)
            && let Callable::Arrow(arrow) = callable
            && let Some(expression) = arrow.get_expression()
            && is_log_call(tree, expression)
        {
            report.add(
                &MUST_RETURN,
                expression.span(),
                format!("{name} only logs and returns nothing"),
                RETURN_FIX,
            );
        }
        return;
    };
    if declared == Some(Nothing::Checks) || callable.is_generator() {
        return;
    }
    let mut returns = Returns::default();
    returns.visit_function_body(body);
    let gives_value = returns.found.iter().any(|&(_, has_value)| has_value);
    let reaches_end = falls_through(&body.statements);
    if !gives_value {
        // A function that can only throw has nothing to return, and one that declares `void` means it.
        if declared == Some(Nothing::Void) || (!reaches_end && returns.found.is_empty()) {
            return;
        }
        report.add(&MUST_RETURN, callable.head(), format!("{name} returns nothing"), RETURN_FIX);
        return;
    }
    if matches!(declared, Some(Nothing::Void | Nothing::Possible)) {
        return;
    }
    let fix = "Return a value on every path, or throw an error that says what is wrong.";
    for &(span, _) in returns.found.iter().filter(|&&(_, has_value)| !has_value) {
        report.add(&MUST_RETURN, span, format!("{name} returns a value elsewhere, but nothing here"), fix);
    }
    if reaches_end {
        let end = Span::new(body.span.end.saturating_sub(1), body.span.end);
        report.add(
            &MUST_RETURN,
            end,
            format!("{name} returns a value on some paths and falls off its end on others"),
            fix,
        );
    }
}

const RETURN_FIX: &str = "Return the result: a value, a summary, or `{ count }` of what was changed. A tool that only has an effect \
                          declares `Promise<void>`.";

/// What a return type says about having no value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nothing {
    /// It is a value.
    Value,
    /// `void`, `Promise<void>`, `undefined`.
    Void,
    /// A union that contains `undefined` or `void`.
    Possible,
    /// `never`, `asserts x`: the function exists for its checks.
    Checks,
}

fn returns_nothing(annotation: &TSType<'_>) -> Nothing {
    match annotation {
        TSType::TSVoidKeyword(_) | TSType::TSUndefinedKeyword(_) => Nothing::Void,
        TSType::TSNeverKeyword(_) => Nothing::Checks,
        TSType::TSTypePredicate(predicate) if predicate.asserts => Nothing::Checks,
        TSType::TSUnionType(union) => {
            let any = union.types.iter().any(|member| returns_nothing(member) != Nothing::Value);
            if any { Nothing::Possible } else { Nothing::Value }
        }
        TSType::TSTypeReference(reference) => reference
            .type_arguments
            .as_ref()
            .filter(|_| reference.type_name.to_string() == "Promise")
            .and_then(|arguments| arguments.params.first())
            .map_or(Nothing::Value, returns_nothing),
        _ => Nothing::Value,
    }
}

fn check_return_script(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    let returns = top_level_returns(tree);
    let gives_value = returns.iter().any(|&(_, has_value)| has_value);
    for &(span, has_value) in &returns {
        if !has_value {
            let message = if gives_value {
                "The script returns a value elsewhere, but nothing here"
            } else {
                "The script returns nothing"
            };
            report.add(&MUST_RETURN, span, message, RETURN_FIX);
        }
    }
    if gives_value && falls_through(&tree.program().body) {
        let end = tree.program().body.last().map_or(0, |last| last.span().end);
        report.add(
            &MUST_RETURN,
            Span::new(end.saturating_sub(1), end),
            "The script returns a value on some paths and falls off its end on others",
            "Return a value on every path, or throw an error that says what is wrong.",
        );
    }
}

fn check_expression_script<'a>(tree: &Tree<'_, 'a>, report: &mut Report<'_>) {
    let program = tree.program();
    // What is hoisted or erased does not hide the expression before it.
    let last = program.body.iter().rev().find(|statement| {
        !matches!(statement, Statement::EmptyStatement(_) | Statement::FunctionDeclaration(_))
            && !is_declaration_of_types(statement)
    });
    let (span, message) = match last {
        Some(Statement::ExpressionStatement(statement)) if !is_log_call(tree, &statement.expression) => {
            return;
        }
        Some(Statement::ThrowStatement(_)) => return,
        Some(Statement::ExpressionStatement(statement)) => {
            (statement.span, "The script ends with a log line, which is not a result")
        }
        Some(statement) => (statement.span(), "The script does not end with a result"),
        // A script that is nothing but a string is a directive to the parser, and a result to the compiler.
        None if !program.directives.is_empty() => return,
        None => (Span::new(0, 0), "The tool is empty"),
    };
    let first_line = Span::new(span.start, span.end.min(span.start.saturating_add(60)));
    report.add(
        &MUST_RETURN,
        first_line,
        message,
        "End the script with `return …` or with an expression, or `export default` a function that returns.",
    );
}

fn is_declaration_of_types(statement: &Statement<'_>) -> bool {
    statement.as_declaration().is_some_and(|declaration| declaration.is_type() || declaration.declare())
}
