//! Syntax that is valid and that we cannot run: refused with a place, before anything is emitted.

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::ScopeFlags;
use oxc::span::Span;
use tgp_contract::Finding;

use crate::places::LineTable;

/// Finds what is refused. `text` gates the walk: most sources have none of it.
pub(super) fn refused(program: &Program<'_>, table: &LineTable<'_>) -> Vec<Finding> {
    let text = program.source_text;
    if !(text.contains('@') || text.contains("accessor") || text.contains("import") || text.contains('<')) {
        return Vec::new();
    }
    let mut visitor = Refuser { table, findings: Vec::new() };
    visitor.visit_program(program);
    visitor.findings
}

pub(super) fn jsx(table: &LineTable<'_>, span: Span) -> Finding {
    table.refusal(
        span,
        "JSX is not supported in tools".to_owned(),
        "a tool returns data, and there is nothing here that renders elements",
        "build the text with a template literal, or return the data and let the caller render it".to_owned(),
    )
}

pub(super) fn decorator(table: &LineTable<'_>, span: Span) -> Finding {
    table.refusal(
        span,
        "a decorator is not allowed here".to_owned(),
        "decorators are compiled as TypeScript's experimental decorators, which know classes and their public members",
        "decorate a class declaration, a public method, accessor, field or parameter, or call the function yourself"
            .to_owned(),
    )
}

struct Refuser<'s> {
    table: &'s LineTable<'s>,
    findings: Vec<Finding>,
}

impl Refuser<'_> {
    fn phase(&mut self, phase: Option<ImportPhase>, span: Span) {
        if let Some(phase) = phase {
            let word = match phase {
                ImportPhase::Source => "source",
                ImportPhase::Defer => "defer",
            };
            self.findings.push(self.table.refusal(
                span,
                format!("`import {word}` is not supported"),
                "the engine loads and runs a module when it is imported",
                format!("remove `{word}`, or use `await import(…)` where the module is needed"),
            ));
        }
    }

    fn private_decorators(&mut self, key: &PropertyKey<'_>, decorators: &[Decorator<'_>]) {
        if matches!(key, PropertyKey::PrivateIdentifier(_))
            && let Some(first) = decorators.first()
        {
            self.findings.push(decorator(self.table, first.span));
        }
    }
}

impl<'a> Visit<'a> for Refuser<'_> {
    fn visit_accessor_property(&mut self, property: &AccessorProperty<'a>) {
        if property.r#type == AccessorPropertyType::AccessorProperty {
            self.findings.push(self.table.refusal(
                property.span,
                "`accessor` fields are not supported".to_owned(),
                "the engine does not know them",
                "write a private field with a `get` and a `set` accessor".to_owned(),
            ));
        }
        walk::walk_accessor_property(self, property);
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        if class.r#type == ClassType::ClassExpression
            && let Some(first) = class.decorators.first()
        {
            self.findings.push(decorator(self.table, first.span));
        }
        walk::walk_class(self, class);
    }

    fn visit_method_definition(&mut self, method: &MethodDefinition<'a>) {
        self.private_decorators(&method.key, &method.decorators);
        walk::walk_method_definition(self, method);
    }

    fn visit_property_definition(&mut self, property: &PropertyDefinition<'a>) {
        self.private_decorators(&property.key, &property.decorators);
        walk::walk_property_definition(self, property);
    }

    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.phase(import.phase, import.span);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        self.phase(import.phase, import.span);
        walk::walk_import_expression(self, import);
    }

    fn visit_jsx_element(&mut self, element: &JSXElement<'a>) {
        self.findings.push(jsx(self.table, element.opening_element.span));
    }

    fn visit_jsx_fragment(&mut self, fragment: &JSXFragment<'a>) {
        self.findings.push(jsx(self.table, fragment.opening_fragment.span));
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        walk::walk_function(self, function, flags);
    }
}
