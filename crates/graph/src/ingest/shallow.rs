//! Commits behind which the history was cut off, so that what comes to light behind them is not missed.

use git2::Oid;
use rusqlite::Connection;

use super::repository::Repo;
use crate::tables::connect::set_meta;
use crate::tables::failure::GraphError;

/// How the records of such commits begin; the commit's id follows.
const RECORD: &str = "boundary:";

/// The record of a commit whose parents the clone did not have. Else it is the cap that was in force.
const SHALLOW: &str = "shallow";

/// Remembers which of these commits, which were just ingested, are the oldest of their line.
pub(crate) fn remember(
    connection: &Connection,
    repo: &Repo,
    commits: &[Oid],
    cap: usize,
) -> Result<(), GraphError> {
    for id in commits {
        let name = format!("{RECORD}{id}");
        if repo.is_shallow(*id) {
            set_meta(connection, &name, SHALLOW)?;
        } else if has_unknown_parent(connection, repo, *id)? {
            set_meta(connection, &name, &cap.to_string())?;
        }
    }
    Ok(())
}

/// Whether more of the history can be had now than when it was ingested.
pub(crate) fn is_lifted(connection: &Connection, repo: &Repo, cap: usize) -> Result<bool, GraphError> {
    let mut statement =
        connection.prepare_cached("SELECT substr(name, ?2), value FROM meta WHERE name GLOB ?1")?;
    let begin = i64::try_from(RECORD.len()).unwrap_or_default() + 1;
    let mut rows = statement.query(rusqlite::params![format!("{RECORD}*"), begin])?;
    while let Some(row) = rows.next()? {
        let (id, reason): (String, String) = (row.get(0)?, row.get(1)?);
        let id = Oid::from_str(&id)?;
        let may_be = if reason == SHALLOW {
            !repo.is_shallow(id)
        } else {
            reason.parse().is_ok_and(|then: usize| cap > then)
        };
        // A commit that git has dropped since has nothing behind it.
        if may_be && repo.has(id) && has_unknown_parent(connection, repo, id)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether git has a parent that was not ingested.
fn has_unknown_parent(connection: &Connection, repo: &Repo, id: Oid) -> Result<bool, GraphError> {
    for parent in repo.parents(id)? {
        let known = connection
            .prepare_cached("SELECT 1 FROM moment WHERE commit_id = ?1")?
            .exists([parent.to_string()])?;
        if !known && repo.has(parent) {
            return Ok(true);
        }
    }
    Ok(false)
}
