//! The walk through a tree: definitions, calls, and the names that each function binds and uses.

use std::collections::HashSet;

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::span::{GetSpan, Span};
use oxc::syntax::scope::ScopeFlags;

use super::define::Field;
use super::loads::Loaders;
use super::values::{Source, is_function};
use crate::ingest::language::Language;
use crate::ingest::parse::Kind;
use crate::ingest::parse::names::is_name;
use crate::ingest::parse::reader::{Reader, Scope};

/// Reads one tree. Its depth is bounded before the tree is made, see [`super::read`].
pub(super) struct Walker<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) source: Source<'a>,
    pub(super) loaders: Loaders<'a>,
    pub(super) scope: Scope,
    /// Whether the function that comes next is called where it is written, so that its body is part of what is around it.
    is_called_at_once: bool,
    /// The call that a declaration has noted as an import.
    declared: Option<Span>,
    /// Loaders that are used where what they load is seen.
    pub(super) followed: HashSet<Span>,
    /// Whether a loader was given to who is not followed.
    pub(super) has_escaped: bool,
}

impl<'a> Walker<'a> {
    pub(super) fn new(text: &'a str, language: Language, program: &Program<'a>) -> Self {
        Self {
            reader: Reader::of_text(text, language),
            source: Source(text),
            loaders: Loaders::find(program),
            scope: Scope::default(),
            is_called_at_once: false,
            declared: None,
            followed: HashSet::new(),
            has_escaped: false,
        }
    }

    pub(super) fn name(text: &str) -> String {
        Reader::kept(text)
    }

    /// Does something in another scope.
    pub(super) fn within(&mut self, scope: Scope, action: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.scope, scope);
        action(self);
        self.scope = outer;
    }

    /// As [`Self::within`], where names that are bound are not seen outside.
    pub(super) fn framed(&mut self, mut scope: Scope, action: impl FnOnce(&mut Self)) {
        scope.frame = self.reader.names.new_frame(self.scope.frame);
        self.within(scope, action);
    }

    fn framed_here(&mut self, action: impl FnOnce(&mut Self)) {
        self.framed(self.scope.clone(), action);
    }

    /// The scope of what is in a container whose names are seen outside.
    fn inside(&self, symbol: Option<u32>, name: &str, members: bool) -> Scope {
        let mut scope = self.reader.inside(symbol, name, &self.scope, members);
        scope.frame = self.scope.frame;
        scope
    }

    /// `export` holds for one declaration alone.
    fn take_exported(&mut self) -> bool {
        std::mem::take(&mut self.scope.exported)
    }

    fn use_name(&mut self, text: &'a str, at: Span) {
        if is_name(text) {
            self.reader.use_name(at, text, &self.scope);
        }
    }
}

impl<'a> Visit<'a> for Walker<'a> {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.note_import_declaration(import);
    }

    fn visit_ts_import_equals_declaration(&mut self, import: &TSImportEqualsDeclaration<'a>) {
        self.scope.exported = false;
        self.note_import_equals(import);
        match &import.module_reference {
            TSModuleReference::IdentifierReference(name) => self.visit_identifier_reference(name),
            TSModuleReference::QualifiedName(name) => self.visit_ts_qualified_name(name),
            TSModuleReference::ExternalModuleReference(_) => {}
        }
    }

    fn visit_ts_import_type(&mut self, import: &TSImportType<'a>) {
        let first = self.reader.out.imports.len();
        let specifier = self.reader.kept_whole(&import.source.value);
        let kind = crate::ingest::parse::ImportKind::Bind;
        self.reader.import(kind, specifier, Vec::new(), None, import.span);
        self.reader.of_types(first);
        if let Some(arguments) = &import.type_arguments {
            self.visit_ts_type_parameter_instantiation(arguments);
        }
    }

    fn visit_export_from_declaration(&mut self, export: &ExportFromDeclaration<'a>) {
        self.note_export_from(export);
    }

    fn visit_export_all_declaration(&mut self, export: &ExportAllDeclaration<'a>) {
        self.note_export_all(export);
    }

    fn visit_export_named_declaration(&mut self, export: &ExportNamedDeclaration<'a>) {
        self.note_escaped_names(export);
        self.note_export_names(export);
    }

    fn visit_export_declaration(&mut self, export: &ExportDeclaration<'a>) {
        self.note_escaped_declaration(&export.declaration);
        self.scope.exported = true;
        self.visit_declaration(&export.declaration);
        self.scope.exported = false;
    }

    fn visit_export_default_declaration(&mut self, export: &ExportDefaultDeclaration<'a>) {
        self.export_default(export);
        self.scope.exported = false;
    }

    fn visit_function(&mut self, function: &Function<'a>, _flags: ScopeFlags) {
        if !function.is_declaration() && !function.is_ts_declare_function() {
            if let Some(id) = &function.id {
                self.visit_binding_identifier(id);
            }
            let is_part = std::mem::take(&mut self.is_called_at_once) && self.scope.is_top();
            let scope = if is_part { self.scope.hidden() } else { self.scope.nested() };
            return self.framed(scope, |walker| walker.visit_function_parts(function));
        }
        let exported = self.take_exported();
        let name = function.id.as_ref().map(|id| Self::name(&id.name)).unwrap_or_default();
        let span = self.definition(function.span, &[], function.declare);
        let scope = if self.scope.is_top() {
            let symbol = self.reader.symbol(Kind::Function, &name, span, &self.scope, exported);
            self.scope.body(symbol)
        } else {
            self.reader.inner_function(&name, span, &self.scope)
        };
        self.framed(scope, |walker| walker.visit_function_parts(function));
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        let is_part = std::mem::take(&mut self.is_called_at_once) && self.scope.is_top();
        let scope = if is_part { self.scope.hidden() } else { self.scope.nested() };
        self.framed(scope, |walker| walk::walk_arrow_function_expression(walker, arrow));
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        let exported = self.take_exported();
        if let Some(id) = &class.id {
            self.visit_binding_identifier(id);
        }
        match &class.id {
            Some(id) if class.is_declaration() && self.scope.is_top() => {
                self.define_class(class, &Self::name(&id.name), exported);
            }
            _ => self.framed_here(|walker| walker.visit_class_parts(class)),
        }
    }

    fn visit_method_definition(&mut self, method: &MethodDefinition<'a>) {
        self.visit_decorators(&method.decorators);
        let scope = if self.scope.members {
            let name = self.source.key(&method.key, method.computed);
            let span = self.definition(method.span, &method.decorators, false);
            self.method(&name, method.accessibility == Some(TSAccessibility::Private), span)
        } else {
            self.scope.nested()
        };
        self.framed(scope, |walker| {
            walker.visit_property_key(&method.key);
            walker.visit_function_parts(&method.value);
        });
    }

    fn visit_property_definition(&mut self, field: &PropertyDefinition<'a>) {
        self.visit_field(&Field {
            span: field.span,
            decorators: &field.decorators,
            key: &field.key,
            computed: field.computed,
            accessibility: field.accessibility,
            annotation: field.type_annotation.as_deref(),
            value: field.value.as_ref(),
        });
    }

    fn visit_accessor_property(&mut self, field: &AccessorProperty<'a>) {
        self.visit_field(&Field {
            span: field.span,
            decorators: &field.decorators,
            key: &field.key,
            computed: field.computed,
            accessibility: field.accessibility,
            annotation: field.type_annotation.as_deref(),
            value: field.value.as_ref(),
        });
    }

    fn visit_ts_interface_declaration(&mut self, interface: &TSInterfaceDeclaration<'a>) {
        let exported = self.take_exported();
        self.visit_binding_identifier(&interface.id);
        let mut scope = self.scope.clone();
        if self.scope.is_top() {
            let name = Self::name(&interface.id.name);
            let span = self.definition(interface.span, &[], interface.declare);
            let symbol = self.reader.symbol(Kind::Interface, &name, span, &self.scope, exported);
            for extended in &interface.extends {
                let written = Self::name(self.source.written(extended.type_name.span()));
                self.reader.heritage(symbol, &written, false);
            }
            scope = self.reader.inside(symbol, &name, &self.scope, true);
        }
        self.framed(scope, |walker| {
            if let Some(parameters) = &interface.type_parameters {
                walker.visit_ts_type_parameter_declaration(parameters);
            }
            walker.visit_ts_interface_heritages(&interface.extends);
            walker.visit_ts_interface_body(&interface.body);
        });
    }

    fn visit_ts_method_signature(&mut self, method: &TSMethodSignature<'a>) {
        let scope = if self.scope.members {
            let name = self.source.key(&method.key, method.computed);
            self.method(&name, false, method.span)
        } else {
            self.scope.clone()
        };
        self.framed(scope, |walker| walk::walk_ts_method_signature(walker, method));
    }

    fn visit_ts_property_signature(&mut self, property: &TSPropertySignature<'a>) {
        let name = self.source.key(&property.key, property.computed);
        let of = self.source.declared(property.type_annotation.as_deref());
        self.reader.declare_field(&name, of, &self.scope);
        walk::walk_ts_property_signature(self, property);
    }

    fn visit_ts_call_signature_declaration(&mut self, signature: &TSCallSignatureDeclaration<'a>) {
        self.framed_here(|walker| walk::walk_ts_call_signature_declaration(walker, signature));
    }

    fn visit_ts_construct_signature_declaration(&mut self, signature: &TSConstructSignatureDeclaration<'a>) {
        self.framed_here(|walker| walk::walk_ts_construct_signature_declaration(walker, signature));
    }

    fn visit_ts_function_type(&mut self, of: &TSFunctionType<'a>) {
        self.framed_here(|walker| walk::walk_ts_function_type(walker, of));
    }

    fn visit_ts_constructor_type(&mut self, of: &TSConstructorType<'a>) {
        self.framed_here(|walker| walk::walk_ts_constructor_type(walker, of));
    }

    fn visit_ts_mapped_type(&mut self, of: &TSMappedType<'a>) {
        self.framed_here(|walker| walk::walk_ts_mapped_type(walker, of));
    }

    fn visit_ts_conditional_type(&mut self, of: &TSConditionalType<'a>) {
        self.framed_here(|walker| walk::walk_ts_conditional_type(walker, of));
    }

    fn visit_catch_clause(&mut self, clause: &CatchClause<'a>) {
        self.framed_here(|walker| walk::walk_catch_clause(walker, clause));
    }

    fn visit_ts_type_alias_declaration(&mut self, alias: &TSTypeAliasDeclaration<'a>) {
        let exported = self.take_exported();
        let mut symbol = None;
        if self.scope.is_top() {
            let name = Self::name(&alias.id.name);
            let span = self.definition(alias.span, &[], alias.declare);
            symbol = self.reader.symbol(Kind::Type, &name, span, &self.scope, exported);
        }
        // A type can be taken from another file: `typeof import("x")`.
        self.framed(self.scope.definition(symbol), |walker| {
            if let Some(parameters) = &alias.type_parameters {
                walker.visit_ts_type_parameter_declaration(parameters);
            }
            walker.visit_ts_type(&alias.type_annotation);
        });
    }

    fn visit_ts_enum_declaration(&mut self, enumeration: &TSEnumDeclaration<'a>) {
        let exported = self.take_exported();
        self.visit_binding_identifier(&enumeration.id);
        let mut scope = self.scope.clone();
        if self.scope.is_top() {
            let name = Self::name(&enumeration.id.name);
            let span = self.definition(enumeration.span, &[], enumeration.declare);
            let symbol = self.reader.symbol(Kind::Enum, &name, span, &self.scope, exported);
            scope = self.inside(symbol, &name, true);
        }
        self.within(scope, |walker| walker.visit_ts_enum_body(&enumeration.body));
    }

    fn visit_ts_external_module_declaration(&mut self, module: &TSExternalModuleDeclaration<'a>) {
        let exported = self.take_exported();
        let name = Self::name(&module.id.value);
        let span = self.definition(module.span, &[], module.declare);
        let symbol = self.reader.symbol(Kind::Module, &name, span, &self.scope, exported);
        self.within(self.inside(symbol, &name, false), |walker| {
            if let Some(body) = &module.body {
                walker.visit_ts_module_block(body);
            }
        });
    }

    fn visit_ts_namespace_declaration(&mut self, namespace: &TSNamespaceDeclaration<'a>) {
        let exported = self.take_exported();
        let mut name = namespace.id.name.as_str().to_owned();
        let mut body = &namespace.body;
        while let TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) = body {
            name.push('.');
            name.push_str(&inner.id.name);
            body = &inner.body;
        }
        let name = Self::name(&name);
        let span = self.definition(namespace.span, &[], namespace.declare);
        let symbol = self.reader.symbol(Kind::Module, &name, span, &self.scope, exported);
        self.within(self.inside(symbol, &name, false), |walker| {
            if let TSNamespaceDeclarationBody::TSModuleBlock(block) = body {
                walker.visit_ts_module_block(block);
            }
        });
    }

    fn visit_ts_global_declaration(&mut self, global: &TSGlobalDeclaration<'a>) {
        self.take_exported();
        self.visit_ts_module_block(&global.body);
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        let exported = self.take_exported();
        let scope = if self.scope.is_top() {
            self.define_variables(declaration, exported)
        } else {
            self.define_inner(declaration)
        };
        self.within(scope, |walker| walk::walk_variable_declaration(walker, declaration));
    }

    /// What a loop declares is no symbol of the file.
    fn visit_for_statement_left(&mut self, left: &ForStatementLeft<'a>) {
        match left {
            ForStatementLeft::VariableDeclaration(declaration) => {
                walk::walk_variable_declaration(self, declaration);
            }
            _ => walk::walk_for_statement_left(self, left),
        }
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        let annotation = declarator.type_annotation.as_deref();
        let value = declarator.init.as_ref();
        let of = self.source.declared(annotation).or_else(|| self.source.created(value));
        match &declarator.id {
            BindingPattern::BindingIdentifier(id) => {
                // A function is a symbol and can be found.
                if of.is_some() || !value.is_some_and(is_function) {
                    self.reader.bind_name(id.name.as_str(), of, &self.scope);
                }
            }
            pattern => self.visit_binding_pattern(pattern),
        }
        if let Some(annotation) = annotation {
            self.visit_ts_type_annotation(annotation);
        }
        self.follow_declarator(declarator);
        let outer = self.declared;
        self.declared = self.note_require(declarator);
        if let Some(value) = value {
            self.visit_expression(value);
        }
        self.declared = outer;
    }

    fn visit_binding_identifier(&mut self, id: &BindingIdentifier<'a>) {
        self.reader.bind_name(id.name.as_str(), None, &self.scope);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        let of = self.source.declared(parameter.type_annotation.as_deref());
        if let BindingPattern::BindingIdentifier(id) = &parameter.pattern {
            // A parameter of a constructor that is a field as well.
            if parameter.has_modifier() {
                self.reader.declare_field(&id.name, of.clone(), &self.scope);
            }
            self.reader.bind_name(id.name.as_str(), of, &self.scope);
        }
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        self.follow_target(assignment);
        self.note_exports(assignment);
        if let AssignmentTarget::StaticMemberExpression(target) = &assignment.left
            && let Expression::ThisExpression(_) = target.object
        {
            let of = self.source.created(Some(&assignment.right));
            self.reader.declare_field(&target.property.name, of, &self.scope);
        }
        walk::walk_assignment_expression(self, assignment);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        self.load_module(import.span, &import.source);
        walk::walk_import_expression(self, import);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        // A declaration has noted its own.
        let is_noted = self.declared.is_some_and(|span| span.contains_inclusive(call.span))
            && self.declared.take().is_some();
        if !is_noted && !self.note_load(call) {
            self.note_callee(&call.callee, call.span);
        }
        self.note_escaped_call(call);
        self.follow_callee(&call.callee);
        self.is_called_at_once = is_function(&call.callee);
        self.visit_callee(&call.callee);
        self.is_called_at_once = false;
        if let Some(arguments) = &call.type_arguments {
            self.visit_ts_type_parameter_instantiation(arguments);
        }
        self.visit_arguments(&call.arguments);
    }

    fn visit_tagged_template_expression(&mut self, template: &TaggedTemplateExpression<'a>) {
        self.note_callee(&template.tag, template.span);
        self.visit_callee(&template.tag);
        if let Some(arguments) = &template.type_arguments {
            self.visit_ts_type_parameter_instantiation(arguments);
        }
        self.visit_template_literal(&template.quasi);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.note_creation(new);
        self.note_callee(&new.callee, new.span);
        self.visit_callee(&new.callee);
        if let Some(arguments) = &new.type_arguments {
            self.visit_ts_type_parameter_instantiation(arguments);
        }
        self.visit_arguments(&new.arguments);
    }

    fn visit_jsx_element(&mut self, element: &JSXElement<'a>) {
        // The name at the end is the one at the beginning.
        self.visit_jsx_opening_element(&element.opening_element);
        self.visit_jsx_children(&element.children);
    }

    fn visit_jsx_opening_element(&mut self, element: &JSXOpeningElement<'a>) {
        // A component is a function that is called by the frame; elements in small letters are the browser's.
        match &element.name {
            JSXElementName::IdentifierReference(name) if name.name.starts_with(char::is_uppercase) => {
                self.reader.call(Self::name(&name.name), None, element.span, &self.scope);
            }
            JSXElementName::MemberExpression(member) => {
                let written = self.source.written(member.span);
                if written.starts_with(char::is_uppercase) {
                    let receiver = Self::name(self.source.written(member.object.span()));
                    let name = Self::name(&member.property.name);
                    self.reader.call(name, Some(receiver), element.span, &self.scope);
                }
                self.visit_jsx_member_expression_object(&member.object);
            }
            _ => {}
        }
        if let Some(arguments) = &element.type_arguments {
            self.visit_ts_type_parameter_instantiation(arguments);
        }
        self.visit_jsx_attribute_items(&element.attributes);
    }

    fn visit_expression_statement(&mut self, statement: &ExpressionStatement<'a>) {
        self.follow_statement(statement);
        walk::walk_expression_statement(self, statement);
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        if unary.operator == UnaryOperator::Typeof {
            self.follow(&unary.argument);
        }
        walk::walk_unary_expression(self, unary);
    }

    fn visit_ts_type_query(&mut self, query: &TSTypeQuery<'a>) {
        // A type runs nothing.
        self.followed.insert(query.expr_name.span());
        walk::walk_ts_type_query(self, query);
    }

    fn visit_expression(&mut self, expression: &Expression<'a>) {
        self.follow_object(expression);
        walk::walk_expression(self, expression);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        self.note_escaped_member(&member.object, &member.property.name, member.span);
        self.use_name(self.source.written(member.span), member.span);
        walk::walk_static_member_expression(self, member);
    }

    fn visit_ts_qualified_name(&mut self, name: &TSQualifiedName<'a>) {
        self.use_name(self.source.written(name.span), name.span);
        walk::walk_ts_qualified_name(self, name);
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        self.note_escaped_name(&name.name, name.span);
        self.use_name(name.name.as_str(), name.span);
    }
}
