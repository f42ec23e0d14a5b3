//! Operators: logic, comparison, arithmetic, text tests.

use std::cell::RefCell;
use std::cmp::Ordering;

use regex::{Regex, RegexBuilder};
use rusqlite::Connection;
use rusqlite::types::{Value as Sql, ValueRef};

use super::{arguments, over_raw, over_values, truth};
use crate::cypher::error::met;
use crate::cypher::order::{Comparison, compare, equal};
use crate::cypher::value::{MAX_ITEMS, Value};

/// The most bytes that a compiled pattern may take; a larger one is refused, so no text can make the matcher swell.
const REGEX_BYTES: usize = 1 << 20;

/// Patterns that are kept compiled on each thread: a query applies one pattern to many rows.
const REGEX_KEPT: usize = 8;

/// How many letters of a pattern are shown when it cannot be used.
const SHOWN: usize = 80;

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    over_raw(connection, "cy_bool", 1, |context| match context.get_raw(0) {
        ValueRef::Null => Ok(Sql::Null),
        ValueRef::Integer(number) => Value::Bool(number != 0).into_sql(),
        _ => Err(met("InvalidArgumentType", "a condition gave no boolean")),
    })?;
    over_raw(connection, "cy_truth", 1, |context| match Value::read(context.get_raw(0))? {
        Value::Null => Ok(Sql::Null),
        Value::Bool(value) => Ok(Sql::Integer(i64::from(value))),
        other => Err(met("InvalidArgumentType", format!("a boolean is needed, this is {}", other.noun()))),
    })?;
    over_raw(connection, "cy_eq", 2, |context| {
        Ok(match (context.get_raw(0), context.get_raw(1)) {
            (ValueRef::Null, _) | (_, ValueRef::Null) => Sql::Null,
            (ValueRef::Text(one), ValueRef::Text(other)) => truth(Some(one == other)),
            (ValueRef::Integer(one), ValueRef::Integer(other)) => truth(Some(one == other)),
            (one, other) => truth(equal(&Value::read(one)?, &Value::read(other)?)),
        })
    })?;
    compared(connection, "cy_lt", Ordering::is_lt)?;
    compared(connection, "cy_le", Ordering::is_le)?;
    compared(connection, "cy_gt", Ordering::is_gt)?;
    compared(connection, "cy_ge", Ordering::is_ge)?;
    over_raw(connection, "cy_in", 2, |context| contains(&arguments(context)?).map(truth))?;
    over_values(connection, "cy_add", 2, add)?;
    over_values(connection, "cy_sub", 2, |values| {
        arithmetic(values, "-", i64::checked_sub, |one, other| one - other)
    })?;
    over_values(connection, "cy_mul", 2, |values| {
        arithmetic(values, "*", i64::checked_mul, |one, other| one * other)
    })?;
    over_values(connection, "cy_div", 2, |values| {
        not_by_zero(values)?;
        arithmetic(values, "/", i64::checked_div, |one, other| one / other)
    })?;
    over_values(connection, "cy_mod", 2, |values| {
        not_by_zero(values)?;
        arithmetic(values, "%", |one, other| Some(one.wrapping_rem(other)), |one, other| one % other)
    })?;
    over_values(connection, "cy_pow", 2, |values| match values {
        [Value::Null, _] | [_, Value::Null] => Ok(Value::Null),
        [one, other] => match (float(one), float(other)) {
            (Some(one), Some(other)) => Ok(Value::Float(one.powf(other))),
            _ => Err(no_numbers("^", one, other)),
        },
        _ => Ok(Value::Null),
    })?;
    over_values(connection, "cy_neg", 1, |values| match values {
        [Value::Int(number)] => number.checked_neg().map(Value::Int).ok_or_else(overflow),
        [Value::Float(number)] => Ok(Value::Float(-number)),
        [Value::Null] | [] => Ok(Value::Null),
        [other, ..] => {
            Err(met("InvalidArgumentType", format!("`-` needs a number, this is {}", other.noun())))
        }
    })?;
    over_raw(connection, "cy_starts", 2, |context| {
        texts(&arguments(context)?, |one, other| one.starts_with(other))
    })?;
    over_raw(connection, "cy_ends", 2, |context| {
        texts(&arguments(context)?, |one, other| one.ends_with(other))
    })?;
    over_raw(connection, "cy_contains", 2, |context| {
        texts(&arguments(context)?, |one, other| one.contains(other))
    })?;
    over_raw(connection, "cy_regex", 2, |context| matches(&arguments(context)?))
}

fn compared(connection: &Connection, name: &str, holds: fn(Ordering) -> bool) -> rusqlite::Result<()> {
    over_raw(connection, name, 2, move |context| {
        let (one, other) = (Value::read(context.get_raw(0))?, Value::read(context.get_raw(1))?);
        Ok(match compare(&one, &other) {
            Comparison::Unknown => Sql::Null,
            Comparison::False => truth(Some(false)),
            Comparison::Known(ordering) => truth(Some(holds(ordering))),
        })
    })
}

fn contains(values: &[Value]) -> rusqlite::Result<Option<bool>> {
    match values {
        [_, Value::Null] => Ok(None),
        [wanted, Value::List(items)] => {
            let mut unknown = false;
            for item in items {
                match equal(wanted, item) {
                    Some(true) => return Ok(Some(true)),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            Ok((!unknown).then_some(false))
        }
        [_, other] => Err(met("InvalidArgumentType", format!("IN needs a list, this is {}", other.noun()))),
        _ => Ok(None),
    }
}

/// The number as a float, if it is a number.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "this is what mixing integers and floats means")]
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

pub(super) fn overflow() -> rusqlite::Error {
    met("IntegerOverflow", "an integer is beyond 64 bits")
}

fn no_numbers(operator: &str, one: &Value, other: &Value) -> rusqlite::Error {
    let message = format!("`{operator}` cannot be used with {} and {}", one.noun(), other.noun());
    met("InvalidArgumentType", message)
}

fn arithmetic(
    values: &[Value],
    operator: &str,
    integers: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> rusqlite::Result<Value> {
    match values {
        [Value::Null, _] | [_, Value::Null] => Ok(Value::Null),
        [Value::Int(one), Value::Int(other)] => integers(*one, *other).map(Value::Int).ok_or_else(overflow),
        [one, other] => match (float(one), float(other)) {
            (Some(one), Some(other)) => Ok(Value::Float(floats(one, other))),
            _ => Err(no_numbers(operator, one, other)),
        },
        _ => Ok(Value::Null),
    }
}

fn not_by_zero(values: &[Value]) -> rusqlite::Result<()> {
    match values {
        [Value::Int(_), Value::Int(0)] => Err(met("InvalidArgumentValue", "an integer is divided by zero")),
        _ => Ok(()),
    }
}

fn add(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Null, _] | [_, Value::Null] => Ok(Value::Null),
        [Value::List(one), Value::List(other)] => list(one.iter().chain(other).cloned().collect()),
        [Value::List(one), other] => list(one.iter().chain([other]).cloned().collect()),
        [one, Value::List(other)] => list([one].into_iter().chain(other).cloned().collect()),
        [Value::Text(one), Value::Text(other)] => Ok(Value::Text(format!("{one}{other}"))),
        [Value::Text(one), other @ (Value::Int(_) | Value::Float(_))] => {
            Ok(Value::Text(format!("{one}{}", super::conversion::spell(other))))
        }
        [one @ (Value::Int(_) | Value::Float(_)), Value::Text(other)] => {
            Ok(Value::Text(format!("{}{other}", super::conversion::spell(one))))
        }
        _ => arithmetic(values, "+", i64::checked_add, |one, other| one + other),
    }
}

/// A list, if it is not too long.
pub(super) fn list(items: Vec<Value>) -> rusqlite::Result<Value> {
    if items.len() > MAX_ITEMS {
        return Err(met("LimitExceeded", format!("a list has more than {MAX_ITEMS} items")));
    }
    Ok(Value::List(items))
}

/// A test of two texts; unknown when one is not text.
fn texts(values: &[Value], holds: fn(&str, &str) -> bool) -> rusqlite::Result<Sql> {
    Ok(match values {
        [Value::Text(one), Value::Text(other)] => truth(Some(holds(one, other))),
        _ => Sql::Null,
    })
}

thread_local! {
    static PATTERNS: RefCell<Vec<(String, Regex)>> = const { RefCell::new(Vec::new()) };
}

/// The regular expression of a text, for whole texts.
///
/// # Errors
/// Why it cannot be used, in one line.
pub(crate) fn regex(pattern: &str) -> Result<Regex, String> {
    let built = |text: &str| RegexBuilder::new(text).size_limit(REGEX_BYTES).build();
    // By itself first: what is said is about the text that was given, and `a)(b` does not become right between brackets.
    built(pattern).and_then(|_| built(&format!("^(?:{pattern})$"))).map_err(|error| {
        let why = match error {
            regex::Error::CompiledTooBig(bytes) => format!("it takes more than {bytes} bytes"),
            other => {
                let text = other.to_string();
                let last = text.lines().last().unwrap_or_default().trim();
                last.strip_prefix("error: ").unwrap_or(last).to_owned()
            }
        };
        let shown = tgp_text::truncate(pattern, SHOWN);
        format!("`{shown}` is not a regular expression that can be used: {why}")
    })
}

fn matches(values: &[Value]) -> rusqlite::Result<Sql> {
    let [Value::Text(text), Value::Text(pattern)] = values else { return Ok(Sql::Null) };
    PATTERNS.with_borrow_mut(|kept| {
        if let Some((_, regex)) = kept.iter().find(|(source, _)| source == pattern) {
            return Ok(truth(Some(regex.is_match(text))));
        }
        let regex = regex(pattern).map_err(|message| met("InvalidArgument", message))?;
        let holds = regex.is_match(text);
        if kept.len() >= REGEX_KEPT {
            kept.remove(0);
        }
        kept.push((pattern.clone(), regex));
        Ok(truth(Some(holds)))
    })
}
