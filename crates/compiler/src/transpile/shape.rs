//! How a tool is written, seen on the tree before anything is rewritten.

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::{ScopeFlags, Scoping};
use oxc::span::Span;

/// What the statements at the top of a source say about its shape.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// An export that leaves something at run time.
    pub(super) value_export: Option<Span>,
    /// Only types are exported, or nothing.
    pub(super) type_export: bool,
    /// `import … from` that is not `import type`.
    pub(super) import: Option<Span>,
    /// `export = …`.
    pub(super) export_assignment: Option<Span>,
    /// A statement that does something at run time.
    pub(super) has_code: bool,
    /// A `return` outside every function.
    pub(super) top_return: Option<Span>,
    /// An `await` outside every function.
    pub(super) top_await: Option<Span>,
}

impl Outline {
    pub(super) fn new(program: &Program<'_>) -> Self {
        let mut outline = Self { has_code: !program.directives.is_empty(), ..Self::default() };
        for statement in &program.body {
            outline.add(statement);
        }
        let mut top_level = TopLevel::default();
        top_level.visit_program(program);
        outline.top_return = top_level.top_return;
        outline.top_await = top_level.top_await;
        outline
    }

    fn add(&mut self, statement: &Statement<'_>) {
        if is_type_export(statement) {
            self.type_export = true;
            return;
        }
        match statement {
            Statement::ImportDeclaration(import) if import.import_kind.is_value() => {
                self.import.get_or_insert(import.span);
            }
            Statement::ImportDeclaration(_) | Statement::EmptyStatement(_) => {}
            Statement::TSExportAssignment(assignment) => {
                self.export_assignment.get_or_insert(assignment.span);
            }
            statement if statement.is_module_declaration() => {
                self.value_export.get_or_insert(oxc::span::GetSpan::span(statement));
            }
            statement => self.has_code |= !is_erased(statement),
        }
    }
}

/// An export that leaves nothing at run time. `export {}` does not count: it marks a module on purpose.
pub(crate) fn is_type_export(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ExportDeclaration(export) => is_erased_declaration(&export.declaration),
        Statement::ExportNamedDeclaration(export) => {
            export.export_kind.is_type() || all_types(&export.specifiers)
        }
        Statement::ExportFromDeclaration(export) => {
            export.export_kind.is_type() || all_types(&export.specifiers)
        }
        Statement::ExportAllDeclaration(export) => export.export_kind.is_type(),
        Statement::ExportDefaultDeclaration(export) => {
            matches!(export.declaration, ExportDefaultDeclarationKind::TSInterfaceDeclaration(_))
        }
        Statement::TSNamespaceExportDeclaration(_) => true,
        _ => false,
    }
}

fn all_types(specifiers: &[ExportSpecifier<'_>]) -> bool {
    !specifiers.is_empty() && specifiers.iter().all(|specifier| specifier.export_kind.is_type())
}

/// A statement that only speaks to the type checker.
pub(crate) fn is_erased(statement: &Statement<'_>) -> bool {
    statement.as_declaration().is_some_and(is_erased_declaration)
}

fn is_erased_declaration(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSGlobalDeclaration(_) => true,
        Declaration::VariableDeclaration(variable) => variable.declare,
        Declaration::FunctionDeclaration(function) => function.declare || function.body.is_none(),
        Declaration::ClassDeclaration(class) => class.declare,
        Declaration::TSEnumDeclaration(declaration) => declaration.declare,
        Declaration::TSNamespaceDeclaration(namespace) => namespace.declare,
        Declaration::TSImportEqualsDeclaration(import) => import.import_kind.is_type(),
    }
}

/// Finds `return` and `await` that stand outside every function.
#[derive(Default)]
struct TopLevel {
    top_return: Option<Span>,
    top_await: Option<Span>,
}

impl<'a> Visit<'a> for TopLevel {
    fn visit_function(&mut self, _function: &Function<'a>, _flags: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _arrow: &ArrowFunctionExpression<'a>) {}

    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        self.top_return.get_or_insert(statement.span);
        walk::walk_return_statement(self, statement);
    }

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.top_await.get_or_insert(expression.span);
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        if statement.r#await {
            self.top_await.get_or_insert(statement.span);
        }
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        if declaration.kind == VariableDeclarationKind::AwaitUsing {
            self.top_await.get_or_insert(declaration.span);
        }
        walk::walk_variable_declaration(self, declaration);
    }
}

/// True when the source uses a free `module.exports` or `exports.name`.
pub(super) fn uses_commonjs(program: &Program<'_>, scoping: &Scoping) -> bool {
    let mut visitor = CommonJsUse { scoping, found: false };
    visitor.visit_program(program);
    visitor.found
}

struct CommonJsUse<'s> {
    scoping: &'s Scoping,
    found: bool,
}

impl<'a> Visit<'a> for CommonJsUse<'_> {
    fn visit_member_expression(&mut self, member: &MemberExpression<'a>) {
        if let Expression::Identifier(object) = member.object()
            && is_free(object, self.scoping)
        {
            self.found |= match object.name.as_str() {
                "module" => member.static_property_name() == Some("exports"),
                "exports" => true,
                _ => false,
            };
        }
        walk::walk_member_expression(self, member);
    }
}

/// True when a name refers to nothing this source declares.
pub(super) fn is_free(identifier: &IdentifierReference<'_>, scoping: &Scoping) -> bool {
    identifier.reference_id.get().is_none_or(|reference| !scoping.has_binding(reference))
}
