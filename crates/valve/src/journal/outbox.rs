//! Finished events that no chronicle has yet, and those that none may take.

use rusqlite::params;
use tgp_contract::{ChronicleEvent, RelativePath};

use super::files::relative;
use super::{JournalTx, MetaKey, signed, unsigned};
use crate::failure::Failure;

/// Events that were skipped and are kept with their reason; all of them are counted.
const MAX_SKIPS: i64 = 1_000;

/// An event that waits for its chronicle.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) sequence: u64,
    pub(crate) chronicle: RelativePath,
    pub(crate) persona: String,
    pub(crate) event: ChronicleEvent,
}

impl JournalTx<'_> {
    pub(crate) fn put_event(&self, waiting: &Waiting) -> Result<(), Failure> {
        let mut statement = self.transaction.prepare_cached(
            "INSERT INTO outbox (sequence, chronicle, persona, event) VALUES (?1, ?2, ?3, ?4)",
        )?;
        let event =
            serde_json::to_string(&waiting.event).map_err(|error| Failure::Event(error.to_string()))?;
        statement.execute(params![
            signed(waiting.sequence),
            waiting.chronicle.as_str(),
            waiting.persona,
            event
        ])?;
        Ok(())
    }

    /// The next events after one, in order.
    pub(crate) fn events_after(&self, sequence: u64, most: usize) -> Result<Vec<Waiting>, Failure> {
        let mut statement = self.transaction.prepare_cached(
            "SELECT sequence, chronicle, persona, event FROM outbox WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
        )?;
        let mut rows = statement.query(params![signed(sequence), i64::try_from(most).unwrap_or(i64::MAX)])?;
        let mut events = Vec::new();
        while let Some(row) = rows.next()? {
            let text: String = row.get(3)?;
            events.push(Waiting {
                sequence: unsigned(row.get(0)?),
                chronicle: relative(row.get(1)?)?,
                persona: row.get(2)?,
                event: serde_json::from_str(&text).map_err(|error| Failure::Nonsense(error.to_string()))?,
            });
        }
        Ok(events)
    }

    pub(crate) fn event_count(&self) -> Result<u64, Failure> {
        let mut statement = self.transaction.prepare_cached("SELECT count(*) FROM outbox")?;
        Ok(unsigned(statement.query_row([], |row| row.get(0))?))
    }

    /// An event will be given to another chronicle from now on.
    pub(crate) fn redirect_event(&self, sequence: u64, chronicle: &RelativePath) -> Result<(), Failure> {
        let mut statement =
            self.transaction.prepare_cached("UPDATE outbox SET chronicle = ?2 WHERE sequence = ?1")?;
        statement.execute(params![signed(sequence), chronicle.as_str()])?;
        Ok(())
    }

    /// An event is where it belongs. Idempotent: only the first time counts.
    pub(crate) fn event_is_kept(&self, waiting: &Waiting, is_trigger: bool) -> Result<(), Failure> {
        let mut statement = self.transaction.prepare_cached("DELETE FROM outbox WHERE sequence = ?1")?;
        if statement.execute([signed(waiting.sequence)])? != 1 {
            return Ok(());
        }
        self.count_up(MetaKey::Told)?;
        if is_trigger {
            self.transaction
                .prepare_cached(
                    "INSERT INTO tally (persona, triggered) VALUES (?1, 1)
                     ON CONFLICT (persona) DO UPDATE SET triggered = triggered + 1",
                )?
                .execute([&waiting.persona])?;
        }
        Ok(())
    }

    /// No chronicle may take an event. Its action is not begun either, since nothing would explain it.
    pub(crate) fn event_is_skipped(&self, waiting: &Waiting, reason: &str) -> Result<(), Failure> {
        let sequence = signed(waiting.sequence);
        self.transaction.prepare_cached("DELETE FROM outbox WHERE sequence = ?1")?.execute([sequence])?;
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO skip (sequence, chronicle, reason) VALUES (?1, ?2, ?3)")?
            .execute(params![sequence, waiting.chronicle.as_str(), reason])?;
        self.transaction
            .prepare_cached(
                "DELETE FROM skip WHERE sequence <= (SELECT sequence FROM skip ORDER BY sequence DESC LIMIT 1 OFFSET ?1)",
            )?
            .execute([MAX_SKIPS])?;
        self.transaction
            .prepare_cached(
                "UPDATE work SET state = 'skipped', message = ?2 WHERE sequence = ?1 AND state = 'pending'",
            )?
            .execute(params![sequence, reason])?;
        self.count_up(MetaKey::Skipped)?;
        Ok(())
    }
}
