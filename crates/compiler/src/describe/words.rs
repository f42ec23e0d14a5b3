//! Imports, exports, and the names a tool can be found by.

use std::collections::BTreeSet;

use oxc::ast::ast::{
    BindingIdentifier, CallExpression, Declaration, ExportSpecifier, Expression, ImportDeclaration,
    ImportExpression, ModuleExportName, ObjectPropertyKind, Statement, TSExternalModuleReference,
    TSFunctionType, TSImportEqualsDeclaration, TSInterfaceDeclaration, TSMethodSignature,
    TSPropertySignature, TSTypeAliasDeclaration, TSTypeParameter,
};
use oxc::ast_visit::{Visit, walk};
use oxc::span::GetSpan;
use serde_json::Value;

use super::Source;
use super::entry::exported_value;
use super::values::peel;
use crate::transpile::is_type_export;

/// The names that describe a tool best come first; more only blur the picture.
const MAX_IDENTIFIERS: usize = 24;

/// A longer name is generated, and nobody searches for it.
const MAX_IDENTIFIER: usize = 40;

/// How much of `meta.json` the imports, or the exports, of one tool may take.
const MAX_LIST_BYTES: usize = 8 * 1024;

pub(super) struct Words {
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
    pub(super) identifiers: Vec<String>,
}

pub(super) fn words(source: &Source<'_>, parameters: &Value) -> Words {
    let mut properties = Vec::new();
    property_names(parameters, &mut properties);
    let mut collector =
        Collector { source, properties: &properties, imports: BTreeSet::new(), declared: Vec::new() };
    collector.visit_program(source.program);
    let Collector { imports, mut declared, .. } = collector;
    declared.sort_by_key(|(offset, _)| *offset);
    let mut identifiers: Vec<String> = Vec::new();
    for name in declared.into_iter().map(|(_, name)| name).chain(properties.iter().cloned()) {
        let length = name.chars().count();
        if identifiers.len() < MAX_IDENTIFIERS
            && (2..=MAX_IDENTIFIER).contains(&length)
            && !identifiers.contains(&name)
        {
            identifiers.push(name);
        }
    }
    Words { imports: bounded(imports), exports: bounded(exports(source)), identifiers }
}

/// As many of the names as fit.
fn bounded(names: BTreeSet<String>) -> Vec<String> {
    let mut left = MAX_LIST_BYTES;
    let mut kept = Vec::new();
    for name in names {
        let size = Value::String(name.clone()).to_string().len() + 1;
        if size <= left {
            left -= size;
            kept.push(name);
        }
    }
    kept
}

/// The names of all properties in a schema, outer ones first.
fn property_names(schema: &Value, names: &mut Vec<String>) {
    let Value::Object(fields) = schema else { return };
    if let Some(Value::Object(properties)) = fields.get("properties") {
        names.extend(properties.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    }
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(inner)) => {
                inner.values().for_each(|schema| property_names(schema, names));
            }
            ("items" | "additionalProperties", inner) => property_names(inner, names),
            ("anyOf" | "allOf" | "prefixItems", Value::Array(inner)) => {
                inner.iter().for_each(|schema| property_names(schema, names));
            }
            _ => {}
        }
    }
}

fn exports(source: &Source<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in &source.program.body {
        if is_type_export(statement) {
            continue;
        }
        match statement {
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::VariableDeclaration(variables) => {
                    for declarator in &variables.declarations {
                        let bound = declarator.id.get_binding_identifiers();
                        names.extend(bound.iter().map(|identifier| identifier.name.to_string()));
                    }
                }
                declaration => names.extend(declaration.id().map(|identifier| identifier.name.to_string())),
            },
            Statement::ExportNamedDeclaration(export) => {
                let values = export.specifiers.iter().filter(|specifier| is_value(source, specifier));
                names.extend(values.map(|specifier| specifier.exported.name().to_string()));
            }
            Statement::ExportFromDeclaration(export) => {
                let values = export.specifiers.iter().filter(|specifier| specifier.export_kind.is_value());
                names.extend(values.map(|specifier| specifier.exported.name().to_string()));
            }
            Statement::ExportAllDeclaration(export) => {
                names.extend(export.exported.as_ref().map(|name| name.name().to_string()));
            }
            Statement::ExportDefaultDeclaration(_) | Statement::TSExportAssignment(_) => {
                names.insert("default".to_owned());
            }
            Statement::ExpressionStatement(statement) => {
                if let Some((value, name)) = exported_value(source, &statement.expression) {
                    match (peel(value), name) {
                        (Expression::ObjectExpression(object), None) => {
                            names.extend(object.properties.iter().filter_map(|property| match property {
                                ObjectPropertyKind::ObjectProperty(property) if !property.computed => {
                                    property.key.static_name().map(std::borrow::Cow::into_owned)
                                }
                                _ => None,
                            }));
                        }
                        (_, name) => {
                            names.insert(name.unwrap_or("default").to_owned());
                        }
                    }
                }
            }
            _ => {}
        }
    }
    names
}

/// Whether something is left of an exported name at run time.
fn is_value(source: &Source<'_>, specifier: &ExportSpecifier<'_>) -> bool {
    if specifier.export_kind.is_type() {
        return false;
    }
    let ModuleExportName::IdentifierReference(local) = &specifier.local else { return true };
    let reference = local.reference_id.get();
    let symbol = reference.and_then(|reference| source.scoping.get_reference(reference).symbol_id());
    symbol.is_none_or(|symbol| {
        let flags = source.scoping.symbol_flags(symbol);
        flags.is_value() || flags.is_import()
    })
}

struct Collector<'t, 'a> {
    source: &'t Source<'a>,
    properties: &'t [String],
    imports: BTreeSet<String>,
    /// Names with the places where they are declared.
    declared: Vec<(u32, String)>,
}

impl<'a> Visit<'a> for Collector<'_, 'a> {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        // What is imported was named elsewhere.
        self.imports.insert(import.source.value.to_string());
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::ExportFromDeclaration(export) => {
                self.imports.insert(export.source.value.to_string());
            }
            Statement::ExportAllDeclaration(export) => {
                self.imports.insert(export.source.value.to_string());
            }
            _ => {}
        }
        walk::walk_statement(self, statement);
    }

    fn visit_ts_import_equals_declaration(&mut self, import: &TSImportEqualsDeclaration<'a>) {
        self.visit_ts_module_reference(&import.module_reference);
    }

    fn visit_ts_external_module_reference(&mut self, reference: &TSExternalModuleReference<'a>) {
        self.imports.insert(reference.expression.value.to_string());
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        self.imports.extend(constant(&import.source));
        walk::walk_import_expression(self, import);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Expression::Identifier(callee) = &call.callee
            && callee.name == "require"
            && self.source.is_free(callee)
            && let [argument] = call.arguments.as_slice()
        {
            self.imports.extend(argument.as_expression().and_then(constant));
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_binding_identifier(&mut self, identifier: &BindingIdentifier<'a>) {
        self.declared.push((identifier.span.start, identifier.name.to_string()));
    }

    fn visit_ts_type_alias_declaration(&mut self, alias: &TSTypeAliasDeclaration<'a>) {
        self.visit_ts_type(&alias.type_annotation);
    }

    fn visit_ts_interface_declaration(&mut self, interface: &TSInterfaceDeclaration<'a>) {
        self.visit_ts_interface_body(&interface.body);
    }

    fn visit_ts_property_signature(&mut self, property: &TSPropertySignature<'a>) {
        if let Some(name) = property.key.static_name()
            && self.properties.iter().any(|known| *known == name)
        {
            self.declared.push((property.key.span().start, name.into_owned()));
        }
        walk::walk_ts_property_signature(self, property);
    }

    // The names inside of types are the type checker's.
    fn visit_ts_type_parameter(&mut self, _parameter: &TSTypeParameter<'a>) {}

    fn visit_ts_function_type(&mut self, _function: &TSFunctionType<'a>) {}

    fn visit_ts_method_signature(&mut self, _method: &TSMethodSignature<'a>) {}
}

fn constant(expression: &Expression<'_>) -> Option<String> {
    match expression {
        Expression::StringLiteral(literal) => Some(literal.value.to_string()),
        Expression::TemplateLiteral(template) => template.single_quasi().map(|text| text.to_string()),
        _ => None,
    }
}
