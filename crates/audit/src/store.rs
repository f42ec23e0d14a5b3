//! The database file: how it is made, opened, read at its end and appended to.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use crate::AuditSync;
use crate::anchor::Head;
use crate::entry::{ChainedEntry, Columns, GENESIS};
use crate::failure::{ErrorContext, Failure};

/// No honest value is longer than an entry; a longer one must not fill the memory of the verifier.
const MAX_VALUE_BYTES: i32 = 1 << 20;
/// What the write-ahead log may keep on the disk after it was emptied.
const MAX_LOG_BYTES: u32 = 16 << 20;
/// Pages in the log before they are moved into the database. Each start reads the whole log, so it is kept short.
const MAX_LOG_PAGES: u32 = 128;
/// The pause between two tries to set up a file that another process sets up too.
const SETUP_PAUSE: Duration = Duration::from_millis(10);

/// The whole schema, in the order in which it is made. A database with more or less in it was changed.
const SCHEMA: [(&str, &str); 6] = [
    (
        "chain",
        "CREATE TABLE chain (id INTEGER PRIMARY KEY CHECK (id = 1), chain TEXT NOT NULL, \
         checkpoint_sequence INTEGER NOT NULL, checkpoint_hash TEXT NOT NULL) STRICT",
    ),
    (
        "entries",
        "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, hash TEXT NOT NULL, body BLOB NOT NULL, \
         time_ms INTEGER NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL, verdict TEXT NOT NULL) STRICT",
    ),
    ("entries_by_session", "CREATE INDEX entries_by_session ON entries (session, sequence)"),
    ("entries_by_time", "CREATE INDEX entries_by_time ON entries (time_ms)"),
    ("entries_by_tool", "CREATE INDEX entries_by_tool ON entries (tool, sequence)"),
    ("entries_by_verdict", "CREATE INDEX entries_by_verdict ON entries (verdict, sequence)"),
];

/// The database in the hands of one who writes.
pub(crate) struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// Device and number of the file: the path can come to name another one.
    identity: (u64, u64),
}

/// What the database says of its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) id: String,
    /// Up to here it was verified.
    pub(crate) checkpoint: Head,
}

impl Store {
    /// Opens the file for writing, and makes an empty one where there is none.
    pub(crate) fn open(path: &Path, durability: AuditSync, lock_wait: Duration) -> Result<Self, Failure> {
        const DOING: &str = "cannot open";
        make_file(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let connection = Connection::open_with_flags(path, flags).doing(DOING, path)?;
        harden(&connection, lock_wait).doing(DOING, path)?;
        // What a killed process left in the log is read by the next one, so an end need not wait for the disk.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).doing(DOING, path)?;
        settle_journal(&connection, path, lock_wait)?;
        let synchronous = match durability {
            AuditSync::Batched => "NORMAL",
            AuditSync::Call => "FULL",
        };
        connection.pragma_update(None, "synchronous", synchronous).doing(DOING, path)?;
        connection.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES).doing(DOING, path)?;
        connection.pragma_update(None, "wal_autocheckpoint", MAX_LOG_PAGES).doing(DOING, path)?;
        let identity = identity(path)?;
        Ok(Self { connection, path: path.to_owned(), identity })
    }

    /// Takes the one right to write, over all processes.
    pub(crate) fn begin(&mut self) -> Result<Transaction<'_>, Failure> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .doing("cannot write", &self.path)
    }

    /// Sees that the path still names the file that is open.
    pub(crate) fn check_identity(&self) -> Result<(), Failure> {
        match identity(&self.path) {
            Ok(identity) if identity == self.identity => Ok(()),
            Ok(_) => Err(Failure::Foreign(format!("`{}` was replaced by another file", self.path.display()))),
            Err(Failure::Disk { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Err(Failure::Foreign(format!("`{}` was removed", self.path.display())))
            }
            Err(error) => Err(error),
        }
    }
}

/// Makes what was committed survive a power failure. Only then may the anchor speak of it: an anchor that knows more
/// than the database would look like a truncated database.
pub(crate) fn sync(path: &Path) -> Result<(), Failure> {
    const DOING: &str = "cannot sync";
    let log = beside(path, "-wal");
    // The log carries no locks, so closing this second handle of it ends none of SQLite's.
    match File::open(&log) {
        Ok(file) => file.sync_data().doing(DOING, &log),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).doing(DOING, &log),
    }
}

/// Makes the name of a new file survive one.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Failure> {
    let folder = folder(path);
    File::open(folder).and_then(|file| file.sync_all()).doing("cannot sync", folder)
}

/// How a database is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Together with its writers: SQLite keeps what it knows of the log in a file beside the database.
    Shared,
    /// Without a change to any file: the database may be another user's, or on a disk that cannot be written.
    Unchanged,
}

/// Opens the file for reading only.
pub(crate) fn open_to_read(path: &Path, mode: ReadMode, lock_wait: Duration) -> Result<Connection, Failure> {
    const DOING: &str = "cannot read";
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = match mode {
        ReadMode::Shared => Connection::open_with_flags(path, flags),
        ReadMode::Unchanged => {
            Connection::open_with_flags(unchanged_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)
        }
    };
    let connection = connection.doing(DOING, path)?;
    harden(&connection, lock_wait).doing(DOING, path)?;
    connection.pragma_update(None, "query_only", true).doing(DOING, path)?;
    Ok(connection)
}

fn harden(connection: &Connection, lock_wait: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(lock_wait)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)
}

/// Changing to write-ahead logging needs the file alone for a moment, and SQLite does not wait for that by itself.
fn settle_journal(connection: &Connection, path: &Path, lock_wait: Duration) -> Result<(), Failure> {
    let until = Instant::now() + lock_wait;
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) if Instant::now() < until => {}
            Ok(mode) => {
                let what =
                    format!("the database is in the journal mode `{mode}` and cannot be put into `wal`");
                return Err(Failure::Foreign(what));
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {}
            Err(error) => return Err(error).doing("cannot open", path),
        }
        std::thread::sleep(SETUP_PAUSE);
    }
}

/// For the owner only. An existing file is not even opened: closing a second handle of a database in one process ends
/// the locks of the first.
fn make_file(path: &Path) -> Result<(), Failure> {
    const DOING: &str = "cannot make";
    let folder = folder(path);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).doing(DOING, folder)?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).doing(DOING, path),
        _ => Ok(()),
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name by which SQLite opens a database without changing a file: with the index of its log as it is, or without a log
/// where that is empty.
fn unchanged_uri(path: &Path) -> String {
    let has_log = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let how = if has_log { "readonly_shm=1" } else { "immutable=1" };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if is_plain(*byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("{uri}?{how}")
}

/// The path of a file that SQLite keeps beside the database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn identity(path: &Path) -> Result<(u64, u64), Failure> {
    let data = fs::metadata(path).doing("cannot look at", path)?;
    Ok((data.dev(), data.ino()))
}

/// Whether nothing was ever made in the database.
pub(crate) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// Makes the tables, and an empty chain under a new random id.
pub(crate) fn create(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    for (_, statement) in SCHEMA {
        transaction.execute(statement, [])?;
    }
    transaction.execute("INSERT INTO chain VALUES (1, ?, 0, ?)", params![id, GENESIS])?;
    Ok(())
}

/// Sees that the tables are exactly those that [`create`] makes. A trigger or a view could change what is written or
/// what is seen.
pub(crate) fn check_schema(connection: &Connection, path: &Path) -> Result<(), Failure> {
    const DOING: &str = "cannot read";
    // One more than there should be, and none that is unboundedly long.
    let wanted = "SELECT name, sql FROM sqlite_schema ORDER BY name LIMIT 7";
    let mut statement = connection.prepare(wanted).doing(DOING, path)?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .doing(DOING, path)?;
    let expected = SCHEMA.map(|(name, sql)| (name.to_owned(), Some(sql.to_owned())));
    if rows == expected {
        return Ok(());
    }
    let odd = rows.iter().find(|row| !expected.contains(row)).map(|(name, _)| name.clone());
    Err(Failure::Foreign(match odd {
        Some(name) => format!("the database holds `{name}`, which the audit did not make"),
        None => "tables of the audit are missing".to_owned(),
    }))
}

/// The chain's id and checkpoint.
pub(crate) fn chain(connection: &Connection, path: &Path) -> Result<Chain, Failure> {
    let row = connection
        .prepare_cached("SELECT chain, checkpoint_sequence, checkpoint_hash FROM chain")
        .and_then(|mut statement| {
            let read = |row: &rusqlite::Row<'_>| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
            };
            statement.query_row([], read).optional()
        })
        .doing("cannot read", path)?;
    let (id, sequence, hash) =
        row.ok_or_else(|| Failure::Foreign("the database does not say which chain it holds".to_owned()))?;
    let sequence = u64::try_from(sequence).map_err(|_| {
        Failure::Foreign("the checkpoint of the database is not a number of an entry".to_owned())
    })?;
    Ok(Chain { checkpoint: Head { chain: id.clone(), sequence, hash }, id })
}

/// The newest entry, or the beginning of the chain.
pub(crate) fn last(connection: &Connection, chain: &str, path: &Path) -> Result<Head, Failure> {
    let row = connection
        .prepare_cached("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1")
        .and_then(|mut statement| {
            statement.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))).optional()
        })
        .doing("cannot read", path)?;
    let Some((sequence, hash)) = row else {
        return Ok(Head { chain: chain.to_owned(), sequence: 0, hash: GENESIS.to_owned() });
    };
    let sequence = u64::try_from(sequence).ok().filter(|sequence| *sequence > 0);
    let sequence = sequence.ok_or_else(|| Failure::broken(0, "there is an entry before the first"))?;
    Ok(Head { chain: chain.to_owned(), sequence, hash })
}

/// Sees that `head` is still in the chain.
pub(crate) fn confirm(connection: &Connection, head: &Head, who: &str, path: &Path) -> Result<(), Failure> {
    if head.sequence == 0 {
        return Ok(());
    }
    let stored = connection
        .prepare_cached("SELECT hash FROM entries WHERE sequence = ?")
        .and_then(|mut statement| {
            let number = i64::try_from(head.sequence).unwrap_or(i64::MAX);
            statement.query_row([number], |row| row.get::<_, String>(0)).optional()
        })
        .doing("cannot read", path)?;
    match stored {
        Some(hash) if hash == head.hash => Ok(()),
        Some(_) => Err(Failure::broken(head.sequence, format!("it is not the entry that {who} knows"))),
        None => {
            let last = last(connection, &head.chain, path)?.sequence;
            let first = if last < head.sequence { last + 1 } else { head.sequence };
            let what = format!("it is missing; {who} knows {} entries", head.sequence);
            Err(Failure::broken(first, what))
        }
    }
}

pub(crate) fn append(
    transaction: &Transaction<'_>,
    sequence: u64,
    columns: &Columns,
    placed: &ChainedEntry,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    insert.execute(params![
        i64::try_from(sequence).unwrap_or(i64::MAX),
        placed.hash,
        placed.body.as_bytes(),
        i64::try_from(columns.time_ms).unwrap_or(i64::MAX),
        columns.session,
        columns.tool,
        columns.verdict,
    ])?;
    Ok(())
}

pub(crate) fn set_checkpoint(transaction: &Transaction<'_>, head: &Head) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE chain SET checkpoint_sequence = ?, checkpoint_hash = ?")?
        .execute(params![i64::try_from(head.sequence).unwrap_or(i64::MAX), head.hash])?;
    Ok(())
}
