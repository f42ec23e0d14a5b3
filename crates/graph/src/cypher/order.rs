//! Equality and comparison with Cypher's third answer, null.

use std::cmp::Ordering;

use super::temporal::DateTime;
use super::value::Value;

/// Whether two values are equal; nothing when null makes that unknown.
pub(crate) fn equal(one: &Value, other: &Value) -> Option<bool> {
    match (one, other) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Bool(one), Value::Bool(other)) => Some(one == other),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            Some(numbers(one, other) == Some(Ordering::Equal))
        }
        (Value::Text(one), Value::Text(other)) => Some(one == other),
        (Value::List(one), Value::List(other)) => {
            if one.len() != other.len() {
                return Some(false);
            }
            every(one.iter().zip(other).map(|(one, other)| equal(one, other)))
        }
        (Value::Map(one), Value::Map(other)) => {
            let get = |key: &str| other.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            if one.len() != other.len() || one.iter().any(|(key, _)| get(key).is_none()) {
                return Some(false);
            }
            every(one.iter().map(|(key, value)| get(key).map_or(Some(false), |other| equal(value, other))))
        }
        (Value::Node(one), Value::Node(other)) | (Value::Relationship(one), Value::Relationship(other)) => {
            Some(one.id == other.id)
        }
        (Value::Path(one), Value::Path(other)) => {
            Some(one.iter().map(|entity| entity.id).eq(other.iter().map(|entity| entity.id)))
        }
        _ => Some(times(one, other) == Some(Ordering::Equal)),
    }
}

/// How two dates or points in time compare. The time of a commit is a text: beside one of them it is read as one.
fn times(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Date(one), Value::Date(other)) => Some(one.cmp(other)),
        (Value::DateTime(one), Value::DateTime(other)) => {
            Some((one.seconds, one.nanos).cmp(&(other.seconds, other.nanos)))
        }
        (Value::Text(text), Value::Date(date)) => Some(DateTime::parse(text)?.date().cmp(date)),
        (Value::Text(text), Value::DateTime(_)) => times(&Value::DateTime(DateTime::parse(text)?), other),
        (Value::Date(_) | Value::DateTime(_), Value::Text(_)) => times(other, one).map(Ordering::reverse),
        _ => None,
    }
}

/// Conjunction: one false decides, else one unknown does.
fn every(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for part in parts {
        match part {
            Some(false) => return Some(false),
            None => known = false,
            Some(true) => {}
        }
    }
    known.then_some(true)
}

/// How two values compare.
pub(crate) enum Comparison {
    /// Null, or types that have no order between them.
    Unknown,
    /// A value that is not a number: every comparison with a number is false.
    False,
    Known(Ordering),
}

pub(crate) fn compare(one: &Value, other: &Value) -> Comparison {
    match (one, other) {
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            numbers(one, other).map_or(Comparison::False, Comparison::Known)
        }
        (Value::Text(one), Value::Text(other)) => Comparison::Known(one.cmp(other)),
        (Value::Bool(one), Value::Bool(other)) => Comparison::Known(one.cmp(other)),
        (Value::List(one), Value::List(other)) => {
            for (one, other) in one.iter().zip(other) {
                match compare(one, other) {
                    Comparison::Known(Ordering::Equal) => {}
                    decided => return decided,
                }
            }
            Comparison::Known(one.len().cmp(&other.len()))
        }
        _ => times(one, other).map_or(Comparison::Unknown, Comparison::Known),
    }
}

/// The exact order of two numbers, also where a float cannot hold the integer.
fn numbers(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Float(one), Value::Float(other)) => one.partial_cmp(other),
        (Value::Int(one), Value::Float(other)) => mixed(*one, *other),
        (Value::Float(one), Value::Int(other)) => mixed(*other, *one).map(Ordering::reverse),
        _ => None,
    }
}

fn mixed(integer: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Beyond the range of i64 the float decides alone; within it, its whole part is exact in an i128.
    if float >= 9.3e18 {
        return Some(Ordering::Less);
    }
    if float <= -9.3e18 {
        return Some(Ordering::Greater);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    let whole = float.trunc() as i128;
    Some(i128::from(integer).cmp(&whole).then_with(|| 0.0_f64.total_cmp(&(float.fract() + 0.0))))
}
