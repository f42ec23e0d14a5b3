//! Which values are the same and which one comes first.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether two values are the same. `1` and `1.0` are, and so are objects with their fields in another order.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_there =
                |(name, value): (&String, &Value)| right.get(name).is_some_and(|other| same(value, other));
            left.len() == right.len() && left.iter().all(is_there)
        }
        _ => left == right,
    }
}

/// The order of two numbers or two texts; `None` for everything else.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Exact, also where an integer has more digits than a double.
fn numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => whole_with_double(left, right.as_f64()?),
        (None, Some(right)) => whole_with_double(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn whole_with_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // JSON integers have 64 bits, so a double that the cast would clamp is larger or smaller than any of them.
    let floor = double.floor() as i128;
    let has_fraction = double.fract() != 0.0;
    Some(whole.cmp(&floor).then(if has_fraction { Ordering::Less } else { Ordering::Equal }))
}
