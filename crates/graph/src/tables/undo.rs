//! Takes back what a draft has written.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::facts::{CurrentFacts, FactSource, Frontier, Table};
use super::failure::GraphError;
use super::schema::OPEN;
use super::write::{delete, forget_label, rekey};

/// Takes the draft back: everything is as it was before the moment `draft`.
pub(crate) fn take_back(connection: &Connection) -> Result<(), GraphError> {
    let mut statement = connection.prepare("SELECT owner, name, file, facts FROM undo")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let owner: i64 = row.get(0)?;
        let name: String = row.get(1)?;
        let file: Option<Vec<u8>> = row.get(2)?;
        let facts: Option<Vec<u8>> = row.get(3)?;
        let now: Option<(i64, Vec<u8>)> = connection
            .prepare_cached("SELECT row_id, facts FROM now WHERE owner = ?1 AND name = ?2")?
            .query_row(params![owner, name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let decode = |bytes: Option<&Vec<u8>>| -> Result<CurrentFacts, GraphError> {
            Ok(bytes.map(|bytes| postcard::from_bytes(bytes)).transpose()?.unwrap_or_default())
        };
        let (old, new) = (decode(facts.as_ref())?, decode(now.as_ref().map(|(_, facts)| facts))?);
        restore_rows(connection, &old, &new)?;
        let row = match (now.map(|(row, _)| row), &facts) {
            (Some(row), Some(facts)) => {
                connection
                    .prepare_cached("UPDATE now SET file = ?2, facts = ?3 WHERE row_id = ?1")?
                    .execute(params![row, file, facts])?;
                Some(row)
            }
            (None, Some(facts)) => {
                connection
                    .prepare_cached("INSERT INTO now (owner, name, file, facts) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![owner, name, file, facts])?;
                Some(connection.last_insert_rowid())
            }
            (Some(row), None) => {
                connection.prepare_cached("DELETE FROM now WHERE row_id = ?1")?.execute([row])?;
                Some(row)
            }
            (None, None) => None,
        };
        if let Some(row) = row.filter(|_| owner == FactSource::File as i64) {
            rekey(connection, Frontier::Newest, row, &new.keys, &old.keys)?;
        }
    }
    drop(rows);
    drop(statement);
    connection.execute("DELETE FROM undo", [])?;
    connection.execute("DELETE FROM moment WHERE commit_id IS NULL", [])?;
    Ok(())
}

/// Deletes what the draft opened and opens what it closed.
fn restore_rows(connection: &Connection, old: &CurrentFacts, new: &CurrentFacts) -> Result<(), GraphError> {
    let numbers = |facts: &CurrentFacts| -> HashSet<(Table, i64)> {
        facts.all_rows().map(|row| (row.table, row.row)).collect()
    };
    let (kept, still) = (numbers(old), numbers(new));
    for row in new.all_rows().filter(|row| !kept.contains(&(row.table, row.row))) {
        delete(connection, *row)?;
        forget_label(connection, *row)?;
    }
    for row in old.all_rows().filter(|row| !still.contains(&(row.table, row.row))) {
        let sql = format!("UPDATE {} SET until = ?2 WHERE row_id = ?1", row.table.name());
        connection.prepare_cached(&sql)?.execute([row.row, OPEN])?;
    }
    Ok(())
}
