//! The tables of the store, and how a file of them is opened.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tgp_contract::{Code, ToolError};
use tgp_fs::explain_permission;

/// The version of the tables below. A file of another one is refused, never guessed at.
const VERSION: i64 = 1;

/// How long one process waits for another's transaction; each takes far less than a millisecond.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The pause between two tries to change the journal, for which SQLite does not wait by itself.
const PAUSE: Duration = Duration::from_millis(5);

/// Statements that are kept compiled: there are about a dozen.
const STATEMENTS: usize = 32;

const TABLES: &str = "
    CREATE TABLE machine (
        scope TEXT PRIMARY KEY,
        state TEXT NOT NULL,
        cycle TEXT NOT NULL,
        baseline_is_complete INTEGER NOT NULL,
        touched INTEGER NOT NULL
    ) WITHOUT ROWID, STRICT;
    CREATE INDEX machine_by_age ON machine (touched);
    CREATE TABLE file (
        scope TEXT NOT NULL,
        role TEXT NOT NULL,
        path TEXT NOT NULL,
        hash TEXT,
        PRIMARY KEY (scope, role, path)
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        scope TEXT NOT NULL,
        command TEXT NOT NULL,
        selection TEXT NOT NULL,
        exit_code INTEGER,
        passed INTEGER,
        failed INTEGER,
        outcome TEXT NOT NULL,
        state_before TEXT NOT NULL,
        state_after TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX run_by_scope ON run (scope, id);
";

/// What a person can do about a damaged store.
const DAMAGED: &str = "restore `tdd.sqlite` in the kernel's state from a backup, or rename it: work then begins again from idle";

/// Why the store cannot answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("cannot open the TDD store `{}`: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("the TDD store cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the TDD store is of version {0}, and this program knows version {VERSION}")]
    Version(i64),
    #[error("the TDD store is damaged: {0}")]
    Damaged(String),
    #[error("the files of a run have no fingerprint: {0}")]
    Fingerprint(#[from] tgp_contract::canonical::CanonicalError),
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        let (code, help) = match &error {
            StoreError::Damaged(_) => (Code::Integrity, DAMAGED.to_owned()),
            StoreError::Sqlite(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
                ) =>
            {
                (Code::Integrity, DAMAGED.to_owned())
            }
            StoreError::Version(_) => (Code::Config, "use the newest `tgp` on this project".to_owned()),
            StoreError::File { path, source } if source.kind() == ErrorKind::PermissionDenied => {
                (Code::Permission, explain_permission(path))
            }
            StoreError::File { .. } | StoreError::Sqlite(_) => (
                Code::Internal,
                "check the permissions and the free space of the directory of the state".to_owned(),
            ),
            StoreError::Fingerprint(_) => (Code::Internal, "report this as a fault".to_owned()),
        };
        ToolError::new(code, error.to_string()).help(help)
    }
}

/// Opens the file; makes it, for the owner only, when it is not there.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    opened.map_err(|source| StoreError::File { path: path.to_owned(), source })?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(LOCK_WAIT)?;
    use_write_ahead_log(&connection)?;
    prepare(&mut connection)?;
    Ok(connection)
}

/// A store that is gone with the process.
pub(crate) fn open_in_memory() -> Result<Connection, StoreError> {
    let mut connection = Connection::open_in_memory()?;
    prepare(&mut connection)?;
    Ok(connection)
}

/// Readers continue while one process writes.
fn use_write_ahead_log(connection: &Connection) -> Result<(), StoreError> {
    let until = Instant::now() + LOCK_WAIT;
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(StoreError::Damaged(format!("its journal stays in the mode `{mode}`"))),
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until =>
            {
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // What was committed survives the end of the process; only a power cut can take the last moments, and then the
    // hashes of the files still show what is stale.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Most files are ready, and then no lock is needed.
    if version(connection)? == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match version(&transaction)? {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        VERSION => {}
        other => return Err(StoreError::Version(other)),
    }
    transaction.commit()?;
    Ok(())
}

fn version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}
