//! Which of the four shapes a tool has, and which function is the tool.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    ArrowFunctionExpression, AssignmentTarget, Class, Declaration, ExportDefaultDeclarationKind, Expression,
    ExpressionStatement, FormalParameters, Function, FunctionBody, ModuleExportName, ObjectExpression,
    ObjectPropertyKind, ReturnStatement, Statement, TSTypeAnnotation,
};
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::{NodeId, SymbolId};
use oxc::span::{GetSpan, Span};
use oxc::syntax::scope::ScopeFlags;

use super::tree::{MAX_STEPS, Tree, peel, peel_kind};
use crate::ToolShape;

/// A function in either notation.
#[derive(Clone, Copy)]
pub(super) enum Callable<'a> {
    Function(&'a Function<'a>),
    Arrow(&'a ArrowFunctionExpression<'a>),
}

/// What the tool hands out to be called.
pub(super) enum Entry<'a> {
    /// A function of this file. `typed_outside` when its type is given where it is bound.
    Callable { callable: Callable<'a>, typed_outside: bool },
    /// Something that cannot be called.
    NotCallable { span: Span, what: &'static str },
    /// The result of a call, an import: only running it would tell.
    Unknown,
    /// There is none: a script, or a module of named exports.
    None,
}

/// One function that other tools can import by name.
pub(super) struct Exported<'a> {
    pub(super) callable: Callable<'a>,
    pub(super) name: String,
    /// Its type is given where it is bound.
    pub(super) typed_outside: bool,
    /// Where a doc comment for it would be attached.
    pub(super) statement: Span,
}

pub(super) struct Shape<'a> {
    pub(super) tool_shape: ToolShape,
    pub(super) entry: Entry<'a>,
    /// The statement that makes the entry the tool, and the one that declares it.
    pub(super) entry_statements: Vec<Span>,
    pub(super) exported: Vec<Exported<'a>>,
    /// The object that `module.exports` is, with the functions in it.
    pub(super) exported_object: Option<(Span, Vec<String>)>,
    /// `import`, `export` or `import.meta` is used.
    pub(super) has_module_syntax: bool,
}

impl<'a> Callable<'a> {
    pub(super) fn params(self) -> &'a FormalParameters<'a> {
        match self {
            Self::Function(function) => &function.params,
            Self::Arrow(arrow) => &arrow.params,
        }
    }

    pub(super) fn return_type(self) -> Option<&'a TSTypeAnnotation<'a>> {
        match self {
            Self::Function(function) => function.return_type.as_deref(),
            Self::Arrow(arrow) => arrow.return_type.as_deref(),
        }
    }

    /// The statements; `None` for an arrow function that is one expression.
    pub(super) fn body(self) -> Option<&'a FunctionBody<'a>> {
        match self {
            Self::Function(function) => function.body.as_deref(),
            Self::Arrow(arrow) => arrow.get_function_body(),
        }
    }

    pub(super) fn is_generator(self) -> bool {
        matches!(self, Self::Function(function) if function.generator)
    }

    /// The part a person calls "the function": from its start to its body.
    pub(super) fn head(self) -> Span {
        let (span, body) = match self {
            Self::Function(function) => (function.span, function.body.as_ref().map(|body| body.span)),
            Self::Arrow(arrow) => (arrow.span, Some(arrow.body.span())),
        };
        Span::new(span.start, body.map_or(span.end, |body| body.start))
    }
}

impl<'a> Shape<'a> {
    pub(super) fn of(tree: &Tree<'_, 'a>, tool_shape: ToolShape) -> Self {
        let mut shape = Shape {
            tool_shape,
            entry: Entry::None,
            entry_statements: Vec::new(),
            exported: Vec::new(),
            exported_object: None,
            has_module_syntax: false,
        };
        for statement in &tree.program().body {
            match statement {
                Statement::ImportDeclaration(_) | Statement::ExportAllDeclaration(_) => {
                    shape.has_module_syntax = true;
                }
                Statement::ExportDefaultDeclaration(export) => {
                    shape.has_module_syntax = true;
                    shape.set_default(tree, &export.declaration, export.span);
                }
                Statement::ExportNamedDeclaration(export) => {
                    for specifier in &export.specifiers {
                        let exported = specifier.exported.name();
                        if exported == "default" {
                            if let ModuleExportName::IdentifierReference(local) = &specifier.local {
                                shape.set_entry(tree, AstKind::IdentifierReference(local), export.span);
                            }
                        } else if let ModuleExportName::IdentifierReference(local) = &specifier.local {
                            shape.add_exported(
                                tree,
                                AstKind::IdentifierReference(local),
                                exported.as_str(),
                                export.span,
                            );
                        }
                    }
                    shape.has_module_syntax = true;
                }
                Statement::ExportFromDeclaration(export) => {
                    shape.has_module_syntax = true;
                    if export.specifiers.iter().any(|specifier| specifier.exported.name() == "default") {
                        shape.entry = Entry::Unknown;
                    }
                }
                Statement::ExportDeclaration(export) => {
                    shape.has_module_syntax = true;
                    shape.add_declared(tree, &export.declaration, export.span);
                }
                Statement::TSExportAssignment(export) => {
                    shape.set_entry(tree, AstKind::from_expression(&export.expression), export.span);
                }
                Statement::ExpressionStatement(expression) => {
                    shape.add_commonjs(tree, &expression.expression, expression.span);
                }
                _ => {}
            }
        }
        // A function that is both the tool and a named export is judged as the tool.
        if let Entry::Callable { callable, .. } = shape.entry {
            shape.exported.retain(|exported| exported.callable.head() != callable.head());
        }
        shape
    }

    /// True when the top level of the file is the body of the tool, run anew for every call.
    pub(super) fn is_script(&self) -> bool {
        matches!(self.tool_shape, ToolShape::ReturnScript | ToolShape::ExpressionScript)
    }

    fn set_default(
        &mut self,
        tree: &Tree<'_, 'a>,
        declaration: &'a ExportDefaultDeclarationKind<'a>,
        span: Span,
    ) {
        match declaration {
            // Overload signatures come before the function that has the body.
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                self.entry_statements.push(span);
                if function.body.is_some() {
                    self.entry =
                        Entry::Callable { callable: Callable::Function(function), typed_outside: false };
                }
            }
            ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                self.entry_statements.push(span);
                self.entry = Entry::NotCallable { span: class_head(class), what: "a class" };
            }
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => {}
            other => {
                if let Some(expression) = other.as_expression() {
                    self.set_entry(tree, AstKind::from_expression(expression), span);
                }
            }
        }
    }

    fn set_entry(&mut self, tree: &Tree<'_, 'a>, value: AstKind<'a>, statement: Span) {
        self.entry_statements.push(statement);
        let typed_outside = is_cast(value);
        self.entry = match resolve(tree, value) {
            Resolved::Callable(callable, outside) => {
                if let Some(declared) = outside.statement {
                    self.entry_statements.push(declared);
                }
                Entry::Callable { callable, typed_outside: typed_outside || outside.typed }
            }
            Resolved::NotCallable(what) => Entry::NotCallable { span: value.span(), what },
            Resolved::Unknown => Entry::Unknown,
        };
    }

    fn add_exported(&mut self, tree: &Tree<'_, 'a>, value: AstKind<'a>, name: &str, statement: Span) {
        if let Resolved::Callable(callable, outside) = resolve(tree, value) {
            self.exported.push(Exported {
                callable,
                name: name.to_owned(),
                typed_outside: outside.typed || is_cast(value),
                statement: outside.statement.unwrap_or(statement),
            });
        }
    }

    fn add_declared(&mut self, tree: &Tree<'_, 'a>, declaration: &'a Declaration<'a>, statement: Span) {
        match declaration {
            Declaration::FunctionDeclaration(function) if function.body.is_some() => {
                let name = function.name().map_or_else(String::new, |name| name.to_string());
                let callable = Callable::Function(function);
                self.exported.push(Exported { callable, name, typed_outside: false, statement });
            }
            Declaration::VariableDeclaration(variables) => {
                for declarator in &variables.declarations {
                    let (Some(name), Some(init)) = (declarator.id.get_identifier_name(), &declarator.init)
                    else {
                        continue;
                    };
                    if matches!(peel(init), AstKind::Function(_) | AstKind::ArrowFunctionExpression(_)) {
                        self.add_exported(tree, AstKind::from_expression(init), name.as_str(), statement);
                        if let Some(exported) = self.exported.last_mut() {
                            exported.typed_outside |= declarator.type_annotation.is_some();
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes `module.exports = …` and `exports.name = …` in.
    fn add_commonjs(&mut self, tree: &Tree<'_, 'a>, expression: &'a Expression<'a>, span: Span) {
        let AstKind::AssignmentExpression(assignment) = peel(expression) else { return };
        // `module.exports = exports = fn` assigns the same value twice.
        let mut value = &assignment.right;
        while let AstKind::AssignmentExpression(inner) = peel(value) {
            value = &inner.right;
        }
        let AssignmentTarget::StaticMemberExpression(member) = &assignment.left else { return };
        let property = member.property.name.as_str();
        match peel(&member.object) {
            AstKind::IdentifierReference(object) => match tree.global_name(object) {
                Some("module") if property == "exports" => match peel(value) {
                    AstKind::ObjectExpression(object) => self.set_object(tree, object, span),
                    other => self.set_entry(tree, other, span),
                },
                Some("exports") if property == "default" => {
                    self.set_entry(tree, AstKind::from_expression(value), span);
                }
                Some("exports") => self.add_exported(tree, AstKind::from_expression(value), property, span),
                _ => {}
            },
            AstKind::StaticMemberExpression(inner)
                if inner.property.name == "exports"
                    && tree.global_expression(&inner.object) == Some("module") =>
            {
                self.add_exported(tree, AstKind::from_expression(value), property, span);
            }
            _ => {}
        }
    }
}

impl<'a> Shape<'a> {
    /// `module.exports = { … }`: its `default` is the tool, and nothing else in it is called.
    fn set_object(&mut self, tree: &Tree<'_, 'a>, object: &'a ObjectExpression<'a>, statement: Span) {
        self.entry = Entry::None;
        let mut functions = Vec::new();
        for property in &object.properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else { continue };
            let Some(name) = property.key.static_name().filter(|_| !property.computed) else { continue };
            if name == "default" {
                return self.set_entry(tree, AstKind::from_expression(&property.value), statement);
            }
            let value = AstKind::from_expression(&property.value);
            if matches!(resolve(tree, value), Resolved::Callable(..)) {
                functions.push(name.into_owned());
            }
        }
        self.exported_object = Some((object.span, functions));
    }
}

/// `fn satisfies Tool` and `fn as Tool` give the parameters their types.
fn is_cast(value: AstKind<'_>) -> bool {
    matches!(value, AstKind::TSSatisfiesExpression(_) | AstKind::TSAsExpression(_))
}

/// What is known about a callable from the place that binds it.
#[derive(Default)]
struct Binding {
    typed: bool,
    statement: Option<Span>,
}

enum Resolved<'a> {
    Callable(Callable<'a>, Binding),
    NotCallable(&'static str),
    Unknown,
}

fn resolve<'a>(tree: &Tree<'_, 'a>, value: AstKind<'a>) -> Resolved<'a> {
    let mut value = value;
    let mut binding = Binding::default();
    for _ in 0..MAX_STEPS {
        match peel_kind(value) {
            AstKind::Function(function) if function.body.is_some() => {
                return Resolved::Callable(Callable::Function(function), binding);
            }
            AstKind::ArrowFunctionExpression(arrow) => {
                return Resolved::Callable(Callable::Arrow(arrow), binding);
            }
            AstKind::Class(_) => return Resolved::NotCallable("a class"),
            AstKind::ObjectExpression(_) => return Resolved::NotCallable("an object"),
            AstKind::ArrayExpression(_) => return Resolved::NotCallable("an array"),
            AstKind::NewExpression(_) => return Resolved::NotCallable("an instance"),
            AstKind::StringLiteral(_)
            | AstKind::TemplateLiteral(_)
            | AstKind::NumericLiteral(_)
            | AstKind::BooleanLiteral(_)
            | AstKind::NullLiteral(_)
            | AstKind::BigIntLiteral(_)
            | AstKind::RegExpLiteral(_)
            | AstKind::BinaryExpression(_)
            | AstKind::UnaryExpression(_) => return Resolved::NotCallable("a fixed value"),
            AstKind::IdentifierReference(reference) => {
                let Some(symbol) = tree.symbol(reference) else { return Resolved::Unknown };
                let Some(next) = declared_value(tree, symbol, &mut binding) else { return Resolved::Unknown };
                value = next;
            }
            _ => return Resolved::Unknown,
        }
    }
    Resolved::Unknown
}

fn declared_value<'a>(tree: &Tree<'_, 'a>, symbol: SymbolId, binding: &mut Binding) -> Option<AstKind<'a>> {
    if let Some(declarator) = tree.declarator(symbol) {
        binding.typed |= declarator.type_annotation.is_some();
        binding.statement =
            tree.parent(declarator.node_id.get()).map(|(declaration, _)| statement_of(tree, declaration));
        return declarator.init.as_ref().map(AstKind::from_expression);
    }
    // A function with overloads has several declarations and one body.
    tree.scoping()
        .symbol_declarations(symbol)
        .map(|node| (node, tree.kind(node)))
        .find(|&(node, kind)| match kind {
            AstKind::Function(function) => {
                binding.statement = binding.statement.or(Some(statement_of(tree, node)));
                function.body.is_some()
            }
            AstKind::Class(_) => true,
            _ => false,
        })
        .map(|(_, kind)| kind)
}

/// The statement a declaration stands in, its `export` included: comments are attached to that.
fn statement_of(tree: &Tree<'_, '_>, declaration: NodeId) -> Span {
    match tree.parent(declaration) {
        Some((_, AstKind::ExportDeclaration(export))) => export.span,
        _ => tree.kind(declaration).span(),
    }
}

pub(super) fn class_head(class: &Class<'_>) -> Span {
    Span::new(class.span.start, class.body.span.start)
}

/// `return` statements of the top level.
pub(super) fn top_level_returns<'a>(tree: &Tree<'_, 'a>) -> Vec<(Span, bool)> {
    let mut collector = Returns::default();
    collector.visit_program(tree.program());
    collector.found
}

/// Collects the `return` statements of one body: where they are, and whether they carry a value.
#[derive(Default)]
pub(super) struct Returns {
    pub(super) found: Vec<(Span, bool)>,
}

impl<'a> Visit<'a> for Returns {
    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        self.found.push((statement.span, statement.argument.is_some()));
    }

    fn visit_function(&mut self, _function: &Function<'a>, _flags: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _arrow: &ArrowFunctionExpression<'a>) {}

    fn visit_class(&mut self, _class: &Class<'a>) {}

    fn visit_expression_statement(&mut self, _statement: &ExpressionStatement<'a>) {}

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        walk::walk_statement(self, statement);
    }
}
