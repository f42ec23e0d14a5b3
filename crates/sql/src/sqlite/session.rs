//! A transaction on a SQLite connection.

use std::cell::Cell;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Error, ErrorCode, Row, Statement};
use serde_json::Value;
use tgp_contract::{Code, SqlAccess, SqlClass, SqlRows, SqlStatement, ToolError};

use super::actions::Actions;
use super::authorizer::Watch;
use super::connection::Connection;
use super::errors::{failed, of_statement, plain};
use super::inspector::inspect;
use super::turn::WriterTurn;
use super::values::{bind, value};
use crate::answer::{Capacity, RowCollector};
use crate::failure::{
    Failure, Transaction, abandoned, read_only, rolled_back, several_statements, timed_out,
};
use crate::options::Limits;
use crate::text::{Dialect, Script};
use crate::transaction::{Ending, SavepointKind, SavepointOp};

/// Around each statement that writes: `INSERT OR FAIL` would keep the rows before the one that failed.
const STATEMENT: &str = "tgp_statement";

/// How far a statement is stepped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    UntilFull,
    ToTheEnd,
}

pub(crate) struct SqliteSession {
    pub(super) connection: Connection,
    access: SqlAccess,
    pub(super) limits: Limits,
    /// The definitions are those of this transaction.
    is_fresh: Cell<bool>,
    turn: WriterTurn,
}

/// A statement that is compiled and has its parameters.
pub(super) struct Compiled<'a> {
    pub(super) statement: Statement<'a>,
    actions: Actions,
}

impl SqliteSession {
    pub fn new(connection: Connection, access: SqlAccess, limits: Limits, turn: WriterTurn) -> Self {
        Self { connection, access, limits, is_fresh: Cell::new(false), turn }
    }

    pub fn into_parts(self) -> (Connection, WriterTurn) {
        (self.connection, self.turn)
    }

    /// Compiles a statement, if it does no more than the rules were shown.
    pub(super) fn compile<'a>(&'a self, statement: &SqlStatement) -> Result<Compiled<'a>, Failure> {
        self.refresh()?;
        self.watch_caller(Watch::Compiling);
        let mut prepared = self.judged(self.prepare(&statement.sql))?;
        let mut actions = self.connection.warden.actions();
        if let Some(judged) = &statement.judged
            && !judged.covers(&actions.kinds(&statement.sql))
        {
            // A virtual table that was opened just now has prepared its own statements, once.
            self.watch_caller(Watch::Compiling);
            prepared = self.judged(self.prepare(&statement.sql))?;
            actions = self.connection.warden.actions();
            must_cover(judged, &actions.kinds(&statement.sql))?;
        }
        bind(&mut prepared, &statement.params)?;
        Ok(Compiled { statement: prepared, actions })
    }

    pub(super) fn execute(&self, statement: &SqlStatement) -> Result<SqlRows, Failure> {
        // SQLite finds the end of a statement by itself; ours is only asked for the size.
        let script = Script::read(&statement.sql, Dialect::Sqlite)?;
        let Compiled { statement: mut prepared, actions } = self.compile(statement)?;
        let writes = !prepared.readonly();
        if writes && self.access == SqlAccess::ReadOnly {
            return Err(read_only().into());
        }
        if !writes {
            self.watch_caller(Watch::Reading);
            let answer = self.read(&mut prepared, &script, Steps::UntilFull);
            return self.judged(answer);
        }
        self.turn.take(&self.connection)?;
        self.own(&format!("SAVEPOINT {STATEMENT}"))?;
        let before = self.connection.database.total_changes();
        self.watch_caller(Watch::Writing);
        let result = self.read(&mut prepared, &script, Steps::ToTheEnd).map(|answer| {
            let changed = if actions.counts_changes() { self.changed_since(before) } else { 0 };
            SqlRows { changed, ..answer }
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

    /// The definitions can change once more between the beginning of a transaction and its first statement.
    fn refresh(&self) -> Result<(), Failure> {
        if !self.is_fresh.get() {
            self.connection.start_clock(self.limits.statement_timeout);
            self.connection.refresh().map_err(|error| self.failure(&error, ""))?;
            self.is_fresh.set(true);
        }
        Ok(())
    }

    /// The rows that the last statement changed, without those of triggers. Behind a view there are only triggers, so
    /// there theirs count.
    fn changed_since(&self, before: u64) -> u64 {
        match self.connection.database.total_changes().saturating_sub(before) {
            // A statement that counts nothing leaves the count of the one before.
            0 => 0,
            all => match self.connection.database.changes() {
                0 => all,
                own => own,
            },
        }
    }

    /// From here on the caller's statement is compiled or run: it has its time, and SQLite asks for every action. Some
    /// are asked for only while it runs, such as a pragma that is used as a table.
    pub(super) fn watch_caller(&self, watch: Watch) {
        self.connection.start_clock(self.limits.statement_timeout);
        self.connection.warden.guard(watch);
    }

    /// The end of that. A refusal says more than SQLite's own words for it.
    pub(super) fn judged<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
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
    ) -> Result<SqlRows, Failure> {
        let columns = columns_of(statement);
        let names = columns.iter().map(|column| column.name.clone());
        let mut collector = RowCollector::new(names, self.limits);
        let mut full = Capacity::Left;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.failure(&error, script.sql))? {
            if full == Capacity::Full {
                continue;
            }
            full = collector.push(self.cells(row, &columns, script.sql)?);
            if full == Capacity::Full && steps == Steps::UntilFull {
                break;
            }
        }
        Ok(collector.finish(0))
    }

    /// The values of one row.
    pub(super) fn cells(
        &self,
        row: &Row<'_>,
        columns: &[ReadColumn],
        sql: &str,
    ) -> Result<Vec<Value>, Failure> {
        let cell = |(index, column): (usize, &ReadColumn)| {
            let cell = row.get_ref(index).map_err(|error| self.failure(&error, sql))?;
            Ok(value(cell, column.is_json, &column.name)?)
        };
        columns.iter().enumerate().map(cell).collect()
    }

    /// Runs one of our own statements.
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
    pub(super) fn failure(&self, error: &Error, sql: &str) -> Failure {
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

/// Refuses a statement that would do more than the rules were shown.
fn must_cover(judged: &SqlClass, kinds: &[String]) -> Result<(), ToolError> {
    if judged.covers(kinds) {
        return Ok(());
    }
    let more: Vec<&str> =
        kinds.iter().filter(|kind| !judged.kinds.contains(kind)).map(String::as_str).collect();
    let message = format!(
        "the statement would do more than the rules were shown: {}. The tables, views or triggers have changed since",
        more.join(", ")
    );
    Err(ToolError::new(Code::Policy, message).help("nothing was changed; call it again"))
}

/// A column as it is read.
pub(super) struct ReadColumn {
    pub(super) name: String,
    is_json: bool,
}

pub(super) fn columns_of(statement: &Statement<'_>) -> Vec<ReadColumn> {
    let declared_json = statement
        .columns()
        .map(|column| column.decl_type().is_some_and(|declared| declared.eq_ignore_ascii_case("json")))
        .collect::<Vec<bool>>();
    let names = statement.column_names();
    names.zip(declared_json).map(|(name, is_json)| ReadColumn { name: name.to_owned(), is_json }).collect()
}

/// The ends of a transaction, and the points in it.
impl SqliteSession {
    /// A caller that has gone away has not seen what its statement did, so nothing of it may stay.
    pub(super) fn unless_abandoned<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        self.connection.stop_clock();
        if self.connection.is_abandoned() { Err(Failure::gone(abandoned())) } else { result }
    }

    pub(super) fn inspect(&self, sql: &str) -> SqlClass {
        let found = inspect(&self.connection, sql, self.limits.statement_timeout);
        self.connection.stop_clock();
        found
    }

    pub(super) fn point(&self, point: &SavepointOp) -> Result<(), Failure> {
        let name = &point.name;
        self.own(&match point.kind {
            SavepointKind::Mark => format!("SAVEPOINT {name}"),
            SavepointKind::Keep => format!("RELEASE {name}"),
            SavepointKind::Undo => format!("ROLLBACK TO {name}; RELEASE {name}"),
        })
    }

    pub(super) fn commit(&self) -> Result<(), Failure> {
        self.connection.forget_caller();
        self.connection.database.execute_batch("COMMIT").map_err(|error| {
            // Deferred foreign keys are checked here.
            Failure::gone(of_statement(&error, ""))
        })
    }

    pub(super) fn rollback(&self) -> Ending {
        self.connection.forget_caller();
        if !self.connection.database.is_autocommit()
            && self.connection.database.execute_batch("ROLLBACK").is_err()
        {
            return Ending::Broken;
        }
        Ending::Ended
    }
}
