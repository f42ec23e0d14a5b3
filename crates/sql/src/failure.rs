//! How a database's failures become `ESQL`, and what they mean for the transaction.

use serde_json::json;
use std::time::Duration;
use tgp_contract::{Code, ToolError};
use tgp_text::LineCol;

/// What is left of the transaction after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// The statement changed nothing; the transaction continues.
    Open,
    /// The database has rolled everything back, or the connection is gone.
    Gone,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub error: ToolError,
    pub transaction: Transaction,
}

impl Failure {
    pub fn gone(error: ToolError) -> Self {
        Self { error, transaction: Transaction::Gone }
    }
}

/// A refusal or a fault that leaves the transaction open.
impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self { error, transaction: Transaction::Open }
    }
}

pub(crate) fn esql(message: impl Into<String>) -> ToolError {
    ToolError::new(Code::Sql, message)
}

/// Adds the place in the caller's SQL, from 1, columns in characters.
pub(crate) fn at(error: ToolError, LineCol { line, column }: LineCol) -> ToolError {
    error.detail("position", json!({ "line": line, "column": column }))
}

pub(crate) fn timed_out(timeout: Duration) -> ToolError {
    let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    esql(format!("the statement took longer than {milliseconds} ms and was stopped"))
        .detail("timeout_ms", milliseconds)
        .help("make it cheaper (an index, a LIMIT), do it in smaller steps, or raise the statement timeout")
}

pub(crate) fn rolled_back() -> ToolError {
    esql("the transaction was rolled back by the database, and nothing of it stays")
        .help("run it again from its first statement")
}

/// After a dropped call it is unknown what the caller saw, so nothing of the transaction may stay.
pub(crate) fn abandoned() -> ToolError {
    esql("a statement was abandoned before it ended, so the transaction was rolled back")
}

pub(crate) fn read_only() -> ToolError {
    esql("this transaction is read-only, and the statement writes")
        .detail("access", "read-only")
        .help("only queries are allowed here")
}

/// A query that is read in batches would not only read.
pub(crate) fn query_writes(why: &str) -> ToolError {
    esql(format!("tgp.query only reads, and this statement does more: {why}"))
        .help("use tgp.exec_sql for it; a batch of tgp.query changes nothing")
}

pub(crate) fn several_statements() -> ToolError {
    esql("one call takes one statement, and this text has several")
        .help("send each statement as a call of its own")
}

pub(crate) fn unknown_outcome(why: &str) -> ToolError {
    esql(format!("the connection broke during the commit ({why}); whether it was committed is not known"))
        .of_unknown_outcome()
        .help("look whether the changes are there before you run it again")
}

/// There is no connection, and why.
pub(crate) fn unreachable(cause: &str) -> ToolError {
    let help = if cause.contains("certificate") {
        "name the file of its authority in `db.url`: sslrootcert=FILE (PostgreSQL), ssl-ca=FILE (MySQL)"
    } else {
        "check that the server runs and that `db.url` names it"
    };
    esql(format!("there is no connection to the database: {}", short(cause))).help(help)
}

/// A driver's text on one line, without what could be long.
pub(crate) fn short(text: &str) -> String {
    const LONGEST_MESSAGE: usize = 2_000;
    tgp_text::one_line(text, LONGEST_MESSAGE)
}
