//! A configuration whose value its source shows: literals and the variables it names. Such a file needs no run.

use std::collections::BTreeSet;

use oxc::ast::ast::*;
use oxc::syntax::operator::{LogicalOperator, UnaryOperator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::builtin::CORE;
use crate::describe::json_number;

/// Deeper ones are run.
const MAX_DEPTH: usize = 32;
/// What `@tgp/core` exports, by both of its names: a function that gives its argument back.
const IDENTITY: [&str; 2] = ["defineTGPConfig", "default"];

/// What every object has: `process.env.toString` is a function and not a variable.
const INHERITED: [&str; 12] = [
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// A value that is known but for variables of the environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LiteralValue {
    Known(Value),
    /// `process.env.NAME`.
    Variable(String),
    /// `process.env.NAME ?? other`, or with `||`, which does not take an empty text either.
    Either {
        first: Box<LiteralValue>,
        or_empty: bool,
        other: Box<LiteralValue>,
    },
    List(Vec<LiteralValue>),
    Object(Vec<(String, LiteralValue)>),
}

impl LiteralValue {
    /// The value; nothing for a variable that is not set, which an object leaves out.
    #[must_use]
    pub fn resolve(&self, environment: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
        match self {
            Self::Known(value) => Some(value.clone()),
            Self::Variable(name) => environment(name).map(Value::String),
            Self::Either { first, or_empty, other } => match first.resolve(environment) {
                Some(value) if !is_skipped(&value, *or_empty) => Some(value),
                _ => other.resolve(environment),
            },
            Self::List(items) => items.iter().map(|item| item.resolve(environment)).collect(),
            Self::Object(fields) => {
                let known =
                    fields.iter().filter_map(|(key, field)| Some((key.clone(), field.resolve(environment)?)));
                Some(Value::Object(known.collect::<Map<_, _>>()))
            }
        }
    }

    /// It depends on the environment whether it is anything.
    fn may_be_missing(&self) -> bool {
        match self {
            Self::Variable(_) => true,
            Self::Either { other, .. } => other.may_be_missing(),
            Self::Known(_) | Self::List(_) | Self::Object(_) => false,
        }
    }
}

/// Whether `??` goes on after a value, or `||`.
fn is_skipped(value: &Value, or_empty: bool) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => or_empty && !value,
        Value::Number(number) => or_empty && number.as_f64() == Some(0.0),
        Value::String(text) => or_empty && text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// The default export of a configuration that does nothing but export a literal.
pub(super) fn default_export(program: &Program<'_>) -> Option<LiteralValue> {
    let mut identities = BTreeSet::new();
    let mut exported = None;
    if !program.directives.is_empty() {
        return None;
    }
    for statement in &program.body {
        match statement {
            Statement::ImportDeclaration(import) => identities.extend(identity_names(import)?),
            Statement::TSTypeAliasDeclaration(_) | Statement::TSInterfaceDeclaration(_) => {}
            Statement::ExportDefaultDeclaration(export) if exported.is_none() => {
                exported = Some(export.declaration.as_expression()?);
            }
            _ => return None,
        }
    }
    let value = match exported?.get_inner_expression() {
        Expression::CallExpression(call) => {
            let Expression::Identifier(callee) = call.callee.get_inner_expression() else { return None };
            let [argument] = call.arguments.as_slice() else { return None };
            (identities.contains(callee.name.as_str()) && !call.optional).then_some(())?;
            argument.as_expression()?.get_inner_expression()
        }
        other => other,
    };
    matches!(value, Expression::ObjectExpression(_)).then(|| literal(value, MAX_DEPTH)).flatten()
}

/// The names under which an import has the function that changes nothing; none when it imports anything else.
fn identity_names(import: &ImportDeclaration<'_>) -> Option<Vec<String>> {
    if import.import_kind.is_type() {
        return Some(Vec::new());
    }
    if import.source.value != CORE.0 || import.phase.is_some() || import.with_clause.is_some() {
        return None;
    }
    let mut names = Vec::new();
    for specifier in import.specifiers.as_ref()? {
        let (imported, local) = match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(one) if one.import_kind.is_type() => continue,
            ImportDeclarationSpecifier::ImportSpecifier(one) => (one.imported.name().to_string(), &one.local),
            ImportDeclarationSpecifier::ImportDefaultSpecifier(one) => ("default".to_owned(), &one.local),
            ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => return None,
        };
        // Under this name it would hide the environment.
        if !IDENTITY.contains(&imported.as_str()) || local.name == "process" {
            return None;
        }
        names.push(local.name.to_string());
    }
    Some(names)
}

fn literal(expression: &Expression<'_>, depth: usize) -> Option<LiteralValue> {
    let depth = depth.checked_sub(1)?;
    let known = |value| Some(LiteralValue::Known(value));
    match expression.get_inner_expression() {
        Expression::StringLiteral(text) if !text.lone_surrogates => {
            known(Value::String(text.value.to_string()))
        }
        Expression::NumericLiteral(number) => known(json_number(number.value)?),
        Expression::BooleanLiteral(literal) => known(Value::Bool(literal.value)),
        Expression::NullLiteral(_) => known(Value::Null),
        Expression::TemplateLiteral(template) => {
            let [quasi] = template.quasis.as_slice() else { return None };
            let text = quasi.value.cooked.as_ref().filter(|_| !quasi.lone_surrogates)?;
            known(Value::String(text.to_string()))
        }
        Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => {
            let Expression::NumericLiteral(number) = unary.argument.get_inner_expression() else {
                return None;
            };
            known(json_number(-number.value)?)
        }
        Expression::ArrayExpression(list) => {
            // A run explains what it means that an element is missing.
            let item =
                |element: &Expression<'_>| literal(element, depth).filter(|item| !item.may_be_missing());
            let items = list.elements.iter().map(|element| item(element.as_expression()?));
            items.collect::<Option<Vec<_>>>().map(LiteralValue::List)
        }
        Expression::ObjectExpression(object) => object_literal(object, depth),
        Expression::LogicalExpression(either) => {
            let or_empty = match either.operator {
                LogicalOperator::Or => true,
                LogicalOperator::Coalesce => false,
                LogicalOperator::And => return None,
            };
            let [first, other] = [&either.left, &either.right].map(|side| literal(side, depth).map(Box::new));
            Some(LiteralValue::Either { first: first?, or_empty, other: other? })
        }
        other => variable(other).map(LiteralValue::Variable),
    }
}

fn object_literal(object: &ObjectExpression<'_>, depth: usize) -> Option<LiteralValue> {
    let mut fields: Vec<(String, LiteralValue)> = Vec::new();
    let mut keys = BTreeSet::new();
    for property in &object.properties {
        let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
        let key = property.key.static_name().filter(|_| !property.computed)?;
        // This key is not a field, and a later field replaces an earlier one of its name.
        let is_field = property.kind == PropertyKind::Init && !property.method && key != "__proto__";
        if !is_field || !keys.insert(key.clone()) {
            return None;
        }
        fields.push((key.into_owned(), literal(&property.value, depth)?));
    }
    Some(LiteralValue::Object(fields))
}

/// The name in `process.env.NAME`.
fn variable(expression: &Expression<'_>) -> Option<String> {
    let member = expression.get_inner_expression().get_member_expr()?;
    let environment = member.object().get_inner_expression().get_member_expr()?;
    let Expression::Identifier(process) = environment.object().get_inner_expression() else { return None };
    let is_read = process.name == "process" && environment.static_property_name() == Some("env");
    let name = member.static_property_name().filter(|name| is_read && !INHERITED.contains(name))?;
    Some(name.to_owned())
}
