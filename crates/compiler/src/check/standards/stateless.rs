//! The rule `stateless`: nothing of one call is left for the next.
//!
//! What a function does to its own variables is its own affair. What it does to anything that outlives the call is
//! state: variables and containers of the module, properties of functions, classes and imports, the globals, and
//! variables kept alive by a closure that was made when the module was loaded.

use std::collections::HashMap;

use oxc::ast::AstKind;
use oxc::ast::ast::{BindingIdentifier, IdentifierReference, VariableDeclarationKind};
use oxc::semantic::{NodeId, SymbolId};
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::Shape;
use super::super::tree::{MAX_STEPS, Tree, peel};
use super::mutation::{self, Mutation};

const STATELESS: Rule = Rule {
    name: "stateless",
    severity: Severity::Error,
    reason: "A tool relies on its arguments alone, so the same call gives the same answer whatever ran before \
             (standard 4, stateless).",
};

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        match kind {
            AstKind::VariableDeclaration(declaration)
                if matches!(
                    declaration.kind,
                    VariableDeclarationKind::Let | VariableDeclarationKind::Var
                ) && !declaration.declare
                    && !is_loop_head(tree, node)
                    && lives_in_module(tree, shape, node) =>
            {
                for declarator in &declaration.declarations {
                    for binding in declarator.id.get_binding_identifiers() {
                        check_variable(tree, binding.symbol_id(), declaration.kind, binding.span, report);
                    }
                }
            }
            AstKind::IdentifierReference(reference) => check_reference(tree, shape, node, reference, report),
            _ => {}
        }
    }
    let mut makers = HashMap::new();
    for symbol in tree.scoping().symbol_ids().filter(|_| !shape.is_script()) {
        check_closure(tree, symbol, &mut makers, report);
    }
}

fn is_loop_head(tree: &Tree<'_, '_>, declaration: NodeId) -> bool {
    matches!(
        tree.parent(declaration),
        Some((_, AstKind::ForStatement(_) | AstKind::ForOfStatement(_) | AstKind::ForInStatement(_)))
    )
}

fn check_variable(
    tree: &Tree<'_, '_>,
    symbol: SymbolId,
    kind: VariableDeclarationKind,
    span: Span,
    report: &mut Report<'_>,
) {
    let name = tree.scoping().symbol_name(symbol);
    let word = kind.as_str();
    if is_changed_by_calls(tree, symbol) {
        report.add(
            &STATELESS,
            span,
            format!("Module-level '{word} {name}' is changed, so one call influences the next"),
            format!("Move '{name}' into the function, or take it as an argument and return the new value."),
        );
    } else if !tree.is_mutated(symbol) {
        report.add_as(
            Severity::Warning,
            &STATELESS,
            span,
            format!("Module-level '{word} {name}' could be changed"),
            format!("Declare it as `const {name}`."),
        );
    }
}

/// True when a function writes the variable; what the top level of the module writes is part of loading it.
fn is_changed_by_calls(tree: &Tree<'_, '_>, symbol: SymbolId) -> bool {
    tree.is_mutated(symbol)
        && tree
            .scoping()
            .get_resolved_references(symbol)
            .any(|reference| reference.is_write() && tree.is_inside_function(reference.node_id()))
}

fn check_reference<'a>(
    tree: &Tree<'_, 'a>,
    shape: &Shape<'a>,
    node: NodeId,
    reference: &'a IdentifierReference<'a>,
    report: &mut Report<'_>,
) {
    let name = reference.name.as_str();
    if tree.global_name(reference).is_some() {
        check_global(tree, node, reference, report);
        return;
    }
    let Some(mutation) = mutation::of_reference(tree, node) else { return };
    let Some(owner) = owner(tree, reference) else { return };
    let flags = tree.scoping().symbol_flags(owner);
    let is_import = flags.is_import();
    // A table that is filled while the module is loaded is the same for every call.
    if !is_import && !shape.is_script() && !tree.is_inside_function(node) {
        return;
    }
    if !is_import && !lives_in_module(tree, shape, tree.scoping().symbol_declaration(owner)) {
        return;
    }
    let is_container = tree
        .declarator(owner)
        .and_then(|declarator| declarator.init.as_ref())
        .is_some_and(|init| mutation::is_container(tree, init));
    if matches!(mutation, Mutation::Method(_)) && !is_container {
        return;
    }
    let what = if is_import { "Imported" } else { "Module-level" };
    let owner_name = tree.scoping().symbol_name(owner);
    let through = if owner_name == name { String::new() } else { format!(" through '{name}'") };
    report.add(
        &STATELESS,
        reference.span,
        format!("{what} '{owner_name}' is changed{through}, so one call influences the next"),
        "Work on a copy made inside the function (`[...list]`, `{ ...object }`, `new Map(map)`) and return it.",
    );
}

/// Assignments to a global, or to something that hangs on one.
fn check_global<'a>(
    tree: &Tree<'_, 'a>,
    node: NodeId,
    reference: &'a IdentifierReference<'a>,
    report: &mut Report<'_>,
) {
    let name = reference.name.as_str();
    let is_written =
        reference.reference_id.get().is_some_and(|id| tree.scoping().get_reference(id).is_write());
    if is_written {
        report.add(
            &STATELESS,
            reference.span,
            format!("Global '{name}' is assigned"),
            format!("Declare it inside the function: `const {name} = …`."),
        );
    } else if !matches!(name, "args" | "module" | "exports" | "arguments")
        && mutation::of_reference(tree, node) == Some(Mutation::Property)
    {
        report.add(
            &STATELESS,
            reference.span,
            format!("Global '{name}' is changed"),
            "Leave the globals as they are; write a function and pass it what it needs.",
        );
    }
}

/// The symbol whose value a reference stands for, through plain aliases.
fn owner<'a>(tree: &Tree<'_, 'a>, reference: &IdentifierReference<'a>) -> Option<SymbolId> {
    let mut symbol = tree.symbol(reference)?;
    for _ in 0..MAX_STEPS {
        // `const { items } = store` is an alias of what is in the store.
        let AstKind::VariableDeclarator(declarator) = tree.kind(tree.scoping().symbol_declaration(symbol))
        else {
            break;
        };
        let Some(init) = declarator.init.as_ref().filter(|_| !tree.is_mutated(symbol)) else { break };
        let mut value = peel(init);
        while let AstKind::StaticMemberExpression(member) = value {
            value = peel(&member.object);
        }
        let AstKind::IdentifierReference(next) = value else { break };
        let Some(next) = tree.symbol(next) else { break };
        symbol = next;
    }
    Some(symbol)
}

/// True for a declaration that is made once and outlives the call. The top level of a script is run for every call,
/// except for its namespaces.
fn lives_in_module(tree: &Tree<'_, '_>, shape: &Shape<'_>, declaration: NodeId) -> bool {
    let is_in_namespace = || {
        tree.nodes()
            .ancestor_kinds(declaration)
            .any(|kind| matches!(kind, AstKind::TSNamespaceDeclaration(_)))
    };
    !tree.is_inside_function(declaration) && (!shape.is_script() || is_in_namespace())
}

/// `const next = (() => { let n = 0; return () => ++n })()`: a variable of a function that ran when the module was
/// loaded, changed by another function that lives on.
fn check_closure(
    tree: &Tree<'_, '_>,
    symbol: SymbolId,
    makers: &mut HashMap<NodeId, bool>,
    report: &mut Report<'_>,
) {
    let scoping = tree.scoping();
    if !scoping.symbol_flags(symbol).is_variable() || !tree.is_mutated(symbol) {
        return;
    }
    let declaration = scoping.symbol_declaration(symbol);
    let Some((maker, _)) = tree.functions_around(declaration).next() else { return };
    if tree.is_inside_function(maker) || !*makers.entry(maker).or_insert_with(|| runs_at_load(tree, maker)) {
        return;
    }
    let outlives = scoping.get_resolved_references(symbol).any(|reference| {
        reference.is_write()
            && tree
                .functions_around(reference.node_id())
                .next()
                .is_some_and(|(function, _)| function != maker)
    });
    if outlives {
        let name = scoping.symbol_name(symbol);
        report.add(
            &STATELESS,
            scoping.symbol_span(symbol),
            format!("'{name}' is kept alive by a closure made at module level, so one call influences the next"),
            format!("Make '{name}' inside the tool's function, or take it as an argument and return the new value."),
        );
    }
}

/// True when a function of the module is called outside of every function.
fn runs_at_load(tree: &Tree<'_, '_>, function: NodeId) -> bool {
    let is_called = |node: NodeId| {
        tree.use_of(node).is_some_and(|use_site| {
            matches!(use_site.parent, AstKind::CallExpression(call) if call.callee.span() == use_site.span)
        }) && !tree.is_inside_function(node)
    };
    if is_called(function) {
        return true;
    }
    let symbol = match (tree.kind(function), tree.parent(function)) {
        (AstKind::Function(function), _) if function.id.is_some() => {
            function.id.as_ref().map(BindingIdentifier::symbol_id)
        }
        (_, Some((_, AstKind::VariableDeclarator(declarator)))) => {
            declarator.id.get_binding_identifier().map(BindingIdentifier::symbol_id)
        }
        _ => None,
    };
    symbol.is_some_and(|symbol| {
        tree.scoping().get_resolved_references(symbol).any(|reference| is_called(reference.node_id()))
    })
}
