//! A SQLite connection: opened with safe settings, begun, and checked before it is kept.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use tgp_contract::{SqlAccess, ToolError};

use super::authorizer::Authorizer;
use super::errors::{failed, plain};
use crate::failure::esql;
use crate::text::MAX_SQL_BYTES;
use crate::transaction::CancelFlag;

/// How many steps of SQLite's machine pass between two checks of the clock: some ten microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// The longest text, blob or row. A function cannot be stopped in the middle, so it must not get to build gigabytes.
const MAX_VALUE_BYTES: i32 = 64 * 1024 * 1024;

/// The longest pause between two tries for a lock that another process holds.
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

/// How long operations outside the wait for the write lock try: recovery and checkpoints of other processes.
const HOUSEKEEPING_WAIT: Duration = Duration::from_secs(5);

/// What SQLite's callbacks check while a statement runs.
#[derive(Clone, Debug, Default)]
struct Watch(Arc<Mutex<WatchState>>);

#[derive(Debug, Default)]
struct WatchState {
    deadline: Option<Instant>,
    lock_deadline: Option<Instant>,
    abandoned: CancelFlag,
}

impl Watch {
    fn with<T>(&self, use_state: impl FnOnce(&mut WatchState) -> T) -> T {
        use_state(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn must_stop(&self) -> bool {
        self.with(|state| {
            state.abandoned.get() || state.deadline.is_some_and(|deadline| Instant::now() >= deadline)
        })
    }

    /// Called when another process holds a lock: pauses and asks for another try, or gives up.
    fn pause(&self, tries: i32) -> bool {
        let until = self.with(|state| if state.abandoned.get() { None } else { state.lock_deadline });
        if until.is_none_or(|until| Instant::now() >= until) || self.must_stop() {
            return false;
        }
        // Processes that wait for the same lock must not try in step, so each pause differs a little.
        let spread = u64::from(std::process::id())
            .wrapping_mul(2_654_435_761)
            .wrapping_add(tries.unsigned_abs().into())
            % 5;
        let pause = Duration::from_millis(u64::from(tries.unsigned_abs()).saturating_add(spread + 1));
        std::thread::sleep(pause.min(LONGEST_PAUSE));
        true
    }
}

pub(crate) struct Connection {
    pub database: rusqlite::Connection,
    pub warden: Authorizer,
    watch: Watch,
}

impl Connection {
    /// Opens the file; makes it, for the owner only, when `create` says so. No link on its way is followed: a user who
    /// can create one where the database is expected must not redirect it to another file.
    pub fn open(file: &Path, create: bool, wait: Duration) -> Result<Self, ToolError> {
        if create {
            make_file(file)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut database =
            match rusqlite::Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_READ_WRITE) {
                // A file on a read-only medium can still be read.
                Err(_) if !create => {
                    rusqlite::Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
                }
                opened => opened,
            }
            .map_err(|error| plain("the database file cannot be opened", &error))?;
        let (watch, warden) = (Watch::default(), Authorizer::default());
        watch.with(|state| state.lock_deadline = Some(Instant::now() + wait));
        install(&mut database, &watch, &warden)
            .map_err(|error| plain("the database cannot be prepared", &error))?;
        let connection = Self { database, warden, watch };
        connection.settle_journal(create, wait)?;
        Ok(connection)
    }

    /// A connection to a database that has nothing in it, with the same settings.
    pub fn open_empty() -> Result<Self, ToolError> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_MEMORY;
        let failed = |error: rusqlite::Error| plain("the database cannot be prepared", &error);
        let mut database = rusqlite::Connection::open_with_flags(":memory:", flags).map_err(failed)?;
        let (watch, warden) = (Watch::default(), Authorizer::default());
        install(&mut database, &watch, &warden).map_err(failed)?;
        Ok(Self { database, warden, watch })
    }

    /// Reads the definitions again if another connection has changed them. A statement would be compiled with the old
    /// ones, and compiled again only while it runs. In a transaction they do not change after that.
    pub fn refresh(&self) -> rusqlite::Result<()> {
        let mut statement = self.database.prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")?;
        let mut rows = statement.query([])?;
        rows.next().map(|_| ())
    }

    /// Write-ahead logging lets readers continue while one process writes. Changing to it needs the file for a moment,
    /// and SQLite does not wait for that by itself.
    fn settle_journal(&self, create: bool, wait: Duration) -> Result<(), ToolError> {
        let until = Instant::now() + wait;
        loop {
            let mode = self.database.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
            let mode = match mode {
                Ok(mode) if mode == "wal" || !create => Ok(mode),
                Ok(_) => {
                    self.database.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))
                }
                Err(error) => Err(error),
            };
            match mode {
                Ok(mode) if mode == "wal" || !create => return Ok(()),
                Err(error) if !failed(&error, rusqlite::ErrorCode::DatabaseBusy) => {
                    return Err(plain("the file is not a usable SQLite database", &error));
                }
                Ok(_) | Err(_) if Instant::now() < until => std::thread::sleep(LONGEST_PAUSE),
                Ok(mode) => {
                    return Err(esql(format!(
                        "the database stays in the journal mode `{mode}`, not in `wal`"
                    )));
                }
                Err(error) => return Err(plain("the database is in use", &error)),
            }
        }
    }

    /// Starts a transaction; one that may write waits for the write lock.
    pub fn begin(
        &mut self,
        access: SqlAccess,
        abandoned: CancelFlag,
        wait: Duration,
    ) -> Result<(), ToolError> {
        self.watch.with(|state| {
            *state = WatchState { deadline: None, lock_deadline: Some(Instant::now() + wait), abandoned };
        });
        let begun = match access {
            SqlAccess::ReadOnly => self.database.execute_batch("PRAGMA query_only = ON; BEGIN"),
            SqlAccess::ReadFirst => self.database.execute_batch("PRAGMA query_only = OFF; BEGIN"),
            SqlAccess::ReadWrite => self.database.execute_batch("PRAGMA query_only = OFF; BEGIN IMMEDIATE"),
        };
        begun.map_err(|error| {
            if failed(&error, rusqlite::ErrorCode::DatabaseBusy) {
                return super::busy(wait.as_millis());
            }
            plain("the transaction cannot begin", &error)
        })
    }

    /// Gives the next statement its time.
    pub fn start_clock(&self, timeout: Duration) {
        let now = Instant::now();
        self.watch.with(|state| {
            state.deadline = Some(now + timeout);
            state.lock_deadline = Some(now + timeout);
        });
    }

    pub fn stop_clock(&self) {
        self.watch.with(|state| {
            state.deadline = None;
            state.lock_deadline = Some(Instant::now() + HOUSEKEEPING_WAIT);
        });
    }

    /// True when the caller went away; then an interrupted statement was not too slow.
    pub fn is_abandoned(&self) -> bool {
        self.watch.with(|state| state.abandoned.get())
    }

    /// Forgets the caller, so that our own last statements are not interrupted.
    pub fn forget_caller(&self) {
        self.watch.with(|state| {
            *state = WatchState {
                lock_deadline: Some(Instant::now() + HOUSEKEEPING_WAIT),
                ..WatchState::default()
            }
        });
    }

    /// The connection, if the next transaction will not notice this one.
    pub fn clean(self) -> Option<Self> {
        self.forget_caller();
        if !self.database.is_autocommit() {
            return None;
        }
        // Temporary tables belong to the connection and would outlive the transaction.
        let temporary = self
            .database
            .query_row("SELECT count(*) FROM temp.sqlite_schema", [], |row| row.get::<_, i64>(0));
        (temporary == Ok(0)).then_some(self)
    }
}

fn make_file(file: &Path) -> Result<(), ToolError> {
    let fault = |error: std::io::Error| {
        esql(format!("the database file cannot be made: {error}"))
            .help("check the path in `db.url` and its permissions")
    };
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fault)?;
        // A file is not made behind a link either.
        if folder.canonicalize().map_err(fault)? != std::path::absolute(folder).map_err(fault)? {
            return Err(esql("the database file cannot be made: a link is on its way")
                .help("name the file itself in `db.url`, and remove the link"));
        }
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(file)
        .map_err(fault)?;
    Ok(())
}

fn install(database: &mut rusqlite::Connection, watch: &Watch, warden: &Authorizer) -> rusqlite::Result<()> {
    let clock = watch.clone();
    database.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || clock.must_stop()))?;
    let locks = watch.clone();
    database.busy_handler(Some(move |tries| locks.pause(tries)))?;
    let judge = warden.clone();
    database.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| judge.judge(&context)))?;
    super::math::install(database)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A misspelt column in double quotes is an error, not a text.
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    database.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, i32::try_from(MAX_SQL_BYTES).unwrap_or(i32::MAX))?;
    database.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    database.set_limit(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
    // FULL: a commit that was reported is there after a power cut too.
    database.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;",
    )
}
