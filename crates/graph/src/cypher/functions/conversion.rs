//! Functions from one type to another.

use crate::cypher::error::met;
use crate::cypher::temporal::{Date, DateTime};
use crate::cypher::value::Value;

/// How much of a text is shown that cannot be read.
const MOST_SHOWN: usize = 40;

fn wrong(function: &str, value: &Value) -> rusqlite::Error {
    met("InvalidArgumentValue", format!("`{function}` cannot convert {}", value.noun()))
}

/// A number as `toString` and `+` write it.
pub(super) fn spell(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Float(number) if number.is_infinite() => {
            if *number > 0.0 {
                "Infinity".to_owned()
            } else {
                "-Infinity".to_owned()
            }
        }
        Value::Float(number) => format!("{number:?}"),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => text.clone(),
        Value::Date(date) => date.to_text(),
        Value::DateTime(time) => time.to_text(),
        _ => String::new(),
    }
}

pub(super) fn to_text(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [
            value @ (Value::Int(_)
            | Value::Float(_)
            | Value::Bool(_)
            | Value::Text(_)
            | Value::Date(_)
            | Value::DateTime(_)),
        ] => Ok(Value::Text(spell(value))),
        [other] => Err(wrong("toString", other)),
        _ => Ok(Value::Null),
    }
}

/// `date('2026-11-18')`, and the date of a point in time.
pub(super) fn to_date(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Date(date)] => Ok(Value::Date(*date)),
        [Value::DateTime(time)] => Ok(Value::Date(time.date())),
        [Value::Text(text)] => {
            let date = Date::parse(text).or_else(|| Some(DateTime::parse(text)?.date()));
            date.map(Value::Date).ok_or_else(|| not_iso("date", text, "2026-11-18"))
        }
        [other] => Err(only_texts("date", other)),
        _ => Ok(Value::Null),
    }
}

/// `datetime('2026-11-18T09:30:00Z')`, and midnight of a date.
pub(super) fn to_date_time(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::DateTime(time)] => Ok(Value::DateTime(*time)),
        [Value::Date(date)] => Ok(DateTime::parse(&date.to_text()).map_or(Value::Null, Value::DateTime)),
        // The rules of named zones change with the years; the graph has none of their tables.
        [Value::Text(text)] if text.ends_with(']') && text.contains('[') => Err(met(
            "Unsupported",
            "a named time zone is not supported; write the distance from UTC, as in `+02:00`",
        )),
        [Value::Text(text)] => DateTime::parse(text)
            .map(Value::DateTime)
            .ok_or_else(|| not_iso("datetime", text, "2026-11-18T09:30:00Z")),
        [other] => Err(only_texts("datetime", other)),
        _ => Ok(Value::Null),
    }
}

fn not_iso(function: &str, text: &str, example: &str) -> rusqlite::Error {
    let text = tgp_text::one_line(text, MOST_SHOWN);
    met("InvalidArgumentValue", format!("`{function}` cannot read '{text}'; write it as '{example}'"))
}

fn only_texts(function: &str, value: &Value) -> rusqlite::Error {
    met("Unsupported", format!("`{function}` of {} is not supported: it reads texts", value.noun()))
}

pub(super) fn to_integer(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Int(number)] => Ok(Value::Int(*number)),
        [Value::Bool(value)] => Ok(Value::Int(i64::from(*value))),
        [Value::Float(number)] => Ok(whole(*number)),
        [Value::Text(text)] => {
            let text = text.trim();
            Ok(match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(number), _) => Value::Int(number),
                (_, Ok(number)) => whole(number),
                _ => Value::Null,
            })
        }
        [other] => Err(wrong("toInteger", other)),
        _ => Ok(Value::Null),
    }
}

/// The whole part, where it is an integer of 64 bits.
fn whole(number: f64) -> Value {
    if number.is_finite() && number.abs() < 9.223_372_036_854_775e18 {
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        let number = number.trunc() as i64;
        return Value::Int(number);
    }
    Value::Null
}

pub(super) fn to_float(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Float(number)] => Ok(Value::Float(*number)),
        [value @ Value::Int(_)] => Ok(super::operators::float(value).map_or(Value::Null, Value::Float)),
        [Value::Text(text)] => Ok(text.trim().parse().map_or(Value::Null, Value::Float)),
        [other] => Err(wrong("toFloat", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn to_boolean(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::Int(number)] => Ok(Value::Bool(*number != 0)),
        [Value::Text(text)] => Ok(match text.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Null,
        }),
        [other] => Err(wrong("toBoolean", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn to_text_or_null(values: &[Value]) -> rusqlite::Result<Value> {
    Ok(to_text(values).unwrap_or(Value::Null))
}

pub(super) fn to_integer_or_null(values: &[Value]) -> rusqlite::Result<Value> {
    Ok(to_integer(values).unwrap_or(Value::Null))
}

pub(super) fn to_float_or_null(values: &[Value]) -> rusqlite::Result<Value> {
    Ok(to_float(values).unwrap_or(Value::Null))
}

pub(super) fn to_boolean_or_null(values: &[Value]) -> rusqlite::Result<Value> {
    Ok(to_boolean(values).unwrap_or(Value::Null))
}
