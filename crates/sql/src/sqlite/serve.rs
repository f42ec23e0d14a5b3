//! The loop of a transaction's thread: it owns the connection and the open cursors, and obeys one order at a time.

use std::collections::BTreeMap;

use rusqlite::Statement;
use tgp_contract::{SqlRows, SqlStatement, ToolError};
use tokio::sync::mpsc;

use super::authorizer::Watch;
use super::session::{ReadColumn, SqliteSession, columns_of};
use crate::answer::{Batches, Capacity};
use crate::failure::{Failure, esql};
use crate::text::{Dialect, Script};
use crate::transaction::{Ending, SessionCommand, SessionWork, TransactionState, no_cursor, room_for_cursor};

/// A statement whose rows are read in batches.
struct Cursor<'a> {
    statement: Statement<'a>,
    columns: Vec<ReadColumn>,
    batches: Batches,
    sql: String,
}

type Cursors<'a> = BTreeMap<u64, Cursor<'a>>;

/// Obeys orders until the transaction ends, one way or the other.
pub(super) fn serve(session: &SqliteSession, mut orders: mpsc::Receiver<SessionCommand>) -> Ending {
    let mut state = TransactionState::new();
    let mut cursors = Cursors::new();
    while let Some(order) = orders.blocking_recv() {
        // A caller that does not wait for the answer any more has said all there is to say.
        match order {
            SessionCommand::Execute(work, answer) => {
                let result = state.open().and_then(|()| {
                    let result = perform(session, &mut cursors, &work);
                    state.settle(session.unless_abandoned(result))
                });
                let _ = answer.send(result);
            }
            SessionCommand::CloseCursor(cursor, answer) => {
                cursors.remove(&cursor);
                let _ = answer.send(Ok(()));
            }
            SessionCommand::Inspect(sql, answer) => {
                let _ = answer.send(session.inspect(&sql));
            }
            SessionCommand::Point(kind, answer) => {
                let result = state.point(kind).and_then(|point| {
                    state.settle(session.point(&point))?;
                    state.pointed(kind);
                    Ok(())
                });
                let _ = answer.send(result);
            }
            SessionCommand::Commit(answer) => {
                cursors.clear();
                let result = state.open().and_then(|()| state.settle(session.commit()));
                let ending = if result.is_err() { session.rollback() } else { Ending::Ended };
                let _ = answer.send(result);
                return ending;
            }
            SessionCommand::Rollback(answer) => {
                cursors.clear();
                let ending = session.rollback();
                let _ = answer.send(());
                return ending;
            }
        }
    }
    cursors.clear();
    session.rollback()
}

fn perform<'a>(
    session: &'a SqliteSession,
    cursors: &mut Cursors<'a>,
    work: &SessionWork,
) -> Result<SqlRows, Failure> {
    match work {
        SessionWork::Statement(statement) => session.execute(statement),
        SessionWork::OpenCursor { cursor, statement } => {
            room_for_cursor(cursors.len())?;
            cursors.insert(*cursor, open(session, statement)?);
            Ok(SqlRows::default())
        }
        SessionWork::Fetch { cursor, rows } => {
            let mut open = cursors.remove(cursor).ok_or_else(no_cursor)?;
            let batch = fetch(session, &mut open, *rows)?;
            if batch.truncated {
                cursors.insert(*cursor, open);
            }
            Ok(batch)
        }
    }
}

fn open<'a>(session: &'a SqliteSession, statement: &SqlStatement) -> Result<Cursor<'a>, Failure> {
    let _size = Script::read(&statement.sql, Dialect::Sqlite)?;
    let compiled = session.compile(statement)?.statement;
    if !compiled.readonly() {
        return Err(only_reads().into());
    }
    let columns = columns_of(&compiled);
    let names = columns.iter().map(|column| column.name.clone()).collect();
    let batches = Batches::new(names, session.limits);
    Ok(Cursor { statement: compiled, columns, batches, sql: statement.sql.clone() })
}

/// What a statement that writes gets instead of a cursor.
fn only_reads() -> ToolError {
    esql("tgp.query only reads, and this statement writes").help("use tgp.exec_sql for it")
}

/// Reads the next batch. Each has the time of a statement.
fn fetch(session: &SqliteSession, cursor: &mut Cursor<'_>, rows: usize) -> Result<SqlRows, Failure> {
    session.watch_caller(Watch::Reading);
    let result = step(session, cursor, rows);
    session.judged(result)
}

fn step(session: &SqliteSession, cursor: &mut Cursor<'_>, rows: usize) -> Result<SqlRows, Failure> {
    let Cursor { statement, columns, batches, sql } = cursor;
    let mut batch = batches.next(rows);
    if batch.capacity() == Capacity::Left {
        let mut found = statement.raw_query();
        while let Some(row) = found.next().map_err(|error| session.failure(&error, sql))? {
            if batch.push(session.cells(row, columns, sql)?) == Capacity::Full {
                // Dropped, it would begin again at the first row.
                std::mem::forget(found);
                break;
            }
        }
    }
    Ok(batch.finish()?)
}
