//! Facts with their positions, for those who keep both together: a fact that moves is another row there.

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use super::failure::GraphError;
use super::positions;

/// The SQL function that [`pieces`] uses.
const FUNCTION: &str = "tgp_position";

/// The tables `seen_node` and `seen_edge`, to be put before a SELECT. They have the columns of `node` and `edge`, one row
/// for each stretch in which a fact neither changes nor moves, and in `at` its position as a JSON object. The connection
/// must be one that was [`prepare`]d.
#[must_use]
pub fn pieces() -> String {
    let node = table("node", &["id", "props", "ghost"]);
    let edge = table("edge", &["id", "type", "source", "target", "props"]);
    format!("WITH {node}, {edge}")
}

fn table(table: &str, columns: &[&str]) -> String {
    let plain = columns.join(", ");
    let own = columns.iter().map(|column| format!("f.{column}")).collect::<Vec<_>>().join(", ");
    let file = positions::file_of("f.place");
    // A file that moves elsewhere leaves the position of a fact as it is: such stretches become one.
    format!(
        "seen_{table} AS MATERIALIZED (
            SELECT {plain}, at, min(since) AS since, max(until) AS until FROM (
                SELECT *, sum(is_other) OVER (PARTITION BY row_id ORDER BY since) AS run FROM (
                    SELECT *, at IS NOT lag(at, 1, '') OVER (PARTITION BY row_id ORDER BY since) AS is_other FROM (
                        SELECT f.row_id, {own}, {FUNCTION}(p.data, f.place) AS at,
                            max(f.since, p.since) AS since, min(f.until, p.until) AS until
                        FROM {table} AS f
                        JOIN position AS p ON p.file = {file} AND p.since < f.until AND p.until > f.since
                    )
                )
            ) GROUP BY row_id, run
            UNION ALL SELECT {plain}, NULL, since, until FROM {table} WHERE place IS NULL)"
    )
}

/// Makes a connection fit for [`pieces`].
///
/// # Errors
/// When the database takes no function.
pub fn prepare(connection: &Connection) -> Result<(), GraphError> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function(FUNCTION, 2, flags, |context| {
        let (ValueRef::Blob(data), ValueRef::Integer(place)) = (context.get_raw(0), context.get_raw(1))
        else {
            return Ok(None);
        };
        let position = positions::find(data, place);
        Ok(position.map(|position| {
            let known = position.properties().into_iter().flatten();
            let known: Map<String, Value> =
                known.map(|(name, number)| (name.to_owned(), number.into())).collect();
            Value::Object(known).to_string()
        }))
    })?;
    Ok(())
}
