//! Whether code can run past its end without a `return` or a `throw`.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    BreakStatement, DoWhileStatement, Expression, ForInStatement, ForOfStatement, ForStatement, Function,
    Statement, SwitchCase, SwitchStatement, WhileStatement,
};
use oxc::ast_visit::Visit;
use oxc::syntax::scope::ScopeFlags;

use super::super::tree::peel_kind;

/// True when control can reach the place after these statements.
pub(super) fn falls_through(statements: &[Statement<'_>]) -> bool {
    statements.iter().all(statement_falls_through)
}

fn statement_falls_through(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ReturnStatement(_)
        | Statement::ThrowStatement(_)
        // A jump goes somewhere else; the loop or label it belongs to decides.
        | Statement::BreakStatement(_)
        | Statement::ContinueStatement(_) => false,
        Statement::BlockStatement(block) => falls_through(&block.body),
        Statement::IfStatement(condition) => {
            statement_falls_through(&condition.consequent)
                || condition.alternate.as_ref().is_none_or(statement_falls_through)
        }
        Statement::LabeledStatement(labeled) => {
            statement_falls_through(&labeled.body) || has_break(&labeled.body)
        }
        Statement::TryStatement(attempt) => {
            if attempt.finalizer.as_ref().is_some_and(|block| !falls_through(&block.body)) {
                return false;
            }
            falls_through(&attempt.block.body)
                || attempt.handler.as_ref().is_some_and(|handler| falls_through(&handler.body.body))
        }
        Statement::SwitchStatement(switch) => switch_falls_through(switch),
        Statement::WithStatement(statement) => statement_falls_through(&statement.body),
        Statement::WhileStatement(statement) => !is_true(&statement.test) || has_break(&statement.body),
        Statement::DoWhileStatement(statement) => {
            has_break(&statement.body)
                || (statement_falls_through(&statement.body) && !is_true(&statement.test))
        }
        Statement::ForStatement(statement) => {
            !statement.test.as_ref().is_none_or(is_true) || has_break(&statement.body)
        }
        _ => true,
    }
}

/// A switch over every member of a union needs no `default`; only the type checker could tell, so two or more cases
/// that all leave are taken to be all of them.
fn switch_falls_through(switch: &SwitchStatement<'_>) -> bool {
    let has_default = switch.cases.iter().any(SwitchCase::is_default_case);
    if !has_default && switch.cases.len() < 2 {
        return true;
    }
    let mut breaks = Breaks { found: false };
    for case in &switch.cases {
        for statement in &case.consequent {
            breaks.visit_statement(statement);
        }
    }
    let last_falls_through = switch.cases.last().is_none_or(|case| falls_through(&case.consequent));
    breaks.found || last_falls_through
}

fn is_true(expression: &Expression<'_>) -> bool {
    match expression.get_inner_expression() {
        Expression::BooleanLiteral(literal) => literal.value,
        Expression::NumericLiteral(literal) => literal.value != 0.0,
        Expression::UnaryExpression(unary) if unary.operator.is_not() => {
            matches!(unary.argument.get_inner_expression(), Expression::NumericLiteral(zero) if zero.value == 0.0)
                || matches!(unary.argument.get_inner_expression(), Expression::BooleanLiteral(literal) if !literal.value)
        }
        _ => false,
    }
}

fn has_break(statement: &Statement<'_>) -> bool {
    let mut breaks = Breaks { found: false };
    breaks.visit_statement(statement);
    breaks.found
}

/// Finds a `break` that belongs to the statement around; a label may jump from further inside.
struct Breaks {
    found: bool,
}

impl<'a> Visit<'a> for Breaks {
    fn visit_break_statement(&mut self, _statement: &BreakStatement<'a>) {
        self.found = true;
    }

    fn visit_function(&mut self, _function: &Function<'a>, _flags: ScopeFlags) {}

    fn visit_expression(&mut self, _expression: &Expression<'a>) {}

    fn visit_while_statement(&mut self, statement: &WhileStatement<'a>) {
        self.inner(&statement.body);
    }

    fn visit_do_while_statement(&mut self, statement: &DoWhileStatement<'a>) {
        self.inner(&statement.body);
    }

    fn visit_for_statement(&mut self, statement: &ForStatement<'a>) {
        self.inner(&statement.body);
    }

    fn visit_for_in_statement(&mut self, statement: &ForInStatement<'a>) {
        self.inner(&statement.body);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.inner(&statement.body);
    }

    fn visit_switch_statement(&mut self, statement: &SwitchStatement<'a>) {
        for case in &statement.cases {
            for inner in &case.consequent {
                self.inner(inner);
            }
        }
    }
}

impl Breaks {
    /// Inside another loop only a labelled `break` reaches out.
    fn inner(&mut self, statement: &Statement<'_>) {
        let mut labelled = LabelledBreaks { found: false };
        labelled.visit_statement(statement);
        self.found |= labelled.found;
    }
}

struct LabelledBreaks {
    found: bool,
}

impl<'a> Visit<'a> for LabelledBreaks {
    fn visit_break_statement(&mut self, statement: &BreakStatement<'a>) {
        self.found |= statement.label.is_some();
    }

    fn visit_function(&mut self, _function: &Function<'a>, _flags: ScopeFlags) {}

    fn visit_expression(&mut self, _expression: &Expression<'a>) {}
}

/// True for a call whose only purpose is to write a log line.
pub(super) fn is_log_call<'a>(tree: &super::Tree<'_, 'a>, expression: &'a Expression<'a>) -> bool {
    let kind = match peel_kind(AstKind::from_expression(expression)) {
        AstKind::AwaitExpression(waiting) => peel_kind(AstKind::from_expression(&waiting.argument)),
        other => other,
    };
    let AstKind::CallExpression(call) = kind else { return false };
    let AstKind::StaticMemberExpression(member) = peel_kind(AstKind::from_expression(&call.callee)) else {
        return false;
    };
    match tree.global_expression(&member.object) {
        Some("console") => true,
        Some("tgp") => member.property.name == "log",
        _ => false,
    }
}
