//! Schemas of the package `zod`, read from the calls that build them.

use oxc::ast::ast::{Argument, CallExpression, Expression, ObjectPropertyKind};
use serde_json::{Map, Value, json};

use super::Source;
use super::schema::{annotate, join, list, merged, object};
use super::values::{literal, peel};

/// How many calls one schema may have; with more the whole of it is unknown.
const MAX_CALLS: usize = 400;

/// How deep schemas nest and how long their chains of methods are.
const MAX_DEPTH: usize = 40;

/// The schema that `expression` builds; unknown when it is none of zod's.
pub(super) fn zod<'a>(source: &Source<'a>, expression: &Expression<'a>) -> Value {
    let mut reader = Reader { source, left: MAX_CALLS };
    let (schema, _) = reader.read(expression, MAX_DEPTH);
    if reader.left == 0 { Value::Bool(true) } else { schema }
}

struct Reader<'t, 'a> {
    source: &'t Source<'a>,
    left: usize,
}

/// A schema, and whether the value may be absent.
type Part = (Value, bool);

const UNKNOWN: Part = (Value::Bool(true), false);

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, expression: &Expression<'a>, depth: usize) -> Part {
        self.left = self.left.saturating_sub(1);
        let Some(depth) = depth.checked_sub(1).filter(|_| self.left > 0) else { return UNKNOWN };
        match peel(expression) {
            Expression::Identifier(name) => {
                let variable = self.source.declarations.variable(name.name.as_str());
                let value = variable.and_then(|(variable, _)| variable.init.as_ref());
                value.map_or(UNKNOWN, |value| self.read(value, depth))
            }
            Expression::CallExpression(call) => {
                let Expression::StaticMemberExpression(member) = &call.callee else { return UNKNOWN };
                let method = member.property.name.as_str();
                if is_library(&member.object) {
                    return self.made(method, call, depth);
                }
                let inner = self.read(&member.object, depth);
                self.changed(inner, method, call, depth)
            }
            _ => UNKNOWN,
        }
    }

    fn argument(&mut self, call: &CallExpression<'a>, at: usize, depth: usize) -> Value {
        let argument = call.arguments.get(at).and_then(Argument::as_expression);
        argument.map_or(Value::Bool(true), |argument| self.read(argument, depth).0)
    }

    /// The schemas in an array that is the argument at `at`.
    fn options(&mut self, call: &CallExpression<'a>, at: usize, depth: usize) -> Vec<Value> {
        let argument = call.arguments.get(at).and_then(Argument::as_expression).map(peel);
        let Some(Expression::ArrayExpression(array)) = argument else { return vec![Value::Bool(true)] };
        let elements = array.elements.iter().take(self.left);
        elements
            .map(|element| match element.as_expression() {
                Some(element) => self.read(element, depth).0,
                None => Value::Bool(true),
            })
            .collect()
    }

    /// `z.method(…)`.
    fn made(&mut self, method: &str, call: &CallExpression<'a>, depth: usize) -> Part {
        let schema = match method {
            "string" | "email" | "url" | "uuid" => json!({ "type": "string" }),
            "number" => json!({ "type": "number" }),
            "int" => json!({ "type": "integer" }),
            "boolean" => json!({ "type": "boolean" }),
            "null" => json!({ "type": "null" }),
            "object" | "strictObject" | "looseObject" => self.fields(call, depth),
            "array" => list(self.argument(call, 0, depth)),
            "literal" => constant(call).map_or(Value::Bool(true), |value| json!({ "const": value })),
            "enum" => match constant(call) {
                Some(Value::Array(values)) if values.len() < self.left => {
                    join(values.into_iter().map(|value| json!({ "const": value })).collect())
                }
                _ => Value::Bool(true),
            },
            "union" => join(self.options(call, 0, depth)),
            "discriminatedUnion" => join(self.options(call, 1, depth)),
            "record" => {
                let last = call.arguments.len().saturating_sub(1);
                object(Map::new(), Vec::new(), Some(self.argument(call, last, depth)))
            }
            "optional" => return (self.argument(call, 0, depth), true),
            "nullable" => join(vec![self.argument(call, 0, depth), json!({ "type": "null" })]),
            _ => Value::Bool(true),
        };
        (schema, false)
    }

    /// The properties of `z.object({ … })`.
    fn fields(&mut self, call: &CallExpression<'a>, depth: usize) -> Value {
        let argument = call.arguments.first().and_then(Argument::as_expression).map(peel);
        let Some(Expression::ObjectExpression(literal)) = argument else {
            return json!({ "type": "object" });
        };
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for property in literal.properties.iter().take(self.left) {
            let ObjectPropertyKind::ObjectProperty(property) = property else { continue };
            let Some(name) = property.key.static_name().filter(|_| !property.computed) else { continue };
            let (schema, is_optional) = self.read(&property.value, depth);
            if !is_optional {
                required.push(Value::String(name.to_string()));
            }
            properties.insert(name.into_owned(), schema);
        }
        object(properties, required, None)
    }

    /// `schema.method(…)`.
    fn changed(&mut self, part: Part, method: &str, call: &CallExpression<'a>, depth: usize) -> Part {
        let (schema, is_optional) = part;
        let null = json!({ "type": "null" });
        match method {
            "optional" => (schema, true),
            "nullable" => (join(vec![schema, null]), is_optional),
            "nullish" => (join(vec![schema, null]), true),
            "default" | "prefault" => match constant(call) {
                Some(value) => (annotate(schema, "default", value), true),
                None => (schema, true),
            },
            "describe" => match constant(call) {
                Some(Value::String(words)) => {
                    let words = super::doc::one_line(&words, super::doc::MAX_PROPERTY_TEXT);
                    (annotate(schema, "description", Value::String(words)), is_optional)
                }
                _ => (schema, is_optional),
            },
            "int" => (json!({ "type": "integer" }), is_optional),
            "min" | "max" => (bounded(schema, method, call), is_optional),
            "array" => (list(schema), false),
            "or" => (join(vec![schema, self.argument(call, 0, depth)]), is_optional),
            "extend" => (merged(schema, self.fields(call, depth)), is_optional),
            "merge" | "and" => (merged(schema, self.argument(call, 0, depth)), is_optional),
            "partial" => match schema {
                Value::Object(mut fields) if call.arguments.is_empty() => {
                    fields.remove("required");
                    (Value::Object(fields), is_optional)
                }
                _ => UNKNOWN,
            },
            "pick" | "omit" | "required" | "keyof" | "pipe" | "catch" => UNKNOWN,
            // Refinements and formats narrow the values, but never widen them.
            _ => (schema, is_optional),
        }
    }
}

/// `z`, `zod` and `z.coerce`.
fn is_library(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::Identifier(name) => matches!(name.name.as_str(), "z" | "zod"),
        Expression::StaticMemberExpression(member) => {
            matches!(&member.object, Expression::Identifier(name) if matches!(name.name.as_str(), "z" | "zod"))
        }
        _ => false,
    }
}

fn constant(call: &CallExpression<'_>) -> Option<Value> {
    literal(call.arguments.first()?.as_expression()?)
}

/// `.min(n)` and `.max(n)` mean something else for each type.
fn bounded(schema: Value, method: &str, call: &CallExpression<'_>) -> Value {
    let Some(limit) = constant(call).filter(Value::is_number) else { return schema };
    let is_min = method == "min";
    let keyword = match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => {
            if is_min {
                "minimum"
            } else {
                "maximum"
            }
        }
        Some("string") if limit.is_u64() => {
            if is_min {
                "minLength"
            } else {
                "maxLength"
            }
        }
        Some("array") if limit.is_u64() => {
            if is_min {
                "minItems"
            } else {
                "maxItems"
            }
        }
        _ => return schema,
    };
    annotate(schema, keyword, limit)
}
