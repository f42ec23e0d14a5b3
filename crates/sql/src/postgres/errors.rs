//! PostgreSQL's failures as `ESQL`.

use std::error::Error as _;

use tgp_contract::ToolError;
use tgp_text::LineCol;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, ErrorPosition, SqlState};

use crate::failure::{at, esql, short, unreachable};
use crate::text::Bound;

/// A failure outside a caller's statement. It names neither the server nor the user.
pub(crate) fn of_connection(error: &Error) -> ToolError {
    if let Some(server) = error.as_db_error() {
        let failure = esql(format!("the database refused the connection: {}", short(server.message())))
            .detail("sqlCode", server.code().code());
        return match *server.code() {
            SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                failure.help("check user and password in `db.url`")
            }
            SqlState::INVALID_CATALOG_NAME => {
                failure.help("create the database, or correct its name in `db.url`")
            }
            SqlState::TOO_MANY_CONNECTIONS => failure.help("lower the size of the database pool"),
            _ => failure,
        };
    }
    // The driver's outer text is general; its cause says what happened.
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    unreachable(&cause)
}

/// A failure of the caller's statement, with everything the server said.
pub(crate) fn of_statement(error: &Error, bound: &Bound, sql: &str) -> ToolError {
    let Some(server) = error.as_db_error() else { return of_connection(error) };
    let mut failure = esql(short(server.message())).detail("sqlCode", server.code().code());
    if let Some(ErrorPosition::Original(position)) = server.position() {
        failure = at(failure, LineCol::of(sql, bound.origin(byte_offset(&bound.sql, *position))));
    }
    let parts = [
        ("detail", server.detail()),
        ("schema", server.schema()),
        ("table", server.table()),
        ("column", server.column()),
        ("constraint", server.constraint()),
    ];
    for (name, part) in parts {
        if let Some(part) = part {
            failure = failure.detail(name, short(part));
        }
    }
    match help(server) {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// The server counts characters from 1.
fn byte_offset(sql: &str, position: u32) -> usize {
    let index = usize::try_from(position).unwrap_or(usize::MAX).saturating_sub(1);
    sql.char_indices().nth(index).map_or(sql.len(), |(offset, _)| offset)
}

fn help(server: &DbError) -> Option<String> {
    if let Some(hint) = server.hint() {
        return Some(short(hint));
    }
    let help = match *server.code() {
        SqlState::UNDEFINED_TABLE => "list the tables with SELECT table_name FROM information_schema.tables",
        SqlState::UNDEFINED_COLUMN => {
            "list the columns with SELECT column_name FROM information_schema.columns"
        }
        SqlState::INDETERMINATE_DATATYPE => "say the type of the parameter: $1::text",
        SqlState::READ_ONLY_SQL_TRANSACTION => "only queries are allowed here",
        SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE => "run it again",
        SqlState::INSUFFICIENT_PRIVILEGE => "the database role of the kernel may not do this",
        _ => return None,
    };
    Some(help.to_owned())
}
