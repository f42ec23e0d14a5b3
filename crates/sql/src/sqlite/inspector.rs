//! Finds out what a statement would do by letting SQLite compile it, on a connection that runs nothing.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Batch;
use rusqlite::fallible_iterator::FallibleIterator;
use tgp_contract::{SqlClass, UNKNOWN_KIND};

use super::authorizer::Watch;
use super::connection::Connection;
use crate::text::{Dialect, MAX_SQL_BYTES, classify};

/// What a query may consist of.
const READING_KINDS: [&str; 4] = ["select", "values", "explain", "pragma"];

/// The connection for statements that no transaction is open for. It has none of the pool's slots, so that inspecting a
/// statement does not wait for a writer or another run.
pub(crate) struct Inspector {
    file: PathBuf,
    wait: Duration,
    timeout: Duration,
    kept: Mutex<Option<(Identity, Connection)>>,
}

/// Which file a connection has open; none for one in memory, which is as empty as a file that does not exist yet.
type Identity = Option<(u64, u64)>;

impl Inspector {
    pub fn new(file: PathBuf, wait: Duration, timeout: Duration) -> Self {
        Self { file, wait, timeout, kept: Mutex::new(None) }
    }

    /// Blocks while SQLite compiles the statement.
    pub fn inspect(&self, sql: &str) -> SqlClass {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = identity(&self.file);
        let known = kept.take().filter(|(known, _)| *known == identity).map(|(_, connection)| connection);
        let opened = known.map_or_else(
            || match identity {
                Some(_) => Connection::open(&self.file, false, self.wait),
                None => Connection::open_empty(),
            },
            Ok,
        );
        // Without a connection the statement may do anything.
        let Ok(connection) = opened else { return doubtful(classify(sql, Dialect::Sqlite).kinds) };
        connection.forget_caller();
        let found = inspect(&connection, sql, self.timeout);
        connection.forget_caller();
        *kept = Some((identity, connection));
        found
    }
}

fn identity(file: &Path) -> Identity {
    std::fs::metadata(file).ok().as_ref().map(|file: &Metadata| (file.dev(), file.ino()))
}

/// What SQLite says of a statement, and what its text says in addition.
pub(crate) fn inspect(connection: &Connection, sql: &str, timeout: Duration) -> SqlClass {
    let text = classify(sql, Dialect::Sqlite).kinds;
    if sql.len() > MAX_SQL_BYTES || sql.contains('\0') || connection.refresh().is_err() {
        return doubtful(text);
    }
    connection.start_clock(timeout);
    let compiled = compile(connection, sql, &text);
    connection.stop_clock();
    let Some(Compiled { kinds, reads }) = compiled else { return doubtful(text) };
    // SQLite has understood the text, so what our own reading did not understand of it does not matter.
    let mut all = kinds;
    let known = text.into_iter().filter(|kind| kind != UNKNOWN_KIND);
    for kind in known {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    let reads = reads && all.iter().all(|kind| READING_KINDS.contains(&kind.as_str()));
    SqlClass { kinds: all, reads }
}

/// What SQLite made of a statement.
struct Compiled {
    kinds: Vec<String>,
    reads: bool,
}

/// Nothing when it is not one statement that SQLite understands.
fn compile(connection: &Connection, sql: &str, text: &[String]) -> Option<Compiled> {
    let mut compiled = compile_once(connection, sql)?;
    // A virtual table that is opened here prepares its own statements, once. They are not the caller's.
    if compiled.kinds.iter().any(|kind| !text.contains(kind)) {
        compiled = compile_once(connection, sql)?;
    }
    Some(compiled)
}

fn compile_once(connection: &Connection, sql: &str) -> Option<Compiled> {
    connection.warden.guard(Watch::Inspecting);
    let mut batch = Batch::new(&connection.database, sql);
    let first = batch.next();
    let actions = connection.warden.actions();
    let rest = batch.next();
    let refusal = connection.warden.release();
    let (Ok(Some(statement)), Ok(None), None) = (first, rest, refusal) else { return None };
    let mut kinds = actions.kinds(sql);
    let is_explained = statement.is_explain() != 0;
    if is_explained {
        kinds.push("explain".to_owned());
    }
    if kinds.is_empty() && !is_values(sql) {
        kinds.push(UNKNOWN_KIND.to_owned());
    }
    Some(Compiled { reads: statement.readonly() && !actions.is_doubtful(), kinds })
}

/// Rows without a table are the one query for which SQLite asks nothing but an internal selection.
fn is_values(sql: &str) -> bool {
    classify(sql, Dialect::Sqlite).kinds == ["values"]
}

/// A statement of which only the text is known.
fn doubtful(mut kinds: Vec<String>) -> SqlClass {
    if !kinds.iter().any(|kind| kind == UNKNOWN_KIND) {
        kinds.push(UNKNOWN_KIND.to_owned());
    }
    SqlClass { kinds, reads: false }
}
