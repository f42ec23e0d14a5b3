//! The syntax tree with its scopes, and the questions every rule asks of it.

use std::cell::Cell;
use std::collections::HashSet;

use oxc::ast::AstKind;
use oxc::ast::ast::{
    BindingPattern, ChainElement, Expression, IdentifierReference, ImportOrExportKind, Program,
    VariableDeclarator,
};
use oxc::semantic::{AstNodes, NodeId, Scoping, Semantic, SymbolFlags, SymbolId};
use oxc::span::{GetSpan, Span};

use super::CheckOptions;
use crate::Unit;

/// How far a rule follows aliases and wrappers. Real code needs two or three; hostile code must not cost more.
pub(super) const MAX_STEPS: usize = 32;

/// One parsed tool.
pub(super) struct Tree<'s, 'a> {
    pub(super) unit: &'s Unit,
    pub(super) options: &'s CheckOptions,
    /// How much folding of constants the question at hand may still cost.
    pub(super) fold_budget: Cell<usize>,
    semantic: &'s Semantic<'a>,
    /// Symbols that are written after their declaration, found once: asking the scopes costs every reference.
    mutated: HashSet<SymbolId>,
    /// Symbols whose declarations vanish when the tool is compiled.
    erased: HashSet<SymbolId>,
}

/// Where the value of an expression goes, past every wrapper that hands it on unchanged.
pub(super) struct Use<'a> {
    /// The outermost expression that still has the value.
    pub(super) node: NodeId,
    pub(super) span: Span,
    pub(super) parent_node: NodeId,
    pub(super) parent: AstKind<'a>,
}

impl<'s, 'a> Tree<'s, 'a> {
    pub(super) fn new(unit: &'s Unit, options: &'s CheckOptions, semantic: &'s Semantic<'a>) -> Self {
        let scoping = semantic.scoping();
        Self {
            unit,
            options,
            fold_budget: Cell::new(0),
            semantic,
            mutated: scoping.symbol_ids().filter(|&symbol| scoping.symbol_is_mutated(symbol)).collect(),
            erased: scoping.symbol_ids().filter(|&symbol| is_erased(semantic, symbol)).collect(),
        }
    }

    pub(super) fn nodes(&self) -> &'s AstNodes<'a> {
        self.semantic.nodes()
    }

    pub(super) fn scoping(&self) -> &'s Scoping {
        self.semantic.scoping()
    }

    pub(super) fn program(&self) -> &'a Program<'a> {
        self.nodes().program()
    }

    /// Every node with its id, parents before children.
    pub(super) fn each(&self) -> impl Iterator<Item = (NodeId, AstKind<'a>)> + use<'s, 'a> {
        self.nodes().iter().map(|node| (node.id(), node.kind()))
    }

    pub(super) fn kind(&self, node: NodeId) -> AstKind<'a> {
        self.nodes().kind(node)
    }

    pub(super) fn parent(&self, node: NodeId) -> Option<(NodeId, AstKind<'a>)> {
        if matches!(self.kind(node), AstKind::Program(_)) {
            return None;
        }
        let parent = self.nodes().parent_id(node);
        Some((parent, self.kind(parent)))
    }

    /// The nearest functions around a node, innermost first.
    pub(super) fn functions_around(
        &self,
        node: NodeId,
    ) -> impl Iterator<Item = (NodeId, AstKind<'a>)> + use<'s, 'a> {
        let nodes = self.nodes();
        nodes
            .ancestors_enumerated(node)
            .map(|(id, ancestor)| (id, ancestor.kind()))
            .filter(|(_, kind)| is_function(*kind))
    }

    pub(super) fn is_inside_function(&self, node: NodeId) -> bool {
        self.functions_around(node).next().is_some()
    }

    /// The symbol a reference is bound to, unless the declaration only exists for the type checker.
    pub(super) fn symbol(&self, reference: &IdentifierReference<'a>) -> Option<SymbolId> {
        let reference = self.scoping().get_reference(reference.reference_id.get()?);
        reference.symbol_id().filter(|symbol| !self.erased.contains(symbol))
    }

    /// The name of a global that is used as a value. `declare const process` and an overload without a body vanish
    /// when the tool is compiled, so they hide nothing.
    pub(super) fn global_name(&self, reference: &IdentifierReference<'a>) -> Option<&'a str> {
        let found = self.scoping().get_reference(reference.reference_id.get()?);
        let flags = found.flags();
        if !flags.is_value() || flags.is_value_as_type() {
            return None;
        }
        match found.symbol_id() {
            Some(symbol) if !self.erased.contains(&symbol) => None,
            _ => Some(reference.name.as_str()),
        }
    }

    /// True when the source declares the name in any way, if only for the type checker.
    pub(super) fn is_declared(&self, reference: &IdentifierReference<'a>) -> bool {
        reference.reference_id.get().is_some_and(|id| self.scoping().has_binding(id))
    }

    /// The name of a global an expression stands for.
    pub(super) fn global_expression(&self, expression: &'a Expression<'a>) -> Option<&'a str> {
        match peel(expression) {
            AstKind::IdentifierReference(reference) => self.global_name(reference),
            _ => None,
        }
    }

    /// True when the symbol is written after its declaration.
    pub(super) fn is_mutated(&self, symbol: SymbolId) -> bool {
        self.mutated.contains(&symbol)
    }

    /// The declarator of a plain `const x = …`, or of a `let` that is never written again.
    pub(super) fn declarator(&self, symbol: SymbolId) -> Option<&'a VariableDeclarator<'a>> {
        if self.is_mutated(symbol) {
            return None;
        }
        match self.kind(self.scoping().symbol_declaration(symbol)) {
            AstKind::VariableDeclarator(declarator)
                if matches!(declarator.id, BindingPattern::BindingIdentifier(_)) =>
            {
                Some(declarator)
            }
            _ => None,
        }
    }

    /// The one value a reference can have, when its declaration shows it.
    pub(super) fn initial_value(&self, reference: &IdentifierReference<'a>) -> Option<&'a Expression<'a>> {
        self.declarator(self.symbol(reference)?)?.init.as_ref()
    }

    /// Follows a value outwards through casts, `await`, optional chains and the branches of conditions.
    pub(super) fn use_of(&self, node: NodeId) -> Option<Use<'a>> {
        let mut node = node;
        let mut span = self.kind(node).span();
        for _ in 0..MAX_STEPS {
            let (parent_node, parent) = self.parent(node)?;
            let passes_on = match parent {
                AstKind::ParenthesizedExpression(_)
                | AstKind::TSAsExpression(_)
                | AstKind::TSSatisfiesExpression(_)
                | AstKind::TSNonNullExpression(_)
                | AstKind::TSTypeAssertion(_)
                | AstKind::TSInstantiationExpression(_)
                | AstKind::ChainExpression(_)
                | AstKind::AwaitExpression(_)
                | AstKind::LogicalExpression(_) => true,
                AstKind::ConditionalExpression(condition) => condition.test.span() != span,
                AstKind::SequenceExpression(sequence) => {
                    sequence.expressions.last().is_some_and(|last| last.span() == span)
                }
                _ => false,
            };
            if !passes_on {
                return Some(Use { node, span, parent_node, parent });
            }
            node = parent_node;
            span = parent.span();
        }
        None
    }
}

/// `declare const process`, an overload without a body and `import type x = require()` bind nothing at run time.
fn is_erased(semantic: &Semantic<'_>, symbol: SymbolId) -> bool {
    let scoping = semantic.scoping();
    if scoping.symbol_flags(symbol).contains(SymbolFlags::Ambient) {
        return true;
    }
    scoping.symbol_declarations(symbol).all(|node| match semantic.nodes().kind(node) {
        AstKind::Function(function) => function.body.is_none(),
        AstKind::TSImportEqualsDeclaration(import) => import.import_kind == ImportOrExportKind::Type,
        _ => false,
    })
}

pub(super) fn is_function(kind: AstKind<'_>) -> bool {
    matches!(kind, AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
}

/// An expression without the wrappers that do not change its value.
pub(super) fn peel<'a>(expression: &'a Expression<'a>) -> AstKind<'a> {
    peel_kind(AstKind::from_expression(expression))
}

pub(super) fn peel_kind(kind: AstKind<'_>) -> AstKind<'_> {
    let mut kind = kind;
    loop {
        kind = match kind {
            AstKind::ParenthesizedExpression(wrapper) => AstKind::from_expression(&wrapper.expression),
            AstKind::TSAsExpression(wrapper) => AstKind::from_expression(&wrapper.expression),
            AstKind::TSSatisfiesExpression(wrapper) => AstKind::from_expression(&wrapper.expression),
            AstKind::TSNonNullExpression(wrapper) => AstKind::from_expression(&wrapper.expression),
            AstKind::TSTypeAssertion(wrapper) => AstKind::from_expression(&wrapper.expression),
            AstKind::TSInstantiationExpression(wrapper) => AstKind::from_expression(&wrapper.expression),
            AstKind::ChainExpression(chain) => match &chain.expression {
                ChainElement::CallExpression(call) => AstKind::CallExpression(call),
                ChainElement::TSNonNullExpression(wrapper) => AstKind::from_expression(&wrapper.expression),
                ChainElement::ComputedMemberExpression(member) => AstKind::ComputedMemberExpression(member),
                ChainElement::StaticMemberExpression(member) => AstKind::StaticMemberExpression(member),
                ChainElement::PrivateFieldExpression(member) => AstKind::PrivateFieldExpression(member),
            },
            other => return other,
        };
    }
}

/// The object and the name of a property that is read by a literal name.
pub(super) fn static_member<'a>(kind: AstKind<'a>) -> Option<(&'a Expression<'a>, &'a str)> {
    match kind {
        AstKind::StaticMemberExpression(member) => Some((&member.object, member.property.name.as_str())),
        AstKind::ComputedMemberExpression(member) => match peel(&member.expression) {
            AstKind::StringLiteral(key) => Some((&member.object, key.value.as_str())),
            _ => None,
        },
        _ => None,
    }
}

/// The function an expression calls by name on a global, such as `("Object", "assign")` for `Object.assign(…)`.
pub(super) fn static_call<'a>(tree: &Tree<'_, 'a>, callee: &'a Expression<'a>) -> Option<(&'a str, &'a str)> {
    let (object, name) = static_member(peel(callee))?;
    Some((tree.global_expression(object)?, name))
}
