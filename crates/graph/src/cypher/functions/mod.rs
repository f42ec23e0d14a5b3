//! What the compiled SQL calls: operators, lists, paths, the named functions and the aggregates of Cypher.

mod adjacency;
mod aggregates;
mod conversion;
mod lists;
mod named;
mod numbers;
mod operators;
mod structures;
mod text;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value as Sql;

use super::error::met_by;
use super::execute::made;
use super::value::Value;
use crate::tables::positions;

pub(crate) use named::{FUNCTIONS, Named, find};
pub(crate) use operators::regex;

/// Forgets what was kept for the query that has ended.
pub(crate) fn forget() {
    adjacency::forget();
    positions::forget();
}

/// What a function gets: as many values as it was registered with.
type Run = fn(&[Value]) -> rusqlite::Result<Value>;

/// Registers everything on a connection.
pub(crate) fn register(connection: &Connection) -> rusqlite::Result<()> {
    operators::register(connection)?;
    structures::register(connection)?;
    named::register(connection)?;
    adjacency::register(connection)?;
    aggregates::register(connection)
}

/// The same arguments give the same value, and nothing else is touched.
fn pure() -> FunctionFlags {
    FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS
}

/// Registers a function over whole values.
fn over_values(connection: &Connection, name: &str, arity: i32, run: Run) -> rusqlite::Result<()> {
    let function = name.to_owned();
    connection.create_scalar_function(name, arity, pure(), move |context| {
        let value = run(&arguments(context)?).map_err(|error| met_by(&function, error))?;
        made(value.into_sql()?)
    })
}

/// Registers a function that reads SQLite's own values, for those that are called most.
fn over_raw<F>(connection: &Connection, name: &str, arity: i32, run: F) -> rusqlite::Result<()>
where
    F: Fn(&Context<'_>) -> rusqlite::Result<Sql> + Send + 'static,
{
    let function = name.to_owned();
    connection.create_scalar_function(name, arity, pure(), move |context| {
        made(run(context).map_err(|error| met_by(&function, error))?)
    })
}

fn arguments(context: &Context<'_>) -> rusqlite::Result<Vec<Value>> {
    (0..context.len()).map(|index| Value::read(context.get_raw(index))).collect()
}

fn truth(known: Option<bool>) -> Sql {
    known.map_or(Sql::Null, |known| Sql::Integer(i64::from(known)))
}
