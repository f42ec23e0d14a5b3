//! A transaction on a SQLite connection.

use async_trait::async_trait;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Error, ErrorCode, Statement};
use tgp_contract::{SqlAccess, SqlAnswer, SqlStatement};

use super::connection::Connection;
use super::errors::{failed, of_statement, plain};
use super::values::{bind, value};
use crate::answer::{Collector, Room};
use crate::failure::{
    Failure, Transaction, abandoned, read_only, rolled_back, several_statements, timed_out,
};
use crate::options::Limits;
use crate::text::{Dialect, Script};
use crate::transaction::{Ending, Point, PointKind, Session, Stop};

/// Around each statement that writes: `INSERT OR FAIL` would keep the rows before the one that failed.
const STATEMENT: &str = "tgp_statement";

/// How far a statement is stepped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    UntilFull,
    ToTheEnd,
}

pub(crate) struct SqliteSession {
    connection: Connection,
    access: SqlAccess,
    limits: Limits,
}

impl SqliteSession {
    pub fn new(connection: Connection, access: SqlAccess, limits: Limits) -> Self {
        Self { connection, access, limits }
    }

    pub fn into_connection(self) -> Connection {
        self.connection
    }

    fn run(&self, statement: &SqlStatement) -> Result<SqlAnswer, Failure> {
        // SQLite finds the end of a statement by itself; ours is only asked for the size and the kind.
        let script = Script::read(&statement.sql, Dialect::Sqlite)?;
        self.watch_caller();
        let mut prepared = self.judged(self.prepare(&statement.sql))?;
        bind(&mut prepared, &statement.params)?;
        let writes = !prepared.readonly();
        if writes && self.access == SqlAccess::ReadOnly {
            return Err(read_only().into());
        }
        if !writes {
            self.watch_caller();
            let answer = self.read(&mut prepared, &script, Steps::UntilFull);
            return self.judged(answer);
        }
        self.own(&format!("SAVEPOINT {STATEMENT}"))?;
        self.watch_caller();
        // Statements that count nothing leave the count of the one before.
        let result = self.read(&mut prepared, &script, Steps::ToTheEnd).map(|answer| {
            let changed = if script.counts_changes() { self.connection.database.changes() } else { 0 };
            SqlAnswer { changed, ..answer }
        });
        drop(prepared);
        match self.judged(result) {
            Ok(answer) => {
                self.own(&format!("RELEASE {STATEMENT}"))?;
                Ok(answer)
            }
            Err(failure) if failure.transaction == Transaction::Gone => Err(failure),
            Err(failure) => {
                self.own(&format!("ROLLBACK TO {STATEMENT}; RELEASE {STATEMENT}"))?;
                Err(failure)
            }
        }
    }

    /// From here on the caller's statement is compiled or run: it has its time, and SQLite asks for every action. Some
    /// are asked for only while it runs, such as a pragma that is used as a table.
    fn watch_caller(&self) {
        self.connection.start_clock(self.limits.statement_timeout);
        self.connection.warden.guard();
    }

    /// The end of that. A refusal says more than SQLite's own words for it.
    fn judged<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        let refusal = self.connection.warden.release();
        result.map_err(|failure| match refusal {
            Some(error) => Failure { error, transaction: failure.transaction },
            None => failure,
        })
    }

    fn prepare<'a>(&'a self, sql: &str) -> Result<Statement<'a>, Failure> {
        let mut batch = Batch::new(&self.connection.database, sql);
        let first = batch.next().map_err(|error| self.failure(&error, sql))?;
        let first = first.ok_or_else(|| crate::failure::esql("there is no statement in the text"))?;
        match batch.next() {
            Ok(None) => Ok(first),
            Ok(Some(_)) | Err(_) => Err(several_statements().into()),
        }
    }

    /// Steps through the rows; a statement that writes is always stepped to its end.
    fn read(
        &self,
        statement: &mut Statement<'_>,
        script: &Script<'_>,
        steps: Steps,
    ) -> Result<SqlAnswer, Failure> {
        let names: Vec<String> = statement.column_names().map(ToOwned::to_owned).collect();
        let is_json: Vec<bool> = statement
            .columns()
            .map(|column| column.decl_type().is_some_and(|declared| declared.eq_ignore_ascii_case("json")))
            .collect();
        let mut collector = Collector::new(names.iter().cloned(), self.limits);
        let mut full = Room::Left;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.failure(&error, script.sql))? {
            if full == Room::Full {
                continue;
            }
            let mut values = Vec::with_capacity(names.len());
            for (index, (name, is_json)) in names.iter().zip(&is_json).enumerate() {
                let cell = row.get_ref(index).map_err(|error| self.failure(&error, script.sql))?;
                values.push(value(cell, *is_json, name)?);
            }
            full = collector.push(values);
            if full == Room::Full && steps == Steps::UntilFull {
                break;
            }
        }
        Ok(collector.finish(0))
    }

    /// Runs a statement of our own.
    fn own(&self, sql: &str) -> Result<(), Failure> {
        self.connection.stop_clock();
        self.connection.database.execute_batch(sql).map_err(|error| {
            if self.connection.database.is_autocommit() {
                return Failure::gone(rolled_back());
            }
            plain("the savepoint failed", &error).into()
        })
    }

    /// SQLite ends the whole transaction after some failures: an interrupted write, `OR ROLLBACK`, a full disk.
    fn failure(&self, error: &Error, sql: &str) -> Failure {
        let transaction =
            if self.connection.database.is_autocommit() { Transaction::Gone } else { Transaction::Open };
        if failed(error, ErrorCode::OperationInterrupted) {
            if self.connection.is_abandoned() {
                return Failure::gone(abandoned());
            }
            let error = timed_out(self.limits.statement_timeout).detail("sqlCode", "SQLITE_INTERRUPT");
            return Failure { error, transaction };
        }
        Failure { error: of_statement(error, sql), transaction }
    }
}

#[async_trait]
impl Session for SqliteSession {
    async fn execute(&mut self, statement: &SqlStatement) -> Result<SqlAnswer, Failure> {
        let result = self.run(statement);
        self.connection.stop_clock();
        if self.connection.is_abandoned() { Err(Failure::gone(abandoned())) } else { result }
    }

    async fn point(&mut self, point: &Point) -> Result<(), Failure> {
        let name = &point.name;
        self.own(&match point.kind {
            PointKind::Mark => format!("SAVEPOINT {name}"),
            PointKind::Keep => format!("RELEASE {name}"),
            PointKind::Undo => format!("ROLLBACK TO {name}; RELEASE {name}"),
        })
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.connection.forget_caller();
        self.connection.database.execute_batch("COMMIT").map_err(|error| {
            // Deferred foreign keys are checked here.
            Failure::gone(of_statement(&error, ""))
        })
    }

    async fn rollback(&mut self) -> Ending {
        self.connection.forget_caller();
        if !self.connection.database.is_autocommit()
            && self.connection.database.execute_batch("ROLLBACK").is_err()
        {
            return Ending::Broken;
        }
        Ending::Ended
    }

    fn stopper(&self) -> Option<Stop> {
        None
    }
}
