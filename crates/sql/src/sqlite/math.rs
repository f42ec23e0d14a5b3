//! SQLite's mathematical functions, which the bundled library is built without.
//!
//! As in SQLite's own, a value that is not a number and a result that does not exist are NULL.

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};

/// The same numbers give the same result, and a view or a trigger may use them.
const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

/// Functions of one number.
type OfOne = (&'static str, fn(f64) -> f64);
type OfTwo = (&'static str, fn(f64, f64) -> f64);

const OF_ONE: [OfOne; 20] = [
    ("acos", f64::acos),
    ("acosh", f64::acosh),
    ("asin", f64::asin),
    ("asinh", f64::asinh),
    ("atan", f64::atan),
    ("atanh", f64::atanh),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("degrees", f64::to_degrees),
    ("exp", f64::exp),
    ("ln", f64::ln),
    ("log", f64::log10),
    ("log10", f64::log10),
    ("log2", f64::log2),
    ("radians", f64::to_radians),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

/// Functions of two numbers.
const OF_TWO: [OfTwo; 5] = [
    ("atan2", f64::atan2),
    ("log", |base, number| number.ln() / base.ln()),
    ("mod", |number, divisor| number % divisor),
    ("pow", f64::powf),
    ("power", f64::powf),
];

/// Functions that leave an integer as it is.
const ROUNDING: [OfOne; 4] =
    [("ceil", f64::ceil), ("ceiling", f64::ceil), ("floor", f64::floor), ("trunc", f64::trunc)];

pub(super) fn install(database: &Connection) -> rusqlite::Result<()> {
    for (name, function) in OF_ONE {
        database.create_scalar_function(name, 1, FLAGS, move |context| {
            Ok(number(context, 0).map(function).and_then(existing))
        })?;
    }
    for (name, function) in OF_TWO {
        database.create_scalar_function(name, 2, FLAGS, move |context| {
            let both = number(context, 0).zip(number(context, 1));
            Ok(both.map(|(first, second)| function(first, second)).and_then(existing))
        })?;
    }
    for (name, function) in ROUNDING {
        database.create_scalar_function(name, 1, FLAGS, move |context| {
            Ok(match context.get_raw(0) {
                ValueRef::Integer(value) => Value::Integer(value),
                _ => number(context, 0).map_or(Value::Null, |value| Value::Real(function(value))),
            })
        })?;
    }
    database.create_scalar_function("pi", 0, FLAGS, |_| Ok(std::f64::consts::PI))
}

#[expect(clippy::cast_precision_loss, reason = "SQLite computes with doubles too")]
fn number(context: &Context<'_>, index: usize) -> Option<f64> {
    match context.get_raw(index) {
        ValueRef::Integer(value) => Some(value as f64),
        ValueRef::Real(value) => Some(value),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

/// A result that is a number.
fn existing(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}
