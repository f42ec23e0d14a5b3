//! The rows of forged tools.

use rusqlite::Connection;

use super::facts::{Fact, FactSource};
use super::failure::GraphError;
use super::identity::Identities;
use super::schema::OPEN;
use super::write::{NextFacts, Writer};

/// The tools at the last moment: their paths and properties.
pub(crate) fn held(connection: &Connection) -> Result<Vec<(String, String)>, GraphError> {
    let mut statement = connection.prepare(
        "SELECT json_extract(n.props, '$.path'), n.props FROM label AS l JOIN node AS n ON n.id = l.node \
         WHERE l.name = 'Tool' AND n.until = ?1 AND n.ghost = 0 ORDER BY 1",
    )?;
    let rows = statement.query_map([OPEN], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Makes these the tools, from a moment on.
pub(crate) fn hold(
    connection: &Connection,
    moment: i64,
    tools: &[(String, String)],
) -> Result<(), GraphError> {
    let mut ids = Identities::load(connection)?;
    let mut facts = Vec::new();
    for (path, props) in tools {
        let id = ids.claim(connection, "Tool", &[path])?;
        facts.push(Fact::node(id, props.clone()));
    }
    let mut writer = Writer::after(connection, &mut ids, moment);
    writer.set(FactSource::Tools, "", NextFacts { facts, ..NextFacts::default() })?;
    Ok(())
}
