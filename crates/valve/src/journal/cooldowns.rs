//! Until when a persona is quiet about a file, and what has happened to the file meanwhile.

use rusqlite::{OptionalExtension, params};
use tgp_contract::RelativePath;

use super::files::relative;
use super::{JournalTx, signed, unsigned};
use crate::change::Change;
use crate::event::TriggerCause;
use crate::failure::Failure;

/// A change that waits for the end of a cooldown.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) persona: String,
    pub(crate) due_ms: u64,
    pub(crate) change: Change,
    pub(crate) cause: TriggerCause,
}

impl JournalTx<'_> {
    /// The end of a cooldown that has not ended.
    pub(crate) fn cooldown(
        &self,
        persona: &str,
        path: &RelativePath,
        now_ms: u64,
    ) -> Result<Option<u64>, Failure> {
        let mut statement = self
            .transaction
            .prepare_cached("SELECT until_ms FROM cooldown WHERE persona = ?1 AND path = ?2")?;
        let until: Option<i64> =
            statement.query_row(params![persona, path.as_str()], |row| row.get(0)).optional()?;
        Ok(until.map(unsigned).filter(|until| *until > now_ms))
    }

    pub(crate) fn set_cooldown(
        &self,
        persona: &str,
        path: &RelativePath,
        until_ms: u64,
    ) -> Result<(), Failure> {
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO cooldown (persona, path, until_ms) VALUES (?1, ?2, ?3)")?
            .execute(params![persona, path.as_str(), signed(until_ms)])?;
        Ok(())
    }

    pub(crate) fn drop_cooldowns(&self, now_ms: u64) -> Result<(), Failure> {
        self.transaction
            .prepare_cached("DELETE FROM cooldown WHERE until_ms <= ?1")?
            .execute([signed(now_ms)])?;
        Ok(())
    }

    pub(crate) fn hold(&self, held: &Held) -> Result<(), Failure> {
        let json = |value: Result<String, serde_json::Error>| {
            value.map_err(|error| Failure::Event(error.to_string()))
        };
        self.transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO held (persona, path, due_ms, change, cause) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                held.persona,
                held.change.path.as_str(),
                signed(held.due_ms),
                json(serde_json::to_string(&held.change))?,
                json(serde_json::to_string(&held.cause))?,
            ])?;
        Ok(())
    }

    /// What waits for one persona and file; it waits no longer.
    pub(crate) fn take_held(&self, persona: &str, path: &RelativePath) -> Result<Option<Held>, Failure> {
        let mut statement = self.transaction.prepare_cached(
            "DELETE FROM held WHERE persona = ?1 AND path = ?2 RETURNING persona, due_ms, change, cause",
        )?;
        let mut rows = statement.query(params![persona, path.as_str()])?;
        let held = rows.next()?.map(read).transpose()?;
        while rows.next()?.is_some() {}
        Ok(held)
    }

    /// What has waited long enough, in the order in which it is due.
    pub(crate) fn take_due(&self, now_ms: u64) -> Result<Vec<Held>, Failure> {
        let mut due: Vec<(String, RelativePath)> = Vec::new();
        let mut statement = self.transaction.prepare_cached(
            "SELECT persona, path FROM held WHERE due_ms <= ?1 ORDER BY due_ms, path, persona",
        )?;
        let mut rows = statement.query([signed(now_ms)])?;
        while let Some(row) = rows.next()? {
            due.push((row.get(0)?, relative(row.get(1)?)?));
        }
        let mut all = Vec::with_capacity(due.len());
        for (persona, path) in due {
            all.extend(self.take_held(&persona, &path)?);
        }
        Ok(all)
    }

    /// Milliseconds until something has waited long enough.
    pub(crate) fn next_due(&self, now_ms: u64) -> Result<Option<u64>, Failure> {
        let mut statement = self.transaction.prepare_cached("SELECT min(due_ms) FROM held")?;
        let due: Option<i64> = statement.query_row([], |row| row.get(0))?;
        Ok(due.map(|due| unsigned(due).saturating_sub(now_ms)))
    }
}

fn read(row: &rusqlite::Row<'_>) -> Result<Held, Failure> {
    let nonsense = |error: serde_json::Error| Failure::Nonsense(error.to_string());
    let (change, cause): (String, String) = (row.get(2)?, row.get(3)?);
    Ok(Held {
        persona: row.get(0)?,
        due_ms: unsigned(row.get(1)?),
        change: serde_json::from_str(&change).map_err(nonsense)?,
        cause: serde_json::from_str(&cause).map_err(nonsense)?,
    })
}
