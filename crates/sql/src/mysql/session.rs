//! A transaction on a MySQL or MariaDB connection.

use std::borrow::Cow;
use std::collections::HashMap;

use async_trait::async_trait;
use mysql_async::consts::StatusFlags;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Params};
use serde_json::Value;
use tgp_contract::{SqlAccess, SqlClass, SqlRows, SqlStatement};

use super::rules::{Effect, check};
use super::values::{may_be_json, read, write};
use super::{Connector, errors};
use crate::answer::{Capacity, RowCollector};
use crate::failure::{Failure, Transaction, esql, read_only, rolled_back, timed_out, unknown_outcome};
use crate::options::Limits;
use crate::text::{Bound, Dialect, Script, bind, classify};
use crate::transaction::{Ending, SavepointKind, SavepointOp, Session, Stop};
use crate::values::json;

/// Around a procedure, to see afterwards whether it is still the same transaction.
const CALL: &str = "tgp_call";

/// Which columns are JSON is remembered for this many; a transaction that reads more asks again.
const MAX_KNOWN_COLUMNS: usize = 256;

/// MariaDB's JSON is a LONGTEXT with this constraint.
const JSON_CHECK: &str = "SELECT COUNT(*) FROM information_schema.check_constraints WHERE constraint_schema = ? \
                          AND table_name = ? AND check_clause = CONCAT('json_valid(`', ?, '`)')";

pub(crate) struct MySqlSession {
    connection: Conn,
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
        Self { connection, connector, access, limits, written: false, marks: 0, known: HashMap::new() }
    }

    pub async fn begin(&mut self) -> Result<(), Error> {
        self.connection
            .query_drop(match self.access {
                SqlAccess::ReadOnly => "START TRANSACTION READ ONLY",
                SqlAccess::ReadWrite => "START TRANSACTION READ WRITE",
            })
            .await
    }

    pub fn into_connection(self) -> Conn {
        self.connection
    }

    fn in_transaction(&self) -> bool {
        let packet = self.connection.last_ok_packet();
        packet.is_some_and(|packet| packet.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS))
    }

    async fn run(&mut self, statement: &SqlStatement) -> Result<SqlRows, Failure> {
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
        let answer = match self.answer(&script, bound).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.failure(&error, effect, script.sql).await),
        };
        match effect {
            Effect::Definition => {
                self.begin().await.map_err(|error| Failure::gone(errors::of_connection(&error)))?
            }
            Effect::Call => self.own(&format!("RELEASE SAVEPOINT {CALL}")).await?,
            Effect::Read | Effect::Write if !self.in_transaction() => return Err(Failure::gone(ended())),
            Effect::Read | Effect::Write => {}
        }
        self.written |= matches!(effect, Effect::Write | Effect::Call);
        answer
    }

    /// Runs the statement. The outer result is the server's; the inner one is about reading its answer.
    async fn answer(&mut self, script: &Script<'_>, bound: Bound) -> Result<Result<SqlRows, Failure>, Error> {
        let values: Vec<_> = bound.values.into_iter().map(write).collect();
        let params = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        let mut result = self.connection.exec_iter(bound.sql.as_str(), params).await?;
        let columns: Vec<Column> = result.columns_ref().to_vec();
        let mut collector =
            RowCollector::new(columns.iter().map(|column| column.name_str().into_owned()), self.limits);
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
        if let Some(fault) = fault {
            return Ok(Err(fault.into()));
        }
        for (index, column) in columns.iter().enumerate() {
            if may_be_json(column) && self.is_json(column).await? {
                collector.change(index, |value| match value {
                    Value::String(text) => json(&text),
                    other => other,
                });
            }
        }
        // With RETURNING the server does not count, but answers with each row.
        let changed = match (script.counts_changes(), columns.is_empty()) {
            (true, true) => affected,
            (true, false) => rows,
            (false, _) => 0,
        };
        Ok(Ok(collector.finish(changed)))
    }

    async fn is_json(&mut self, column: &Column) -> Result<bool, Error> {
        let place = [column.schema_str(), column.org_table_str(), column.org_name_str()].map(Cow::into_owned);
        if let Some(known) = self.known.get(&place) {
            return Ok(*known);
        }
        let count: Option<u64> = self.connection.exec_first(JSON_CHECK, place.to_vec()).await?;
        let is_json = count.is_some_and(|count| count > 0);
        if self.known.len() < MAX_KNOWN_COLUMNS {
            self.known.insert(place, is_json);
        }
        Ok(is_json)
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
        let alive = !error.is_fatal() && self.connection.ping().await.is_ok();
        // A definition commits before it fails; there was nothing to commit, so a new transaction is as good as the old.
        let open =
            alive && (self.in_transaction() || (effect == Effect::Definition && self.begin().await.is_ok()));
        Failure { error: failure, transaction: if open { Transaction::Open } else { Transaction::Gone } }
    }

    /// Runs one of our own statements; its failure means that the transaction is no longer ours.
    async fn own(&mut self, sql: &str) -> Result<(), Failure> {
        self.connection.query_drop(sql).await.map_err(|error| {
            Failure::gone(if error.is_fatal() { errors::of_connection(&error) } else { ended() })
        })
    }
}

fn ended() -> tgp_contract::ToolError {
    rolled_back().detail("reason", "a statement ended the transaction that the kernel had opened")
}

#[async_trait]
impl Session for MySqlSession {
    async fn execute(&mut self, statement: &SqlStatement) -> Result<SqlRows, Failure> {
        self.run(statement).await
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
        self.connection.query_drop("COMMIT").await.map_err(|error| {
            Failure::gone(match &error {
                Error::Server(_) => errors::of_statement(&error, ""),
                _ => unknown_outcome("no answer"),
            })
        })
    }

    async fn rollback(&mut self) -> Ending {
        match self.connection.query_drop("ROLLBACK").await {
            Ok(()) => Ending::Ended,
            Err(_) => Ending::Broken,
        }
    }

    fn stopper(&self) -> Option<Stop> {
        let (connector, connection) = (self.connector.clone(), self.connection.id());
        Some(Box::pin(async move { connector.kill("QUERY", connection).await }))
    }
}
