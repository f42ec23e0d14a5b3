//! A transaction on a SQLite connection.

use async_trait::async_trait;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Error, ErrorCode, Statement};
use tgp_contract::{Code, SqlAccess, SqlClass, SqlRows, SqlStatement, ToolError};

use super::authorizer::Watch;
use super::connection::Connection;
use super::errors::{failed, of_statement, plain};
use super::inspector::inspect;
use super::values::{bind, value};
use crate::answer::{Capacity, RowCollector};
use crate::failure::{
    Failure, Transaction, abandoned, read_only, rolled_back, several_statements, timed_out,
};
use crate::options::Limits;
use crate::text::{Dialect, Script};
use crate::transaction::{Ending, SavepointKind, SavepointOp, Session, Stop};

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
    /// The definitions are those of this transaction.
    is_fresh: bool,
}

impl SqliteSession {
    pub fn new(connection: Connection, access: SqlAccess, limits: Limits) -> Self {
        Self { connection, access, limits, is_fresh: false }
    }

    pub fn into_connection(self) -> Connection {
        self.connection
    }

    fn run(&mut self, statement: &SqlStatement) -> Result<SqlRows, Failure> {
        // SQLite finds the end of a statement by itself; ours is only asked for the size.
        let script = Script::read(&statement.sql, Dialect::Sqlite)?;
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
        let writes = !prepared.readonly();
        if writes && self.access == SqlAccess::ReadOnly {
            return Err(read_only().into());
        }
        if !writes {
            self.watch_caller(Watch::Reading);
            let answer = self.read(&mut prepared, &script, Steps::UntilFull);
            return self.judged(answer);
        }
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
    fn refresh(&mut self) -> Result<(), Failure> {
        if !self.is_fresh {
            self.connection.start_clock(self.limits.statement_timeout);
            self.connection.refresh().map_err(|error| self.failure(&error, ""))?;
            self.is_fresh = true;
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
    fn watch_caller(&self, watch: Watch) {
        self.connection.start_clock(self.limits.statement_timeout);
        self.connection.warden.guard(watch);
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
    ) -> Result<SqlRows, Failure> {
        let names: Vec<String> = statement.column_names().map(ToOwned::to_owned).collect();
        let is_json: Vec<bool> = statement
            .columns()
            .map(|column| column.decl_type().is_some_and(|declared| declared.eq_ignore_ascii_case("json")))
            .collect();
        let mut collector = RowCollector::new(names.iter().cloned(), self.limits);
        let mut full = Capacity::Left;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.failure(&error, script.sql))? {
            if full == Capacity::Full {
                continue;
            }
            let mut values = Vec::with_capacity(names.len());
            for (index, (name, is_json)) in names.iter().zip(&is_json).enumerate() {
                let cell = row.get_ref(index).map_err(|error| self.failure(&error, script.sql))?;
                values.push(value(cell, *is_json, name)?);
            }
            full = collector.push(values);
            if full == Capacity::Full && steps == Steps::UntilFull {
                break;
            }
        }
        Ok(collector.finish(0))
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

#[async_trait]
impl Session for SqliteSession {
    async fn execute(&mut self, statement: &SqlStatement) -> Result<SqlRows, Failure> {
        let result = self.run(statement);
        self.connection.stop_clock();
        if self.connection.is_abandoned() { Err(Failure::gone(abandoned())) } else { result }
    }

    async fn inspect(&mut self, sql: &str) -> SqlClass {
        let found = inspect(&self.connection, sql, self.limits.statement_timeout);
        self.connection.stop_clock();
        found
    }

    async fn point(&mut self, point: &SavepointOp) -> Result<(), Failure> {
        let name = &point.name;
        self.own(&match point.kind {
            SavepointKind::Mark => format!("SAVEPOINT {name}"),
            SavepointKind::Keep => format!("RELEASE {name}"),
            SavepointKind::Undo => format!("ROLLBACK TO {name}; RELEASE {name}"),
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
