//! A copy of the database that the classifier inspects, in which statements that are said to read are run.

use std::path::PathBuf;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use tgp_contract::SqlClass;

use super::{ensure, same};

const SCHEMA: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); CREATE TABLE u (a, b DEFAULT 1); CREATE INDEX i ON u (a); \
                      CREATE VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1, 'x'), (2, 'y'); INSERT INTO u VALUES (1, 2);";

/// Steps of SQLite's machine after which a statement is stopped: a recursive query has no end.
const MOST_STEPS: i32 = 200_000;
/// The largest text or blob: `zeroblob(1e9)` is a statement of a few bytes.
const MOST_BYTES: i32 = 1 << 20;

pub(super) struct Copy {
    folder: TempDir,
    /// In memory, so that it starts as the file does and cannot reach it.
    connection: Connection,
    /// What it holds as long as nothing has changed.
    content: String,
}

impl Copy {
    pub(super) fn new() -> Result<Self, String> {
        Self::open().map_err(|error| format!("there is no database: {error}"))
    }

    fn open() -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        Connection::open(folder.path().join("db"))?.execute_batch(SCHEMA)?;
        // Without URIs, as the product opens its files.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut connection = Connection::open_in_memory_with_flags(flags)?;
        connection.execute_batch(SCHEMA)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_BYTES)?;
        connection.progress_handler(MOST_STEPS, Some(|| true))?;
        let content = content(&connection)?;
        Ok(Self { folder, connection, content })
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    /// Whether a statement does what the classifier says.
    pub(super) fn compare(&self, sql: &str, class: &SqlClass) -> Result<(), String> {
        // SQLite carries some pragmas out as soon as it compiles them, so no other statement is even compiled here.
        if !class.reads {
            return Ok(());
        }
        let Ok(mut statement) = self.connection.prepare(sql) else { return Ok(()) };
        ensure!(statement.readonly(), "a statement that SQLite says can write is said to read: {class:?}");
        let mut rows = statement.raw_query();
        // An error while it runs, and a statement that was stopped, are not a change.
        while let Ok(Some(_)) = rows.next() {}
        drop(rows);
        drop(statement);
        let after = content(&self.connection)
            .map_err(|error| format!("the database cannot be read any more: {error}"))?;
        same(
            &format!("a statement that is said to read has changed the database ({class:?})"),
            &after,
            &self.content,
        )?;
        let files = std::fs::read_dir(self.folder.path()).map_err(|error| error.to_string())?.count();
        ensure!(files <= 3, "a statement that is said to read has made a file");
        Ok(())
    }
}

/// Everything that a statement could change and another connection, or the next statement, could see.
fn content(connection: &Connection) -> rusqlite::Result<String> {
    let mut all = String::new();
    for query in [
        "SELECT type || name || coalesce(sql, '') FROM sqlite_schema",
        "SELECT type || name || coalesce(sql, '') FROM sqlite_temp_schema",
        "SELECT a || b FROM t",
        "SELECT a || b FROM u",
        "SELECT user_version FROM pragma_user_version",
        "SELECT application_id FROM pragma_application_id",
        "SELECT foreign_keys FROM pragma_foreign_keys",
        "SELECT query_only FROM pragma_query_only",
        "SELECT recursive_triggers FROM pragma_recursive_triggers",
        "SELECT name FROM pragma_database_list",
    ] {
        let mut statement = connection.prepare(query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            all.push_str(&format!("{:?};", row.get::<_, rusqlite::types::Value>(0)?));
        }
    }
    Ok(all)
}
