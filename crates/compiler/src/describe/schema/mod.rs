//! TypeScript's types as JSON Schema (a subset of draft 2020-12).

mod combine;
mod named;
mod utilities;

use std::collections::BTreeSet;
use std::rc::Rc;

use oxc::ast::ast::{
    TSMappedType, TSSignature, TSTupleElement, TSTupleType, TSType, TSTypeOperatorOperator,
    TSTypeParameterDeclaration, TSTypeParameterInstantiation,
};
use oxc::span::GetSpan;
use serde_json::{Map, Value, json};

pub(super) use self::combine::{annotate, join, merged, stated};
use self::combine::{document, enumeration, meet};
pub(super) use self::named::members;
use super::Source;
use super::values::literal_type;

/// How many types one schema may visit; with more the whole of it is unknown. The largest hand-written types of
/// arguments have some dozens.
const MAX_TYPES: usize = 600;

/// How deep a schema nests; what lies deeper is unknown.
const MAX_DEPTH: usize = 12;

/// What is described: absent values and instances look different on the way in and on the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Parameters,
    Result,
}

/// What the names of type parameters stand for.
#[derive(Clone, Default)]
pub(super) struct Env<'a> {
    bindings: Option<Rc<Vec<(&'a str, Bound<'a>)>>>,
    /// The type stands in a comment, so its places are none of the source's.
    pub(super) foreign: bool,
}

/// The type a parameter stands for, if it is known.
#[derive(Clone)]
pub(super) struct Bound<'a> {
    pub(super) value: Option<&'a TSType<'a>>,
    pub(super) env: Env<'a>,
}

impl<'a> Env<'a> {
    /// The names of `declaration` bound to `arguments`, else to their defaults, else to their constraints.
    pub(super) fn bind(
        declaration: Option<&'a TSTypeParameterDeclaration<'a>>,
        arguments: Option<&'a TSTypeParameterInstantiation<'a>>,
        outer: &Self,
    ) -> Self {
        let Some(declaration) = declaration else { return Self::default() };
        let bind_one = |(at, parameter): (usize, &'a oxc::ast::ast::TSTypeParameter<'a>)| {
            let argument = arguments.and_then(|arguments| arguments.params.get(at));
            let bound = match argument {
                Some(value) => Bound { value: Some(value), env: outer.clone() },
                None => {
                    let value = parameter.default.as_ref().or(parameter.constraint.as_ref());
                    Bound { value, env: Self::default() }
                }
            };
            (parameter.name.name.as_str(), bound)
        };
        let bindings = declaration.params.iter().enumerate().map(bind_one).collect();
        Self { bindings: Some(Rc::new(bindings)), foreign: false }
    }

    /// What stands in a comment: it knows the names of the file, but none of its places.
    pub(super) fn of_comment() -> Self {
        Self { bindings: None, foreign: true }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Bound<'a>> {
        self.bindings.as_ref()?.iter().find(|(known, _)| *known == name).map(|(_, bound)| bound)
    }
}

/// Turns types into schemas, one root at a time.
pub(super) struct Schemas<'t, 'a> {
    source: &'t Source<'a>,
    side: Side,
    left: usize,
    /// Named types that are being expanded.
    open: Vec<&'a str>,
    /// Those of them that mention themselves.
    recursive: BTreeSet<&'a str>,
    definitions: Map<String, Value>,
}

/// The schema of one type.
pub(super) fn schema<'a>(source: &Source<'a>, side: Side, value: &'a TSType<'a>, env: &Env<'a>) -> Value {
    let mut schemas = Schemas {
        source,
        side,
        left: MAX_TYPES,
        open: Vec::new(),
        recursive: BTreeSet::new(),
        definitions: Map::new(),
    };
    let root = schemas.of(value, env, 0);
    if schemas.left == 0 {
        return Value::Bool(true);
    }
    // The root shows its properties even where it is a definition of its own.
    let root = schemas.resolved(root);
    if schemas.definitions.is_empty() {
        return root;
    }
    annotate(root, "$defs", Value::Object(schemas.definitions))
}

/// A type without its parentheses.
pub(super) fn peel_type<'a>(value: &'a TSType<'a>) -> &'a TSType<'a> {
    let mut inner = value;
    while let TSType::TSParenthesizedType(wrapper) = inner {
        inner = &wrapper.type_annotation;
    }
    inner
}

/// `undefined` and `void`: nothing arrives.
fn is_absent(value: &TSType<'_>) -> bool {
    matches!(value, TSType::TSUndefinedKeyword(_) | TSType::TSVoidKeyword(_))
}

/// `T | undefined`.
fn may_be_absent<'a>(value: &'a TSType<'a>) -> bool {
    match peel_type(value) {
        TSType::TSUnionType(union) => union.types.iter().any(is_absent),
        other => is_absent(other),
    }
}

impl<'a> Schemas<'_, 'a> {
    fn of(&mut self, value: &'a TSType<'a>, env: &Env<'a>, depth: usize) -> Value {
        if !self.spend() || depth > MAX_DEPTH {
            return Value::Bool(true);
        }
        let depth = depth + 1;
        match peel_type(value) {
            TSType::TSStringKeyword(_) | TSType::TSTemplateLiteralType(_) => json!({ "type": "string" }),
            TSType::TSNumberKeyword(_) => json!({ "type": "number" }),
            TSType::TSBooleanKeyword(_) => json!({ "type": "boolean" }),
            TSType::TSNullKeyword(_) => json!({ "type": "null" }),
            TSType::TSUndefinedKeyword(_) | TSType::TSVoidKeyword(_) => self.absent(),
            TSType::TSNeverKeyword(_) => Value::Bool(false),
            TSType::TSObjectKeyword(_) => json!({ "type": "object" }),
            TSType::TSTypePredicate(predicate) if !predicate.asserts => json!({ "type": "boolean" }),
            TSType::TSTypePredicate(_) => self.absent(),
            TSType::TSLiteralType(literal) => match literal_type(&literal.literal) {
                Some(value) => json!({ "const": value }),
                None => Value::Bool(true),
            },
            TSType::TSArrayType(array) => list(self.of(&array.element_type, env, depth)),
            TSType::TSTupleType(tuple) => self.tuple(tuple, env, depth),
            TSType::TSTypeLiteral(literal) => self.object(&literal.members, env, depth),
            TSType::TSMappedType(mapped) => self.mapped(mapped, env, depth),
            TSType::TSUnionType(union) => {
                let options = union
                    .types
                    .iter()
                    .map(peel_type)
                    .filter(|option| self.side == Side::Result || !is_absent(option));
                let options: Vec<&'a TSType<'a>> = options.collect();
                join(options.into_iter().map(|option| self.of(option, env, depth)).collect())
            }
            TSType::TSIntersectionType(intersection) => {
                let parts = intersection.types.iter();
                let parts: Vec<Value> = parts.map(|part| self.of(part, env, depth)).collect();
                meet(parts.into_iter().map(|part| self.resolved(part)).collect())
            }
            TSType::TSTypeOperatorType(operator) => match operator.operator {
                TSTypeOperatorOperator::Readonly => self.of(&operator.type_annotation, env, depth),
                TSTypeOperatorOperator::Keyof => self.keys(&operator.type_annotation, env, depth),
                TSTypeOperatorOperator::Unique => Value::Bool(true),
            },
            TSType::TSIndexedAccessType(access) => self.indexed(access, env, depth),
            TSType::TSTypeReference(reference) => {
                self.reference(&reference.type_name, reference.type_arguments.as_deref(), env, depth)
            }
            TSType::JSDocNullableType(nullable) => {
                join(vec![self.of(&nullable.type_annotation, env, depth), json!({ "type": "null" })])
            }
            TSType::JSDocNonNullableType(inner) => self.of(&inner.type_annotation, env, depth),
            // Functions, symbols and big integers have no JSON; the rest would need a type checker.
            _ => Value::Bool(true),
        }
    }

    /// Takes one from the budget; false when there is none left.
    fn spend(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    /// A tool that returns nothing gives null; an argument that is absent is not described.
    fn absent(&self) -> Value {
        match self.side {
            Side::Parameters => Value::Bool(true),
            Side::Result => json!({ "type": "null" }),
        }
    }

    /// What a reference to a finished definition stands for.
    fn resolved(&mut self, schema: Value) -> Value {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
        let found = name.and_then(|name| self.definitions.get(name)).cloned();
        match found {
            Some(copy) if self.spend_copy(&copy) => copy,
            _ => schema,
        }
    }

    /// A copy costs as much as building it again, else copies of copies would grow without a bound.
    fn spend_copy(&mut self, schema: &Value) -> bool {
        self.left = self.left.saturating_sub(weight(schema));
        self.left > 0
    }

    fn tuple(&mut self, tuple: &'a TSTupleType<'a>, env: &Env<'a>, depth: usize) -> Value {
        let (mut items, mut required, mut rest) = (Vec::new(), 0, Value::Bool(false));
        for element in &tuple.element_types {
            let (mut element, mut is_optional) = (element, false);
            if let TSTupleElement::TSNamedTupleMember(named) = element {
                element = &named.element_type;
                is_optional = named.optional;
            }
            match element {
                TSTupleElement::TSRestType(inner) => {
                    // `...rest: T[]` is named inside of the rest.
                    let value = match &inner.type_annotation {
                        TSType::TSNamedTupleMember(named) => named.element_type.as_ts_type(),
                        value => Some(value),
                    };
                    let list = value.map_or(Value::Bool(true), |value| self.of(value, env, depth));
                    rest = list.get("items").cloned().unwrap_or(Value::Bool(true));
                    break;
                }
                TSTupleElement::TSOptionalType(inner) => {
                    items.push(self.of(&inner.type_annotation, env, depth))
                }
                other => {
                    items.push(
                        other.as_ts_type().map_or(Value::Bool(true), |inner| self.of(inner, env, depth)),
                    );
                    required += usize::from(!is_optional);
                }
            }
        }
        let mut fields = Map::from_iter([("type".to_owned(), json!("array"))]);
        if !items.is_empty() {
            fields.insert("prefixItems".to_owned(), Value::Array(items));
        }
        if required > 0 {
            fields.insert("minItems".to_owned(), json!(required));
        }
        if rest != Value::Bool(true) {
            fields.insert("items".to_owned(), rest);
        }
        Value::Object(fields)
    }

    /// The schema of a type literal or of the body of an interface.
    fn object(&mut self, members: &'a [TSSignature<'a>], env: &Env<'a>, depth: usize) -> Value {
        let (mut properties, mut required, mut rest) = (Map::new(), Vec::new(), None);
        let mut is_function = false;
        for member in members {
            if !self.spend() {
                break;
            }
            match member {
                TSSignature::TSPropertySignature(property) => {
                    let Some(name) = property.key.static_name().filter(|_| !property.computed) else {
                        continue;
                    };
                    let name = name.into_owned();
                    let value = property.type_annotation.as_deref().map(|known| &known.type_annotation);
                    let schema = value.map_or(Value::Bool(true), |value| self.of(value, env, depth));
                    if !property.optional && !value.is_some_and(may_be_absent) {
                        required.push(Value::String(name.clone()));
                    }
                    properties.insert(name, self.documented(schema, member, env));
                }
                TSSignature::TSMethodSignature(method) => {
                    if let Some(name) = method.key.static_name().filter(|_| !method.computed) {
                        properties.insert(name.into_owned(), self.documented(Value::Bool(true), member, env));
                    }
                }
                TSSignature::TSIndexSignature(index) => {
                    rest = Some(self.of(&index.type_annotation.type_annotation, env, depth));
                }
                TSSignature::TSCallSignatureDeclaration(_)
                | TSSignature::TSConstructSignatureDeclaration(_) => is_function = true,
            }
        }
        if is_function {
            return Value::Bool(true);
        }
        object(properties, required, rest)
    }

    fn documented(&self, schema: Value, member: &TSSignature<'a>, env: &Env<'a>) -> Value {
        if env.foreign {
            return schema;
        }
        let span = member.span();
        let schema = match self.source.docs.of(span.start) {
            Some(doc) => document(schema, &doc),
            None => schema,
        };
        match self.source.docs.behind(span.end) {
            Some(words) => annotate(schema, "description", Value::String(words)),
            None => schema,
        }
    }

    /// `{ [K in 'a' | 'b']: T }`, as far as the keys are plain to see.
    fn mapped(&mut self, mapped: &'a TSMappedType<'a>, env: &Env<'a>, depth: usize) -> Value {
        if mapped.name_type.is_some() {
            return json!({ "type": "object" });
        }
        let keys = self.of(&mapped.constraint, env, depth);
        let value = match &mapped.type_annotation {
            Some(value) => self.of(value, env, depth),
            None => Value::Bool(true),
        };
        let is_optional = mapped.optional.is_some();
        self.record(&keys, &value, is_optional)
    }

    /// An object whose keys are known, or at least of one type.
    fn record(&mut self, keys: &Value, value: &Value, is_optional: bool) -> Value {
        let Some(names) = combine::literals(keys) else {
            return object(Map::new(), Vec::new(), Some(value.clone()));
        };
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for name in names {
            if !self.spend_copy(value) {
                break;
            }
            let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
            if !is_optional {
                required.push(Value::String(name.clone()));
            }
            properties.insert(name, value.clone());
        }
        object(properties, required, None)
    }
}

/// How many values a schema is made of.
fn weight(schema: &Value) -> usize {
    1 + match schema {
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.values().map(weight).sum(),
        _ => 0,
    }
}

/// A list of anything, or of one thing.
pub(super) fn list(items: Value) -> Value {
    match items {
        Value::Bool(true) => json!({ "type": "array" }),
        items => json!({ "type": "array", "items": items }),
    }
}

/// An object schema; what is empty or says nothing is left out.
pub(super) fn object(properties: Map<String, Value>, required: Vec<Value>, rest: Option<Value>) -> Value {
    let mut fields = Map::from_iter([("type".to_owned(), json!("object"))]);
    // A name that is declared twice must not be required twice.
    let mut names: Vec<Value> = Vec::new();
    for name in required {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !properties.is_empty() {
        fields.insert("properties".to_owned(), Value::Object(properties));
    }
    if !names.is_empty() {
        fields.insert("required".to_owned(), Value::Array(names));
    }
    if let Some(rest) = rest.filter(|rest| *rest != Value::Bool(true)) {
        fields.insert("additionalProperties".to_owned(), rest);
    }
    Value::Object(fields)
}

/// Strings as an enumeration.
fn names(list: Vec<String>) -> Value {
    enumeration(&list.into_iter().map(Value::String).collect::<Vec<_>>()).unwrap_or(Value::Bool(true))
}
