//! Random texts from a hostile alphabet: what SQLite says of them, and what we say.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use tgp_contract::SqlClass;

use crate::support::open;

const SCHEMA: &str = "CREATE TABLE t (x INTEGER PRIMARY KEY, y); CREATE TABLE u (x);
    CREATE TRIGGER a AFTER INSERT ON u BEGIN DELETE FROM t; END;
    CREATE VIEW v AS SELECT * FROM t;
    CREATE TRIGGER b INSTEAD OF UPDATE ON v BEGIN INSERT INTO u VALUES (1); END;
    INSERT INTO t VALUES (1, 1), (2, 2);";

/// Words, blanks and quotes that a reader can misunderstand.
const ALPHABET: [&str; 58] = [
    "SELECT",
    "DELETE",
    "UPDATE",
    "INSERT",
    "REPLACE",
    "DROP",
    "CREATE",
    "ALTER",
    "PRAGMA",
    "EXPLAIN",
    "VALUES",
    "WITH",
    "FROM",
    "INTO",
    "TABLE",
    "SET",
    "WHERE",
    "AS",
    "OR",
    "ON",
    "RETURNING",
    "VIEW",
    "INDEX",
    "TEMP",
    "RENAME TO",
    "t",
    "u",
    "v",
    "x",
    "y",
    "c",
    "n",
    "(",
    ")",
    ",",
    "=",
    "1",
    "*",
    ";",
    "'",
    "''",
    "\"",
    "`",
    "[",
    "]",
    "/*",
    "*/",
    "--",
    "\n",
    "\u{feff}",
    "\u{a0}",
    "\u{b}",
    "\u{c}",
    "\u{2028}",
    "\\",
    "user_version",
    "'\u{feff}'",
    "é",
];

/// Beginnings that are statements already, so that most texts are understood.
const SEEDS: [&str; 16] = [
    "",
    "SELECT * FROM t ",
    "DELETE FROM t ",
    "UPDATE t SET y = 1 ",
    "UPDATE v SET y = 1 ",
    "INSERT INTO u VALUES (1) ",
    "INSERT INTO t SELECT x + 9, y FROM t ",
    "WITH c AS (SELECT 1) ",
    "WITH c AS (SELECT 1) \u{feff}DELETE FROM t ",
    "DROP TABLE t ",
    "CREATE TABLE n AS SELECT 1 ",
    "PRAGMA user_version ",
    "EXPLAIN ",
    "VALUES (1) ",
    "\u{feff}",
    "/**/ -- \n",
];

/// What SQLite asks its own authorizer while it compiles a text.
fn engine(
    database: &rusqlite::Connection,
    seen: &Arc<Mutex<BTreeSet<String>>>,
    sql: &str,
) -> Option<(BTreeSet<String>, bool)> {
    seen.lock().unwrap().clear();
    let statement = database.prepare(sql).ok()?;
    if sql.contains(';') && rusqlite::Batch::new(database, sql).count_statements() != Some(1) {
        return None;
    }
    seen.lock().unwrap().clear();
    drop(statement);
    let statement = database.prepare(sql).ok()?;
    Some((seen.lock().unwrap().clone(), statement.readonly()))
}

trait Count {
    fn count_statements(self) -> Option<usize>;
}

impl Count for rusqlite::Batch<'_, '_> {
    fn count_statements(self) -> Option<usize> {
        use rusqlite::fallible_iterator::FallibleIterator;
        self.count().ok()
    }
}

fn name(action: &AuthAction<'_>) -> Option<&'static str> {
    let schema = |table: &str| table.starts_with("sqlite_");
    Some(match action {
        AuthAction::Insert { table_name } if !schema(table_name) => "insert",
        AuthAction::Update { table_name, .. } if !schema(table_name) => "update",
        AuthAction::Delete { table_name } if !schema(table_name) => "delete",
        AuthAction::Select => "select",
        AuthAction::CreateTable { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTempTable { .. } => "create",
        AuthAction::CreateIndex { .. } | AuthAction::CreateTempView { .. } => "create",
        AuthAction::DropTable { .. } | AuthAction::DropView { .. } => "drop",
        AuthAction::AlterTable { .. } => "alter",
        AuthAction::Pragma { .. } => "pragma",
        _ => return None,
    })
}

fn watched() -> (rusqlite::Connection, Arc<Mutex<BTreeSet<String>>>) {
    let mut database = rusqlite::Connection::open_in_memory().unwrap();
    database.execute_batch(SCHEMA).unwrap();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let log = Arc::clone(&seen);
    let note = move |context: AuthContext<'_>| {
        log.lock().unwrap().extend(name(&context.action).map(str::to_owned));
        Authorization::Allow
    };
    database.authorizer(Some(note)).unwrap();
    (database, seen)
}

/// Everything that can be seen in the database.
fn contents(database: &rusqlite::Connection) -> String {
    let rows = |sql: &str| -> String {
        let mut statement = database.prepare(sql).unwrap();
        let width = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..width).map(|index| row.get::<_, rusqlite::types::Value>(index)).collect::<Result<Vec<_>, _>>()
        });
        rows.unwrap().map(|row| format!("{:?}\n", row.unwrap())).collect()
    };
    [
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM sqlite_temp_schema",
        "SELECT * FROM t",
        "SELECT * FROM u",
        "PRAGMA user_version",
    ]
    .iter()
    .map(|sql| rows(sql))
    .collect()
}

fn soup() -> impl Strategy<Value = String> {
    let words = prop::collection::vec((prop::sample::select(ALPHABET.to_vec()), any::<bool>()), 0..7);
    (prop::sample::select(SEEDS.to_vec()), words).prop_map(|(seed, words)| {
        let mut sql = seed.to_owned();
        for (word, blank) in words {
            sql.push_str(word);
            sql.push_str(if blank { " " } else { "" });
        }
        sql
    })
}

#[test]
fn sqlite_never_writes_what_we_call_a_read() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("test.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch(SCHEMA).unwrap();
    let ours = runtime.block_on(open(&format!("sqlite:{}", file.display()), |_| {}));
    let (database, seen) = watched();
    let before = contents(&database);
    let understood = std::cell::Cell::new(0_u32);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) };
    proptest!(config, |(sql in soup())| {
        let SqlClass { kinds, reads } = runtime.block_on(ours.inspect(&sql)).unwrap();
        let is_unknown = kinds.contains(&"unknown".to_owned());
        prop_assert!(!(reads && is_unknown), "{sql:?}: {kinds:?}");
        match engine(&database, &seen, &sql) {
            None => prop_assert!(!reads, "{sql:?} is not one statement, and was called a read"),
            Some((wanted, readonly)) => {
                understood.set(understood.get() + 1);
                prop_assert!(readonly || !reads, "{sql:?} writes, and was called a read");
                let has_select = sql.to_ascii_lowercase().contains("select");
                let drops = wanted.contains("drop");
                for kind in wanted.iter().filter(|kind| has_select || *kind != "select") {
                    // A dropped table loses its rows.
                    let implied = drops && kind == "delete";
                    prop_assert!(implied || is_unknown || kinds.contains(kind), "{sql:?}: {kinds:?} without {kind}");
                }
                if reads {
                    let mut statement = database.prepare(&sql).unwrap();
                    let mut rows = statement.raw_query();
                    while let Ok(Some(_)) = rows.next() {}
                    drop(rows);
                    drop(statement);
                    prop_assert_eq!(contents(&database), before.clone(), "{} changed something", sql);
                }
            }
        }
    });
    assert!(understood.get() > 300, "only {} texts were understood", understood.get());
}
