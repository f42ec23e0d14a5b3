//! The rule `prefer-hof`: a loop that only collects or sums up says it better as `map`, `filter` or `reduce`.
//!
//! Only loops of that form are named. A loop that waits, leaves early or keeps several things in step is what loops
//! are for.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    ArrowFunctionBody, AssignmentTarget, CallExpression, Expression, ForStatement, SimpleAssignmentTarget,
    Statement,
};
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::tree::{Tree, is_function, peel};

const PREFER_HOF: Rule = Rule {
    name: "prefer-hof",
    severity: Severity::Warning,
    reason: "A chain of named steps shows what happens to the data, a loop only how (standard 3, higher-order functions).",
};

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        let (body, span) = match kind {
            AstKind::ForOfStatement(statement) if !statement.r#await => (&statement.body, statement.span),
            AstKind::ForInStatement(statement) => (&statement.body, statement.span),
            AstKind::ForStatement(statement) if counts(statement) => (&statement.body, statement.span),
            AstKind::CallExpression(call) => {
                check_for_each(call, report);
                continue;
            }
            _ => continue,
        };
        if is_inside_loop(tree, node) || Interruptions::found_in(body) {
            continue;
        }
        if let Some(effect) = Effect::of(body) {
            let head = Span::new(span.start, body.span().start);
            report.add(&PREFER_HOF, head, format!("This loop only {}", effect.does()), effect.instead());
        }
    }
}

/// A `for` with a counter, a bound and a step.
fn counts(statement: &ForStatement<'_>) -> bool {
    statement.init.is_some() && statement.test.is_some() && statement.update.is_some()
}

/// `list.forEach(item => result.push(item))` is the same loop in other words.
fn check_for_each(call: &CallExpression<'_>, report: &mut Report<'_>) {
    let Expression::StaticMemberExpression(member) = &call.callee else { return };
    let Some(callback) = call.arguments.first().and_then(|argument| argument.as_expression()) else { return };
    if member.property.name != "forEach" {
        return;
    }
    let effect = match callback.get_inner_expression() {
        Expression::ArrowFunctionExpression(arrow) if !arrow.r#async => match &arrow.body {
            ArrowFunctionBody::FunctionBody(body) => Effect::of_all(&body.statements),
            other => other.as_expression().and_then(Effect::of_expression),
        },
        Expression::FunctionExpression(function) if !function.r#async => {
            function.body.as_ref().and_then(|body| Effect::of_all(&body.statements))
        }
        _ => None,
    };
    if let Some(effect) = effect {
        let span = Span::new(member.property.span.start, member.property.span.end);
        report.add(&PREFER_HOF, span, format!("This 'forEach' only {}", effect.does()), effect.instead());
    }
}

fn is_inside_loop(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    tree.nodes().ancestor_kinds(node).take_while(|kind| !is_function(*kind)).any(|kind| {
        matches!(
            kind,
            AstKind::ForStatement(_)
                | AstKind::ForOfStatement(_)
                | AstKind::ForInStatement(_)
                | AstKind::WhileStatement(_)
                | AstKind::DoWhileStatement(_)
        )
    })
}

/// What a loop does to the one thing it changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Collects,
    Sums,
    Indexes,
}

struct Effect<'a> {
    action: Action,
    /// The name of what is changed, to see that it is only one.
    target: &'a str,
}

impl<'a> Effect<'a> {
    fn does(&self) -> String {
        match self.action {
            Action::Collects => format!("collects into '{}'", self.target),
            Action::Sums => format!("adds up '{}'", self.target),
            Action::Indexes => format!("fills '{}' by key", self.target),
        }
    }

    fn instead(&self) -> &'static str {
        match self.action {
            Action::Collects => {
                "Use `map` for one result an item, `filter` to leave some out, `flatMap` for several."
            }
            Action::Sums => "Use `reduce((sum, item) => sum + …, 0)`.",
            Action::Indexes => {
                "Use `Object.fromEntries(list.map(item => [key, value]))`, `Object.groupBy` or `reduce`."
            }
        }
    }

    /// The one effect of a statement; `None` when there is none, more than one, or another kind.
    fn of(statement: &'a Statement<'a>) -> Option<Self> {
        match statement {
            Statement::BlockStatement(block) => Self::of_all(&block.body),
            Statement::ExpressionStatement(statement) => Self::of_expression(&statement.expression),
            Statement::IfStatement(condition) => {
                // Which entry of a key is kept depends on the condition; `Object.fromEntries` keeps the last.
                let effect =
                    Self::of(&condition.consequent).filter(|effect| effect.action != Action::Indexes);
                match (&condition.alternate, effect) {
                    (None, effect) => effect,
                    (Some(alternate), Some(effect)) => {
                        Self::of(alternate).filter(|other| other.target == effect.target)
                    }
                    (Some(_), None) => None,
                }
            }
            Statement::ForOfStatement(inner) => Self::of(&inner.body),
            Statement::ForStatement(inner) => Self::of(&inner.body),
            Statement::ForInStatement(inner) => Self::of(&inner.body),
            _ => None,
        }
    }

    fn of_all(statements: &'a [Statement<'a>]) -> Option<Self> {
        let mut effect: Option<Self> = None;
        let mut is_guarded = false;
        for statement in statements {
            match statement {
                Statement::VariableDeclaration(declaration) if declaration.kind.is_const() => {}
                Statement::EmptyStatement(_) => {}
                Statement::IfStatement(guard)
                    if guard.alternate.is_none() && is_continue(&guard.consequent) =>
                {
                    is_guarded = true;
                }
                other => {
                    let next = Self::of(other)?;
                    if effect.as_ref().is_some_and(|effect| effect.target != next.target) {
                        return None;
                    }
                    effect = Some(next);
                }
            }
        }
        effect.filter(|effect| !is_guarded || effect.action != Action::Indexes)
    }

    fn of_expression(expression: &'a Expression<'a>) -> Option<Self> {
        match peel(expression) {
            AstKind::CallExpression(call) => {
                let AstKind::StaticMemberExpression(member) = peel(&call.callee) else { return None };
                let AstKind::IdentifierReference(target) = peel(&member.object) else { return None };
                let action = match member.property.name.as_str() {
                    // A list is pushed one value; `heap.push(key, item)` is a method of something else.
                    "push" | "add" | "unshift" if call.arguments.len() == 1 => Action::Collects,
                    "set" => Action::Indexes,
                    _ => return None,
                };
                Some(Self { action, target: target.name.as_str() })
            }
            AstKind::AssignmentExpression(assignment) => match &assignment.left {
                AssignmentTarget::AssignmentTargetIdentifier(target) => {
                    let target = target.name.as_str();
                    // `total = total + x` sums up as `total += x` does; `last = x` keeps state of another kind.
                    let mentions_itself = !assignment.operator.is_assign()
                        || matches!(peel(&assignment.right), AstKind::BinaryExpression(binary)
                            if matches!(peel(&binary.left), AstKind::IdentifierReference(left) if left.name == target));
                    mentions_itself.then_some(Self { action: Action::Sums, target })
                }
                AssignmentTarget::ComputedMemberExpression(member) => match peel(&member.object) {
                    AstKind::IdentifierReference(target) => {
                        Some(Self { action: Action::Indexes, target: target.name.as_str() })
                    }
                    _ => None,
                },
                _ => None,
            },
            AstKind::UpdateExpression(update) => match &update.argument {
                SimpleAssignmentTarget::AssignmentTargetIdentifier(target) => {
                    Some(Self { action: Action::Sums, target: target.name.as_str() })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

fn is_continue(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ContinueStatement(_) => true,
        Statement::BlockStatement(block) => {
            matches!(block.body.as_slice(), [Statement::ContinueStatement(_)])
        }
        _ => false,
    }
}

/// Anything that a callback could not do in the loop's place.
struct Interruptions {
    found: bool,
}

impl Interruptions {
    fn found_in(body: &Statement<'_>) -> bool {
        let mut interruptions = Self { found: false };
        interruptions.visit_statement(body);
        interruptions.found
    }
}

impl<'a> Visit<'a> for Interruptions {
    fn visit_statement(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::BreakStatement(_) | Statement::ReturnStatement(_) | Statement::ThrowStatement(_) => {
                self.found = true;
            }
            Statement::ContinueStatement(jump) if jump.label.is_some() => self.found = true,
            _ => walk::walk_statement(self, statement),
        }
    }

    fn visit_expression(&mut self, expression: &Expression<'a>) {
        match expression.get_inner_expression() {
            Expression::AwaitExpression(_) | Expression::YieldExpression(_) => self.found = true,
            // What a callback does on its own is not the loop's affair.
            Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => {}
            _ => walk::walk_expression(self, expression),
        }
    }
}
