//! What is known of the files, and all that is still to be done, in one SQLite file.

mod cooldowns;
mod files;
mod open;
mod outbox;
mod status;
mod work;

pub(crate) use cooldowns::Held;
pub(crate) use files::Known;
pub(crate) use open::{open, peek};
pub(crate) use outbox::Waiting;
pub(crate) use status::standing;
pub(crate) use work::{NewWork, Which, Work};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::failure::Failure;

/// The journal, of which one process at a time is the owner.
#[derive(Debug)]
pub(crate) struct Journal {
    connection: Connection,
}

impl Journal {
    pub(crate) fn transact<T>(
        &mut self,
        work: impl FnOnce(&JournalTx<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match work(&JournalTx { transaction: &transaction }) {
            Ok(answer) => {
                transaction.commit()?;
                Ok(answer)
            }
            Err(failure) => {
                drop(transaction);
                if matches!(failure, Failure::Nonsense(_)) {
                    // SQLite itself finds nothing wrong with it, so the next process that opens it has to be
                    // informed.
                    let _ = self.connection.pragma_update(None, "user_version", open::DAMAGED);
                }
                Err(failure)
            }
        }
    }
}

/// An open transaction.
pub(crate) struct JournalTx<'t> {
    transaction: &'t Transaction<'t>,
}

/// Numbers that are kept by name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetaKey {
    /// The number of the last event.
    LastSequence,
    /// Whether the tree was taken down once.
    HasBaseline,
    LastScanMs,
    /// When the last full scan began, by the clock of the files.
    LastLookNs,
    Skipped,
    ActionsDone,
    /// Events that are in chronicles.
    Told,
}

impl MetaKey {
    fn key(self) -> &'static str {
        match self {
            Self::LastSequence => "last_sequence",
            Self::HasBaseline => "has_baseline",
            Self::LastScanMs => "last_scan_ms",
            Self::LastLookNs => "last_look_ns",
            Self::Skipped => "skipped",
            Self::ActionsDone => "actions_done",
            Self::Told => "told",
        }
    }
}

impl JournalTx<'_> {
    pub(crate) fn number(&self, number: MetaKey) -> Result<Option<u64>, Failure> {
        let mut statement = self.transaction.prepare_cached("SELECT value FROM number WHERE name = ?1")?;
        let value: Option<i64> = statement.query_row([number.key()], |row| row.get(0)).optional()?;
        Ok(value.and_then(|value| u64::try_from(value).ok()))
    }

    pub(crate) fn set_number(&self, number: MetaKey, value: u64) -> Result<(), Failure> {
        let mut statement = self.transaction.prepare_cached(
            "INSERT INTO number (name, value) VALUES (?1, ?2)
                             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?;
        statement.execute(params![number.key(), signed(value)])?;
        Ok(())
    }

    pub(crate) fn count_up(&self, number: MetaKey) -> Result<u64, Failure> {
        let next = self.number(number)?.unwrap_or_default().saturating_add(1);
        self.set_number(number, next)?;
        Ok(next)
    }
}

/// SQLite's integers are signed; numbers of inodes may use all bits, and come back the same.
fn signed(value: u64) -> i64 {
    i64::from_ne_bytes(value.to_ne_bytes())
}

fn unsigned(value: i64) -> u64 {
    u64::from_ne_bytes(value.to_ne_bytes())
}
