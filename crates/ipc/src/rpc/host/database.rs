//! The host's own database as the one of the kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde::Serialize;
use tgp_contract::{
    Code, Database, SqlAccess, SqlClass, SqlRows, SqlStatement, SqlTransaction, ToolError, UNKNOWN_KIND,
};
use tgp_sql::{ForeignStatement, PlaceholderStyle, classify_foreign, prepare_foreign};
use tokio::sync::Notify;

use super::PATIENCE;
use crate::rpc::peer::{HostFailure, Peer};
use crate::rpc::protocol::{
    Done, HostPlaceholders, HostSql, SavepointAction, SqlBeginParams, SqlEndParams, SqlExecuteParams,
    SqlExecuteResult, SqlSavepointParams, callback,
};

/// Rows of one statement; a statement with more is cut, and says so.
const MAX_ROWS: u64 = 10_000;

/// A database behind the connection.
#[derive(Debug)]
pub(super) struct HostDatabase(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    peer: Peer,
    abilities: HostSql,
    next: AtomicU64,
    open: AtomicUsize,
    none_open: Notify,
}

impl HostDatabase {
    pub(super) fn shared(peer: Peer, abilities: &HostSql) -> Arc<dyn Database> {
        // Without transactions nothing keeps a statement from writing, and there is nothing to return to.
        let abilities = HostSql {
            read_only: abilities.read_only && abilities.transactions,
            savepoints: abilities.savepoints && abilities.transactions,
            ..abilities.clone()
        };
        Arc::new(Self(Arc::new(Shared {
            peer,
            abilities,
            next: AtomicU64::new(1),
            open: AtomicUsize::new(0),
            none_open: Notify::new(),
        })))
    }
}

impl Shared {
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, HostFailure> {
        self.peer.request(method, params, PATIENCE, Code::Sql).await.map_err(|failure| match failure {
            HostFailure::Answered(error) => HostFailure::Answered(explained(error)),
            silent @ HostFailure::Silent(_) => silent,
        })
    }

    fn closed(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none_open.notify_waiters();
        }
    }
}

#[async_trait]
impl Database for HostDatabase {
    fn dialect(&self) -> &str {
        self.0.abilities.dialect.as_str()
    }

    fn has_transactions(&self) -> bool {
        self.0.abilities.transactions
    }

    /// What the database itself cannot be kept from writing counts as a write.
    async fn inspect(&self, sql: &str) -> Option<SqlClass> {
        let class = classify(sql, self.dialect());
        Some(SqlClass { reads: class.reads && self.0.abilities.read_only, ..class })
    }

    async fn begin(&self, access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        let shared = Arc::clone(&self.0);
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let read_only = access == SqlAccess::ReadOnly;
        shared.open.fetch_add(1, Ordering::AcqRel);
        let transaction =
            HostTransaction { shared, number, marks: 0, read_only, state: State::Idle, written: false };
        Ok(Box::new(transaction))
    }

    async fn finished(&self) {
        loop {
            let none_open = self.0.none_open.notified();
            if self.0.open.load(Ordering::Acquire) == 0 {
                return;
            }
            none_open.await;
        }
    }
}

/// What the host knows of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing yet: it begins with its first statement.
    Idle,
    /// The host was asked to begin it and has not answered: it may be open there.
    Opening,
    Open,
    /// It has ended, or the host has lost it.
    Ended,
}

#[derive(Debug)]
struct HostTransaction {
    shared: Arc<Shared>,
    number: u64,
    marks: u32,
    read_only: bool,
    state: State,
    /// A statement that may write was executed.
    written: bool,
}

impl HostTransaction {
    fn has_transactions(&self) -> bool {
        self.shared.abilities.transactions
    }

    async fn open(&mut self) -> Result<(), ToolError> {
        match self.state {
            State::Open => Ok(()),
            State::Opening | State::Ended => Err(lost()),
            State::Idle => {
                if self.has_transactions() {
                    let begin = SqlBeginParams {
                        transaction: self.number,
                        read_only: self.read_only && self.shared.abilities.read_only,
                    };
                    self.state = State::Opening;
                    match self.shared.ask::<Done>(callback::SQL_BEGIN, &begin).await {
                        Ok(_) => {}
                        Err(HostFailure::Answered(error)) => {
                            self.state = State::Idle;
                            return Err(error);
                        }
                        // It is ended when it is dropped.
                        Err(HostFailure::Silent(error)) => return Err(error),
                    }
                }
                self.state = State::Open;
                // Marks that were set before the first statement.
                for mark in 1..=self.marks {
                    self.savepoint(SavepointAction::Set, mark).await?;
                }
                Ok(())
            }
        }
    }

    /// Without savepoints of the host nothing is done, and a transaction in which a statement has failed ends.
    async fn savepoint(&mut self, action: SavepointAction, mark: u32) -> Result<(), ToolError> {
        if !self.shared.abilities.savepoints || !self.has_transactions() || self.state != State::Open {
            return Ok(());
        }
        let name = format!("tgp_{mark}");
        let params = SqlSavepointParams { transaction: self.number, action, name };
        let _: Done = self.shared.ask(callback::SQL_SAVEPOINT, &params).await?;
        Ok(())
    }

    /// Whether the host may have it open.
    fn is_held(&self) -> bool {
        matches!(self.state, State::Opening | State::Open) && self.has_transactions()
    }

    /// Ends the transaction at the host, whatever it answers.
    async fn abandon(&mut self) {
        if self.is_held() {
            let end = SqlEndParams { transaction: self.number, commit: false };
            let _ = self.shared.ask::<Done>(callback::SQL_END, &end).await;
        }
        // Not before: where the call is cancelled meanwhile, the end is sent when this is dropped.
        self.state = State::Ended;
    }

    /// After a statement with which the database has committed.
    async fn end_sealed(&mut self) -> Result<(), ToolError> {
        if self.has_transactions() {
            let end = SqlEndParams { transaction: self.number, commit: true };
            let answer = self.shared.ask::<Done>(callback::SQL_END, &end).await;
            self.state = if answer.is_ok() { State::Idle } else { State::Ended };
            answer?;
        }
        Ok(())
    }

    /// The statement as the host takes it.
    fn prepare(&self, statement: &SqlStatement) -> Result<ForeignStatement, ToolError> {
        let dialect = self.shared.abilities.dialect.as_str();
        let style = match self.shared.abilities.placeholders {
            HostPlaceholders::Native => PlaceholderStyle::Native,
            HostPlaceholders::Format => PlaceholderStyle::Format,
        };
        let prepared = prepare_foreign(&statement.sql, &statement.params, dialect, style)?;
        if prepared.seals && self.has_transactions() && (self.written || self.marks > 0) {
            return Err(ToolError::new(
                Code::Sql,
                "the database commits with this statement, which would seal what this transaction has done",
            )
            .help("run it as a call of `exec_sql` of its own"));
        }
        Ok(prepared)
    }

    async fn run(&mut self, statement: ForeignStatement) -> Result<SqlRows, ToolError> {
        let ForeignStatement { sql, parameters, seals } = statement;
        let params = SqlExecuteParams { transaction: self.number, sql, parameters, max_rows: MAX_ROWS };
        let answer: SqlExecuteResult = match self.shared.ask(callback::SQL_EXECUTE, &params).await {
            Ok(answer) => answer,
            // What no transaction holds may be in place although the host fell silent.
            Err(HostFailure::Silent(error)) if seals || !self.has_transactions() => {
                return Err(error.of_unknown_outcome());
            }
            Err(failure) => return Err(failure.into()),
        };
        let SqlExecuteResult { columns, mut rows, changed, truncated } = answer;
        let most = usize::try_from(MAX_ROWS).unwrap_or(usize::MAX);
        let is_cut = rows.len() > most;
        rows.truncate(most);
        Ok(SqlRows { columns, rows, changed, truncated: truncated || is_cut })
    }
}

#[async_trait]
impl SqlTransaction for HostTransaction {
    async fn execute(&mut self, statement: &SqlStatement) -> Result<SqlRows, ToolError> {
        let class = classify(&statement.sql, self.shared.abilities.dialect.as_str());
        if statement.judged.as_ref().is_some_and(|judged| !judged.covers(&class.kinds)) {
            return Err(ToolError::new(
                Code::Sql,
                "the statement is of another kind than the one that was judged",
            )
            .help("make the call again"));
        }
        if self.read_only && !(class.reads && self.shared.abilities.read_only) {
            return Err(ToolError::new(
                Code::Sql,
                "a statement that may write cannot run in a read-only transaction",
            )
            .detail("access", "read-only"));
        }
        let prepared = self.prepare(statement)?;
        self.open().await?;
        if prepared.seals {
            let done = self.run(prepared).await;
            // The database has ended the transaction; the next statement begins another.
            self.end_sealed().await?;
            return done;
        }
        self.written |= !class.reads;
        let has_savepoints = self.has_transactions() && self.shared.abilities.savepoints;
        // A statement that fails changes nothing, and the transaction continues: with a savepoint of its own where a
        // failed statement spoils the transaction.
        let own = self.marks + 1;
        let guards = has_savepoints && !self.read_only;
        if guards {
            self.savepoint(SavepointAction::Set, own).await?;
        }
        let done = self.run(prepared).await;
        match &done {
            Ok(_) if guards => self.savepoint(SavepointAction::Release, own).await?,
            Ok(_) => {}
            Err(_) if guards => {
                if self.savepoint(SavepointAction::Rollback, own).await.is_err() {
                    self.abandon().await;
                }
            }
            Err(_) if self.has_transactions() => self.abandon().await,
            Err(_) => {}
        }
        done
    }

    async fn inspect(&mut self, sql: &str) -> Option<SqlClass> {
        let class = classify(sql, self.shared.abilities.dialect.as_str());
        // A text is no proof where the transaction may write.
        let is_kept_from_writing = self.read_only && self.shared.abilities.read_only;
        Some(SqlClass { reads: class.reads && is_kept_from_writing, ..class })
    }

    async fn mark(&mut self) -> Result<(), ToolError> {
        self.marks += 1;
        self.savepoint(SavepointAction::Set, self.marks).await
    }

    async fn keep(&mut self) -> Result<(), ToolError> {
        let mark = self.marks;
        self.marks = mark.saturating_sub(1);
        self.savepoint(SavepointAction::Release, mark).await
    }

    async fn undo(&mut self) -> Result<(), ToolError> {
        let mark = self.marks;
        self.marks = mark.saturating_sub(1);
        if self.state == State::Open && !self.shared.abilities.savepoints {
            // Without savepoints everything since the beginning is undone, and the run cannot commit any more.
            self.abandon().await;
            return Ok(());
        }
        self.savepoint(SavepointAction::Rollback, mark).await
    }

    async fn commit(mut self: Box<Self>) -> Result<(), ToolError> {
        match self.state {
            State::Idle => Ok(()),
            State::Opening | State::Ended => Err(lost()),
            State::Open if !self.has_transactions() => Ok(()),
            State::Open => {
                let end = SqlEndParams { transaction: self.number, commit: true };
                let answer = self.shared.ask::<Done>(callback::SQL_END, &end).await;
                self.state = State::Ended;
                match answer {
                    Ok(_) => Ok(()),
                    Err(HostFailure::Answered(error)) => Err(error),
                    // It may have committed before it fell silent.
                    Err(HostFailure::Silent(error)) => Err(error.of_unknown_outcome()),
                }
            }
        }
    }

    async fn rollback(mut self: Box<Self>) {
        self.abandon().await;
    }
}

impl Drop for HostTransaction {
    fn drop(&mut self) {
        if self.is_held() {
            let end = SqlEndParams { transaction: self.number, commit: false };
            let shared = Arc::clone(&self.shared);
            // The host rolls it back while nothing waits for it; the end of the kernel does.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move {
                    let _ = shared.ask::<Done>(callback::SQL_END, &end).await;
                    shared.closed();
                });
                return;
            }
        }
        self.shared.closed();
    }
}

/// What the text says; a dialect that is not known could do anything.
fn classify(sql: &str, dialect: &str) -> SqlClass {
    let unknown = SqlClass { kinds: vec![UNKNOWN_KIND.to_owned()], reads: false };
    classify_foreign(sql, dialect).unwrap_or(unknown)
}

/// What the host's executor reported, with the next step. A code of the database shows that the database answered.
fn explained(error: ToolError) -> ToolError {
    if error.help_of().is_some() {
        return error;
    }
    let help = if error.details.contains_key("sqlCode") {
        "correct the statement or its parameters; the database of the application reported this"
    } else {
        "correct the statement; if it is right, look at the SQL executor of the application, which reported this"
    };
    error.help(help)
}

fn lost() -> ToolError {
    ToolError::new(Code::Sql, "the transaction of the host has ended, and nothing of it stays")
        .help("an executor with savepoints lets a run continue after a statement that failed")
}
