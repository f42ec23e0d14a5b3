//! SQLite's failures as `ESQL`, with the names of its result codes.

use rusqlite::{Error, ErrorCode};
use tgp_contract::ToolError;
use tgp_text::LineCol;

use crate::failure::{at, esql, short};

/// The extended codes a statement can meet; the rest are named by their primary code.
const EXTENDED: [(i32, &str); 22] = [
    (261, "SQLITE_BUSY_RECOVERY"),
    (BUSY_SNAPSHOT, "SQLITE_BUSY_SNAPSHOT"),
    (262, "SQLITE_LOCKED_SHAREDCACHE"),
    (275, "SQLITE_CONSTRAINT_CHECK"),
    (531, "SQLITE_CONSTRAINT_COMMITHOOK"),
    (787, "SQLITE_CONSTRAINT_FOREIGNKEY"),
    (1043, "SQLITE_CONSTRAINT_FUNCTION"),
    (1299, "SQLITE_CONSTRAINT_NOTNULL"),
    (1555, "SQLITE_CONSTRAINT_PRIMARYKEY"),
    (1811, "SQLITE_CONSTRAINT_TRIGGER"),
    (2067, "SQLITE_CONSTRAINT_UNIQUE"),
    (2323, "SQLITE_CONSTRAINT_VTAB"),
    (2579, "SQLITE_CONSTRAINT_ROWID"),
    (2835, "SQLITE_CONSTRAINT_PINNED"),
    (3091, "SQLITE_CONSTRAINT_DATATYPE"),
    (264, "SQLITE_READONLY_RECOVERY"),
    (776, "SQLITE_READONLY_ROLLBACK"),
    (1032, "SQLITE_READONLY_DBMOVED"),
    (1544, "SQLITE_READONLY_DIRECTORY"),
    (516, "SQLITE_ABORT_ROLLBACK"),
    (267, "SQLITE_CORRUPT_VTAB"),
    (257, "SQLITE_ERROR_MISSING_COLLSEQ"),
];

/// A transaction that has read cannot become a writer, because what it has read is no longer the newest.
const BUSY_SNAPSHOT: i32 = 517;

/// In the order of their numbers, from 1.
const PRIMARY: [&str; 26] = [
    "SQLITE_ERROR",
    "SQLITE_INTERNAL",
    "SQLITE_PERM",
    "SQLITE_ABORT",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_NOMEM",
    "SQLITE_READONLY",
    "SQLITE_INTERRUPT",
    "SQLITE_IOERR",
    "SQLITE_CORRUPT",
    "SQLITE_NOTFOUND",
    "SQLITE_FULL",
    "SQLITE_CANTOPEN",
    "SQLITE_PROTOCOL",
    "SQLITE_EMPTY",
    "SQLITE_SCHEMA",
    "SQLITE_TOOBIG",
    "SQLITE_CONSTRAINT",
    "SQLITE_MISMATCH",
    "SQLITE_MISUSE",
    "SQLITE_NOLFS",
    "SQLITE_AUTH",
    "SQLITE_FORMAT",
    "SQLITE_RANGE",
    "SQLITE_NOTADB",
];

fn code_name(code: i32) -> String {
    if let Some((_, name)) = EXTENDED.iter().find(|(extended, _)| *extended == code) {
        return (*name).to_owned();
    }
    let primary = usize::try_from(code & 0xff).unwrap_or_default();
    primary
        .checked_sub(1)
        .and_then(|index| PRIMARY.get(index))
        .map_or_else(|| format!("SQLITE_{code}"), |name| (*name).to_owned())
}

/// True when SQLite gave this primary code.
pub(crate) fn failed(error: &Error, code: ErrorCode) -> bool {
    error.sqlite_error_code() == Some(code)
}

/// A failure outside a caller's statement.
pub(crate) fn plain(what: &str, error: &Error) -> ToolError {
    let (message, code) = parts(error);
    let error = esql(format!("{what}: {}", short(&message)));
    match code {
        Some(code) => error.detail("sqlCode", code_name(code)),
        None => error,
    }
}

/// A failure of the caller's statement, with the place SQLite names.
pub(crate) fn of_statement(error: &Error, sql: &str) -> ToolError {
    let (message, code) = parts(error);
    if code == Some(BUSY_SNAPSHOT) {
        return esql("another transaction has changed the database since this one first read it, so this one cannot write")
            .detail("sqlCode", code_name(BUSY_SNAPSHOT))
            .detail("retry", true)
            .help("run it again; a run whose first statement writes waits for other writers instead");
    }
    let mut failure = esql(short(&message));
    if let Some(code) = code {
        failure = failure.detail("sqlCode", code_name(code));
    }
    if let Error::SqlInputError { offset, .. } = error
        && let Ok(offset) = usize::try_from(*offset)
    {
        failure = at(failure, LineCol::of(sql, offset));
    }
    match help(&message, code) {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn parts(error: &Error) -> (String, Option<i32>) {
    match error {
        Error::SqliteFailure(code, message) => {
            (message.clone().unwrap_or_else(|| code.to_string()), Some(code.extended_code))
        }
        Error::SqlInputError { error, msg, .. } => (msg.clone(), Some(error.extended_code)),
        other => (other.to_string(), None),
    }
}

fn help(message: &str, code: Option<i32>) -> Option<&'static str> {
    if message.starts_with("no such table") {
        return Some("list the tables with SELECT name FROM sqlite_schema");
    }
    if message.starts_with("no such column") {
        return Some(
            "list the columns with SELECT name FROM pragma_table_info('TABLE'); write texts in single quotes",
        );
    }
    match code? & 0xff {
        8 => Some("only queries are allowed here"),
        11 | 26 => Some("the file is damaged or no SQLite database; restore it from a copy"),
        13 => Some("the disk is full"),
        18 => Some("a value or a row is too large"),
        _ => None,
    }
}
