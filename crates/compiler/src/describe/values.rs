//! Values that an expression shows without being run.

use oxc::ast::ast::{Expression, NumericLiteral, ObjectPropertyKind, TSLiteral};
use oxc::syntax::operator::UnaryOperator;
use serde_json::{Map, Number, Value};

/// How deep a literal may nest to be shown as a default.
const MAX_DEPTH: usize = 4;

/// Larger whole numbers are not exact as doubles, so they stay doubles.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// An expression without the wrappers that do not change its value.
pub(super) fn peel<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    let mut inner = expression;
    loop {
        inner = match inner {
            Expression::ParenthesizedExpression(wrapper) => &wrapper.expression,
            Expression::TSAsExpression(wrapper) => &wrapper.expression,
            Expression::TSSatisfiesExpression(wrapper) => &wrapper.expression,
            Expression::TSNonNullExpression(wrapper) => &wrapper.expression,
            Expression::TSTypeAssertion(wrapper) => &wrapper.expression,
            Expression::TSInstantiationExpression(wrapper) => &wrapper.expression,
            other => return other,
        };
    }
}

/// The value of a literal, or of arrays and objects of literals.
pub(super) fn literal(expression: &Expression<'_>) -> Option<Value> {
    nested(expression, MAX_DEPTH)
}

fn nested(expression: &Expression<'_>, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    match peel(expression) {
        Expression::StringLiteral(text) => Some(Value::String(text.value.to_string())),
        Expression::NumericLiteral(literal) => numeric(literal),
        Expression::BooleanLiteral(literal) => Some(Value::Bool(literal.value)),
        Expression::NullLiteral(_) => Some(Value::Null),
        Expression::TemplateLiteral(template) => {
            template.single_quasi().map(|text| Value::String(text.to_string()))
        }
        Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => {
            match peel(&unary.argument) {
                Expression::NumericLiteral(literal) => number(-literal.value),
                _ => None,
            }
        }
        Expression::ArrayExpression(array) => {
            let items: Option<Vec<Value>> =
                array.elements.iter().map(|element| nested(element.as_expression()?, depth)).collect();
            items.map(Value::Array)
        }
        Expression::ObjectExpression(object) => {
            let mut fields = Map::new();
            for property in &object.properties {
                let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
                let key = property.key.static_name().filter(|_| !property.computed)?;
                fields.insert(key.into_owned(), nested(&property.value, depth)?);
            }
            Some(Value::Object(fields))
        }
        _ => None,
    }
}

/// The value of a literal type.
pub(super) fn literal_type(literal: &TSLiteral<'_>) -> Option<Value> {
    match literal {
        TSLiteral::BooleanLiteral(literal) => Some(Value::Bool(literal.value)),
        TSLiteral::NumericLiteral(literal) => numeric(literal),
        TSLiteral::StringLiteral(literal) => Some(Value::String(literal.value.to_string())),
        TSLiteral::TemplateLiteral(template) => {
            template.single_quasi().map(|text| Value::String(text.to_string()))
        }
        TSLiteral::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => {
            match &unary.argument {
                Expression::NumericLiteral(literal) => number(-literal.value),
                _ => None,
            }
        }
        TSLiteral::UnaryExpression(_) | TSLiteral::BigIntLiteral(_) => None,
    }
}

fn numeric(literal: &NumericLiteral<'_>) -> Option<Value> {
    number(literal.value)
}

/// A number as JSON writes it; none when it is not finite.
pub(crate) fn number(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT {
        // The bounds were just checked, so nothing is lost.
        return Some(Value::Number(Number::from(value as i64)));
    }
    Number::from_f64(value).map(Value::Number)
}
