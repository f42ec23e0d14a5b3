//! The schema of a tool's result: from its type, from comments, or from a value that is plain to see.

use oxc::ast::ast::{
    ArrowFunctionExpression, Class, Expression, Function, ObjectPropertyKind, ReturnStatement, Statement,
};
use oxc::ast_visit::{Visit, walk};
use oxc::syntax::operator::UnaryOperator;
use oxc::syntax::scope::ScopeFlags;
use serde_json::{Map, Value, json};

use super::Source;
use super::arguments::{Typed, contract};
use super::declarations::parse_type;
use super::doc::{Doc, one_line};
use super::entry::{Callable, Kind, Tool};
use super::schema::{Env, Side, annotate, object, schema};
use super::values::peel;

/// How deep a returned literal is looked into.
const MAX_DEPTH: usize = 6;

/// How many properties of a returned literal are described.
const MAX_PROPERTIES: usize = 64;

/// The longest description of a result.
const MAX_TEXT: usize = 300;

/// What is known of the result.
pub(super) struct Outcome<'a> {
    pub(super) schema: Value,
    /// The type as it is written.
    pub(super) annotation: Option<Typed<'a>>,
}

pub(super) fn outcome<'a>(source: &Source<'a>, tool: &Tool<'a>, docs: &[Doc]) -> Outcome<'a> {
    let annotation = annotation(source, tool);
    let tag = docs.iter().find_map(Doc::returns);
    let mut known = match &annotation {
        Some((value, env)) => schema(source, Side::Result, value, env),
        None => {
            let kind = tag.and_then(|tag| tag.kind.as_deref());
            let stated = kind
                .and_then(|kind| parse_type(source.allocator, kind))
                .map(|value| schema(source, Side::Result, value, &Env::of_comment()));
            stated.unwrap_or_else(|| inferred(source, tool))
        }
    };
    if let Some(tag) = tag {
        let words = one_line(tag.text.trim_start_matches(['-', '–', '—']), MAX_TEXT);
        if !words.is_empty() {
            known = annotate(known, "description", Value::String(words));
        }
    }
    Outcome { schema: known, annotation }
}

/// The type of the result, as it is written.
pub(super) fn annotation<'a>(source: &Source<'a>, tool: &Tool<'a>) -> Option<Typed<'a>> {
    if let Some(own) = tool.callable.and_then(Callable::return_type) {
        let generics = tool.callable.and_then(Callable::type_parameters);
        return Some((own, Env::bind(generics, None, &Env::default())));
    }
    let contract = contract(source, tool)?;
    Some((contract.return_type?, contract.env))
}

/// What the tool returns, when every way out shows the same.
fn inferred(source: &Source<'_>, tool: &Tool<'_>) -> Value {
    if tool.kind == Kind::Script {
        return of_script(source);
    }
    let Some(callable) = tool.callable.filter(|callable| !callable.is_generator()) else {
        return Value::Bool(true);
    };
    match (callable.expression(), callable.body()) {
        (Some(value), _) => certain(value, MAX_DEPTH),
        (None, Some(body)) => of_body(&body.statements),
        (None, None) => Value::Bool(true),
    }
}

fn of_script(source: &Source<'_>) -> Value {
    let body = &source.program.body;
    let mut returns = Returns::default();
    body.iter().for_each(|statement| returns.visit_statement(statement));
    if !returns.found.is_empty() {
        return of_body(body);
    }
    // Functions and types behind the last expression are hoisted or erased; they do not hide it.
    let last = body.iter().rev().find(|statement| {
        !matches!(
            statement,
            Statement::FunctionDeclaration(_)
                | Statement::TSTypeAliasDeclaration(_)
                | Statement::TSInterfaceDeclaration(_)
                | Statement::EmptyStatement(_)
        )
    });
    match last {
        Some(Statement::ExpressionStatement(statement)) => certain(&statement.expression, MAX_DEPTH),
        Some(_) => Value::Bool(true),
        None if source.program.directives.is_empty() => Value::Bool(true),
        None => json!({ "type": "string" }),
    }
}

fn of_body(statements: &[Statement<'_>]) -> Value {
    let ends_in_return = matches!(statements.last(), Some(Statement::ReturnStatement(_)));
    let mut returns = Returns::default();
    statements.iter().for_each(|statement| returns.visit_statement(statement));
    match returns.found.split_first() {
        Some((first, rest)) if ends_in_return && rest.iter().all(|other| other == first) => first.clone(),
        _ => Value::Bool(true),
    }
}

/// The values of the `return` statements of one body.
#[derive(Default)]
struct Returns {
    found: Vec<Value>,
}

impl<'a> Visit<'a> for Returns {
    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        let value = statement.argument.as_ref();
        let value = value.map_or(json!({ "type": "null" }), |value| certain(value, MAX_DEPTH));
        // One that differs from the first decides already; more of the same need no memory.
        if self.found.last() != Some(&value) {
            self.found.push(value);
            self.found.truncate(2);
        }
    }

    fn visit_function(&mut self, _function: &Function<'a>, _flags: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _arrow: &ArrowFunctionExpression<'a>) {}

    fn visit_class(&mut self, _class: &Class<'a>) {}

    fn visit_expression(&mut self, _expression: &Expression<'a>) {}

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        walk::walk_statement(self, statement);
    }
}

/// The type of an expression that can have no other; `true` for all others.
fn certain(expression: &Expression<'_>, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Bool(true) };
    match peel(expression) {
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => json!({ "type": "string" }),
        Expression::NumericLiteral(_) => json!({ "type": "number" }),
        Expression::BooleanLiteral(_) => json!({ "type": "boolean" }),
        Expression::NullLiteral(_) => json!({ "type": "null" }),
        Expression::UnaryExpression(unary) => match unary.operator {
            UnaryOperator::LogicalNot | UnaryOperator::Delete => json!({ "type": "boolean" }),
            UnaryOperator::Typeof => json!({ "type": "string" }),
            UnaryOperator::UnaryPlus => json!({ "type": "number" }),
            UnaryOperator::UnaryNegation => certain(&unary.argument, depth),
            _ => Value::Bool(true),
        },
        Expression::BinaryExpression(binary) if is_comparison(binary.operator) => {
            json!({ "type": "boolean" })
        }
        Expression::ConditionalExpression(condition) => {
            let first = certain(&condition.consequent, depth);
            if first == certain(&condition.alternate, depth) { first } else { Value::Bool(true) }
        }
        Expression::ArrayExpression(array) => {
            let first = array.elements.first().and_then(|element| element.as_expression());
            let first = first.map_or(Value::Bool(true), |first| certain(first, depth));
            let is_same = array.elements.iter().take(MAX_PROPERTIES + 1).all(|element| {
                element.as_expression().is_some_and(|element| certain(element, depth) == first)
            });
            let is_known = is_same && array.elements.len() <= MAX_PROPERTIES && first != Value::Bool(true);
            if is_known { json!({ "type": "array", "items": first }) } else { json!({ "type": "array" }) }
        }
        Expression::ObjectExpression(literal) => {
            let (mut properties, mut required) = (Map::new(), Vec::new());
            for property in literal.properties.iter().take(MAX_PROPERTIES) {
                // What is spread in may bring a property of any name.
                let ObjectPropertyKind::ObjectProperty(property) = property else {
                    return json!({ "type": "object" });
                };
                let Some(name) = property.key.static_name().filter(|_| !property.computed) else { continue };
                let value = certain(&property.value, depth);
                // An unknown value may be undefined, and then JSON leaves the property out.
                if value != Value::Bool(true) {
                    required.push(Value::String(name.to_string()));
                }
                properties.insert(name.into_owned(), value);
            }
            object(properties, required, None)
        }
        _ => Value::Bool(true),
    }
}

fn is_comparison(operator: oxc::syntax::operator::BinaryOperator) -> bool {
    operator.is_equality() || operator.is_compare() || operator.is_in() || operator.is_instance_of()
}
