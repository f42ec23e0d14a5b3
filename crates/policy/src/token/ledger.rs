//! Counts the calls of tokens in a database that several processes share.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tgp_contract::{Code, ToolError};

use super::grant::Counter;
use super::{Grant, TokenFault};

/// Longer than a crowd of processes holds the write lock between them.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// A holder can derive tokens without end, so one family may not fill the table.
const MAX_COUNTERS_OF_FAMILY: i64 = 1000;
/// Some tens of megabytes.
const MAX_COUNTERS: i64 = 100_000;

/// One call taken from the counters of a token.
#[derive(Debug)]
#[must_use = "a call that does not run should be refunded"]
pub struct Reservation {
    keys: Vec<String>,
}

/// Counts calls of tokens, across processes.
#[derive(Debug)]
pub struct TokenLedger {
    connection: Mutex<Connection>,
}

fn failed(error: &rusqlite::Error) -> ToolError {
    ToolError::new(Code::Internal, format!("the ledger of tokens failed: {error}"))
        .help("check the disk and the permissions of the kernel's state directory")
}

impl TokenLedger {
    /// Opens the ledger, or makes it.
    ///
    /// # Errors
    /// `EINTERNAL` when the database cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        let open = || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            // What a killed process has written stays; only a power cut may give back the last few calls.
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS token_counters (
                    key TEXT PRIMARY KEY NOT NULL,
                    family TEXT NOT NULL,
                    used INTEGER NOT NULL,
                    expires_ms INTEGER
                ) STRICT;
                CREATE INDEX IF NOT EXISTS token_counters_of_family ON token_counters (family);",
            )?;
            Ok(connection)
        };
        let connection = open().map_err(|error| failed(&error))?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Takes one call from every counter of the grant, or none from any.
    ///
    /// # Errors
    /// `EPOLICY` when a counter is used up; `EINTERNAL` when the database fails.
    pub fn spend(&self, grant: &Grant, now_ms: u64) -> Result<Reservation, ToolError> {
        let keys: Vec<String> = grant.counters().iter().map(|counter| counter.key.clone()).collect();
        if keys.is_empty() {
            return Ok(Reservation { keys });
        }
        let mut connection = self.lock();
        let mut spend = || {
            // Dropped without a commit, the transaction takes nothing.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for counter in grant.counters() {
                if let Err(fault) = take(&transaction, counter, grant.family(), now_ms)? {
                    return Ok(Err(fault));
                }
            }
            transaction.commit()?;
            Ok(Ok(()))
        };
        spend().map_err(|error| failed(&error))??;
        Ok(Reservation { keys })
    }

    /// Gives a call back that did not run.
    ///
    /// # Errors
    /// `EINTERNAL` when the database fails; the call stays spent.
    pub fn refund(&self, reservation: Reservation) -> Result<(), ToolError> {
        let Reservation { keys } = reservation;
        let mut connection = self.lock();
        let mut refund = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for key in &keys {
                let sql = "UPDATE token_counters SET used = used - 1 WHERE key = ?1 AND used > 0";
                transaction.prepare_cached(sql)?.execute([key])?;
            }
            transaction.commit()
        };
        refund().map_err(|error| failed(&error))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A thread that panicked has rolled its transaction back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes one call from one counter, which begins at its first use.
fn take(
    transaction: &Transaction<'_>,
    counter: &Counter,
    family: &str,
    now_ms: u64,
) -> rusqlite::Result<Result<(), TokenFault>> {
    let used: Option<i64> = transaction
        .prepare_cached("SELECT used FROM token_counters WHERE key = ?1")?
        .query_row([&counter.key], |row| row.get(0))
        .optional()?;
    // A count that is not a count, in a database that was edited, is not room.
    if u64::try_from(used.unwrap_or(0)).unwrap_or(u64::MAX) >= counter.limit {
        return Ok(Err(TokenFault::Spent(counter.limit)));
    }
    if used.is_some() {
        let sql = "UPDATE token_counters SET used = used + 1 WHERE key = ?1";
        transaction.prepare_cached(sql)?.execute([&counter.key])?;
        return Ok(Ok(()));
    }
    if !has_room(transaction, family)? {
        let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
        transaction.execute("DELETE FROM token_counters WHERE expires_ms <= ?1", [now])?;
        if !has_room(transaction, family)? {
            return Ok(Err(TokenFault::TooManyCounters));
        }
    }
    let expires_ms = counter.expires_ms.map(|end| i64::try_from(end).unwrap_or(i64::MAX));
    let sql = "INSERT INTO token_counters (key, family, used, expires_ms) VALUES (?1, ?2, 1, ?3)";
    transaction.prepare_cached(sql)?.execute(params![counter.key, family, expires_ms])?;
    Ok(Ok(()))
}

fn has_room(transaction: &Transaction<'_>, family: &str) -> rusqlite::Result<bool> {
    let of_family: i64 = transaction
        .prepare_cached("SELECT count(*) FROM token_counters WHERE family = ?1")?
        .query_row([family], |row| row.get(0))?;
    let all: i64 =
        transaction.prepare_cached("SELECT count(*) FROM token_counters")?.query_row([], |row| row.get(0))?;
    Ok(of_family < MAX_COUNTERS_OF_FAMILY && all < MAX_COUNTERS)
}
