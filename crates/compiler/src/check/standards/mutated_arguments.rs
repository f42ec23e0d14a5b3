//! The rule `mutated-arguments`: what a tool is given belongs to its caller.
//!
//! The arguments and everything that can be reached from them are followed through variables, destructuring, loops
//! and callbacks. A copy, such as `[...args.list]`, ends the way.

use std::collections::HashSet;

use oxc::ast::AstKind;
use oxc::ast::ast::{BindingPattern, CallExpression, FormalParameters, VariableDeclarator};
use oxc::semantic::{NodeId, SymbolId};
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::{Entry, Shape};
use super::super::tree::{MAX_STEPS, Tree, Use, peel};
use super::mutation::{self, Mutation};

const MUTATED_ARGUMENTS: Rule = Rule {
    name: "mutated-arguments",
    severity: Severity::Warning,
    reason: "Another tool that imports this one shares its objects with it, and would see them change \
             (standard 4, stateless).",
};

/// Methods that change a list in place. Arguments are JSON, so they hold no maps, sets or dates.
const LIST_MUTATORS: [&str; 9] =
    ["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin"];

/// Names that are followed in one tool; more are only found in hostile source.
const MAX_NAMES: usize = 256;

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    let mut names = Names { tree, open: Vec::new(), known: HashSet::new() };
    if let Entry::Callable { callable, .. } = shape.entry {
        names.add_first_parameter(callable.params());
    }
    if shape.is_script() {
        for (node, kind) in tree.each() {
            if let AstKind::IdentifierReference(reference) = kind
                && tree.global_name(reference) == Some("args")
            {
                check_use(&mut names, node, reference.span, report);
            }
        }
    }
    while let Some(symbol) = names.open.pop() {
        for reference in tree.scoping().get_resolved_references(symbol) {
            let node = reference.node_id();
            check_use(&mut names, node, tree.kind(node).span(), report);
        }
    }
}

/// Reports a change through one use of a name, or follows where the value goes.
fn check_use(names: &mut Names<'_, '_, '_>, node: NodeId, span: Span, report: &mut Report<'_>) {
    match mutation::of_reference(names.tree, node) {
        Some(Mutation::Property) => add(names.tree, node, span, None, report),
        Some(Mutation::Method(method)) if LIST_MUTATORS.contains(&method) => {
            add(names.tree, node, span, Some(method), report);
        }
        _ => names.follow(node),
    }
}

fn add(tree: &Tree<'_, '_>, node: NodeId, span: Span, method: Option<&str>, report: &mut Report<'_>) {
    let (whole, text) = path(tree, node, span);
    let (what, fix) = match method {
        Some("sort") => {
            (format!("`{text}` sorts"), "Sort a copy: `[...list].sort(…)` or `list.toSorted(…)`.")
        }
        Some("reverse") => {
            (format!("`{text}` reverses"), "Reverse a copy: `[...list].reverse()` or `list.toReversed()`.")
        }
        Some(_) => (
            format!("`{text}` changes"),
            "Build a new list: `[...list, item]`, `list.slice(…)` or `list.filter(…)`.",
        ),
        None => (
            format!("`{text}` changes"),
            "Build a new object: `{ ...object, field: value }`, or `list.map((item) => ({ ...item, field: value }))`.",
        ),
    };
    report.add(
        &MUTATED_ARGUMENTS,
        whole,
        format!("{what} the caller's data: a tool must leave its arguments as they are; work on a copy"),
        fix,
    );
}

/// The member expression that begins at a name, and its text.
fn path<'a>(tree: &Tree<'_, 'a>, node: NodeId, span: Span) -> (Span, &'a str) {
    const LONGEST: usize = 40;
    let mut end = span.end;
    let mut node = node;
    for _ in 0..MAX_STEPS {
        match tree.parent(node) {
            Some((parent, AstKind::StaticMemberExpression(member))) if member.span.start == span.start => {
                (node, end) = (parent, member.span.end);
            }
            Some((parent, AstKind::ComputedMemberExpression(member))) if member.span.start == span.start => {
                (node, end) = (parent, member.span.end);
            }
            Some((parent, AstKind::TSNonNullExpression(_) | AstKind::ChainExpression(_))) => node = parent,
            _ => break,
        }
    }
    let whole = Span::new(span.start, end);
    let text_of =
        |span: Span| tree.program().source_text.get(span.start as usize..span.end as usize).unwrap_or("");
    let text = text_of(whole);
    if text.len() <= LONGEST && !text.contains('\n') { (whole, text) } else { (whole, text_of(span)) }
}

/// The names under which the arguments, or parts of them, are known.
struct Names<'t, 's, 'a> {
    tree: &'t Tree<'s, 'a>,
    open: Vec<SymbolId>,
    known: HashSet<SymbolId>,
}

impl<'a> Names<'_, '_, 'a> {
    /// A name that is assigned again may stand for something else.
    fn add(&mut self, symbol: SymbolId) {
        if self.known.len() < MAX_NAMES && !self.tree.is_mutated(symbol) && self.known.insert(symbol) {
            self.open.push(symbol);
        }
    }

    fn add_pattern(&mut self, pattern: &'a BindingPattern<'a>) {
        match pattern {
            BindingPattern::BindingIdentifier(binding) => self.add(binding.symbol_id()),
            // The rest of a pattern is a new object.
            BindingPattern::ObjectPattern(object) => {
                for property in &object.properties {
                    self.add_pattern(&property.value);
                }
            }
            BindingPattern::ArrayPattern(array) => {
                for element in array.elements.iter().flatten() {
                    self.add_pattern(element);
                }
            }
            BindingPattern::AssignmentPattern(pattern) => self.add_pattern(&pattern.left),
        }
    }

    fn add_first_parameter(&mut self, params: &'a FormalParameters<'a>) {
        if let Some(parameter) = params.items.first() {
            self.add_pattern(&parameter.pattern);
        }
    }

    /// Follows a value from one use of a name to the next name.
    fn follow(&mut self, node: NodeId) {
        let Some(use_site) = end_of_path(self.tree, node) else { return };
        match use_site.parent {
            AstKind::VariableDeclarator(declarator) => self.follow_declarator(declarator, &use_site),
            AstKind::ForOfStatement(statement) if statement.right.span() == use_site.span => {
                if let oxc::ast::ast::ForStatementLeft::VariableDeclaration(declaration) = &statement.left {
                    for declarator in &declaration.declarations {
                        self.add_pattern(&declarator.id);
                    }
                }
            }
            AstKind::CallExpression(call) if call.callee.span() == use_site.span => {
                self.follow_call(call, use_site.parent_node);
            }
            _ => {}
        }
    }

    fn follow_declarator(&mut self, declarator: &'a VariableDeclarator<'a>, use_site: &Use<'a>) {
        if declarator.init.as_ref().is_some_and(|init| init.span() == use_site.span) {
            self.add_pattern(&declarator.id);
        }
    }

    /// `args.items.forEach((item) => …)` names the items; `find` hands one of them out.
    fn follow_call(&mut self, call: &'a CallExpression<'a>, call_node: NodeId) {
        let AstKind::StaticMemberExpression(member) = peel(&call.callee) else { return };
        let callback = call.arguments.first().and_then(|argument| argument.as_expression()).map(peel);
        let position = match member.property.name.as_str() {
            "forEach" | "map" | "filter" | "some" | "every" | "flatMap" | "find" | "findLast"
            | "findIndex" => 0,
            "reduce" => 1,
            _ => return,
        };
        let params = match callback {
            Some(AstKind::ArrowFunctionExpression(arrow)) => Some(&arrow.params),
            Some(AstKind::Function(function)) => Some(&function.params),
            _ => None,
        };
        if let Some(parameter) = params.and_then(|params| params.items.get(position)) {
            self.add_pattern(&parameter.pattern);
        }
        if matches!(member.property.name.as_str(), "find" | "findLast")
            && let Some(use_site) = self.tree.use_of(call_node)
            && let AstKind::VariableDeclarator(declarator) = use_site.parent
        {
            self.follow_declarator(declarator, &use_site);
        }
    }
}

/// Where the value of `args.a.b` goes, for the name at its beginning.
fn end_of_path<'a>(tree: &Tree<'_, 'a>, node: NodeId) -> Option<Use<'a>> {
    let mut node = node;
    for _ in 0..MAX_STEPS {
        let use_site = tree.use_of(node)?;
        let continues = match use_site.parent {
            AstKind::StaticMemberExpression(member) => member.object.span() == use_site.span,
            AstKind::ComputedMemberExpression(member) => member.object.span() == use_site.span,
            _ => false,
        };
        if !continues {
            return Some(use_site);
        }
        node = use_site.parent_node;
    }
    None
}
