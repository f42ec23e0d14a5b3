//! Values to and from SQLite, and the matching of its parameters.

use rusqlite::Statement;
use rusqlite::types::{Value as SqliteValue, ValueRef};
use serde_json::Value;
use tgp_contract::{SqlParams, ToolError};

use crate::failure::{Failure, esql};
use crate::text::{count, missing_name, not_given, superfluous};
use crate::values::{Parameter, bytes, float, integer, json};

/// Binds every parameter of the statement, and lets none be left over.
///
/// SQLite numbers them by itself: `?` and `?3` by position, `$3` by its digits, `:name` (also `@name`, `$name`) by name.
pub(crate) fn bind(statement: &mut Statement<'_>, params: &SqlParams) -> Result<(), Failure> {
    let slots = statement.parameter_count();
    let names: Vec<Option<String>> =
        (1..=slots).map(|index| statement.parameter_name(index).map(ToOwned::to_owned)).collect();
    match params {
        SqlParams::Named(given) => {
            let mut used = Vec::new();
            for (index, name) in names.iter().enumerate() {
                let name = name.as_deref().and_then(label).ok_or_else(|| {
                    esql("the statement has positional parameters, and named values were given")
                        .help("write :name, or give the values as a list")
                })?;
                let value = given.get(name).ok_or_else(|| not_given(name, given))?;
                put(statement, index + 1, Parameter::read(value, &format!("`:{name}`"))?)?;
                used.push(name);
            }
            match given.keys().find(|name| !used.contains(&name.as_str())) {
                Some(name) => Err(superfluous(name).into()),
                None => Ok(()),
            }
        }
        SqlParams::Positional(given) => positional(statement, &names, given),
        SqlParams::None => positional(statement, &names, &[]),
    }
}

fn positional(
    statement: &mut Statement<'_>,
    names: &[Option<String>],
    given: &[Value],
) -> Result<(), Failure> {
    let mut wanted = 0;
    let mut places = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let number = match name.as_deref().map(position) {
            None => index + 1,
            Some(Some(number)) => number,
            Some(None) => {
                return Err(missing_name(name.as_deref().and_then(label).unwrap_or_default()).into());
            }
        };
        wanted = wanted.max(number);
        places.push((index + 1, number));
    }
    count(wanted, given.len())?;
    for (slot, number) in places {
        let value = given.get(number.saturating_sub(1)).unwrap_or(&Value::Null);
        put(statement, slot, Parameter::read(value, &number.to_string())?)?;
    }
    Ok(())
}

/// The number of `?3` or `$3`.
fn position(name: &str) -> Option<usize> {
    name.strip_prefix(['?', '$']).and_then(|digits| digits.parse().ok()).filter(|number| *number > 0)
}

/// The name of `:name`, `@name` or `$name`.
fn label(name: &str) -> Option<&str> {
    name.strip_prefix([':', '@', '$']).filter(|_| position(name).is_none())
}

fn put(statement: &mut Statement<'_>, slot: usize, parameter: Parameter) -> Result<(), ToolError> {
    let value = match parameter {
        Parameter::Null => SqliteValue::Null,
        Parameter::Bool(value) => SqliteValue::Integer(value.into()),
        Parameter::Integer(value) => SqliteValue::Integer(value),
        Parameter::Unsigned(value) => {
            return Err(
                esql(format!("SQLite has no integer as large as {value}")).help("pass it as a string")
            );
        }
        Parameter::Float(value) => SqliteValue::Real(value),
        Parameter::Text(text) => SqliteValue::Text(text),
        Parameter::Bytes(bytes) => SqliteValue::Blob(bytes),
        Parameter::Time(time) => SqliteValue::Text(time.text),
        Parameter::Json(value) => SqliteValue::Text(value.to_string()),
    };
    statement
        .raw_bind_parameter(slot, value)
        .map_err(|error| super::errors::plain(&format!("parameter {slot} cannot be bound"), &error))
}

/// A value as the answer shows it. A column declared as JSON gives JSON.
pub(crate) fn value(value: ValueRef<'_>, is_json: bool, column: &str) -> Result<Value, ToolError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => integer(number),
        ValueRef::Real(number) => float(number),
        ValueRef::Blob(content) => bytes(content),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|_| {
                esql(format!("a text in the column `{column}` is not UTF-8"))
                    .help("select CAST(column AS BLOB) instead")
            })?;
            if is_json { json(text) } else { text.into() }
        }
    })
}
