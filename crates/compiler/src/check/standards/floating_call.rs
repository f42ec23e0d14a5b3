//! The rule `floating-call`: a call whose promise is dropped may never finish, and its error reaches no one.
//!
//! The promise of a call is followed to where it ends: through chains, lists, `Promise.all` and variables. It is kept
//! when it is awaited, returned or handed to something else.

use std::cell::Cell;
use std::collections::HashMap;

use oxc::ast::AstKind;
use oxc::ast::ast::{BindingPattern, CallExpression, IdentifierReference, UnaryOperator};
use oxc::semantic::{NodeId, SymbolId};
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::Shape;
use super::super::tree::{MAX_STEPS, Tree, peel, static_call};

const FLOATING_CALL: Rule = Rule {
    name: "floating-call",
    severity: Severity::Warning,
    reason: "A run ends when the tool returns: work that was not awaited may be lost, and so is its error \
             (standard 8, orchestrator capable).",
};

/// Variables with more uses than this are taken to be awaited somewhere.
const MAX_READS: usize = 64;

/// How often a promise is followed from one variable to the next.
const MAX_VARIABLES: usize = 2;

/// Promises that are followed in one tool, through all of their uses; more are only found in hostile source.
const MAX_FOLLOWED: usize = 50_000;

/// Where a promise ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Nothing looks at it.
    Dropped,
    /// It is used as if it were the value it promises.
    Misused,
}

/// What flows from a call: one promise, or a list of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Promise,
    List,
}

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    let mut follower = Follower { tree, shape, awaited: HashMap::new(), left: Cell::new(MAX_FOLLOWED) };
    for (node, kind) in tree.each() {
        let AstKind::CallExpression(call) = kind else { continue };
        if let Some((name, certain)) = follower.promise(call) {
            let fate = follower.fate(node, Flow::Promise, MAX_VARIABLES);
            // Only a call that has no other purpose shows that an import of unknown type is asynchronous.
            if fate == Fate::Dropped || (certain && fate == Fate::Misused) {
                add(report, &name, fate, call.span);
            }
        }
        follower.check_async_callback(node, call, report);
    }
}

fn add(report: &mut Report<'_>, name: &str, fate: Fate, span: Span) {
    if name == "tgp.query" {
        return report.add(
            &FLOATING_CALL,
            span,
            "`tgp.query` gives its rows one by one, and only to a loop: nothing was asked of the database yet; read them",
            "Write `for await (const row of tgp.query(…)) { … }`; for a short list of rows `await tgp.exec_sql(…)`.",
        );
    }
    if fate == Fate::Misused {
        report.add(
            &FLOATING_CALL,
            span,
            format!("`{name}` is used without `await`: its value is a promise, not the result; await it"),
            format!(
                "Write `await {name}(…)`, in parentheses where a property is read: `(await {name}(…)).field`."
            ),
        );
    } else {
        report.add(
            &FLOATING_CALL,
            span,
            format!("`{name}` is not awaited: the tool can return before it has finished; await or return it"),
            format!("Write `await {name}(…)`; for several at once `await Promise.all(list.map((item) => {name}(…)))`."),
        );
    }
}

/// Follows promises through one tool.
struct Follower<'t, 's, 'a> {
    tree: &'t Tree<'s, 'a>,
    shape: &'t Shape<'a>,
    /// Imports, and whether the source awaits a call of them.
    awaited: HashMap<SymbolId, bool>,
    /// How many more promises may be followed.
    left: Cell<usize>,
}

impl<'a> Follower<'_, '_, 'a> {
    /// The name of a call that gives a promise, and whether that is certain.
    fn promise(&mut self, call: &'a CallExpression<'a>) -> Option<(String, bool)> {
        if let Some(("tgp", method)) = static_call(self.tree, &call.callee) {
            return (method != "log").then(|| (format!("tgp.{method}"), true));
        }
        let AstKind::IdentifierReference(reference) = peel(&call.callee) else { return None };
        if self.tree.global_name(reference) == Some("fetch") {
            return Some(("fetch".to_owned(), true));
        }
        let symbol = self.tree.symbol(reference)?;
        let name = reference.name.to_string();
        match self.tree.kind(self.tree.scoping().symbol_declaration(symbol)) {
            AstKind::Function(function) => (function.r#async && !function.generator).then_some((name, true)),
            AstKind::VariableDeclarator(_) => {
                let value = self.tree.declarator(symbol)?.init.as_ref()?;
                is_async(peel(value)).then_some((name, true))
            }
            AstKind::ImportDefaultSpecifier(_) => {
                let certain = self.is_awaited(symbol);
                let may_be_tool = is_local_import(self.tree, symbol) && !is_check(&name);
                (certain || may_be_tool).then_some((name, certain))
            }
            AstKind::ImportSpecifier(_) => self.is_awaited(symbol).then_some((name, true)),
            _ => None,
        }
    }

    /// True when the source awaits a call of the symbol anywhere.
    fn is_awaited(&mut self, symbol: SymbolId) -> bool {
        let tree = self.tree;
        *self.awaited.entry(symbol).or_insert_with(|| {
            tree.scoping().get_resolved_references(symbol).any(|reference| {
                tree.parent(reference.node_id()).is_some_and(|(call, kind)| {
                    matches!(kind, AstKind::CallExpression(_))
                        && matches!(tree.parent(call), Some((_, AstKind::AwaitExpression(_))))
                })
            })
        })
    }

    /// Follows a promise, or a list of them, to its end.
    fn fate(&self, node: NodeId, flow: Flow, variables: usize) -> Fate {
        let Some(left) = self.left.get().checked_sub(1) else { return Fate::Kept };
        self.left.set(left);
        let (mut node, mut flow) = (node, flow);
        let mut is_handled = false;
        for _ in 0..MAX_STEPS {
            let span = self.tree.kind(node).span();
            let Some((parent_node, parent)) = self.tree.parent(node) else { return Fate::Kept };
            match parent {
                AstKind::ExpressionStatement(_) => {
                    return if is_handled || self.is_result(parent_node) {
                        Fate::Kept
                    } else {
                        Fate::Dropped
                    };
                }
                AstKind::ParenthesizedExpression(_)
                | AstKind::TSAsExpression(_)
                | AstKind::TSSatisfiesExpression(_)
                | AstKind::TSNonNullExpression(_)
                | AstKind::ChainExpression(_)
                | AstKind::LogicalExpression(_) => {}
                AstKind::ConditionalExpression(condition) => {
                    if condition.test.span() == span {
                        return misused(flow);
                    }
                }
                AstKind::SequenceExpression(sequence) => {
                    if sequence.expressions.last().is_none_or(|last| last.span() != span) {
                        return Fate::Dropped;
                    }
                }
                AstKind::ArrayExpression(_) => flow = Flow::List,
                AstKind::CallExpression(call) => {
                    if !is_promise_combinator(self.tree, call) {
                        return Fate::Kept;
                    }
                    flow = Flow::Promise;
                }
                AstKind::StaticMemberExpression(member) => {
                    let property = member.property.name.as_str();
                    if flow == Flow::List {
                        return Fate::Kept;
                    }
                    let Some((chained, AstKind::CallExpression(call))) = self.tree.parent(parent_node) else {
                        return Fate::Misused;
                    };
                    match property {
                        "then" => is_handled |= call.arguments.len() > 1,
                        "catch" => is_handled = true,
                        "finally" => {}
                        _ => return Fate::Misused,
                    }
                    node = chained;
                    continue;
                }
                AstKind::ComputedMemberExpression(member) if member.object.span() == span => {
                    return misused(flow);
                }
                AstKind::ArrowFunctionExpression(_) | AstKind::ReturnStatement(_) => {
                    let Some((call, next)) = self.returned(node, is_handled) else { return Fate::Kept };
                    match next {
                        Some(next) => flow = next,
                        None => return Fate::Dropped,
                    }
                    node = call;
                    continue;
                }
                AstKind::UnaryExpression(unary) => {
                    return match unary.operator {
                        UnaryOperator::Void => Fate::Dropped,
                        UnaryOperator::LogicalNot => misused(flow),
                        _ => Fate::Kept,
                    };
                }
                AstKind::IfStatement(_) | AstKind::WhileStatement(_) | AstKind::SpreadElement(_) => {
                    return misused(flow);
                }
                AstKind::TemplateLiteral(_) => return misused(flow),
                AstKind::ForOfStatement(statement) => {
                    return if statement.r#await { Fate::Kept } else { misused(flow) };
                }
                AstKind::VariableDeclarator(declarator) => {
                    return match &declarator.id {
                        BindingPattern::BindingIdentifier(binding) => {
                            self.variable(binding.symbol_id(), flow, variables)
                        }
                        BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_) => misused(flow),
                        BindingPattern::AssignmentPattern(_) => Fate::Kept,
                    };
                }
                _ => return Fate::Kept,
            }
            node = parent_node;
        }
        Fate::Kept
    }

    /// The last expression of a script is its result.
    fn is_result(&self, statement: NodeId) -> bool {
        let span = self.tree.kind(statement).span();
        self.shape.is_script() && self.tree.program().body.last().is_some_and(|last| last.span() == span)
    }

    /// A promise that a callback returns goes to the method that called it: the call of that method, with a list for
    /// `map` and nothing for `forEach`. `None` when the function is not such a callback.
    fn returned(&self, node: NodeId, is_handled: bool) -> Option<(NodeId, Option<Flow>)> {
        let (function, kind) = self.tree.functions_around(node).next()?;
        let (call_node, call) = match self.tree.parent(function)? {
            (node, AstKind::CallExpression(call)) if call.callee.span() != kind.span() => (node, call),
            _ => return None,
        };
        match method_name(call)? {
            "map" | "flatMap" => Some((call_node, Some(Flow::List))),
            "then" | "catch" | "finally" if !is_handled => Some((call_node, Some(Flow::Promise))),
            // An async callback is judged at the call itself.
            "forEach" if !is_async(kind) => Some((call_node, None)),
            _ => None,
        }
    }

    /// A variable keeps a promise when one of its uses does.
    fn variable(&self, symbol: SymbolId, flow: Flow, variables: usize) -> Fate {
        let Some(variables) = variables.checked_sub(1) else { return Fate::Kept };
        let is_exported = self
            .tree
            .nodes()
            .ancestor_kinds(self.tree.scoping().symbol_declaration(symbol))
            .take(2)
            .any(|kind| matches!(kind, AstKind::ExportDeclaration(_)));
        if is_exported {
            return Fate::Kept;
        }
        let mut fate = Fate::Dropped;
        for (count, reference) in self.tree.scoping().get_resolved_references(symbol).enumerate() {
            if count >= MAX_READS || reference.is_write() {
                return Fate::Kept;
            }
            match self.fate(reference.node_id(), flow, variables) {
                Fate::Kept => return Fate::Kept,
                Fate::Misused => fate = Fate::Misused,
                Fate::Dropped => {}
            }
        }
        fate
    }

    /// `forEach(async …)` waits for nothing, and a promise is always true for `filter`.
    fn check_async_callback(&self, node: NodeId, call: &'a CallExpression<'a>, report: &mut Report<'_>) {
        let Some(method) = method_name(call) else { return };
        let Some(callback) = call.arguments.first().and_then(|argument| argument.as_expression()) else {
            return;
        };
        let is_async_callback = match peel(callback) {
            AstKind::IdentifierReference(reference) => self.is_async_function(reference),
            other => is_async(other),
        };
        if !is_async_callback {
            return;
        }
        let span = match peel(&call.callee) {
            AstKind::StaticMemberExpression(member) => member.property.span,
            _ => call.span,
        };
        match method {
            "forEach" => report.add(
                &FLOATING_CALL,
                span,
                "`forEach` does not wait for its async callback: the tool can return before the work is done; await it",
                "Write `for (const item of list) { await … }`, or `await Promise.all(list.map(async (item) => …))`.",
            ),
            "filter" | "some" | "every" | "find" | "findIndex" | "findLast" => report.add(
                &FLOATING_CALL,
                span,
                format!("`{method}` has an async callback: a promise is always true; await the answers first"),
                "Compute them with `const kept = await Promise.all(list.map(async (item) => …))`, then select by index.",
            ),
            "map" | "flatMap" if self.fate(node, Flow::List, MAX_VARIABLES) == Fate::Dropped => report.add(
                &FLOATING_CALL,
                span,
                format!("the promises of `{method}` are dropped: the tool can return before they are done; await them"),
                "Write `await Promise.all(list.map(async (item) => …))`.",
            ),
            _ => {}
        }
    }

    fn is_async_function(&self, reference: &IdentifierReference<'a>) -> bool {
        let Some(symbol) = self.tree.symbol(reference) else { return false };
        match self.tree.kind(self.tree.scoping().symbol_declaration(symbol)) {
            function @ AstKind::Function(_) => is_async(function),
            _ => self.tree.initial_value(reference).is_some_and(|value| is_async(peel(value))),
        }
    }
}

/// A single promise is not the value it promises; a list of promises is a list.
fn misused(flow: Flow) -> Fate {
    if flow == Flow::Promise { Fate::Misused } else { Fate::Kept }
}

fn is_async(kind: AstKind<'_>) -> bool {
    match kind {
        AstKind::Function(function) => function.r#async && !function.generator,
        AstKind::ArrowFunctionExpression(arrow) => arrow.r#async,
        _ => false,
    }
}

fn method_name<'a>(call: &'a CallExpression<'a>) -> Option<&'a str> {
    match peel(&call.callee) {
        AstKind::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        _ => None,
    }
}

fn is_promise_combinator<'a>(tree: &Tree<'_, 'a>, call: &'a CallExpression<'a>) -> bool {
    matches!(static_call(tree, &call.callee), Some(("Promise", "all" | "allSettled" | "race" | "any")))
}

/// True for an import of another tool, which usually is asynchronous.
fn is_local_import(tree: &Tree<'_, '_>, symbol: SymbolId) -> bool {
    tree.nodes()
        .ancestor_kinds(tree.scoping().symbol_declaration(symbol))
        .find_map(AstKind::as_import_declaration)
        .is_some_and(|import| {
            let source = import.source.value.as_str();
            source.starts_with('.') || source.starts_with("/lib/")
        })
}

/// `assertValid(order)` is called for what it throws.
fn is_check(name: &str) -> bool {
    ["assert", "check", "ensure", "require", "validate", "verify", "expect"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}
