//! One walk over the finished tree: what the module asks for, what it exports, which free names it needs.

use std::collections::BTreeMap;

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::{Scoping, SymbolId};
use oxc::span::Span;

use super::commonjs::CommonJsNames;
use super::shape::is_free;
use super::{ModuleRequest, RequestKind};
use crate::places::LineTable;

/// What the walk found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) requests: Vec<ModuleRequest>,
    /// Names exported by `export` statements, in order.
    pub(super) exports: Vec<String>,
    /// Specifiers of `export * from`.
    pub(super) reexports: Vec<String>,
    /// A free `require`, called or not.
    pub(super) uses_require: bool,
    /// A free `Function`.
    pub(super) uses_function: bool,
    /// Decorators that were not lowered.
    pub(super) decorators: Vec<Span>,
    /// What the module assigns to `exports` and `module.exports`.
    pub(super) commonjs: CommonJsNames,
}

/// Walks `program`, which the transformer has already turned into JavaScript.
pub(super) fn survey(program: &Program<'_>, scoping: &Scoping, table: &LineTable<'_>) -> Findings {
    let mut surveyor =
        Surveyor { scoping, table, found: Findings::default(), namespaces: BTreeMap::new(), guarded: 0 };
    // A namespace may be used above its import, so imports come first.
    for statement in &program.body {
        surveyor.module_statement(statement);
    }
    surveyor.visit_program(program);
    let mut found = surveyor.found;
    found.requests.sort_by(|one, other| one.place.cmp(&other.place));
    found
}

struct Surveyor<'s> {
    scoping: &'s Scoping,
    table: &'s LineTable<'s>,
    found: Findings,
    /// `import * as x`: the symbol and the request it belongs to.
    namespaces: BTreeMap<SymbolId, usize>,
    /// How many `try` blocks with a `catch` stand around the current node.
    guarded: usize,
}

impl Surveyor<'_> {
    /// Adds a request, or the names of a repeated one, and gives its index.
    fn request(&mut self, specifier: &str, kind: RequestKind, span: Span, names: Vec<String>) -> usize {
        let optional = self.guarded > 0;
        let requests = &mut self.found.requests;
        if let Some(index) =
            requests.iter().position(|request| request.specifier == specifier && request.kind == kind)
        {
            if let Some(known) = requests.get_mut(index) {
                known.optional &= optional;
                for name in names {
                    if !known.names.contains(&name) {
                        known.names.push(name);
                    }
                }
            }
            return index;
        }
        let place = self.table.place(span.start);
        let members = Vec::new();
        requests.push(ModuleRequest {
            specifier: specifier.to_owned(),
            kind,
            place,
            names,
            members,
            optional,
        });
        requests.len() - 1
    }

    fn export(&mut self, name: &str) {
        if !self.found.exports.iter().any(|known| known == name) {
            self.found.exports.push(name.to_owned());
        }
    }

    fn module_statement(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(import) => self.import(import),
            Statement::ExportDeclaration(export) => {
                if let Declaration::VariableDeclaration(variable) = &export.declaration {
                    for declarator in &variable.declarations {
                        for identifier in declarator.id.get_binding_identifiers() {
                            self.export(&identifier.name);
                        }
                    }
                } else if let Some(identifier) = export.declaration.id() {
                    self.export(&identifier.name);
                }
            }
            Statement::ExportNamedDeclaration(export) => {
                for specifier in &export.specifiers {
                    self.export(&specifier.exported.name());
                }
            }
            Statement::ExportFromDeclaration(export) => {
                let names =
                    export.specifiers.iter().map(|specifier| specifier.local.name().to_string()).collect();
                self.request(&export.source.value, RequestKind::Import, export.source.span, names);
                for specifier in &export.specifiers {
                    self.export(&specifier.exported.name());
                }
            }
            Statement::ExportAllDeclaration(export) => {
                self.request(
                    &export.source.value,
                    RequestKind::Import,
                    export.source.span,
                    vec!["*".to_owned()],
                );
                match &export.exported {
                    Some(name) => self.export(&name.name()),
                    None => self.found.reexports.push(export.source.value.to_string()),
                }
            }
            Statement::ExportDefaultDeclaration(_) => self.export("default"),
            _ => {}
        }
    }

    fn import(&mut self, import: &ImportDeclaration<'_>) {
        let mut names = Vec::new();
        let mut namespace = None;
        for specifier in import.specifiers.iter().flatten() {
            match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    names.push(named.imported.name().to_string());
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => names.push("default".to_owned()),
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(star) => {
                    names.push("*".to_owned());
                    namespace = star.local.symbol_id.get();
                }
            }
        }
        let index = self.request(&import.source.value, RequestKind::Import, import.source.span, names);
        if let Some(symbol) = namespace {
            self.namespaces.insert(symbol, index);
        }
    }

    fn is_free(&self, identifier: &IdentifierReference<'_>) -> bool {
        is_free(identifier, self.scoping)
    }

    /// `namespace.name`: a CommonJS module may have the name without showing it in its source.
    fn namespace_member(&mut self, member: &MemberExpression<'_>) {
        if self.namespaces.is_empty() {
            return;
        }
        let (Expression::Identifier(object), Some(name)) = (member.object(), member.static_property_name())
        else {
            return;
        };
        let symbol =
            object.reference_id.get().and_then(|reference| self.scoping.get_reference(reference).symbol_id());
        if let Some(index) = symbol.and_then(|symbol| self.namespaces.get(&symbol))
            && let Some(request) = self.found.requests.get_mut(*index)
            && !request.members.iter().any(|known| known == name)
        {
            request.members.push(name.to_owned());
        }
    }
}

impl<'a> Visit<'a> for Surveyor<'_> {
    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        match identifier.name.as_str() {
            "require" => self.found.uses_require |= self.is_free(identifier),
            "Function" => self.found.uses_function |= self.is_free(identifier),
            _ => {}
        }
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some((specifier, span)) = required(call, self.scoping) {
            self.request(specifier, RequestKind::Require, span, vec!["*".to_owned()]);
        }
        self.found.commonjs.call(call, self.scoping);
        walk::walk_call_expression(self, call);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        if let Some((specifier, span)) = constant(&import.source) {
            self.request(specifier, RequestKind::DynamicImport, span, vec!["*".to_owned()]);
        }
        walk::walk_import_expression(self, import);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        self.found.commonjs.assignment(assignment, self.scoping);
        walk::walk_assignment_expression(self, assignment);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        self.found.commonjs.variable(declarator, self.scoping);
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_member_expression(&mut self, member: &MemberExpression<'a>) {
        self.namespace_member(member);
        walk::walk_member_expression(self, member);
    }

    fn visit_try_statement(&mut self, statement: &TryStatement<'a>) {
        let guard = usize::from(statement.handler.is_some());
        self.guarded += guard;
        self.visit_block_statement(&statement.block);
        self.guarded -= guard;
        if let Some(handler) = &statement.handler {
            self.visit_catch_clause(handler);
        }
        if let Some(finalizer) = &statement.finalizer {
            self.visit_block_statement(finalizer);
        }
    }

    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.found.decorators.push(decorator.span);
    }
}

/// The specifier of a `require('…')` with a free `require` and a constant argument.
pub(super) fn required<'e>(call: &'e CallExpression<'_>, scoping: &Scoping) -> Option<(&'e str, Span)> {
    let Expression::Identifier(callee) = &call.callee else { return None };
    if callee.name != "require" || !is_free(callee, scoping) || call.arguments.len() != 1 {
        return None;
    }
    constant(call.arguments.first()?.as_expression()?)
}

/// A string that is known without running anything.
pub(super) fn constant<'e>(expression: &'e Expression<'_>) -> Option<(&'e str, Span)> {
    match expression {
        Expression::StringLiteral(literal) => Some((literal.value.as_str(), literal.span)),
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            let text = template.quasis.first()?.value.cooked.as_ref()?.as_str();
            Some((text, template.span))
        }
        _ => None,
    }
}
