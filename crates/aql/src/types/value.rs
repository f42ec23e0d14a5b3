//! Values against types: whether one fits, where it does not, and the JSON Schema that describes the same to a
//! model.

use serde_json::{Map, Number, Value, json};
use tgp_text::truncate;

use super::{QueryType, Record};

/// Choices and fields that a message names; a model reads them too, so there must not be hundreds.
const MAX_NAMED: usize = 12;
/// Characters of a text that a message shows.
const MAX_SHOWN_CHARS: usize = 60;
/// Levels of a type that a message spells out.
const MAX_SPELLED_LEVELS: usize = 3;
/// Two to the power of 63: the first double that is too large for an `Int`. Its negative is the least that is not.
const INT_END: f64 = 9_223_372_036_854_775_808.0;

/// Where a value is not what its type says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Such as `findings[0].note`; empty for the value itself.
    pub path: String,
    pub expected: String,
    pub found: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(formatter, "`{}`: ", self.path)?;
        }
        write!(formatter, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for Mismatch {}

impl QueryType {
    /// Whether `value` is one of this type.
    ///
    /// # Errors
    /// The first place where it is not.
    pub fn check(&self, value: &Value) -> Result<(), Mismatch> {
        check(self, value, &mut String::new())
    }

    /// The value as one of this type: JSON knows no integers, so `1.0` and `1e3` become `1` and `1000` where an `Int` is
    /// meant. To be used wherever a value comes in from outside.
    ///
    /// # Errors
    /// The first place where it does not fit.
    pub fn admit(&self, mut value: Value) -> Result<Value, Mismatch> {
        self.check(&value)?;
        make_whole(self, &mut value);
        Ok(value)
    }

    /// A JSON Schema that takes the same values, but for integers that are out of range: few models know of bounds.
    #[must_use]
    pub fn to_schema(&self) -> Value {
        match self {
            QueryType::Any => json!({}),
            QueryType::String => json!({ "type": "string" }),
            QueryType::Int => json!({ "type": "integer" }),
            QueryType::Float => json!({ "type": "number" }),
            QueryType::Bool => json!({ "type": "boolean" }),
            QueryType::Null => json!({ "type": "null" }),
            QueryType::Choice(texts) => json!({ "enum": texts }),
            QueryType::List(of) => json!({ "type": "array", "items": of.to_schema() }),
            QueryType::Record(record) => record_schema(record),
            QueryType::OneOf(types) => {
                json!({ "anyOf": types.iter().map(QueryType::to_schema).collect::<Vec<_>>() })
            }
        }
    }
}

fn record_schema(record: &Record) -> Value {
    let properties: Map<String, Value> =
        record.fields.iter().map(|(name, field)| (name.clone(), field.ty.to_schema())).collect();
    let required: Vec<&String> =
        record.fields.iter().filter(|(_, field)| !field.optional).map(|(name, _)| name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": record.open,
    })
}

/// `path` is the position of `value`; it is as it was when this returns without a mismatch.
fn check(ty: &QueryType, value: &Value, path: &mut String) -> Result<(), Mismatch> {
    let fits = match (ty, value) {
        (QueryType::Any, _)
        | (QueryType::String, Value::String(_))
        | (QueryType::Float, Value::Number(_)) => true,
        (QueryType::Bool, Value::Bool(_)) | (QueryType::Null, Value::Null) => true,
        (QueryType::Int, Value::Number(number)) => whole(number).is_some(),
        (QueryType::Choice(texts), Value::String(text)) => texts.contains(text),
        (QueryType::List(of), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                within(path, &format!("[{index}]"), |path| check(of, item, path))?;
            }
            true
        }
        (QueryType::Record(record), Value::Object(fields)) => return check_record(record, fields, path),
        (QueryType::OneOf(types), _) => return check_one_of(ty, types, value, path),
        _ => false,
    };
    if fits { Ok(()) } else { Err(Mismatch { path: path.clone(), expected: spell(ty), found: found(value) }) }
}

/// The integer that a number is, if it has no fraction and is in range.
fn whole(number: &Number) -> Option<i64> {
    if !number.is_f64() {
        return number.as_i64();
    }
    let double = number.as_f64().filter(|double| double.fract() == 0.0)?;
    let is_in_range = (-INT_END..INT_END).contains(&double);
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is in range")]
    is_in_range.then_some(double as i64)
}

/// Spells the integers of a value that fits its type without a point. Of several types the first that fits is meant.
fn make_whole(ty: &QueryType, value: &mut Value) {
    match (ty, value) {
        (QueryType::Int, Value::Number(number)) => {
            if let Some(integer) = whole(number) {
                *number = Number::from(integer);
            }
        }
        (QueryType::List(of), Value::Array(items)) => items.iter_mut().for_each(|item| make_whole(of, item)),
        (QueryType::Record(record), Value::Object(fields)) => {
            for (name, field) in &record.fields {
                if let Some(value) = fields.get_mut(name) {
                    make_whole(&field.ty, value);
                }
            }
        }
        (QueryType::OneOf(types), value) => {
            if let Some(ty) = types.iter().find(|ty| ty.check(value).is_ok()) {
                make_whole(ty, value);
            }
        }
        _ => {}
    }
}

fn check_record(record: &Record, fields: &Map<String, Value>, path: &mut String) -> Result<(), Mismatch> {
    for (name, field) in &record.fields {
        match fields.get(name) {
            Some(value) => within(path, &field_path(path, name), |path| check(&field.ty, value, path))?,
            None if field.optional => {}
            None => {
                let missing = field_path(path, name);
                let path = format!("{path}{missing}");
                return Err(Mismatch { path, expected: spell(&field.ty), found: "nothing".to_owned() });
            }
        }
    }
    let stranger = fields.keys().find(|name| !record.open && !record.fields.contains_key(*name));
    match stranger {
        None => Ok(()),
        Some(name) => {
            let known = names(record.fields.keys());
            let expected = if known.is_empty() { "no fields".to_owned() } else { format!("only {known}") };
            let found = format!("the field `{}`", shorten(name));
            Err(Mismatch { path: path.clone(), expected, found })
        }
    }
}

/// The mismatch of the only type that can be meant, or that of all of them.
fn check_one_of(ty: &QueryType, types: &[QueryType], value: &Value, path: &str) -> Result<(), Mismatch> {
    let mut meant = None;
    for one in types {
        let Err(mismatch) = check(one, value, &mut path.to_owned()) else { return Ok(()) };
        let is_alike = matches!(
            (one, value),
            (QueryType::List(_), Value::Array(_))
                | (QueryType::Record(_), Value::Object(_))
                | (QueryType::Choice(_), Value::String(_))
        );
        if is_alike {
            meant = if meant.is_none() { Some(Some(mismatch)) } else { Some(None) };
        }
    }
    Err(meant.flatten().unwrap_or_else(|| Mismatch {
        path: path.to_owned(),
        expected: spell(ty),
        found: found(value),
    }))
}

fn within(
    path: &mut String,
    segment: &str,
    inner: impl FnOnce(&mut String) -> Result<(), Mismatch>,
) -> Result<(), Mismatch> {
    let before = path.len();
    path.push_str(segment);
    inner(path)?;
    path.truncate(before);
    Ok(())
}

fn field_path(path: &str, name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    match (is_plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!(".{name}"),
        (false, _) => format!("[{:?}]", shorten(name)),
    }
}

/// A type for people, cut where it is long.
pub(crate) fn spell(ty: &QueryType) -> String {
    spelled(ty, MAX_SPELLED_LEVELS)
}

fn spelled(ty: &QueryType, levels: usize) -> String {
    match ty {
        QueryType::Any => "Any".to_owned(),
        QueryType::String => "String".to_owned(),
        QueryType::Int => "Int".to_owned(),
        QueryType::Float => "Float".to_owned(),
        QueryType::Bool => "Bool".to_owned(),
        QueryType::Null => "null".to_owned(),
        QueryType::Choice(texts) => {
            let shown = texts.iter().take(MAX_NAMED).map(|text| format!("{:?}", shorten(text)));
            let more = if texts.len() > MAX_NAMED { " | …" } else { "" };
            format!("{}{more}", shown.collect::<Vec<_>>().join(" | "))
        }
        QueryType::List(_) if levels == 0 => "a list".to_owned(),
        QueryType::List(of) => format!("[{}]", spelled(of, levels - 1)),
        QueryType::Record(_) if levels == 0 => "an object".to_owned(),
        QueryType::Record(record) => {
            let field = |(name, field): (&String, &super::Field)| {
                let mark = if field.optional { "?" } else { "" };
                format!("{name}{mark}: {}", spelled(&field.ty, levels - 1))
            };
            let shown: Vec<String> = record.fields.iter().take(MAX_NAMED).map(field).collect();
            let more = if record.fields.len() > MAX_NAMED || record.open { ", …" } else { "" };
            format!("{{ {}{more} }}", shown.join(", "))
        }
        QueryType::OneOf(types) => {
            let shown: Vec<String> = types.iter().take(MAX_NAMED).map(|one| spelled(one, levels)).collect();
            let more = if types.len() > MAX_NAMED { " or …" } else { "" };
            format!("{}{more}", shown.join(" or "))
        }
    }
}

/// A value for people: what it is, and as much of it as helps.
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => format!("{truth}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {:?}", shorten(text)),
        Value::Array(items) if items.len() == 1 => "a list of 1 value".to_owned(),
        Value::Array(items) => format!("a list of {} values", items.len()),
        Value::Object(fields) if fields.is_empty() => "an object without fields".to_owned(),
        Value::Object(fields) => format!("an object with {}", names(fields.keys())),
    }
}

/// Names in backticks, so many that they can be read.
pub(crate) fn names<'a>(all: impl ExactSizeIterator<Item = &'a String>) -> String {
    let rest = all.len().saturating_sub(MAX_NAMED);
    let shown: Vec<String> = all.take(MAX_NAMED).map(|name| format!("`{}`", shorten(name))).collect();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

fn shorten(text: &str) -> String {
    truncate(text, MAX_SHOWN_CHARS).into_owned()
}
