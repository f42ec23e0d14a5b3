//! MySQL's failures as `ESQL`.

use mysql_async::{DriverError, Error, IoError, ServerError};
use tgp_contract::ToolError;
use tgp_text::LineCol;

use crate::failure::{at, esql, short, unreachable};

const ACCESS_DENIED: [u16; 3] = [1044, 1045, 1698];
const UNKNOWN_DATABASE: u16 = 1049;
const TOO_MANY_CONNECTIONS: [u16; 2] = [1040, 1203];
const SYNTAX: u16 = 1064;
const UNKNOWN_COLUMN: u16 = 1054;
const UNKNOWN_TABLE: u16 = 1146;
const LOCK_WAIT: u16 = 1205;
const DEADLOCK: u16 = 1213;
const WRONG_TIME: u16 = 1292;
const NOT_PREPARABLE: u16 = 1295;
const READ_ONLY: u16 = 1792;

/// Statements that were stopped: killed, MariaDB's timeout, MySQL's timeout.
const STOPPED: [u16; 3] = [1317, 1969, 3024];

pub(crate) fn is_stopped(error: &Error) -> bool {
    matches!(error, Error::Server(server) if STOPPED.contains(&server.code))
}

pub(crate) fn is_read_only(error: &Error) -> bool {
    matches!(error, Error::Server(server) if server.code == READ_ONLY)
}

/// A failure outside a caller's statement.
pub(crate) fn of_connection(error: &Error) -> ToolError {
    let server = match error {
        Error::Server(server) => server,
        Error::Io(IoError::Io(cause)) => return unreachable(&cause.to_string()),
        Error::Io(IoError::Tls(_)) => return unreachable("its certificate was not accepted"),
        Error::Driver(DriverError::ConnectionClosed) => return unreachable("it was closed"),
        // The other texts of the driver may repeat parts of the URL or of a value.
        _ => return unreachable("the driver failed"),
    };
    let message = format!("the database refused the connection: {}", short(&server.message));
    let failure = coded(esql(message), server);
    match server.code {
        code if ACCESS_DENIED.contains(&code) => failure.help("check user and password in `db.url`"),
        UNKNOWN_DATABASE => failure.help("create the database, or correct its name in `db.url`"),
        code if TOO_MANY_CONNECTIONS.contains(&code) => failure.help("lower the size of the database pool"),
        _ => failure,
    }
}

/// A failure of the caller's statement.
pub(crate) fn of_statement(error: &Error, sql: &str) -> ToolError {
    let Error::Server(server) = error else { return of_connection(error) };
    let mut failure = coded(esql(short(&server.message)), server);
    if server.code == SYNTAX
        && let Some(offset) = syntax_error_offset(&server.message, sql)
    {
        failure = at(failure, LineCol::of(sql, offset));
    }
    match server.code {
        UNKNOWN_TABLE => failure.help("list the tables with SHOW TABLES"),
        UNKNOWN_COLUMN => failure.help("list the columns with DESCRIBE table"),
        LOCK_WAIT | DEADLOCK => failure.help("run it again"),
        WRONG_TIME => failure.help(
            "write times as 'YYYY-MM-DD HH:MM:SS'; in a tool: date.toISOString().slice(0, 23).replace('T', ' ')",
        ),
        NOT_PREPARABLE => failure.help("the server does not take this statement from a program"),
        _ => failure,
    }
}

/// Our own words with the server's code.
pub(crate) fn with_code(failure: ToolError, error: &Error) -> ToolError {
    match error {
        Error::Server(server) => coded(failure, server),
        _ => failure,
    }
}

fn coded(error: ToolError, server: &ServerError) -> ToolError {
    error.detail("sqlCode", server.state.clone()).detail("errno", server.code)
}

/// The server says `near 'text' at line 3`: the line is sure, the column is where the text is found in it.
fn syntax_error_offset(message: &str, sql: &str) -> Option<usize> {
    let (before, line) = message.rsplit_once(" at line ")?;
    let line: usize = line.trim().parse().ok()?;
    let start = sql.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum::<usize>();
    let near = before.split_once("near '").map_or("", |(_, near)| near.strip_suffix('\'').unwrap_or(near));
    let near = near.lines().next().unwrap_or_default();
    let here = sql.get(start..)?;
    let here = here.lines().next().unwrap_or_default();
    // Parameters were rewritten, so only the words up to the first one can be found.
    let near = near.split('?').next().unwrap_or_default().trim_end();
    if near.is_empty() {
        return Some(start + here.len());
    }
    Some(start + here.rfind(near).or_else(|| here.rfind(near.split_whitespace().next()?)).unwrap_or_default())
}
