//! The global object holds every global, so it may only be asked for a name that the source decides.
//!
//! `globalThis.Math` is fine and `globalThis.process` is not. Where the object itself goes somewhere this check cannot
//! follow (an argument, a result, an unknown key), the global object is what is refused.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    AssignmentTarget, AssignmentTargetMaybeDefault, AssignmentTargetProperty, BindingPattern, CallExpression,
    Expression, IdentifierReference, ObjectAssignmentTarget, ObjectPattern, Statement,
    TSImportEqualsDeclaration, TSModuleReference, TSTypeName, UnaryOperator,
};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};

use super::super::constant;
use super::super::report::Report;
use super::super::tree::{MAX_STEPS, Tree, Use, peel};
use super::names::{self, GLOBAL_OBJECTS};
use super::{forbid, forbid_name, reads};

/// How many expressions may be asked to find out what one name stands for.
const MAX_QUESTIONS: usize = 64;

const ESCAPE_FIX: &str = "Name the global itself (`Math`, `URL`), or read one fixed name: `globalThis.Name`.";

/// How sure it is that a value is the global object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    No,
    /// `this` of a plain function is the global object in sloppy code and `undefined` in strict code.
    Maybe,
    Yes,
}

/// A reference to the global object, by one of its names or through a constant.
pub(super) fn check_reference<'a>(
    tree: &Tree<'_, 'a>,
    node: NodeId,
    reference: &'a IdentifierReference<'a>,
    report: &mut Report<'_>,
) {
    let certainty = reference_certainty(tree, reference, &mut { MAX_QUESTIONS });
    if certainty != Certainty::No {
        let name = tree.global_name(reference).unwrap_or("globalThis");
        Judge { tree, name, certainty }.value(node, reference.span, MAX_STEPS, report);
    }
}

/// `this` outside of classes and object methods.
pub(super) fn check_this(tree: &Tree<'_, '_>, node: NodeId, report: &mut Report<'_>) {
    if is_plain_this(tree, node) {
        let span = tree.kind(node).span();
        Judge { tree, name: "globalThis", certainty: Certainty::Maybe }.value(node, span, MAX_STEPS, report);
    }
}

/// `import p = globalThis.process` becomes an ordinary variable when it is compiled.
pub(super) fn check_import_equals<'a>(
    tree: &Tree<'_, 'a>,
    declaration: &'a TSImportEqualsDeclaration<'a>,
    report: &mut Report<'_>,
) {
    let mut path = Vec::new();
    let root = match &declaration.module_reference {
        TSModuleReference::ExternalModuleReference(_) => return,
        TSModuleReference::IdentifierReference(reference) => reference,
        TSModuleReference::QualifiedName(qualified) => {
            let mut name = qualified;
            loop {
                path.push(name.right.name.as_str());
                match &name.left {
                    TSTypeName::QualifiedName(inner) => name = inner,
                    TSTypeName::IdentifierReference(reference) => break reference,
                    TSTypeName::ThisExpression(_) => return,
                }
            }
        }
    };
    if tree.symbol(root).is_some() || !GLOBAL_OBJECTS.contains(&root.name.as_str()) {
        return;
    }
    let read = path.into_iter().rev().find(|name| !GLOBAL_OBJECTS.contains(name));
    match read {
        Some(name) => forbid_name(report, name, declaration.span),
        None => forbid(report, root.name.as_str(), ESCAPE_FIX, declaration.span),
    }
}

fn reference_certainty<'a>(
    tree: &Tree<'_, 'a>,
    reference: &IdentifierReference<'a>,
    questions: &mut usize,
) -> Certainty {
    if let Some(name) = tree.global_name(reference) {
        return if GLOBAL_OBJECTS.contains(&name) { Certainty::Yes } else { Certainty::No };
    }
    tree.initial_value(reference).map_or(Certainty::No, |value| certainty(tree, value, questions))
}

fn certainty<'a>(tree: &Tree<'_, 'a>, expression: &'a Expression<'a>, questions: &mut usize) -> Certainty {
    let Some(left) = questions.checked_sub(1) else { return Certainty::No };
    *questions = left;
    match peel(expression) {
        AstKind::IdentifierReference(reference) => reference_certainty(tree, reference, questions),
        AstKind::ThisExpression(this) if is_plain_this(tree, this.node_id.get()) => Certainty::Maybe,
        AstKind::ConditionalExpression(condition) => certainty(tree, &condition.consequent, questions)
            .max(certainty(tree, &condition.alternate, questions)),
        AstKind::LogicalExpression(logical) => {
            certainty(tree, &logical.left, questions).max(certainty(tree, &logical.right, questions))
        }
        AstKind::SequenceExpression(sequence) => {
            sequence.expressions.last().map_or(Certainty::No, |last| certainty(tree, last, questions))
        }
        AstKind::AwaitExpression(waiting) => certainty(tree, &waiting.argument, questions),
        AstKind::AssignmentExpression(assignment) => certainty(tree, &assignment.right, questions),
        AstKind::StaticMemberExpression(member)
            if GLOBAL_OBJECTS.contains(&member.property.name.as_str()) =>
        {
            certainty(tree, &member.object, questions)
        }
        AstKind::ComputedMemberExpression(member)
            if constant::strings(tree, &member.expression)
                .iter()
                .any(|key| GLOBAL_OBJECTS.contains(&key.as_str())) =>
        {
            certainty(tree, &member.object, questions)
        }
        AstKind::CallExpression(call) => match peel(&call.callee) {
            AstKind::Function(function) => function.body.as_ref().map_or(Certainty::No, |body| {
                body.statements
                    .iter()
                    .filter_map(|statement| match statement {
                        Statement::ReturnStatement(statement) => statement.argument.as_ref(),
                        _ => None,
                    })
                    .map(|argument| certainty(tree, argument, questions))
                    .max()
                    .unwrap_or(Certainty::No)
            }),
            AstKind::ArrowFunctionExpression(arrow) => {
                arrow.get_expression().map_or(Certainty::No, |body| certainty(tree, body, questions))
            }
            _ => Certainty::No,
        },
        _ => Certainty::No,
    }
}

/// True for `this` that no class, object method or accessor binds.
fn is_plain_this(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    let mut node = node;
    while let Some((parent, kind)) = tree.parent(node) {
        match kind {
            AstKind::Function(_) => {
                return !matches!(
                    tree.parent(parent),
                    Some((_, AstKind::MethodDefinition(_) | AstKind::ObjectProperty(_)))
                );
            }
            AstKind::ClassBody(_) => return false,
            _ => node = parent,
        }
    }
    true
}

/// Follows one value that is, or may be, the global object.
struct Judge<'t, 's, 'a> {
    tree: &'t Tree<'s, 'a>,
    name: &'t str,
    certainty: Certainty,
}

impl<'a> Judge<'_, '_, 'a> {
    fn value(&self, node: NodeId, span: Span, steps: usize, report: &mut Report<'_>) {
        let (Some(steps), Some(use_site)) = (steps.checked_sub(1), self.tree.use_of(node)) else {
            return self.escape(span, report);
        };
        match use_site.parent {
            AstKind::StaticMemberExpression(member) => {
                self.key(member.property.name.as_str(), use_site.parent_node, member.span, steps, report);
            }
            AstKind::ComputedMemberExpression(member) if member.object.span() == use_site.span => {
                self.keys(&member.expression, use_site.parent_node, member.span, steps, report);
            }
            AstKind::VariableDeclarator(declarator) => match &declarator.id {
                BindingPattern::ObjectPattern(pattern) => self.pattern(pattern, steps, report),
                BindingPattern::BindingIdentifier(binding)
                    if self.is_followed(&use_site, binding.symbol_id()) =>
                {
                    self.harmless(span, report);
                }
                _ => self.escape(span, report),
            },
            AstKind::AssignmentExpression(assignment) => match &assignment.left {
                AssignmentTarget::ObjectAssignmentTarget(target)
                    if assignment.right.span() == use_site.span =>
                {
                    self.target(target, steps, report);
                }
                _ => self.escape(span, report),
            },
            AstKind::CallExpression(call) => self.call(call, &use_site, span, steps, report),
            AstKind::ReturnStatement(_) | AstKind::ArrowFunctionExpression(_)
                if self.certainty == Certainty::Maybe =>
            {
                self.returned(use_site.node, span, steps, report);
            }
            AstKind::BinaryExpression(_)
            | AstKind::IfStatement(_)
            | AstKind::ConditionalExpression(_)
            | AstKind::SequenceExpression(_)
            | AstKind::PrivateInExpression(_) => self.harmless(span, report),
            AstKind::UnaryExpression(unary) => match unary.operator {
                UnaryOperator::Typeof => {}
                UnaryOperator::LogicalNot | UnaryOperator::Void => self.harmless(span, report),
                _ => self.escape(span, report),
            },
            AstKind::ExpressionStatement(_) if self.tree.is_inside_function(node) => {
                self.harmless(span, report);
            }
            // Its own path through the module system.
            AstKind::TSQualifiedName(_) | AstKind::TSImportEqualsDeclaration(_) => {}
            _ => self.escape(span, report),
        }
    }

    /// A constant that nobody writes and nobody imports is judged where it is used.
    fn is_followed(&self, use_site: &Use<'a>, symbol: oxc::semantic::SymbolId) -> bool {
        let exported = self
            .tree
            .nodes()
            .ancestor_kinds(use_site.parent_node)
            .take(2)
            .any(|kind| matches!(kind, AstKind::ExportDeclaration(_)));
        !exported && self.tree.declarator(symbol).is_some()
    }

    fn keys(
        &self,
        expression: &'a Expression<'a>,
        member: NodeId,
        span: Span,
        steps: usize,
        report: &mut Report<'_>,
    ) {
        let keys = constant::strings(self.tree, expression);
        if keys.is_empty() {
            self.escape(span, report);
        }
        // The object under another of its names is the same object, so one of them is followed for all.
        let (objects, names): (Vec<&str>, Vec<&str>) =
            keys.iter().map(String::as_str).partition(|key| GLOBAL_OBJECTS.contains(key));
        for key in names.into_iter().chain(objects.into_iter().take(1)) {
            self.key(key, member, span, steps, report);
        }
    }

    fn key(&self, key: &str, member: NodeId, span: Span, steps: usize, report: &mut Report<'_>) {
        if GLOBAL_OBJECTS.contains(&key) {
            self.value(member, span, steps, report);
        } else {
            self.name_read(key, span, report);
        }
    }

    fn name_read(&self, key: &str, span: Span, report: &mut Report<'_>) {
        if is_forbidden(key) {
            forbid_name(report, key, span);
        } else {
            self.harmless(span, report);
        }
    }

    fn pattern(&self, pattern: &'a ObjectPattern<'a>, steps: usize, report: &mut Report<'_>) {
        let Some(steps) = steps.checked_sub(1) else { return };
        if let Some(rest) = &pattern.rest {
            self.escape(rest.span, report);
        }
        for property in &pattern.properties {
            let keys = constant::keys(self.tree, &property.key, property.computed);
            if keys.is_empty() {
                self.escape(property.span, report);
            }
            for key in &keys {
                if !GLOBAL_OBJECTS.contains(&key.as_str()) {
                    self.name_read(key, property.span, report);
                } else if let BindingPattern::ObjectPattern(inner) = &property.value {
                    self.pattern(inner, steps, report);
                } else {
                    self.escape(property.span, report);
                }
            }
        }
    }

    fn target(&self, target: &'a ObjectAssignmentTarget<'a>, steps: usize, report: &mut Report<'_>) {
        let Some(steps) = steps.checked_sub(1) else { return };
        if let Some(rest) = &target.rest {
            self.escape(rest.span, report);
        }
        for property in &target.properties {
            match property {
                AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(property) => {
                    self.name_read(property.binding.name.as_str(), property.span, report);
                }
                AssignmentTargetProperty::AssignmentTargetPropertyProperty(property) => {
                    let keys = constant::keys(self.tree, &property.name, property.computed);
                    if keys.is_empty() {
                        self.escape(property.span, report);
                    }
                    for key in &keys {
                        match &property.binding {
                            _ if !GLOBAL_OBJECTS.contains(&key.as_str()) => {
                                self.name_read(key, property.span, report);
                            }
                            AssignmentTargetMaybeDefault::ObjectAssignmentTarget(inner) => {
                                self.target(inner, steps, report);
                            }
                            _ => self.escape(property.span, report),
                        }
                    }
                }
            }
        }
    }

    fn call(
        &self,
        call: &'a CallExpression<'a>,
        use_site: &Use<'a>,
        span: Span,
        steps: usize,
        report: &mut Report<'_>,
    ) {
        match reads::reflective_read(self.tree, call) {
            Some((object, key)) if object.span() == use_site.span => {
                self.keys(key, use_site.parent_node, call.span, steps, report);
            }
            _ => self.escape(span, report),
        }
    }

    /// `(function () { return this })()` hands its `this` to the caller.
    fn returned(&self, node: NodeId, span: Span, steps: usize, report: &mut Report<'_>) {
        let Some((function, kind)) = self.tree.functions_around(node).next() else { return };
        let Some(use_site) = self.tree.use_of(function) else { return };
        let called = match use_site.parent {
            AstKind::CallExpression(call) if call.callee.span() == use_site.span => {
                Some(use_site.parent_node)
            }
            AstKind::StaticMemberExpression(member)
                if matches!(member.property.name.as_str(), "call" | "apply") =>
            {
                self.tree
                    .parent(use_site.parent_node)
                    .and_then(|(call, kind)| matches!(kind, AstKind::CallExpression(_)).then_some(call))
            }
            _ => None,
        };
        match (called, kind) {
            (Some(call), _) => self.value(call, span, steps, report),
            // Who calls it by its name is not followed. A declared `this` says that there is an object.
            (None, AstKind::Function(function)) if function.this_param.is_none() => {
                forbid(report, self.name, ESCAPE_FIX, span);
            }
            _ => {}
        }
    }

    /// Nothing forbidden was read, though `window` and its kin do not exist at all.
    fn harmless(&self, span: Span, report: &mut Report<'_>) {
        if let (Certainty::Yes, Some(fix)) = (self.certainty, names::remedy(self.name)) {
            forbid(report, self.name, fix, span);
        }
    }

    fn escape(&self, span: Span, report: &mut Report<'_>) {
        if self.certainty == Certainty::Yes {
            forbid(report, self.name, ESCAPE_FIX, span);
        }
    }
}

fn is_forbidden(name: &str) -> bool {
    name == "require" || names::remedy(name).is_some()
}
