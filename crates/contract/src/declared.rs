//! What the source of a tool declares of its arguments and of its result, as far as it can be read without a type
//! checker. Only declared types may refuse a call: what a description guesses may not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Names of names that are followed; `type A = B; type B = A` must end.
const MAX_ALIASES: usize = 32;

/// A type as it is written in a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredType {
    /// Nothing is known of it, so every value fits.
    #[default]
    Any,
    String,
    Number,
    Boolean,
    Null,
    /// `undefined` or `void`: JSON leaves it out.
    Absent,
    /// JSON has no dates: text takes their place.
    Date,
    Literal(Value),
    List(Box<DeclaredType>),
    Tuple {
        items: Vec<DeclaredType>,
        /// How many of them must be there.
        required: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rest: Option<Box<DeclaredType>>,
    },
    Object(DeclaredObject),
    /// One of these; nothing fits an empty list.
    OneOf(Vec<DeclaredType>),
    AllOf(Vec<DeclaredType>),
    /// A type of the file, by its position in [`DeclaredTypes::named`].
    Named(usize),
}

/// An object type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredObject {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, DeclaredField>,
    /// The type of all other fields; without it there are no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Box<DeclaredType>>,
}

/// A field of an object type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredField {
    #[serde(rename = "type")]
    pub ty: DeclaredType,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// The declared types of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredTypes {
    pub parameters: DeclaredType,
    /// The parameter is optional or has a default, so the tool can be called without arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_empty: bool,
    /// The function has further parameters that are required, which a caller of the tool cannot give.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_parameters: bool,
    pub result: DeclaredType,
    /// The types of the file, in the order of their first use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<DeclaredType>,
}

/// Which side of a call a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Parameters,
    Result,
}

impl DeclaredTypes {
    /// True when nothing is declared that a call could be checked against.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parameters == DeclaredType::Any && self.result == DeclaredType::Any && !self.more_parameters
    }

    /// The type that a name stands for.
    #[must_use]
    pub fn resolve<'t>(&'t self, ty: &'t DeclaredType) -> &'t DeclaredType {
        let mut found = ty;
        for _ in 0..MAX_ALIASES {
            let DeclaredType::Named(at) = found else { return found };
            found = self.named.get(*at).unwrap_or(&DeclaredType::Any);
        }
        &DeclaredType::Any
    }

    /// The fields of the arguments, when all of them are known and there are no others.
    #[must_use]
    pub fn only_fields(&self) -> Option<&BTreeMap<String, DeclaredField>> {
        match self.resolve(&self.parameters) {
            DeclaredType::Object(object) if object.others.is_none() => Some(&object.fields),
            _ => None,
        }
    }

    /// A value without the fields that its type does not have, as deep as types are known.
    #[must_use]
    pub fn prune(&self, ty: &DeclaredType, value: Value) -> Value {
        match (self.resolve(ty), value) {
            (DeclaredType::Object(object), Value::Object(fields)) if object.others.is_none() => {
                let keep = |(name, value)| {
                    let field = object.fields.get(&name)?;
                    Some((name, self.prune(&field.ty, value)))
                };
                Value::Object(fields.into_iter().filter_map(keep).collect())
            }
            (DeclaredType::OneOf(options), value @ Value::Object(_)) => {
                let is_object =
                    |option: &&DeclaredType| matches!(self.resolve(option), DeclaredType::Object(_));
                let mut objects = options.iter().filter(is_object);
                match (objects.next(), objects.next()) {
                    (Some(only), None) => self.prune(only, value),
                    _ => value,
                }
            }
            (_, value) => value,
        }
    }

    /// The arguments as a JSON Schema; `true` where nothing is declared.
    #[must_use]
    pub fn parameters_schema(&self) -> Value {
        self.schema(&self.parameters, Side::Parameters)
    }

    /// The result as a JSON Schema; `true` where nothing is declared.
    #[must_use]
    pub fn result_schema(&self) -> Value {
        self.schema(&self.result, Side::Result)
    }

    fn schema(&self, ty: &DeclaredType, side: Side) -> Value {
        // The root shows its fields, also where it has a name.
        let mut schema = Schemas { types: self, side, is_closed: true }.of(self.resolve(ty));
        if let (false, Some(fields)) = (self.named.is_empty(), schema.as_object_mut()) {
            let all = Schemas { types: self, side, is_closed: true };
            let definitions: Map<String, Value> =
                self.named.iter().enumerate().map(|(at, ty)| (at.to_string(), all.of(ty))).collect();
            fields.insert("$defs".to_owned(), Value::Object(definitions));
        }
        schema
    }
}

struct Schemas<'t> {
    types: &'t DeclaredTypes,
    side: Side,
    /// Whether fields that are not declared are refused at this place.
    is_closed: bool,
}

impl Schemas<'_> {
    fn of(&self, ty: &DeclaredType) -> Value {
        match ty {
            DeclaredType::Any => Value::Bool(true),
            DeclaredType::String => json!({ "type": "string" }),
            DeclaredType::Number => json!({ "type": "number" }),
            DeclaredType::Boolean => json!({ "type": "boolean" }),
            DeclaredType::Null => json!({ "type": "null" }),
            DeclaredType::Absent if self.side == Side::Result => json!({ "type": "null" }),
            DeclaredType::Absent => Value::Bool(true),
            DeclaredType::Date if self.side == Side::Result => json!({ "type": "string" }),
            DeclaredType::Date => json!({ "type": ["string", "object"] }),
            DeclaredType::Literal(value) => json!({ "const": value }),
            DeclaredType::List(item) => json!({ "type": "array", "items": self.closed().of(item) }),
            DeclaredType::Tuple { items, required, rest } => {
                let items: Vec<Value> = items.iter().map(|item| self.closed().of(item)).collect();
                let rest = rest.as_ref().map_or(Value::Bool(false), |rest| self.closed().of(rest));
                json!({ "type": "array", "prefixItems": items, "minItems": required, "items": rest })
            }
            DeclaredType::Object(object) => self.object(object),
            DeclaredType::OneOf(options) => self.one_of(options),
            DeclaredType::AllOf(parts) => {
                json!({ "allOf": parts.iter().map(|part| self.open().of(part)).collect::<Vec<_>>() })
            }
            // A definition is closed, so at a place that is not it is left out.
            DeclaredType::Named(_) if !self.is_closed => Value::Bool(true),
            DeclaredType::Named(at) => json!({ "$ref": format!("#/$defs/{at}") }),
        }
    }

    fn closed(&self) -> Self {
        Self { is_closed: true, ..*self }
    }

    fn open(&self) -> Self {
        Self { is_closed: false, ..*self }
    }

    fn one_of(&self, options: &[DeclaredType]) -> Value {
        let is_present = |option: &&DeclaredType| {
            self.side == Side::Result || *self.types.resolve(option) != DeclaredType::Absent
        };
        let is_never = options.is_empty();
        let options: Vec<&DeclaredType> = options.iter().filter(is_present).collect();
        let is_object =
            |option: &&&DeclaredType| matches!(self.types.resolve(option), DeclaredType::Object(_));
        // As in TypeScript, a value may have the fields of several of the objects.
        let inner = if options.iter().filter(is_object).count() > 1 { self.open() } else { self.closed() };
        if options.is_empty() {
            return Value::Bool(!is_never);
        }
        json!({ "anyOf": options.into_iter().map(|option| inner.of(option)).collect::<Vec<_>>() })
    }

    fn object(&self, object: &DeclaredObject) -> Value {
        let properties: Map<String, Value> =
            object.fields.iter().map(|(name, field)| (name.clone(), self.closed().of(&field.ty))).collect();
        let required: Vec<&String> =
            object.fields.iter().filter(|(_, field)| !field.optional).map(|(name, _)| name).collect();
        let others = match &object.others {
            Some(others) => self.closed().of(others),
            None => Value::Bool(!self.is_closed),
        };
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": others,
        })
    }
}
