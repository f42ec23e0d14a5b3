//! The status of a journal, for a process that does not own it.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

use super::files::relative;
use super::work::state;
use super::{MetaKey, unsigned};
use crate::failure::Failure;
use crate::report::{Skip, UnfinishedAction, ValveStatus};

/// Rows of each list of a status; the counts are of all.
const MAX_ROWS: i64 = 20;

/// Fills in what the journal knows, all of one moment. Returns how often each persona was triggered.
pub(crate) fn standing(
    connection: &mut Connection,
    status: &mut ValveStatus,
) -> Result<BTreeMap<String, u64>, Failure> {
    let moment = connection.transaction()?;
    let count =
        |sql: &str| -> Result<u64, Failure> { Ok(unsigned(moment.query_row(sql, [], |row| row.get(0))?)) };
    let number = |number: MetaKey| -> Result<Option<u64>, Failure> {
        let value: Option<i64> = moment
            .query_row("SELECT value FROM number WHERE name = ?1", [number.key()], |row| row.get(0))
            .optional()?;
        Ok(value.map(unsigned))
    };
    status.has_journal = number(MetaKey::HasBaseline)?.is_some();
    status.files = count("SELECT count(*) FROM file")?;
    status.last_sequence = number(MetaKey::LastSequence)?.unwrap_or_default();
    status.told_events = number(MetaKey::Told)?.unwrap_or_default();
    status.last_scan_ms = number(MetaKey::LastScanMs)?;
    status.pending_events = count("SELECT count(*) FROM outbox")?;
    status.held_changes = count("SELECT count(*) FROM held")?;
    status.pending_actions = count("SELECT count(*) FROM work WHERE state = 'pending'")?;
    status.done_actions = number(MetaKey::ActionsDone)?.unwrap_or_default();
    status.skipped = number(MetaKey::Skipped)?.unwrap_or_default();

    let mut statement = moment.prepare(
        "SELECT persona, path, state, json_extract(trigger, '$.eventId'), message FROM work
         WHERE state <> 'pending' ORDER BY sequence DESC LIMIT ?1",
    )?;
    let mut rows = statement.query([MAX_ROWS])?;
    while let Some(row) = rows.next()? {
        let word: String = row.get(2)?;
        status.unfinished.push(UnfinishedAction {
            persona: row.get(0)?,
            file_path: relative(row.get(1)?)?,
            state: state(&word)?,
            trigger: row.get(3)?,
            message: row.get(4)?,
        });
    }
    let mut statement =
        moment.prepare("SELECT sequence, chronicle, reason FROM skip ORDER BY sequence DESC LIMIT ?1")?;
    let mut rows = statement.query([MAX_ROWS])?;
    while let Some(row) = rows.next()? {
        status.skips.push(Skip {
            sequence: unsigned(row.get(0)?),
            chronicle: relative(row.get(1)?)?,
            reason: row.get(2)?,
        });
    }
    let mut statement = moment.prepare("SELECT persona, triggered FROM tally")?;
    let mut rows = statement.query([])?;
    let mut tallies = BTreeMap::new();
    while let Some(row) = rows.next()? {
        tallies.insert(row.get(0)?, unsigned(row.get(1)?));
    }
    Ok(tallies)
}
