//! How the journal's file is opened, and what becomes of a damaged one.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{Journal, MetaKey};
use crate::failure::Failure;

/// The version of the tables below.
const VERSION: i64 = 2;
/// The version of a journal in which a row was found that cannot be.
pub(super) const DAMAGED: i64 = -1;
/// How long a reader of the status is waited for. It reads for milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Statements that are kept compiled.
const STATEMENTS: usize = 64;

const TABLES: &str = "
    CREATE TABLE number (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT;
    CREATE TABLE file (
        path TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL,
        device INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        born_ns INTEGER,
        sha256 TEXT NOT NULL,
        is_settled INTEGER NOT NULL
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE rule (path TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID, STRICT;
    CREATE TABLE outbox (
        sequence INTEGER PRIMARY KEY,
        chronicle TEXT NOT NULL,
        persona TEXT NOT NULL,
        event TEXT NOT NULL
    ) STRICT;
    CREATE TABLE skip (sequence INTEGER PRIMARY KEY, chronicle TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
    CREATE TABLE tally (persona TEXT PRIMARY KEY, triggered INTEGER NOT NULL) WITHOUT ROWID, STRICT;
    CREATE TABLE cooldown (
        persona TEXT NOT NULL,
        path TEXT NOT NULL,
        until_ms INTEGER NOT NULL,
        PRIMARY KEY (persona, path)
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE held (
        persona TEXT NOT NULL,
        path TEXT NOT NULL,
        due_ms INTEGER NOT NULL,
        change TEXT NOT NULL,
        cause TEXT NOT NULL,
        PRIMARY KEY (persona, path)
    ) WITHOUT ROWID, STRICT;
    CREATE INDEX held_by_due ON held (due_ms);
    CREATE TABLE work (
        sequence INTEGER PRIMARY KEY,
        persona TEXT NOT NULL,
        path TEXT NOT NULL,
        state TEXT NOT NULL,
        trigger TEXT NOT NULL,
        suspects TEXT NOT NULL,
        message TEXT
    ) STRICT;
    CREATE INDEX work_by_state ON work (state, persona, sequence);
    CREATE TABLE made (
        path TEXT NOT NULL,
        work INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        persona TEXT NOT NULL,
        depth INTEGER NOT NULL,
        PRIMARY KEY (path, work)
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE hidden (path TEXT PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID, STRICT;
    CREATE TABLE pace (persona TEXT NOT NULL, path TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
    CREATE INDEX pace_by_file ON pace (persona, path, at_ms);
    CREATE INDEX made_by_age ON made (work);
";

/// Came later than the tables; a build that does not know it loses nothing by it.
const INDEX: &str = "CREATE INDEX IF NOT EXISTS file_by_inode ON file (inode)";

/// A journal that was opened.
pub(crate) struct Opened {
    pub(crate) journal: Journal,
    /// What has happened to the one before it, when it is lost.
    pub(crate) loss: Option<String>,
}

/// Opens the journal for its owner, who holds the lock. A damaged one is set aside, and a new one begun. `is_expected` says
/// that there was one before.
pub(crate) fn open(path: &Path, now_ms: u64, is_expected: bool) -> Result<Opened, Failure> {
    let failed = |source| Failure::JournalFile { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let (connection, loss) = match connect(path) {
        Ok((connection, is_new)) => {
            let loss = (is_new && is_expected).then(|| "it was removed or emptied".to_owned());
            (connection, loss)
        }
        Err(failure) if failure.is_damage() => {
            let aside = set_aside(path, now_ms).map_err(failed)?;
            (connect(path)?.0, Some(format!("{failure}; it was set aside as `{}`", aside.display())))
        }
        Err(failure) => return Err(failure),
    };
    let mut journal = Journal { connection };
    if loss.is_some() {
        // The numbers of the lost journal are not known, and must not be given again: a clock is beyond all of them.
        journal.transact(|ledger| ledger.set_number(MetaKey::LastSequence, now_ms))?;
    }
    Ok(Opened { journal, loss })
}

/// Answers also whether it was made just now.
fn connect(path: &Path) -> Result<(Connection, bool), Failure> {
    // Only its owner reads it: hashes say what is in files that others may not read.
    let made = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path);
    made.map_err(|source| Failure::JournalFile { path: path.to_owned(), source })?;
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(LOCK_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What is in a chronicle must be in here after a power failure too, or it would be reported twice.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = found == 0 && tables == 0;
    if found == DAMAGED {
        return Err(Failure::Nonsense("a row that cannot be was found in it".to_owned()));
    }
    if found != VERSION && !is_new {
        return Err(Failure::Version { found, known: VERSION });
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Failure::Nonsense(verdict));
    }
    if is_new {
        let transaction = connection.transaction()?;
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    connection.execute_batch(INDEX)?;
    Ok((connection, is_new))
}

/// Moves the file and what belongs to it out of the way.
fn set_aside(path: &Path, now_ms: u64) -> std::io::Result<PathBuf> {
    let with = |base: &Path, ending: &str| {
        let mut name = OsString::from(base);
        name.push(ending);
        PathBuf::from(name)
    };
    let aside = with(path, &format!(".damaged-{now_ms}"));
    fs::rename(path, &aside)?;
    for ending in ["-wal", "-shm"] {
        // Where there is none, nothing has to move.
        let _ = fs::rename(with(path, ending), with(&aside, ending));
    }
    Ok(aside)
}

/// Opens the journal for reading only. Nothing when there is none.
pub(crate) fn peek(path: &Path) -> Result<Option<Connection>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(LOCK_WAIT)?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found {
        // Another process is about to create it, or to set it aside.
        0 | DAMAGED => Ok(None),
        VERSION => Ok(Some(connection)),
        found => Err(Failure::Version { found, known: VERSION }),
    }
}
