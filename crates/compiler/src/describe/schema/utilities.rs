//! The types every program knows, and the operators on types that can be read without a type checker.

use oxc::ast::ast::{
    Expression, ObjectPropertyKind, TSIndexedAccessType, TSType, TSTypeParameterInstantiation, TSTypeQuery,
    TSTypeQueryExprName,
};
use serde_json::{Value, json};

use super::super::values::{literal, peel};
use super::combine::{enumeration, literals};
use super::{Env, Schemas, Side, join, list, names, peel_type};

/// How the properties of an object type are filtered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Named,
    Others,
}

impl<'a> Schemas<'_, 'a> {
    pub(super) fn built_in(
        &mut self,
        name: &str,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        env: &Env<'a>,
        depth: usize,
    ) -> Value {
        let argument = |at: usize| arguments.and_then(|arguments| arguments.params.get(at));
        let mut nth = |at: usize| argument(at).map_or(Value::Bool(true), |value| self.of(value, env, depth));
        match name {
            "Array" | "ReadonlyArray" => list(nth(0)),
            "Promise" | "PromiseLike" | "Awaited" | "Readonly" | "NoInfer" => nth(0),
            "String" | "string" => json!({ "type": "string" }),
            "Number" => json!({ "type": "number" }),
            "Boolean" | "bool" => json!({ "type": "boolean" }),
            // Only comments write these.
            "integer" | "int" => json!({ "type": "integer" }),
            "Lowercase" | "Uppercase" | "Capitalize" | "Uncapitalize" => {
                let inner = nth(0);
                // A plain string stays one; literals would have to be rewritten.
                if inner.get("type").is_some() { json!({ "type": "string" }) } else { Value::Bool(true) }
            }
            "Object" | "Record" => {
                let (keys, value) = (nth(0), nth(1));
                if argument(1).is_some() {
                    self.record(&keys, &value, false)
                } else {
                    json!({ "type": "object" })
                }
            }
            "Partial" => {
                let inner = nth(0);
                self.with_required(inner, false)
            }
            "Required" => {
                let inner = nth(0);
                self.with_required(inner, true)
            }
            "Pick" | "Omit" => {
                let (inner, keys) = (nth(0), nth(1));
                let keep = if name == "Pick" { Keep::Named } else { Keep::Others };
                self.filtered(inner, &keys, keep)
            }
            "NonNullable" => without(&nth(0), &[Value::Null]),
            "Exclude" => {
                let (inner, excluded) = (nth(0), nth(1));
                literals(&excluded).map_or(Value::Bool(true), |excluded| without(&inner, &excluded))
            }
            "Extract" => {
                let (inner, kept) = (nth(0), nth(1));
                let both = literals(&inner).zip(literals(&kept));
                let both = both
                    .map(|(inner, kept)| inner.into_iter().filter(|value| kept.contains(value)).collect());
                both.and_then(|both: Vec<Value>| enumeration(&both)).unwrap_or(Value::Bool(true))
            }
            // A date leaves as text, but none can come in.
            "Date" if self.side == Side::Result => json!({ "type": "string", "format": "date-time" }),
            _ => Value::Bool(true),
        }
    }

    /// `Partial` and `Required`.
    fn with_required(&mut self, inner: Value, all: bool) -> Value {
        let mut schema = self.resolved(inner);
        let Some(fields) = schema.as_object_mut() else { return Value::Bool(true) };
        fields.remove("required");
        if let Some(Value::Object(properties)) = fields.get("properties").filter(|_| all) {
            let names: Vec<Value> = properties.keys().cloned().map(Value::String).collect();
            fields.insert("required".to_owned(), Value::Array(names));
        }
        schema
    }

    /// `Pick` and `Omit`.
    fn filtered(&mut self, inner: Value, keys: &Value, keep: Keep) -> Value {
        let mut schema = self.resolved(inner);
        let Some(keys) = literals(keys) else { return json!({ "type": "object" }) };
        let stays = |name: &str| {
            let is_named = keys.iter().any(|key| key.as_str() == Some(name));
            is_named == (keep == Keep::Named)
        };
        let Some(fields) = schema.as_object_mut() else { return Value::Bool(true) };
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            properties.retain(|name, _| stays(name));
        }
        if let Some(Value::Array(required)) = fields.get_mut("required") {
            required.retain(|name| name.as_str().is_some_and(stays));
            if required.is_empty() {
                fields.remove("required");
            }
        }
        schema
    }

    /// `keyof T` and `keyof typeof constant`.
    pub(super) fn keys(&mut self, value: &'a TSType<'a>, env: &Env<'a>, depth: usize) -> Value {
        if let TSType::TSTypeQuery(query) = peel_type(value) {
            let Some(Expression::ObjectExpression(object)) = self.constant(query) else {
                return json!({ "type": "string" });
            };
            let known: Option<Vec<String>> = object
                .properties
                .iter()
                .map(|property| match property {
                    ObjectPropertyKind::ObjectProperty(property) if !property.computed && self.spend() => {
                        property.key.static_name().map(std::borrow::Cow::into_owned)
                    }
                    _ => None,
                })
                .collect();
            return known.map_or(json!({ "type": "string" }), names);
        }
        let schema = self.of(value, env, depth);
        match self.resolved(schema).get("properties") {
            Some(Value::Object(properties)) => names(properties.keys().cloned().collect()),
            _ => json!({ "type": "string" }),
        }
    }

    /// `T['name']`, `T[number]` and `(typeof constant)[number]`.
    pub(super) fn indexed(
        &mut self,
        access: &'a TSIndexedAccessType<'a>,
        env: &Env<'a>,
        depth: usize,
    ) -> Value {
        if let TSType::TSTypeQuery(query) = peel_type(&access.object_type) {
            let values = self.constant(query).and_then(|value| self.elements(value));
            return values
                .and_then(|values| enumeration(&values))
                .map_or(Value::Bool(true), |schema| join(vec![schema]));
        }
        let schema = self.of(&access.object_type, env, depth);
        let object = self.resolved(schema);
        let part = match peel_type(&access.index_type) {
            TSType::TSNumberKeyword(_) => object.get("items").cloned(),
            index => {
                let index = self.of(index, env, depth);
                let known = literals(&index).unwrap_or_default();
                let parts: Option<Vec<Value>> =
                    known.iter().map(|name| object.get("properties")?.get(name.as_str()?).cloned()).collect();
                parts.filter(|parts| !parts.is_empty()).map(join)
            }
        };
        part.unwrap_or(Value::Bool(true))
    }

    /// The plain values of a constant array or object.
    fn elements(&mut self, value: &Expression<'a>) -> Option<Vec<Value>> {
        let count = match value {
            Expression::ArrayExpression(array) => array.elements.len(),
            Expression::ObjectExpression(object) => object.properties.len(),
            _ => return None,
        };
        self.left = self.left.saturating_sub(count);
        if self.left == 0 {
            return None;
        }
        let values: Vec<Value> = match literal(value)? {
            Value::Array(values) => values,
            Value::Object(fields) => fields.into_iter().map(|(_, value)| value).collect(),
            _ => return None,
        };
        let is_plain = |value: &Value| !value.is_object() && !value.is_array();
        values.iter().all(is_plain).then_some(values)
    }

    /// The value of the constant that `typeof` names.
    pub(super) fn constant(&self, query: &'a TSTypeQuery<'a>) -> Option<&'a Expression<'a>> {
        let TSTypeQueryExprName::IdentifierReference(name) = &query.expr_name else { return None };
        let (variable, _) = self.source.declarations.variable(name.name.as_str())?;
        variable.init.as_ref().map(peel)
    }
}

/// A union without some of its literals.
fn without(schema: &Value, excluded: &[Value]) -> Value {
    if let Some(mut values) = literals(schema) {
        values.retain(|value| !excluded.contains(value));
        return enumeration(&values).unwrap_or(Value::Bool(true));
    }
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut fields = fields.clone();
    if excluded.contains(&Value::Null)
        && let Some(Value::Array(kinds)) = fields.get_mut("type")
    {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if excluded.contains(&Value::Null)
        && let Some(Value::Array(options)) = fields.get_mut("anyOf")
    {
        options.retain(|option| *option != json!({ "type": "null" }));
        if let [only] = options.as_slice() {
            return only.clone();
        }
    }
    Value::Object(fields)
}
