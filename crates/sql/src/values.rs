//! Values that are the same in every database: exact numbers out, JSON in, bytes as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};
use tgp_contract::ToolError;

use crate::failure::esql;

/// Beyond this a JavaScript number skips integers.
const LARGEST_EXACT: i64 = 1 << 53;

/// The key of the one way to pass bytes: `{"$base64": "aGk="}`.
const BYTES_KEY: &str = "$base64";

/// A parameter as the databases see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Parameter {
    Null,
    Bool(bool),
    Integer(i64),
    /// Only for numbers above `i64::MAX`.
    Unsigned(u64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// An array or an object.
    Json(Value),
}

impl Parameter {
    /// Reads a JSON value; `name` is for the message.
    pub fn read(value: &Value, name: &str) -> Result<Self, ToolError> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Self::Integer(value),
                (None, Some(value), _) => Self::Unsigned(value),
                (None, None, Some(value)) => Self::Float(value),
                (None, None, None) => {
                    return Err(esql(format!("the number of parameter {name} has no value")));
                }
            },
            Value::String(text) => Self::Text(text.clone()),
            Value::Object(fields) if fields.len() == 1 && fields.contains_key(BYTES_KEY) => {
                let encoded =
                    fields.get(BYTES_KEY).and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
                Self::Bytes(encoded.ok_or_else(|| {
                    esql(format!("the bytes of parameter {name} are not base64"))
                        .help("pass bytes as {\"$base64\": \"aGk=\"}")
                })?)
            }
            Value::Array(_) | Value::Object(_) => Self::Json(value.clone()),
        })
    }
}

/// An integer as a number where JavaScript keeps it exact, else as its digits.
pub(crate) fn integer(value: i64) -> Value {
    if (-LARGEST_EXACT..=LARGEST_EXACT).contains(&value) { value.into() } else { value.to_string().into() }
}

pub(crate) fn unsigned(value: u64) -> Value {
    i64::try_from(value).map_or_else(|_| value.to_string().into(), integer)
}

/// A float as a number; what JSON cannot write is a string.
pub(crate) fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// A 32-bit float with the digits it was written with: 0.1, not 0.10000000149011612.
pub(crate) fn small_float(value: f32) -> Value {
    float(value.to_string().parse().unwrap_or_else(|_| f64::from(value)))
}

pub(crate) fn bytes(value: &[u8]) -> Value {
    STANDARD.encode(value).into()
}

/// JSON of the database as JSON, its large integers as digits like any other; a text that is none stays a text.
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).map_or_else(|_| text.into(), exact)
}

/// The parser has bounded the depth.
fn exact(value: Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => integer(value),
            (None, Some(value)) => unsigned(value),
            (None, None) => Value::Number(number),
        },
        Value::Array(values) => values.into_iter().map(exact).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, exact(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// A fraction of a second in microseconds, without trailing zeros and with its point; empty when there is none.
pub(crate) fn fraction(microseconds: u32) -> String {
    if microseconds == 0 {
        return String::new();
    }
    format!(".{microseconds:06}").trim_end_matches('0').to_owned()
}
