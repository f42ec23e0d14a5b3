//! Functions of numbers.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::operators::{float, overflow};
use crate::cypher::error::met;
use crate::cypher::value::Value;

fn wrong(function: &str, value: &Value) -> rusqlite::Error {
    met("InvalidArgumentType", format!("`{function}` needs a number, this is {}", value.noun()))
}

fn unary(function: &str, values: &[Value], run: fn(f64) -> f64) -> rusqlite::Result<Value> {
    match values {
        [value] => float(value).map(|number| Value::Float(run(number))).ok_or_else(|| wrong(function, value)),
        _ => Ok(Value::Null),
    }
}

macro_rules! of_one_float {
    ($($name:ident $run:path;)*) => {
        $(pub(super) fn $name(values: &[Value]) -> rusqlite::Result<Value> {
            unary(stringify!($name), values, $run)
        })*
    };
}

of_one_float! {
    ceil f64::ceil;
    floor f64::floor;
    sqrt f64::sqrt;
    exp f64::exp;
    log f64::ln;
    log10 f64::log10;
    sin f64::sin;
    cos f64::cos;
    tan f64::tan;
    asin f64::asin;
    acos f64::acos;
    atan f64::atan;
    degrees f64::to_degrees;
    radians f64::to_radians;
}

pub(super) fn abs(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Int(number)] => number.checked_abs().map(Value::Int).ok_or_else(overflow),
        values => unary("abs", values, f64::abs),
    }
}

/// Halves go up, to the given number of digits.
pub(super) fn round(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [value, Value::Int(digits @ 0..=15)] => {
            let scale = 10_f64.powi(i32::try_from(*digits).unwrap_or(0));
            let number = float(value).ok_or_else(|| wrong("round", value))?;
            Ok(Value::Float((number * scale + 0.5).floor() / scale))
        }
        [_, digits] => Err(met(
            "InvalidArgumentValue",
            format!("`round` needs 0 to 15 digits, this is {}", digits.noun()),
        )),
        values => unary("round", values, |number| (number + 0.5).floor()),
    }
}

pub(super) fn sign(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Int(number)] => Ok(Value::Int(number.signum())),
        [value] => {
            let number = float(value).ok_or_else(|| wrong("sign", value))?;
            Ok(Value::Int(if number > 0.0 { 1 } else { -i64::from(number < 0.0) }))
        }
        _ => Ok(Value::Null),
    }
}

pub(super) fn atan2(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [one, other] => match (float(one), float(other)) {
            (Some(one), Some(other)) => Ok(Value::Float(one.atan2(other))),
            (None, _) => Err(wrong("atan2", one)),
            _ => Err(wrong("atan2", other)),
        },
        _ => Ok(Value::Null),
    }
}

pub(super) fn e(_: &[Value]) -> rusqlite::Result<Value> {
    Ok(Value::Float(std::f64::consts::E))
}

pub(super) fn pi(_: &[Value]) -> rusqlite::Result<Value> {
    Ok(Value::Float(std::f64::consts::PI))
}

pub(super) fn is_nan(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [value] => {
            float(value).map(|number| Value::Bool(number.is_nan())).ok_or_else(|| wrong("isNaN", value))
        }
        _ => Ok(Value::Null),
    }
}

/// A number from 0 to below 1. Nothing here is a secret, so the hasher's own random keys are enough.
pub(super) fn random() -> f64 {
    let bits = RandomState::new().hash_one(0) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a float")]
    let number = bits as f64 / (1_u64 << 53) as f64;
    number
}
