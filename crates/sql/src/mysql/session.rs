//! A transaction on a MySQL or MariaDB connection.

use std::borrow::Cow;
use std::collections::HashMap;

use async_trait::async_trait;
use mysql_async::consts::StatusFlags;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Params};
use serde_json::Value;
use tgp_contract::{SqlAccess, SqlClass, SqlRows, SqlStatement};

use super::cursor::{BatchError, CursorStatement, OpenCursor, WITHOUT_BOUNDS, overlaps};
use super::rules::{Effect, check};
use super::values::{may_be_json, read, write};
use super::{Connector, errors, statement_bounds};
use crate::answer::{Capacity, RowCollector};
use crate::failure::{
    Failure, Transaction, esql, query_writes, read_only, rolled_back, timed_out, unknown_outcome,
};
use crate::options::Limits;
use crate::text::{Bound, Dialect, Script, bind, classify};
use crate::transaction::{Ending, SavepointKind, SavepointOp, Session, SessionWork, Stop, no_cursor};
use crate::values::{Parameter, json};

/// Around a procedure, to see afterwards whether it is still the same transaction.
const CALL: &str = "tgp_call";

/// Which columns are JSON is remembered for this many; a transaction that reads more asks again.
const MAX_KNOWN_COLUMNS: usize = 256;

/// MariaDB's JSON is a LONGTEXT with this constraint.
const JSON_CHECK: &str = "SELECT COUNT(*) FROM information_schema.check_constraints WHERE constraint_schema = ? \
                          AND table_name = ? AND check_clause = CONCAT('json_valid(`', ?, '`)')";

pub(crate) struct MySqlSession {
    /// Absent while a cursor is open, which has it then.
    connection: Option<Conn>,
    cursor: Option<OpenCursor>,
    /// The number of the connection at the server.
    number: u32,
    connector: Connector,
    access: SqlAccess,
    limits: Limits,
    /// True when a commit would seal something: then no definition may come.
    written: bool,
    marks: usize,
    /// Whether a column (schema, table, name) is JSON.
    known: HashMap<[String; 3], bool>,
}

impl MySqlSession {
    pub fn new(connection: Conn, connector: Connector, access: SqlAccess, limits: Limits) -> Self {
        let number = connection.id();
        Self {
            connection: Some(connection),
            cursor: None,
            number,
            connector,
            access,
            limits,
            written: false,
            marks: 0,
            known: HashMap::new(),
        }
    }

    /// The connection, unless a cursor has it.
    fn free(&mut self) -> Result<&mut Conn, Failure> {
        if self.cursor.is_some() {
            return Err(overlaps().into());
        }
        self.connection.as_mut().ok_or_else(|| Failure::gone(rolled_back()))
    }

    pub async fn begin(&mut self) -> Result<(), Failure> {
        let order = match self.access {
            SqlAccess::ReadOnly => "START TRANSACTION READ ONLY",
            SqlAccess::ReadWrite | SqlAccess::ReadFirst => "START TRANSACTION READ WRITE",
        };
        let begun = self.free()?.query_drop(order).await;
        begun.map_err(|error| Failure::gone(errors::of_connection(&error)))
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn into_connection(self) -> Option<Conn> {
        self.connection
    }

    fn in_transaction(&self) -> bool {
        let packet = self.connection.as_ref().and_then(|connection| connection.last_ok_packet());
        packet.is_some_and(|packet| packet.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS))
    }

    async fn run(&mut self, statement: &SqlStatement) -> Result<SqlRows, Failure> {
        self.free()?;
        let script = Script::read(&statement.sql, Dialect::MySql)?;
        let effect = check(&script, self.access)?;
        let bound = bind(&script, Dialect::MySql, &statement.params)?;
        if effect == Effect::Definition && (self.written || self.marks > 0) {
            return Err(esql(
                "MySQL commits at a definition, which would seal what this transaction has done",
            )
            .help("MySQL commits at DDL; run it as a call of its own, or first of all")
            .into());
        }
        if effect == Effect::Call {
            self.own(&format!("SAVEPOINT {CALL}")).await?;
        }
        let answer = match self.answer(&script, bound).await? {
            Ok(answer) => answer,
            Err(error) => return Err(self.failure(&error, effect, script.sql).await),
        };
        match effect {
            Effect::Definition => self.begin().await?,
            Effect::Call => self.own(&format!("RELEASE SAVEPOINT {CALL}")).await?,
            Effect::Read | Effect::Write if !self.in_transaction() => return Err(Failure::gone(ended())),
            Effect::Read | Effect::Write => {}
        }
        self.written |= matches!(effect, Effect::Write | Effect::Call);
        answer
    }

    /// Runs the statement. The inner result is the server's, and what is in it is about reading its answer.
    async fn answer(&mut self, script: &Script<'_>, bound: Bound) -> Result<ServerAnswer, Failure> {
        let limits = self.limits;
        let rows = match Self::rows(self.free()?, bound, limits).await {
            Ok(rows) => rows,
            Err(error) => return Ok(Err(error)),
        };
        let ReadRows { columns, mut collector, rows, affected, fault } = rows;
        if let Some(fault) = fault {
            return Ok(Ok(Err(fault.into())));
        }
        for (index, column) in columns.iter().enumerate() {
            if may_be_json(column) {
                match self.is_json(column).await? {
                    Ok(false) => {}
                    Ok(true) => collector.change(index, |value| match value {
                        Value::String(text) => json(&text),
                        other => other,
                    }),
                    Err(error) => return Ok(Err(error)),
                }
            }
        }
        // With RETURNING the server does not count, but answers with each row.
        let changed = match (script.counts_changes(), columns.is_empty()) {
            (true, true) => affected,
            (true, false) => rows,
            (false, _) => 0,
        };
        Ok(Ok(Ok(collector.finish(changed))))
    }

    async fn rows(connection: &mut Conn, bound: Bound, limits: Limits) -> Result<ReadRows, Error> {
        let mut result = connection.exec_iter(bound.sql.as_str(), parameters(bound.values)).await?;
        let columns: Vec<Column> = result.columns_ref().to_vec();
        let mut collector =
            RowCollector::new(columns.iter().map(|column| column.name_str().into_owned()), limits);
        let (mut room, mut rows, mut fault) = (Capacity::Left, 0_u64, None);
        // Every row is read off the line, one at a time; the caps decide which are kept, and the clock how long it takes.
        if !columns.is_empty() {
            while let Some(row) = result.next().await? {
                rows += 1;
                if room == Capacity::Full || fault.is_some() {
                    continue;
                }
                let cells = row
                    .unwrap_raw()
                    .into_iter()
                    .map(|cell| cell.unwrap_or(mysql_async::Value::NULL))
                    .zip(&columns)
                    .map(|(cell, column)| read(cell, column));
                match cells.collect::<Result<Vec<Value>, _>>() {
                    Ok(cells) => room = collector.push(cells),
                    Err(error) => fault = Some(error),
                }
            }
        }
        let affected = result.affected_rows();
        result.drop_result().await?;
        Ok(ReadRows { columns, collector, rows, affected, fault })
    }

    async fn is_json(&mut self, column: &Column) -> Result<Result<bool, Error>, Failure> {
        let place = [column.schema_str(), column.org_table_str(), column.org_name_str()].map(Cow::into_owned);
        if let Some(known) = self.known.get(&place) {
            return Ok(Ok(*known));
        }
        let count: Option<u64> = match self.free()?.exec_first(JSON_CHECK, place.to_vec()).await {
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        let is_json = count.is_some_and(|count| count > 0);
        if self.known.len() < MAX_KNOWN_COLUMNS {
            self.known.insert(place, is_json);
        }
        Ok(Ok(is_json))
    }

    /// Opens a cursor, which has the connection until it is closed.
    async fn open_cursor(&mut self, cursor: u64, statement: &SqlStatement) -> Result<(), Failure> {
        let script = Script::read(&statement.sql, Dialect::MySql)?;
        let effect = check(&script, self.access)?;
        // The server cannot make one statement of a transaction a read-only one, so the text has to say that it is.
        let class = classify(script.sql, Dialect::MySql);
        if !class.reads {
            let why = format!("what it does is {}", class.kinds.join(", "));
            return Err(query_writes(&why).detail("kinds", class.kinds).into());
        }
        let bound = bind(&script, Dialect::MySql, &statement.params)?;
        let prepared = match self.free()?.prep(bound.sql.as_str()).await {
            Ok(prepared) => prepared,
            Err(error) => return Err(self.failure(&error, effect, script.sql).await),
        };
        let mut columns = Vec::new();
        for column in prepared.columns().iter() {
            let is_json = match may_be_json(column) {
                false => Ok(false),
                true => self.is_json(column).await?,
            };
            match is_json {
                Ok(is_json) => columns.push((column.clone(), is_json)),
                Err(error) => return Err(self.failure(&error, effect, script.sql).await),
            }
        }
        self.own(WITHOUT_BOUNDS).await?;
        let params = parameters(bound.values);
        let connection = self.connection.take().ok_or_else(|| Failure::gone(rolled_back()))?;
        let statement = CursorStatement { statement: prepared, params, columns };
        self.cursor = Some(OpenCursor::start(cursor, connection, statement, self.limits));
        Ok(())
    }

    async fn fetch(&mut self, cursor: u64, rows: usize) -> Result<SqlRows, Failure> {
        let Some(open) = self.cursor.as_ref().filter(|open| open.id == cursor) else {
            return Err(no_cursor().into());
        };
        match open.fetch(rows).await {
            Some(Ok(batch)) if batch.truncated => Ok(batch),
            Some(Ok(batch)) => {
                self.take_back().await?;
                Ok(batch)
            }
            Some(Err(BatchError::Rows(error))) => {
                self.stop_cursor().await?;
                Err(error.into())
            }
            Some(Err(BatchError::Server(error))) => {
                self.take_back().await?;
                Err(self.failure(&error, Effect::Read, "").await)
            }
            None => Err(Failure::gone(rolled_back())),
        }
    }

    /// Stops the statement of an open cursor, and takes the connection back.
    async fn stop_cursor(&mut self) -> Result<(), Failure> {
        if self.cursor.is_none() {
            return Ok(());
        }
        let (connector, number) = (self.connector.clone(), self.number);
        let (taken, ()) = futures_util::future::join(self.regain(), connector.kill("QUERY", number)).await;
        taken?;
        // The stop may arrive after the statement's last row; then it is this one's.
        let _ = self.free()?.ping().await;
        self.bound_again().await
    }

    /// Takes the connection back after the last batch.
    async fn take_back(&mut self) -> Result<(), Failure> {
        self.regain().await?;
        self.bound_again().await
    }

    async fn regain(&mut self) -> Result<(), Failure> {
        let Some(open) = self.cursor.take() else { return Ok(()) };
        self.connection = open.into_connection().await;
        self.connection.as_ref().map(|_| ()).ok_or_else(|| Failure::gone(rolled_back()))
    }

    async fn bound_again(&mut self) -> Result<(), Failure> {
        let bounds = format!("SET SESSION {}", statement_bounds(self.limits));
        match self.free()?.query_drop(&bounds).await {
            Err(error) if errors::is_stopped(&error) => self.own(&bounds).await,
            Err(_) => Err(Failure::gone(ended())),
            Ok(()) => Ok(()),
        }
    }

    /// A failed statement is undone by the server; a deadlock and a few others take the transaction with them. An error
    /// does not say which it was, so the server is asked.
    async fn failure(&mut self, error: &Error, effect: Effect, sql: &str) -> Failure {
        let failure = if errors::is_stopped(error) {
            let stopped = timed_out(self.limits.statement_timeout);
            errors::with_code(stopped, error)
        } else if errors::is_read_only(error) {
            errors::with_code(read_only(), error)
        } else {
            errors::of_statement(error, sql)
        };
        let alive = !error.is_fatal()
            && match self.connection.as_mut() {
                Some(connection) => connection.ping().await.is_ok(),
                None => false,
            };
        // A definition commits before it fails; there was nothing to commit, so a new transaction is as good as the old.
        let open =
            alive && (self.in_transaction() || (effect == Effect::Definition && self.begin().await.is_ok()));
        Failure { error: failure, transaction: if open { Transaction::Open } else { Transaction::Gone } }
    }

    /// Runs one of our own statements; its failure means that the transaction is no longer ours.
    async fn own(&mut self, sql: &str) -> Result<(), Failure> {
        self.free()?.query_drop(sql).await.map_err(|error| {
            Failure::gone(if error.is_fatal() { errors::of_connection(&error) } else { ended() })
        })
    }
}

/// What the server said, and then what became of its rows.
type ServerAnswer = Result<Result<SqlRows, Failure>, Error>;

/// The rows of a statement, as far as the caps let them be kept.
struct ReadRows {
    columns: Vec<Column>,
    collector: RowCollector,
    rows: u64,
    affected: u64,
    fault: Option<tgp_contract::ToolError>,
}

fn parameters(values: Vec<Parameter>) -> Params {
    let values: Vec<_> = values.into_iter().map(write).collect();
    if values.is_empty() { Params::Empty } else { Params::Positional(values) }
}

fn ended() -> tgp_contract::ToolError {
    rolled_back().detail("reason", "a statement ended the transaction that the kernel had opened")
}

#[async_trait]
impl Session for MySqlSession {
    async fn perform(&mut self, work: &SessionWork) -> Result<SqlRows, Failure> {
        match work {
            SessionWork::Statement(statement) => self.run(statement).await,
            SessionWork::OpenCursor { cursor, statement } => {
                self.open_cursor(*cursor, statement).await.map(|()| SqlRows::default())
            }
            SessionWork::Fetch { cursor, rows } => self.fetch(*cursor, *rows).await,
        }
    }

    async fn close_cursor(&mut self, cursor: u64) -> Result<(), Failure> {
        match &self.cursor {
            Some(open) if open.id == cursor => self.stop_cursor().await,
            _ => Ok(()),
        }
    }

    /// The transaction may write, and the server cannot make one statement of it a read-only one.
    async fn inspect(&mut self, sql: &str) -> SqlClass {
        let found = classify(sql, Dialect::MySql);
        SqlClass { reads: found.reads && self.access == SqlAccess::ReadOnly, ..found }
    }

    async fn point(&mut self, point: &SavepointOp) -> Result<(), Failure> {
        let name = &point.name;
        match point.kind {
            SavepointKind::Mark => {
                self.own(&format!("SAVEPOINT {name}")).await?;
                self.marks += 1;
            }
            SavepointKind::Keep => {
                self.own(&format!("RELEASE SAVEPOINT {name}")).await?;
                self.marks = self.marks.saturating_sub(1);
            }
            SavepointKind::Undo => {
                self.own(&format!("ROLLBACK TO SAVEPOINT {name}")).await?;
                self.own(&format!("RELEASE SAVEPOINT {name}")).await?;
                self.marks = self.marks.saturating_sub(1);
            }
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.stop_cursor().await?;
        self.free()?.query_drop("COMMIT").await.map_err(|error| {
            Failure::gone(match &error {
                Error::Server(_) => errors::of_statement(&error, ""),
                _ => unknown_outcome("no answer"),
            })
        })
    }

    async fn rollback(&mut self) -> Ending {
        if self.stop_cursor().await.is_err() {
            return Ending::Broken;
        }
        let Some(connection) = self.connection.as_mut() else { return Ending::Broken };
        match connection.query_drop("ROLLBACK").await {
            Ok(()) => Ending::Ended,
            Err(_) => Ending::Broken,
        }
    }

    fn stopper(&self) -> Option<Stop> {
        let (connector, connection) = (self.connector.clone(), self.number);
        Some(Box::pin(async move { connector.kill("QUERY", connection).await }))
    }
}
