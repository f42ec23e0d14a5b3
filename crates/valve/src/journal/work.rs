//! Actions: which are to be begun, which have begun, and what they have made.

use rusqlite::{OptionalExtension, params};
use tgp_contract::RelativePath;

use super::{JournalTx, MetaKey, signed, unsigned};
use crate::failure::Failure;
use crate::{ActionState, Trigger};

/// Actions that are kept after their end, for callers that ask for their result.
const MAX_ENDED: i64 = 200;
/// Files that actions have left behind and that are remembered. A change that is found later than so many others is taken
/// for one from outside.
const MAX_MADE: i64 = 50_000;

/// Actions of one persona on one file within a minute. A person does not save more often; whatever does is a loop that
/// nothing else has noticed.
const MAX_PACE: i64 = 10;
const PACE_MS: u64 = 60_000;

/// An action that is to be carried out.
#[derive(Clone, Debug)]
pub(crate) struct NewWork<'a> {
    pub(crate) trigger: &'a Trigger,
    /// The actions that were being carried out when its trigger was found: one of them may be the cause.
    pub(crate) suspects: &'a [u64],
}

/// An action that waits.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) trigger: Trigger,
    pub(crate) suspects: Vec<u64>,
}

/// Which actions are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// The first of each persona that waits and whose event is in its chronicle.
    Next,
    /// Those that were begun and not ended.
    Begun,
}

/// Who has made a file what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) persona: String,
    pub(crate) depth: u32,
}

impl JournalTx<'_> {
    pub(crate) fn put_work(&self, work: &NewWork<'_>) -> Result<(), Failure> {
        let failed = |error: serde_json::Error| Failure::Event(error.to_string());
        self.transaction
            .prepare_cached(
                "INSERT INTO work (sequence, persona, path, state, trigger, suspects)
                 VALUES (?1, ?2, ?3, 'pending', ?4, ?5)",
            )?
            .execute(params![
                signed(work.trigger.sequence),
                work.trigger.persona,
                work.trigger.file_path.as_str(),
                serde_json::to_string(work.trigger).map_err(failed)?,
                serde_json::to_string(work.suspects).map_err(failed)?,
            ])?;
        Ok(())
    }

    pub(crate) fn pending_works(&self) -> Result<u64, Failure> {
        let mut statement =
            self.transaction.prepare_cached("SELECT count(*) FROM work WHERE state = 'pending'")?;
        Ok(unsigned(statement.query_row([], |row| row.get(0))?))
    }

    pub(crate) fn works(&self, which: Which) -> Result<Vec<Work>, Failure> {
        let mut statement = self.transaction.prepare_cached(match which {
            Which::Next => {
                "SELECT trigger, suspects FROM work WHERE sequence IN (
                     SELECT min(sequence) FROM work
                     WHERE state = 'pending' AND sequence NOT IN (SELECT sequence FROM outbox) GROUP BY persona
                 ) ORDER BY sequence"
            }
            Which::Begun => {
                "SELECT trigger, suspects FROM work WHERE state = 'begun' ORDER BY sequence"
            }
        })?;
        let mut rows = statement.query([])?;
        let mut works = Vec::new();
        while let Some(row) = rows.next()? {
            works.push(read(row)?);
        }
        Ok(works)
    }

    pub(crate) fn begin_work(&self, sequence: u64) -> Result<(), Failure> {
        self.transaction
            .prepare_cached("UPDATE work SET state = 'begun' WHERE sequence = ?1")?
            .execute([signed(sequence)])?;
        Ok(())
    }

    pub(crate) fn end_work(
        &self,
        sequence: u64,
        state: ActionState,
        message: Option<&str>,
    ) -> Result<(), Failure> {
        if state == ActionState::Done {
            self.transaction
                .prepare_cached("DELETE FROM work WHERE sequence = ?1")?
                .execute([signed(sequence)])?;
            self.count_up(MetaKey::ActionsDone)?;
            return Ok(());
        }
        self.transaction
            .prepare_cached("UPDATE work SET state = ?2, message = ?3 WHERE sequence = ?1")?
            .execute(params![signed(sequence), word(state), message])?;
        self.transaction
            .prepare_cached(
                "DELETE FROM work WHERE state NOT IN ('pending', 'begun') AND sequence <= (
                     SELECT sequence FROM work WHERE state NOT IN ('pending', 'begun')
                     ORDER BY sequence DESC LIMIT 1 OFFSET ?1)",
            )?
            .execute([MAX_ENDED])?;
        Ok(())
    }

    /// An action has left a file with this content, or without any.
    pub(crate) fn put_made(
        &self,
        path: &RelativePath,
        sha256: Option<&str>,
        work: &Trigger,
    ) -> Result<(), Failure> {
        self.transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO made (path, work, sha256, persona, depth) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                path.as_str(),
                signed(work.sequence),
                sha256.unwrap_or_default(),
                work.persona,
                work.depth
            ])?;
        Ok(())
    }

    /// Called once after some were put.
    pub(crate) fn forget_old_made(&self) -> Result<(), Failure> {
        self.transaction
            .prepare_cached(
                "DELETE FROM made WHERE work <= (SELECT work FROM made ORDER BY work DESC LIMIT 1 OFFSET ?1)",
            )?
            .execute([MAX_MADE])?;
        Ok(())
    }

    /// Who has left a file with this content.
    pub(crate) fn made(&self, path: &RelativePath, sha256: Option<&str>) -> Result<Option<Made>, Failure> {
        let mut statement = self.transaction.prepare_cached(
            "SELECT persona, depth FROM made WHERE path = ?1 AND sha256 = ?2 ORDER BY work DESC LIMIT 1",
        )?;
        let found = statement.query_row(params![path.as_str(), sha256.unwrap_or_default()], |row| {
            Ok(Made { persona: row.get(0)?, depth: row.get(1)? })
        });
        Ok(found.optional()?)
    }

    /// Whether one of some actions has touched a file, whatever it left in it.
    pub(crate) fn made_by(&self, path: &RelativePath, works: &[u64]) -> Result<Option<Made>, Failure> {
        let mut statement = self
            .transaction
            .prepare_cached("SELECT persona, depth FROM made WHERE path = ?1 AND work = ?2")?;
        for work in works {
            let found = statement.query_row(params![path.as_str(), signed(*work)], |row| {
                Ok(Made { persona: row.get(0)?, depth: row.get(1)? })
            });
            if let Some(made) = found.optional()? {
                return Ok(Some(made));
            }
        }
        Ok(None)
    }

    /// Whether an action may be begun without its persona acting on one file again and again. Counts it, when it may.
    pub(crate) fn keeps_pace(&self, trigger: &Trigger, now_ms: u64) -> Result<bool, Failure> {
        let since = now_ms.saturating_sub(PACE_MS);
        self.transaction.prepare_cached("DELETE FROM pace WHERE at_ms < ?1")?.execute([signed(since)])?;
        let mut statement =
            self.transaction.prepare_cached("SELECT count(*) FROM pace WHERE persona = ?1 AND path = ?2")?;
        let count: i64 =
            statement.query_row(params![trigger.persona, trigger.file_path.as_str()], |row| row.get(0))?;
        if count >= MAX_PACE {
            return Ok(false);
        }
        self.transaction
            .prepare_cached("INSERT INTO pace (persona, path, at_ms) VALUES (?1, ?2, ?3)")?
            .execute(params![trigger.persona, trigger.file_path.as_str(), signed(now_ms)])?;
        Ok(true)
    }

    /// Forgets that an action wrote the file, because something else has changed it since.
    pub(crate) fn forget_made(&self, path: &RelativePath) -> Result<(), Failure> {
        self.transaction.prepare_cached("DELETE FROM made WHERE path = ?1")?.execute([path.as_str()])?;
        Ok(())
    }
}

fn read(row: &rusqlite::Row<'_>) -> Result<Work, Failure> {
    let nonsense = |error: serde_json::Error| Failure::Nonsense(error.to_string());
    let (trigger, suspects): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(Work {
        trigger: serde_json::from_str(&trigger).map_err(nonsense)?,
        suspects: serde_json::from_str(&suspects).map_err(nonsense)?,
    })
}

fn word(state: ActionState) -> &'static str {
    match state {
        ActionState::Pending => "pending",
        ActionState::Begun => "begun",
        ActionState::Done => "done",
        ActionState::Failed => "failed",
        ActionState::Interrupted => "interrupted",
        ActionState::Suppressed => "suppressed",
        ActionState::Skipped => "skipped",
    }
}

/// The state that a text in the journal names.
pub(super) fn state(word: &str) -> Result<ActionState, Failure> {
    serde_json::from_value(serde_json::Value::from(word))
        .map_err(|error| Failure::Nonsense(error.to_string()))
}
