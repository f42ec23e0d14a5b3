//! Functions of lists, maps and paths.

use crate::cypher::error::met;
use crate::cypher::value::{Entity, MAX_ITEMS, Value};

fn wrong(function: &str, needed: &str, value: &Value) -> rusqlite::Error {
    met("InvalidArgumentType", format!("`{function}` needs {needed}, this is {}", value.noun()))
}

fn integer(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

pub(super) fn size(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::List(items)] => Ok(integer(items.len())),
        [Value::Text(text)] => Ok(integer(text.chars().count())),
        [other] => Err(wrong("size", "a list or a string", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn is_empty(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::List(items)] => Ok(Value::Bool(items.is_empty())),
        [Value::Map(entries)] => Ok(Value::Bool(entries.is_empty())),
        [Value::Text(text)] => Ok(Value::Bool(text.is_empty())),
        [other] => Err(wrong("isEmpty", "a list, a map or a string", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn length(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Path(entities)] => Ok(integer(entities.len() / 2)),
        [other] => Err(wrong("length", "a path", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn head(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::List(items)] => Ok(items.first().cloned().unwrap_or(Value::Null)),
        [other] => Err(wrong("head", "a list", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn last(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::List(items)] => Ok(items.last().cloned().unwrap_or(Value::Null)),
        [other] => Err(wrong("last", "a list", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn tail(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::List(items)] => Ok(Value::List(items.get(1..).map(<[Value]>::to_vec).unwrap_or_default())),
        [other] => Err(wrong("tail", "a list", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn reverse(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::List(items)] => Ok(Value::List(items.iter().rev().cloned().collect())),
        [Value::Text(text)] => Ok(Value::Text(text.chars().rev().collect())),
        [other] => Err(wrong("reverse", "a list or a string", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn range(values: &[Value]) -> rusqlite::Result<Value> {
    let mut numbers = [0, 0, 1];
    for (place, value) in numbers.iter_mut().zip(values) {
        match value {
            Value::Int(number) => *place = *number,
            other => return Err(wrong("range", "integers", other)),
        }
    }
    let [start, end, step] = numbers;
    if step == 0 {
        return Err(met("NumberOutOfRange", "the step of `range` must not be 0"));
    }
    let span = (i128::from(end) - i128::from(start)) / i128::from(step);
    if (step > 0 && end < start) || (step < 0 && end > start) {
        return Ok(Value::List(Vec::new()));
    }
    let count = usize::try_from(span + 1).unwrap_or(usize::MAX);
    if count > MAX_ITEMS {
        return Err(met("LimitExceeded", format!("`range` would have more than {MAX_ITEMS} items")));
    }
    let mut items = Vec::with_capacity(count);
    let mut next = start;
    for _ in 0..count {
        items.push(Value::Int(next));
        next = next.saturating_add(step);
    }
    Ok(Value::List(items))
}

fn of_path(
    function: &str,
    values: &[Value],
    skip: usize,
    make: fn(Entity) -> Value,
) -> rusqlite::Result<Value> {
    match values {
        [Value::Path(entities)] => {
            Ok(Value::List(entities.iter().skip(skip).step_by(2).copied().map(make).collect()))
        }
        [other] => Err(wrong(function, "a path", other)),
        _ => Ok(Value::Null),
    }
}

pub(super) fn nodes(values: &[Value]) -> rusqlite::Result<Value> {
    of_path("nodes", values, 0, Value::Node)
}

pub(super) fn relationships(values: &[Value]) -> rusqlite::Result<Value> {
    of_path("relationships", values, 1, Value::Relationship)
}

/// The keys of a map; nodes and relationships come here as the map of their properties.
pub(super) fn keys(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Map(entries)] => {
            Ok(Value::List(entries.iter().map(|(key, _)| Value::Text(key.clone())).collect()))
        }
        [Value::Null] | [] => Ok(Value::Null),
        [other, ..] => Err(wrong("keys", "a node, a relationship or a map", other)),
    }
}

pub(super) fn properties(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [value @ (Value::Map(_) | Value::Null)] => Ok(value.clone()),
        [other, ..] => Err(wrong("properties", "a node, a relationship or a map", other)),
        [] => Ok(Value::Null),
    }
}
