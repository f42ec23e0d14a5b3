//! Which function, or which script, is the tool.

use oxc::ast::ast::{
    ArrowFunctionExpression, AssignmentTarget, ExportDefaultDeclarationKind, Expression, FormalParameters,
    Function, FunctionBody, IdentifierReference, ModuleExportName, Statement, TSType,
    TSTypeParameterDeclaration,
};
use oxc::span::GetSpan;

use super::Source;
use super::values::peel;
use crate::transpile::{is_erased, is_type_export};

/// How far aliases are followed. Real code needs two or three; hostile code must not cost more.
pub(super) const MAX_STEPS: usize = 32;

/// A function in either notation.
#[derive(Clone, Copy)]
pub(super) enum Callable<'a> {
    Function(&'a Function<'a>),
    Arrow(&'a ArrowFunctionExpression<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A function of this file.
    Callable,
    /// The whole file is the body.
    Script,
    /// Only running it would tell: the result of a call, an import.
    Unknown,
    /// A module of named exports, a class, an object: nothing to call.
    Nothing,
}

/// The tool in a source.
pub(super) struct Tool<'a> {
    pub(super) kind: Kind,
    pub(super) callable: Option<Callable<'a>>,
    /// The type it is given from outside: `const tool: Tool = …`, `… satisfies Tool`.
    pub(super) contract: Option<&'a TSType<'a>>,
    /// Where comments about it are attached, nearest first.
    pub(super) places: Vec<u32>,
}

impl<'a> Callable<'a> {
    pub(super) fn params(self) -> &'a FormalParameters<'a> {
        match self {
            Self::Function(function) => &function.params,
            Self::Arrow(arrow) => &arrow.params,
        }
    }

    pub(super) fn return_type(self) -> Option<&'a TSType<'a>> {
        let annotation = match self {
            Self::Function(function) => function.return_type.as_deref(),
            Self::Arrow(arrow) => arrow.return_type.as_deref(),
        };
        annotation.map(|annotation| &annotation.type_annotation)
    }

    pub(super) fn type_parameters(self) -> Option<&'a TSTypeParameterDeclaration<'a>> {
        match self {
            Self::Function(function) => function.type_parameters.as_deref(),
            Self::Arrow(arrow) => arrow.type_parameters.as_deref(),
        }
    }

    /// The statements; `None` for an arrow function that is one expression.
    pub(super) fn body(self) -> Option<&'a FunctionBody<'a>> {
        match self {
            Self::Function(function) => function.body.as_deref(),
            Self::Arrow(arrow) => arrow.get_function_body(),
        }
    }

    /// The expression an arrow function is.
    pub(super) fn expression(self) -> Option<&'a Expression<'a>> {
        match self {
            Self::Function(_) => None,
            Self::Arrow(arrow) => arrow.body.as_expression(),
        }
    }

    pub(super) fn is_async(self) -> bool {
        match self {
            Self::Function(function) => function.r#async,
            Self::Arrow(arrow) => arrow.r#async,
        }
    }

    pub(super) fn is_generator(self) -> bool {
        matches!(self, Self::Function(function) if function.generator)
    }

    pub(super) fn has_body(self) -> bool {
        match self {
            Self::Function(function) => function.body.is_some(),
            Self::Arrow(_) => true,
        }
    }

    pub(super) fn name(self) -> Option<&'a str> {
        match self {
            Self::Function(function) => function.id.as_ref().map(|id| id.name.as_str()),
            Self::Arrow(_) => None,
        }
    }

    fn start(self) -> u32 {
        match self {
            Self::Function(function) => function.span.start,
            Self::Arrow(arrow) => arrow.span.start,
        }
    }
}

impl<'a> Tool<'a> {
    pub(super) fn find(source: &Source<'a>) -> Self {
        let mut tool = Self { kind: Kind::Nothing, callable: None, contract: None, places: Vec::new() };
        let mut is_module = false;
        let mut has_code = !source.program.directives.is_empty();
        let mut first_code = None;
        for statement in &source.program.body {
            if is_type_export(statement) {
                continue;
            }
            let start = statement.span().start;
            match statement {
                Statement::ImportDeclaration(_) | Statement::EmptyStatement(_) => continue,
                Statement::ExportDefaultDeclaration(export) => {
                    tool.set_default(source, &export.declaration, start);
                }
                Statement::ExportNamedDeclaration(export) => {
                    for specifier in &export.specifiers {
                        if specifier.exported.name() == "default"
                            && let ModuleExportName::IdentifierReference(local) = &specifier.local
                        {
                            tool.places.push(start);
                            tool.follow(source, Step::Name(local));
                        }
                    }
                }
                Statement::ExportFromDeclaration(export)
                    if export.specifiers.iter().any(|specifier| specifier.exported.name() == "default") =>
                {
                    tool.kind = Kind::Unknown;
                }
                Statement::TSExportAssignment(export) => {
                    tool.places.push(start);
                    tool.follow(source, Step::Value(&export.expression));
                }
                Statement::ExpressionStatement(statement) => {
                    if let Some((value, name)) = exported_value(source, &statement.expression) {
                        is_module = true;
                        if name.is_none_or(|name| name == "default") {
                            tool.places.push(start);
                            tool.follow(source, Step::Value(value));
                        }
                    }
                }
                _ => {}
            }
            is_module |= statement.is_module_declaration();
            if !is_erased(statement) {
                has_code = true;
                first_code = first_code.or(Some(start));
            }
        }
        if !is_module && has_code {
            tool.kind = Kind::Script;
            // Types may stand between the head of the file and the code.
            tool.places.extend(first_code);
        }
        tool
    }

    fn set_default(
        &mut self,
        source: &Source<'a>,
        declaration: &'a ExportDefaultDeclarationKind<'a>,
        start: u32,
    ) {
        self.places.push(start);
        match declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                // Overloads come first and have no body.
                if function.body.is_some() || self.callable.is_none() {
                    self.set(Callable::Function(function));
                }
            }
            other => {
                if let Some(value) = other.as_expression() {
                    self.follow(source, Step::Value(value));
                }
            }
        }
    }

    fn set(&mut self, callable: Callable<'a>) {
        self.kind = Kind::Callable;
        self.callable = Some(callable);
        self.places.push(callable.start());
    }

    /// Follows names and wrappers to the function.
    fn follow(&mut self, source: &Source<'a>, first: Step<'a>) {
        let mut step = first;
        self.kind = Kind::Unknown;
        for _ in 0..MAX_STEPS {
            let name = match step {
                Step::Name(reference) => reference.name.as_str(),
                Step::Value(value) => {
                    self.contract = self.contract.or_else(|| cast(value));
                    match peel(value) {
                        Expression::FunctionExpression(function) => {
                            return self.set(Callable::Function(function));
                        }
                        Expression::ArrowFunctionExpression(arrow) => {
                            return self.set(Callable::Arrow(arrow));
                        }
                        Expression::Identifier(reference) => reference.name.as_str(),
                        Expression::ClassExpression(_)
                        | Expression::ObjectExpression(_)
                        | Expression::ArrayExpression(_)
                        | Expression::NewExpression(_)
                        | Expression::TemplateLiteral(_)
                        | Expression::StringLiteral(_)
                        | Expression::NumericLiteral(_)
                        | Expression::BooleanLiteral(_)
                        | Expression::NullLiteral(_) => {
                            self.kind = Kind::Nothing;
                            return;
                        }
                        _ => return,
                    }
                }
            };
            if let Some(declared) = source.declarations.function(name) {
                self.places.extend(&declared.places);
                return self.set(declared.callable);
            }
            let Some((variable, start)) = source.declarations.variable(name) else { return };
            self.places.push(start);
            let annotation =
                variable.type_annotation.as_deref().map(|annotation| &annotation.type_annotation);
            self.contract = self.contract.or(annotation);
            let Some(value) = &variable.init else { return };
            step = Step::Value(value);
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a IdentifierReference<'a>),
    Value(&'a Expression<'a>),
}

/// The type that `value satisfies Type` or `value as Type` names.
pub(super) fn cast<'a>(value: &'a Expression<'a>) -> Option<&'a TSType<'a>> {
    match value.without_parentheses() {
        Expression::TSSatisfiesExpression(wrapper) => Some(&wrapper.type_annotation),
        Expression::TSAsExpression(wrapper) => Some(&wrapper.type_annotation),
        Expression::TSTypeAssertion(wrapper) => Some(&wrapper.type_annotation),
        _ => None,
    }
}

/// The value of `module.exports = …`, or of `exports.name = …` with the name.
pub(super) fn exported_value<'a>(
    source: &Source<'a>,
    expression: &'a Expression<'a>,
) -> Option<(&'a Expression<'a>, Option<&'a str>)> {
    let Expression::AssignmentExpression(assignment) = expression else { return None };
    let AssignmentTarget::StaticMemberExpression(member) = &assignment.left else { return None };
    let property = member.property.name.as_str();
    let name = match &member.object {
        Expression::Identifier(object) if source.is_free(object) => match object.name.as_str() {
            "module" if property == "exports" => None,
            "exports" => Some(property),
            _ => return None,
        },
        Expression::StaticMemberExpression(inner) => match &inner.object {
            Expression::Identifier(object)
                if object.name == "module" && inner.property.name == "exports" && source.is_free(object) =>
            {
                Some(property)
            }
            _ => return None,
        },
        _ => return None,
    };
    // `module.exports = exports = tool` assigns the same value twice.
    let mut value = &assignment.right;
    while let Expression::AssignmentExpression(inner) = value {
        value = &inner.right;
    }
    Some((value, name))
}

impl Source<'_> {
    /// True when a name refers to nothing that exists at run time in this source.
    pub(super) fn is_free(&self, identifier: &IdentifierReference<'_>) -> bool {
        use oxc::semantic::SymbolFlags;
        let symbol = identifier
            .reference_id
            .get()
            .and_then(|reference| self.scoping.get_reference(reference).symbol_id());
        symbol.is_none_or(|symbol| self.scoping.symbol_flags(symbol).contains(SymbolFlags::Ambient))
    }
}
