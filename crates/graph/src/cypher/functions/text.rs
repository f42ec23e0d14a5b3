//! Functions of text. Places and lengths count characters.

use crate::cypher::error::met;
use crate::cypher::value::Value;

fn wrong(function: &str, value: &Value) -> rusqlite::Error {
    met("InvalidArgumentType", format!("`{function}` needs a string, this is {}", value.noun()))
}

fn unary(function: &str, values: &[Value], run: impl Fn(&str) -> Value) -> rusqlite::Result<Value> {
    match values {
        [Value::Text(text)] => Ok(run(text)),
        [other] => Err(wrong(function, other)),
        _ => Ok(Value::Null),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub(super) fn to_upper(values: &[Value]) -> rusqlite::Result<Value> {
    unary("toUpper", values, |value| Value::Text(value.to_uppercase()))
}

pub(super) fn to_lower(values: &[Value]) -> rusqlite::Result<Value> {
    unary("toLower", values, |value| Value::Text(value.to_lowercase()))
}

pub(super) fn trim(values: &[Value]) -> rusqlite::Result<Value> {
    unary("trim", values, |value| text(value.trim()))
}

pub(super) fn trim_left(values: &[Value]) -> rusqlite::Result<Value> {
    unary("lTrim", values, |value| text(value.trim_start()))
}

pub(super) fn trim_right(values: &[Value]) -> rusqlite::Result<Value> {
    unary("rTrim", values, |value| text(value.trim_end()))
}

pub(super) fn length(values: &[Value]) -> rusqlite::Result<Value> {
    unary("char_length", values, |value| Value::Int(i64::try_from(value.chars().count()).unwrap_or(i64::MAX)))
}

pub(super) fn replace(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Text(value), Value::Text(old), Value::Text(new)] => {
            // The result may be as long as the product of both: bounded before it is made.
            let places = value.matches(old.as_str()).count();
            if places.saturating_mul(new.len()) > MAX_TEXT {
                return Err(met("LimitExceeded", format!("a string would have more than {MAX_TEXT} bytes")));
            }
            Ok(Value::Text(value.replace(old.as_str(), new)))
        }
        values => Err(wrong("replace", first_other(values))),
    }
}

/// The longest text that a function makes.
const MAX_TEXT: usize = 16 << 20;

pub(super) fn split(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Text(value), Value::Text(at)] if at.is_empty() => {
            super::operators::list(value.chars().map(|letter| Value::Text(letter.to_string())).collect())
        }
        [Value::Text(value), Value::Text(at)] => {
            super::operators::list(value.split(at.as_str()).map(text).collect())
        }
        values => Err(wrong("split", first_other(values))),
    }
}

fn first_other(values: &[Value]) -> &Value {
    values.iter().find(|value| !matches!(value, Value::Text(_))).unwrap_or(&Value::Null)
}

fn count(function: &str, value: &Value) -> rusqlite::Result<usize> {
    match value {
        Value::Int(number) => usize::try_from(*number).map_err(|_| {
            met("NumberOutOfRange", format!("`{function}` needs a number that is not negative"))
        }),
        other => Err(met(
            "InvalidArgumentType",
            format!("`{function}` needs an integer, this is {}", other.noun()),
        )),
    }
}

pub(super) fn substring(values: &[Value]) -> rusqlite::Result<Value> {
    let (value, start, length) = match values {
        [Value::Text(value), start] => (value, count("substring", start)?, usize::MAX),
        [Value::Text(value), start, length] => {
            (value, count("substring", start)?, count("substring", length)?)
        }
        values => return Err(wrong("substring", first_other(values))),
    };
    Ok(Value::Text(value.chars().skip(start).take(length).collect()))
}

pub(super) fn left(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Text(value), length] => Ok(Value::Text(value.chars().take(count("left", length)?).collect())),
        values => Err(wrong("left", first_other(values))),
    }
}

pub(super) fn right(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Text(value), length] => {
            let skipped = value.chars().count().saturating_sub(count("right", length)?);
            Ok(Value::Text(value.chars().skip(skipped).collect()))
        }
        values => Err(wrong("right", first_other(values))),
    }
}
