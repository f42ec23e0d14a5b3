//! A transaction on a PostgreSQL connection.

use std::collections::BTreeMap;
use std::pin::pin;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use futures_util::future::join;
use serde_json::Value;
use tgp_contract::{SqlAccess, SqlClass, SqlRows, SqlStatement, ToolError};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Portal, Row, Statement, Transaction};

use super::decode::{Decoded, check_readable};
use super::{Connector, catalogue, encode, errors, rules};
use crate::answer::{Batches, Capacity, RowCollector};
use crate::failure::{Failure, esql, query_writes, read_only, rolled_back, timed_out, unknown_outcome};
use crate::options::Limits;
use crate::text::{Attributes, Bound, Dialect, Script, bind, classify, count, doubt_call};
use crate::transaction::{
    Ending, SavepointKind, SavepointOp, Session, SessionWork, Stop, no_cursor, room_for_cursor,
};

/// Rows asked for at a time: a large answer is read in pieces and can stop between them.
const ROWS_AT_A_TIME: i32 = 500;

/// The same for a cursor, whose rows wait here when a batch is full.
const CURSOR_ROWS_AT_A_TIME: i32 = 100;

/// Around every statement: a failed one would otherwise spoil the whole transaction.
const STATEMENT: &str = "tgp_statement";

/// How the server reads a text. A statement before can have changed that, and then ours would be another reading.
const READING: &str = "SET LOCAL standard_conforming_strings = on; SET LOCAL client_encoding = 'UTF8'";

/// Whatever the text of a query, no function that it calls writes a table then, also where one is only planned.
const READS: &str = "; SET TRANSACTION READ ONLY";

pub(crate) struct PostgresSession<'a> {
    // Taken by the commit or the rollback.
    transaction: Option<Transaction<'a>>,
    connector: Connector,
    access: SqlAccess,
    limits: Limits,
    /// What may be done behind the statement savepoint, once it is there; it is replaced, never stacked.
    saved: Option<SqlAccess>,
    cursors: BTreeMap<u64, Cursor>,
}

/// A statement whose rows are read in batches, from a portal of the server.
struct Cursor {
    portal: Portal,
    batches: Batches,
    bound: Bound,
    sql: String,
}

impl<'a> PostgresSession<'a> {
    pub fn new(
        transaction: Transaction<'a>,
        connector: Connector,
        access: SqlAccess,
        limits: Limits,
    ) -> Self {
        Self {
            transaction: Some(transaction),
            connector,
            access,
            limits,
            saved: None,
            cursors: BTreeMap::new(),
        }
    }

    fn transaction(&self) -> Result<&Transaction<'a>, Failure> {
        self.transaction.as_ref().ok_or_else(|| Failure::gone(rolled_back()))
    }

    /// Returns what ends the savepoint of the statement before, and with it that only reads were allowed: the server takes
    /// a READ ONLY back where the savepoint ends that it was said behind, and nothing else does.
    fn release(&self) -> String {
        self.saved.map(|_| format!("RELEASE SAVEPOINT {STATEMENT}; ")).unwrap_or_default()
    }

    /// Returns what replaces the savepoint of the statement before.
    fn savepoint(&self, access: SqlAccess) -> String {
        let reads = if access == SqlAccess::ReadOnly { READS } else { "" };
        format!("{}SAVEPOINT {STATEMENT}; {READING}{reads}", self.release())
    }

    async fn run(&mut self, statement: &SqlStatement) -> Result<SqlRows, Failure> {
        let script = Script::read(&statement.sql, Dialect::Postgres)?;
        rules::check(&script)?;
        let bound = bind(&script, Dialect::Postgres, &statement.params)?;
        let answer = match self.prepare(&script, &bound, self.access).await? {
            Ok(prepared) => self.answer(&prepared, &script, &bound).await,
            Err(error) => Err(error),
        };
        self.undone(answer).await
    }

    /// Sets the savepoint and prepares a statement. The outer failure is that of the savepoint.
    async fn prepare(
        &mut self,
        script: &Script<'_>,
        bound: &Bound,
        access: SqlAccess,
    ) -> Result<Result<Statement, ToolError>, Failure> {
        let savepoint = self.savepoint(access);
        let transaction = self.transaction()?;
        // Both are sent at once, so the savepoint costs no waiting.
        let (saved, prepared) =
            join(transaction.batch_execute(&savepoint), transaction.prepare(&bound.sql)).await;
        saved.map_err(|error| Failure::gone(lost(&error)))?;
        self.saved = Some(access);
        Ok(prepared.map_err(|error| self.failure(&error, bound, script.sql)))
    }

    /// Returns to the savepoint after a failure.
    async fn undone<T>(&self, result: Result<T, ToolError>) -> Result<T, Failure> {
        match result {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let undo = format!("ROLLBACK TO SAVEPOINT {STATEMENT}");
                match self.transaction()?.batch_execute(&undo).await {
                    Ok(()) => Err(error.into()),
                    Err(_) => Err(Failure::gone(error)),
                }
            }
        }
    }

    async fn open_cursor(&mut self, statement: &SqlStatement) -> Result<Cursor, Failure> {
        room_for_cursor(self.cursors.len())?;
        let script = Script::read(&statement.sql, Dialect::Postgres)?;
        rules::check(&script)?;
        let bound = bind(&script, Dialect::Postgres, &statement.params)?;
        let opened = match self.prepare(&script, &bound, SqlAccess::ReadOnly).await? {
            Ok(prepared) => self.portal(&prepared, &bound, script.sql).await,
            Err(error) => Err(error),
        };
        let opened = match opened {
            Ok(portal) => self.without_effect(script.sql).await.map(|()| portal),
            Err(error) => Err(error),
        };
        let (portal, names) = self.undone(opened).await?;
        let batches = Batches::new(names, self.limits);
        Ok(Cursor { portal, batches, bound, sql: statement.sql.clone() })
    }

    /// A read-only transaction does not stop every function of the server.
    async fn without_effect(&self, sql: &str) -> Result<(), ToolError> {
        let transaction = self.transaction().map_err(|failure| failure.error)?;
        match catalogue::has_effect(transaction, &Attributes::read(sql)).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(query_writes("it calls a function of the server that does not only compute")),
            Err(error) => Err(errors::of_connection(&error)),
        }
    }

    async fn portal(
        &self,
        statement: &Statement,
        bound: &Bound,
        sql: &str,
    ) -> Result<(Portal, Vec<String>), ToolError> {
        let values = encoded(statement, bound)?;
        let transaction = self.transaction().map_err(|failure| failure.error)?;
        let portal = transaction.bind_raw(statement, &values).await;
        let portal = portal.map_err(|error| self.failure(&error, bound, sql))?;
        Ok((portal, statement.columns().iter().map(|column| column.name().to_owned()).collect()))
    }

    /// The next rows, behind a savepoint of their own: a row that cannot be computed must not spoil the transaction.
    async fn fetch(&mut self, cursor: &mut Cursor, rows: usize) -> Result<SqlRows, Failure> {
        let savepoint = self.savepoint(SqlAccess::ReadOnly);
        let saved = self.transaction()?.batch_execute(&savepoint).await;
        saved.map_err(|error| Failure::gone(lost(&error)))?;
        self.saved = Some(SqlAccess::ReadOnly);
        let batch = self.read_batch(cursor, rows).await;
        self.undone(batch).await
    }

    async fn read_batch(&self, cursor: &mut Cursor, rows: usize) -> Result<SqlRows, ToolError> {
        let Cursor { portal, batches, bound, sql } = cursor;
        let transaction = self.transaction().map_err(|failure| failure.error)?;
        let failure = |error: Error| self.failure(&error, bound, sql);
        let mut batch = batches.next(rows);
        while batch.capacity() == Capacity::Left {
            let stream =
                transaction.query_portal_raw(portal, CURSOR_ROWS_AT_A_TIME).await.map_err(failure)?;
            let mut stream = pin!(stream);
            while let Some(row) = stream.try_next().await.map_err(failure)? {
                batch.push(cells(&row)?);
            }
            // The count comes with the last row of all.
            if stream.rows_affected().is_some() {
                break;
            }
        }
        batch.finish()
    }

    async fn answer(
        &self,
        statement: &Statement,
        script: &Script<'_>,
        bound: &Bound,
    ) -> Result<SqlRows, ToolError> {
        let transaction = self.transaction().map_err(|failure| failure.error)?;
        let values = encoded(statement, bound)?;
        let failure = |error: Error| self.failure(&error, bound, script.sql);
        let names = statement.columns().iter().map(|column| column.name().to_owned());
        let mut collector = RowCollector::new(names, self.limits);
        if statement.columns().is_empty() {
            let changed = transaction.execute_raw(statement, &values).await.map_err(failure)?;
            return Ok(collector.finish(if script.counts_changes() { changed } else { 0 }));
        }
        let portal = transaction.bind_raw(statement, &values).await.map_err(failure)?;
        let (mut room, mut before, mut rows) = (Capacity::Left, 0, 0_u64);
        loop {
            let stream = transaction.query_portal_raw(&portal, ROWS_AT_A_TIME).await.map_err(failure)?;
            let mut stream = pin!(stream);
            while let Some(row) = stream.try_next().await.map_err(failure)? {
                rows += 1;
                if room == Capacity::Full {
                    continue;
                }
                room = collector.push(cells(&row)?);
            }
            // The server has done every change with the first rows; the rest is read for its count only. The count at the
            // end is that of the last piece.
            match stream.rows_affected() {
                Some(last) if script.counts_changes() => return Ok(collector.finish(before + last)),
                Some(_) => return Ok(collector.finish(0)),
                None if room == Capacity::Full && !script.counts_changes() => return Ok(collector.finish(0)),
                None => before = rows,
            }
        }
    }

    fn failure(&self, error: &Error, bound: &Bound, sql: &str) -> ToolError {
        match error.code() {
            Some(code) if *code == SqlState::QUERY_CANCELED => {
                timed_out(self.limits.statement_timeout).detail("sqlCode", code.code())
            }
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                let refusal = match (self.access, self.saved) {
                    (SqlAccess::ReadOnly, _) => read_only(),
                    (_, Some(SqlAccess::ReadOnly)) => query_writes("it calls something that writes or locks"),
                    _ => return errors::of_statement(error, bound, sql),
                };
                refusal.detail("sqlCode", code.code())
            }
            _ => errors::of_statement(error, bound, sql),
        }
    }
}

/// The parameters as the statement takes them, if its rows can be read.
fn encoded(statement: &Statement, bound: &Bound) -> Result<Vec<encode::TextValue>, ToolError> {
    count(statement.params().len(), bound.values.len())?;
    for column in statement.columns() {
        check_readable(column.type_(), column.name())?;
    }
    let values = bound.values.iter().zip(statement.params()).enumerate();
    values.map(|(index, (value, kind))| encode::write(value, kind, index + 1)).collect()
}

fn cells(row: &Row) -> Result<Vec<Value>, ToolError> {
    let cell =
        |index| row.try_get::<_, Decoded>(index).map(|cell| cell.0).map_err(|error| unreadable(&error));
    (0..row.len()).map(cell).collect()
}

fn unreadable(error: &Error) -> ToolError {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    esql(format!("a value of the answer cannot be read: {cause}")).help("cast the column to text")
}

/// The savepoint failed: the statement before has ended the transaction, or the connection is gone.
fn lost(error: &Error) -> ToolError {
    match error.as_db_error() {
        Some(server) => rolled_back().detail("sqlCode", server.code().code()),
        None => errors::of_connection(error),
    }
}

#[async_trait]
impl Session for PostgresSession<'_> {
    async fn perform(&mut self, work: &SessionWork) -> Result<SqlRows, Failure> {
        match work {
            SessionWork::Statement(statement) => self.run(statement).await,
            SessionWork::OpenCursor { cursor, statement } => {
                let opened = self.open_cursor(statement).await?;
                self.cursors.insert(*cursor, opened);
                Ok(SqlRows::default())
            }
            SessionWork::Fetch { cursor, rows } => {
                let mut open = self.cursors.remove(cursor).ok_or_else(no_cursor)?;
                let batch = self.fetch(&mut open, *rows).await?;
                if batch.truncated {
                    self.cursors.insert(*cursor, open);
                }
                Ok(batch)
            }
        }
    }

    /// A portal is closed when it is dropped.
    async fn close_cursor(&mut self, cursor: u64) -> Result<(), Failure> {
        self.cursors.remove(&cursor);
        Ok(())
    }

    /// The transaction may write, and the server cannot make one statement of it a read-only one.
    async fn inspect(&mut self, sql: &str) -> SqlClass {
        let found = classify(sql, Dialect::Postgres);
        let found = SqlClass { reads: found.reads && self.access == SqlAccess::ReadOnly, ..found };
        let attributes = Attributes::read(sql);
        if attributes.is_empty() {
            return found;
        }
        let Ok(transaction) = self.transaction() else { return doubt_call(found) };
        let doubtful = doubt_call(found.clone());
        let asked = catalogue::complete(transaction, found, &attributes);
        tokio::time::timeout(self.limits.statement_timeout, asked).await.unwrap_or(doubtful)
    }

    async fn point(&mut self, point: &SavepointOp) -> Result<(), Failure> {
        let name = &point.name;
        // Undoing to a mark forgets the savepoints after it; keeping one must not leave ours behind it.
        let forget = self.release();
        let order = match point.kind {
            SavepointKind::Mark => format!("{forget}SAVEPOINT {name}"),
            SavepointKind::Keep => format!("{forget}RELEASE SAVEPOINT {name}"),
            SavepointKind::Undo => format!("{forget}ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}"),
        };
        self.saved = None;
        self.transaction()?.batch_execute(&order).await.map_err(|error| Failure::gone(lost(&error)))
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.cursors.clear();
        let Some(transaction) = self.transaction.take() else { return Err(Failure::gone(rolled_back())) };
        // Releasing the savepoint proves that this is still the transaction we began.
        let release = self.release();
        match transaction.batch_execute(&format!("{release}COMMIT")).await {
            Ok(()) => {
                // Dropped, it would send a rollback that has nothing to roll back.
                std::mem::forget(transaction);
                Ok(())
            }
            Err(error) => {
                self.transaction = Some(transaction);
                Err(Failure::gone(match error.as_db_error() {
                    Some(server) => esql(format!("the commit failed: {}", server.message()))
                        .detail("sqlCode", server.code().code()),
                    None => unknown_outcome(&error.to_string()),
                }))
            }
        }
    }

    async fn rollback(&mut self) -> Ending {
        self.cursors.clear();
        match self.transaction.take() {
            None => Ending::Ended,
            Some(transaction) => match transaction.rollback().await {
                Ok(()) => Ending::Ended,
                Err(_) => Ending::Broken,
            },
        }
    }

    fn stopper(&self) -> Option<Stop> {
        let token = self.transaction.as_ref()?.cancel_token();
        let connector = self.connector.clone();
        Some(Box::pin(async move { connector.cancel(token).await }))
    }
}
