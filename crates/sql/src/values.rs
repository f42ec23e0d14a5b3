//! Values that are the same in every database: exact numbers out, JSON in, bytes as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use tgp_contract::ToolError;

use crate::failure::esql;

/// Beyond this a JavaScript number skips integers.
const LARGEST_EXACT: i64 = 1 << 53;

/// The keys of values that JSON does not have: `{"$base64": "aGk="}` is bytes, `{"$bigint": "9007199254740993"}` an integer
/// of 64 bits, `{"$date": "2026-11-17T02:00:00.000Z"}` a moment.
const BYTES_KEY: &str = "$base64";
const INTEGER_KEY: &str = "$bigint";
const TIME_KEY: &str = "$date";

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
    Time(UtcTime),
    /// An array or an object.
    Json(Value),
}

/// A moment with its text, which has the form `2026-11-17T02:00:00.000Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UtcTime {
    pub text: String,
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub millisecond: u16,
}

impl UtcTime {
    fn parse(text: &str) -> Option<Self> {
        const FORM: &str = "0000-00-00T00:00:00.000Z";
        let fits = text.len() == FORM.len()
            && text.bytes().zip(FORM.bytes()).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => byte == form,
            });
        if !fits {
            return None;
        }
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u16>().ok();
        let small = |range, most| {
            number(range).and_then(|value| u8::try_from(value).ok()).filter(|value| *value <= most)
        };
        Some(Self {
            text: text.to_owned(),
            year: number(0..4)?,
            month: small(5..7, 12).filter(|month| *month > 0)?,
            day: small(8..10, 31).filter(|day| *day > 0)?,
            hour: small(11..13, 23)?,
            minute: small(14..16, 59)?,
            second: small(17..19, 59)?,
            millisecond: number(20..23)?,
        })
    }
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
            Value::Object(fields) if fields.len() == 1 => match Self::tagged(fields, name) {
                Some(tagged) => tagged?,
                None => Self::Json(value.clone()),
            },
            Value::Array(_) | Value::Object(_) => Self::Json(value.clone()),
        })
    }
}

impl Parameter {
    /// A value that JSON does not have; nothing when `fields` is an object of the caller's.
    fn tagged(fields: &Map<String, Value>, name: &str) -> Option<Result<Self, ToolError>> {
        let (key, value) = fields.iter().next()?;
        let text = value.as_str();
        let (read, what, form) = match key.as_str() {
            BYTES_KEY => {
                let content = text.and_then(|text| STANDARD.decode(text).ok());
                (content.map(Self::Bytes), "bytes are not base64", r#"{"$base64": "aGk="}"#)
            }
            INTEGER_KEY => {
                let signed = text.and_then(|text| text.parse().ok()).map(Self::Integer);
                let unsigned = || text.and_then(|text| text.parse().ok()).map(Self::Unsigned);
                let form = r#"{"$bigint": "9007199254740993"}"#;
                (signed.or_else(unsigned), "integer does not have 64 bits", form)
            }
            TIME_KEY => {
                let time = text.and_then(UtcTime::parse).map(Self::Time);
                let form = r#"{"$date": "2026-11-17T02:00:00.000Z"}"#;
                (time, "date is not a moment of the years 0 to 9999", form)
            }
            _ => return None,
        };
        Some(read.ok_or_else(|| {
            esql(format!("parameter {name} cannot be read: its {what}")).help(format!("pass it as {form}"))
        }))
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
