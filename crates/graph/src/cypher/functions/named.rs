//! The functions that a query calls by name.

use rusqlite::Connection;

use super::{Run, conversion, lists, numbers, over_values, text};
use crate::cypher::error::met_by;
use crate::cypher::execute::made;
use crate::cypher::types::Type;
use crate::cypher::value::Value;

/// A function of Cypher over values. Those that read the graph are the compiler's own.
pub(crate) struct Named {
    /// As it is written; found without regard to case.
    pub name: &'static str,
    pub least: usize,
    pub most: usize,
    pub gives: Type,
    /// The function is not called with null: that gives null.
    run: Run,
}

impl Named {
    /// Its name in SQL.
    pub fn sql(&self) -> String {
        format!("cy_f_{}", self.name.to_lowercase())
    }
}

const fn named(name: &'static str, least: usize, most: usize, gives: Type, run: Run) -> Named {
    Named { name, least, most, gives, run }
}

/// All of them.
pub(crate) static FUNCTIONS: &[Named] = &[
    named("abs", 1, 1, Type::Number, numbers::abs),
    named("ceil", 1, 1, Type::Float, numbers::ceil),
    named("floor", 1, 1, Type::Float, numbers::floor),
    named("round", 1, 2, Type::Float, numbers::round),
    named("sign", 1, 1, Type::Int, numbers::sign),
    named("sqrt", 1, 1, Type::Float, numbers::sqrt),
    named("exp", 1, 1, Type::Float, numbers::exp),
    named("log", 1, 1, Type::Float, numbers::log),
    named("log10", 1, 1, Type::Float, numbers::log10),
    named("sin", 1, 1, Type::Float, numbers::sin),
    named("cos", 1, 1, Type::Float, numbers::cos),
    named("tan", 1, 1, Type::Float, numbers::tan),
    named("asin", 1, 1, Type::Float, numbers::asin),
    named("acos", 1, 1, Type::Float, numbers::acos),
    named("atan", 1, 1, Type::Float, numbers::atan),
    named("atan2", 2, 2, Type::Float, numbers::atan2),
    named("degrees", 1, 1, Type::Float, numbers::degrees),
    named("radians", 1, 1, Type::Float, numbers::radians),
    named("e", 0, 0, Type::Float, numbers::e),
    named("pi", 0, 0, Type::Float, numbers::pi),
    named("isNaN", 1, 1, Type::Bool, numbers::is_nan),
    named("toUpper", 1, 1, Type::Text, text::to_upper),
    named("toLower", 1, 1, Type::Text, text::to_lower),
    named("upper", 1, 1, Type::Text, text::to_upper),
    named("lower", 1, 1, Type::Text, text::to_lower),
    named("trim", 1, 1, Type::Text, text::trim),
    named("lTrim", 1, 1, Type::Text, text::trim_left),
    named("rTrim", 1, 1, Type::Text, text::trim_right),
    named("btrim", 1, 1, Type::Text, text::trim),
    named("replace", 3, 3, Type::Text, text::replace),
    named("split", 2, 2, Type::Any, text::split),
    named("substring", 2, 3, Type::Text, text::substring),
    named("left", 2, 2, Type::Text, text::left),
    named("right", 2, 2, Type::Text, text::right),
    named("char_length", 1, 1, Type::Int, text::length),
    named("toString", 1, 1, Type::Text, conversion::to_text),
    named("toStringOrNull", 1, 1, Type::Text, conversion::to_text_or_null),
    named("toInteger", 1, 1, Type::Int, conversion::to_integer),
    named("toIntegerOrNull", 1, 1, Type::Int, conversion::to_integer_or_null),
    named("toFloat", 1, 1, Type::Float, conversion::to_float),
    named("toFloatOrNull", 1, 1, Type::Float, conversion::to_float_or_null),
    named("toBoolean", 1, 1, Type::Bool, conversion::to_boolean),
    named("toBooleanOrNull", 1, 1, Type::Bool, conversion::to_boolean_or_null),
    named("date", 1, 1, Type::Any, conversion::to_date),
    named("datetime", 1, 1, Type::Any, conversion::to_date_time),
    named("size", 1, 1, Type::Int, lists::size),
    named("isEmpty", 1, 1, Type::Bool, lists::is_empty),
    named("length", 1, 1, Type::Int, lists::length),
    named("head", 1, 1, Type::Any, lists::head),
    named("last", 1, 1, Type::Any, lists::last),
    named("tail", 1, 1, Type::Any, lists::tail),
    named("reverse", 1, 1, Type::Any, lists::reverse),
    named("range", 2, 3, Type::Any, lists::range),
    named("nodes", 1, 1, Type::Any, lists::nodes),
    named("relationships", 1, 1, Type::Any, lists::relationships),
];

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Named> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    for function in FUNCTIONS {
        let run = function.run;
        connection.create_scalar_function(function.sql().as_str(), -1, super::pure(), move |context| {
            let values = super::arguments(context)?;
            if values.contains(&Value::Null) {
                return Ok(rusqlite::types::Value::Null);
            }
            let value = run(&values).map_err(|error| met_by(&function.sql(), error))?;
            made(value.into_sql()?)
        })?;
    }
    over_values(connection, "cy_keys", 1, lists::keys)?;
    over_values(connection, "cy_properties", 1, lists::properties)?;
    connection.create_scalar_function("cy_rand", 0, rusqlite::functions::FunctionFlags::SQLITE_UTF8, |_| {
        Ok(numbers::random())
    })
}
