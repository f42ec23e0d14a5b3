//! Connections to the store: one that writes, and those that can only read.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use super::failure::GraphError;
use super::forged;
use super::schema::{FORMAT, INDEXES, LEDGER, SCHEMA, VERSION};

/// How often a lock is tried that another process has, which may be writing a batch of commits: for a minute. Who reads a
/// history lets it go for a moment only, which SQLite's own waiting, with its growing pauses, would miss again and again.
const MAX_TRIES: i32 = 60_000;
const PAUSE: Duration = Duration::from_millis(1);

/// What stays of the log of writes on the disk when all of it is in the store.
const MAX_LOG_BYTES: i64 = 16 << 20;

/// A statement is compiled once; the writer has some forty of them.
const STATEMENTS: usize = 128;

/// Tables whose rows say what holds when, as opposed to what was read from blobs.
const FACTS: [&str; 14] = [
    "moment", "node", "label", "edge", "position", "now", "now_key", "past", "past_key", "undo", "change",
    "stat", "alias", "meta",
];

/// What is known of the store itself.
const KEPT: [&str; 4] = ["format", "about", "generation", REBUILT];

/// Where it is kept that the store was made by another version, and has lost what it knew.
pub(crate) const REBUILT: &str = "rebuilt";

/// Waits for a lock, until that has taken too long.
fn wait(tries: i32) -> bool {
    std::thread::sleep(PAUSE);
    tries < MAX_TRIES
}

/// Opens the store for writing, and makes or remakes it where its form or what it is about (`about`) is another.
pub(crate) fn writer(file: &Path, about: &str) -> Result<Connection, GraphError> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|source| GraphError::File { path: directory.display().to_string(), source })?;
    }
    let mut connection = Connection::open(file)?;
    connection.busy_handler(Some(wait))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Only a new store takes it, and an old one would be locked for it: pages that are not needed any more can be given back.
    if connection.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))? == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Pages of the store in memory, in kibibytes.
    connection.pragma_update(None, "cache_size", -64_000)?;
    // A reader must not wait for a writer.
    if !is_prepared(&connection, about)? {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        prepare(&transaction, about)?;
        transaction.commit()?;
    }
    Ok(connection)
}

/// Whether the store has the form that it should have, and is about what it should be about.
fn is_prepared(connection: &Connection, about: &str) -> Result<bool, GraphError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version == VERSION
        && meta(connection, "format")?.as_deref() == Some(&*FORMAT.to_string())
        && meta(connection, "about")?.as_deref() == Some(about))
}

fn prepare(connection: &Connection, about: &str) -> Result<(), GraphError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        let mut statement = connection
            .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?;
        let names = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        drop(statement);
        for name in names {
            connection.execute_batch(&format!("DROP TABLE \"{}\"", name.replace('"', "\"\"")))?;
        }
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(INDEXES)?;
        connection.execute_batch(LEDGER)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        if version != 0 {
            set_meta(connection, REBUILT, "true")?;
        }
    }
    let format = FORMAT.to_string();
    if meta(connection, "format")?.is_some_and(|held| held != format) {
        connection.execute_batch("DELETE FROM parse")?;
        forget(connection)?;
        set_meta(connection, REBUILT, "true")?;
    }
    if meta(connection, "about")?.is_some_and(|held| held != about) {
        forget(connection)?;
    }
    set_meta(connection, "format", &format)?;
    set_meta(connection, "about", about)
}

/// Gives pages that hold nothing back to the disk.
pub(crate) fn give_back(connection: &Connection) -> Result<(), GraphError> {
    let mut statement = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Forgets everything but what was read from blobs.
fn forget(connection: &Connection) -> Result<(), GraphError> {
    for table in FACTS {
        connection.execute_batch(&format!("DELETE FROM {table}"))?;
    }
    Ok(())
}

/// Forgets what holds when, and nothing of the store itself. The tools stay: no commit says them.
pub(crate) fn start_anew(connection: &Connection) -> Result<(), GraphError> {
    let kept = KEPT.map(|name| Ok((name, meta(connection, name)?)));
    let kept = kept.into_iter().collect::<Result<Vec<_>, GraphError>>()?;
    let tools = forged::held(connection)?;
    forget(connection)?;
    for (name, value) in kept {
        if let Some(value) = value {
            set_meta(connection, name, &value)?;
        }
    }
    forged::hold(connection, 0, &tools)
}

pub(crate) fn meta(connection: &Connection, name: &str) -> Result<Option<String>, GraphError> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

pub(crate) fn set_meta(connection: &Connection, name: &str, value: &str) -> Result<(), GraphError> {
    connection
        .prepare_cached(
            "INSERT INTO meta (name, value) VALUES (?1, ?2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?
        .execute(params![name, value])?;
    Ok(())
}

pub(crate) fn forget_meta(connection: &Connection, name: &str) -> Result<(), GraphError> {
    connection.prepare_cached("DELETE FROM meta WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// Opens the store so that nothing can be changed through the connection.
pub fn reader(file: &Path) -> Result<Connection, GraphError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)?;
    connection.busy_handler(Some(wait))?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    Ok(connection)
}
