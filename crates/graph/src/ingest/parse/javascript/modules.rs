//! Imports and exports, in the forms of modules and of `require`.

use oxc::ast::ast::{
    AssignmentExpression, AssignmentTarget, BindingPattern, Class, ExportAllDeclaration,
    ExportDefaultDeclaration, ExportDefaultDeclarationKind, ExportFromDeclaration, ExportNamedDeclaration,
    ExportSpecifier, Expression, Function, ImportDeclaration, ImportDeclarationSpecifier, ImportOrExportKind,
    ObjectPropertyKind, PropertyKey, TSImportEqualsDeclaration, TSModuleReference, VariableDeclarator,
};
use oxc::ast_visit::Visit;
use oxc::span::{GetSpan, Span};
use oxc::syntax::scope::ScopeFlags;

use super::values::is_function;
use super::walk::Walker;
use crate::ingest::parse::{ImportKind, Kind, Name};

impl<'a> Walker<'a> {
    fn note_import(
        &mut self,
        kind: ImportKind,
        specifier: &str,
        names: Vec<Name>,
        module: Option<String>,
        at: Span,
        of_types: bool,
    ) {
        let first = self.reader.out.imports.len();
        let specifier = self.reader.kept_whole(specifier);
        self.reader.import(kind, specifier, names, module, at);
        if of_types {
            self.reader.of_types(first);
        }
    }

    pub(super) fn note_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        let mut names = Vec::new();
        let mut module = None;
        let specifiers: &[ImportDeclarationSpecifier<'a>] = match &import.specifiers {
            Some(list) => list,
            None => &[],
        };
        for specifier in specifiers {
            let local = Self::name(specifier.local().name.as_str());
            match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(specifier) => {
                    names.push(Name::new(Self::name(&specifier.imported.name()), local));
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => {
                    names.push(Name::new("default", local));
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => {
                    names.push(Name::new("*", local.as_str()));
                    module = Some(local);
                }
            }
        }
        // `import type ..`, or one all of whose names are types.
        let is_type = |specifier: &ImportDeclarationSpecifier<'_>| match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(specifier) => {
                specifier.import_kind == ImportOrExportKind::Type
            }
            _ => false,
        };
        let of_types = import.import_kind == ImportOrExportKind::Type
            || !specifiers.is_empty() && specifiers.iter().all(is_type);
        self.note_import(ImportKind::Bind, &import.source.value, names, module, import.span, of_types);
    }

    /// `import name = require("x")`.
    pub(super) fn note_import_equals(&mut self, import: &TSImportEqualsDeclaration<'a>) {
        let TSModuleReference::ExternalModuleReference(source) = &import.module_reference else { return };
        let module = Some(Self::name(import.id.name.as_str()));
        let of_types = import.import_kind == ImportOrExportKind::Type;
        let specifier = source.expression.value.as_str();
        self.note_import(ImportKind::Bind, specifier, Vec::new(), module, import.span, of_types);
    }

    /// `{a, b as c}` of an export: the name there, the name that others see.
    fn export_names(specifiers: &[ExportSpecifier<'a>]) -> Vec<Name> {
        let name = |specifier: &ExportSpecifier<'a>| {
            Name::new(Self::name(&specifier.local.name()), Self::name(&specifier.exported.name()))
        };
        specifiers.iter().map(name).collect()
    }

    pub(super) fn note_export_from(&mut self, export: &ExportFromDeclaration<'a>) {
        let is_type = |specifier: &ExportSpecifier<'_>| specifier.export_kind == ImportOrExportKind::Type;
        let of_types = export.export_kind == ImportOrExportKind::Type
            || !export.specifiers.is_empty() && export.specifiers.iter().all(is_type);
        let names = Self::export_names(&export.specifiers);
        self.note_import(ImportKind::ReExport, &export.source.value, names, None, export.span, of_types);
    }

    pub(super) fn note_export_all(&mut self, export: &ExportAllDeclaration<'a>) {
        let here = export.exported.as_ref().map(|name| Self::name(&name.name())).unwrap_or_default();
        let names = vec![Name::new("*", here)];
        let of_types = export.export_kind == ImportOrExportKind::Type;
        self.note_import(ImportKind::ReExport, &export.source.value, names, None, export.span, of_types);
    }

    pub(super) fn note_export_names(&mut self, export: &ExportNamedDeclaration<'a>) {
        for name in Self::export_names(&export.specifiers) {
            self.reader.out.exports.push((name.here, name.there));
        }
    }

    fn export_as_default(&mut self, name: &str) {
        self.reader.out.exports.push(("default".to_owned(), Self::name(name)));
    }

    /// `export default` of a declaration, of a name, or of a value that gets the name `default`.
    pub(super) fn export_default(&mut self, export: &ExportDefaultDeclaration<'a>) {
        match &export.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => match &function.id {
                Some(id) => {
                    self.export_as_default(&id.name);
                    self.scope.exported = true;
                    self.visit_function(function, ScopeFlags::Function);
                }
                None => self.export_function(function),
            },
            ExportDefaultDeclarationKind::ClassDeclaration(class) => match &class.id {
                Some(id) => {
                    self.export_as_default(&id.name);
                    self.scope.exported = true;
                    self.visit_class(class);
                }
                None => self.export_class(class),
            },
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(interface) => {
                self.export_as_default(&interface.id.name);
                self.scope.exported = true;
                self.visit_ts_interface_declaration(interface);
            }
            other => {
                if let Some(value) = other.as_expression() {
                    self.export_value(value);
                }
            }
        }
    }

    fn export_value(&mut self, value: &Expression<'a>) {
        match value {
            Expression::Identifier(name) => self.export_as_default(&name.name),
            Expression::FunctionExpression(function) => self.export_function(function),
            Expression::ClassExpression(class) => self.export_class(class),
            Expression::ArrowFunctionExpression(_) => {
                let symbol = self.reader.symbol(Kind::Function, "default", value.span(), &self.scope, true);
                let scope = self.scope.body(symbol);
                self.within(scope, |walker| walker.visit_expression(value));
            }
            _ => self.visit_expression(value),
        }
    }

    fn export_function(&mut self, function: &Function<'a>) {
        let name = function.id.as_ref().map_or("default", |id| id.name.as_str());
        if function.id.is_some() {
            self.export_as_default(name);
        }
        let symbol = self.reader.symbol(Kind::Function, &Self::name(name), function.span, &self.scope, true);
        let scope = self.scope.body(symbol);
        self.framed(scope, |walker| walker.visit_function_parts(function));
    }

    fn export_class(&mut self, class: &Class<'a>) {
        let name = class.id.as_ref().map_or("default", |id| id.name.as_str());
        if class.id.is_some() {
            self.export_as_default(name);
        }
        self.define_class(class, &Self::name(name), true);
    }

    /// Notes what a declarator takes from a module that it loads. Returns the call that loads it.
    pub(super) fn note_require(&mut self, declarator: &VariableDeclarator<'a>) -> Option<Span> {
        let value = declarator.init.as_ref()?;
        let specifier = self.required(value)?;
        let at = value.span();
        let name = |text: &str| Self::name(text);
        match &declarator.id {
            BindingPattern::BindingIdentifier(id) => {
                let module = Some(name(&id.name));
                self.note_import(ImportKind::Bind, &specifier, Vec::new(), module, at, false);
            }
            BindingPattern::ObjectPattern(pattern) => {
                let names = pattern.properties.iter().filter_map(|property| {
                    let key = match &property.key {
                        PropertyKey::StaticIdentifier(key) => name(&key.name),
                        key => name(self.source.written(key.span())),
                    };
                    match &property.value {
                        BindingPattern::BindingIdentifier(id) => Some(Name::new(key, name(&id.name))),
                        BindingPattern::AssignmentPattern(_) if property.shorthand => None,
                        value => Some(Name::new(key, name(self.source.written(value.span())))),
                    }
                });
                let names = names.collect();
                self.note_import(ImportKind::Bind, &specifier, names, None, at, false);
            }
            // What is bound is not known by name, and the module is loaded all the same.
            _ => self.note_import(ImportKind::Bind, &specifier, Vec::new(), None, at, false),
        }
        Some(at)
    }

    /// `exports.a = b`, `module.exports = b`, `module.exports = {a, b: c}` and `module.exports.a = b`.
    pub(super) fn note_exports(&mut self, assignment: &AssignmentExpression<'a>) {
        let AssignmentTarget::StaticMemberExpression(target) = &assignment.left else { return };
        if !self.scope.is_top() {
            return;
        }
        let target = self.source.written(target.span);
        if target == "module.exports" {
            match &assignment.right {
                Expression::Identifier(name) => self.export_as_default(&name.name),
                Expression::ObjectExpression(object) => {
                    for property in &object.properties {
                        let ObjectPropertyKind::ObjectProperty(property) = property else { continue };
                        if property.method {
                            continue;
                        }
                        let key = Self::name(&self.source.key(&property.key, property.computed));
                        let value = Self::name(self.source.written(property.value.span()));
                        self.reader.out.exports.push((key, value));
                    }
                }
                _ => {}
            }
            return;
        }
        let Some(name) = target.strip_prefix("module.exports.").or_else(|| target.strip_prefix("exports."))
        else {
            return;
        };
        let name = Self::name(name);
        match &assignment.right {
            Expression::Identifier(ours) => {
                self.reader.out.exports.push((name, Self::name(&ours.name)));
            }
            value if is_function(value) => {
                self.reader.symbol(Kind::Function, &name, assignment.span, &self.scope, true);
            }
            _ => {}
        }
    }
}
