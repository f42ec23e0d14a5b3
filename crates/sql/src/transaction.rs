//! A transaction's two halves: the handle that sends orders, and the worker that owns the connection and obeys.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tgp_contract::{SqlClass, SqlRows, SqlStatement, SqlTransaction, ToolError};
use tokio::sync::{mpsc, oneshot};

use crate::failure::{Failure, Transaction, abandoned, esql, rolled_back, timed_out, unknown_outcome};

/// The server's own timeout comes first, since it knows best; ours is for a server that does not answer.
const SERVER_GRACE: Duration = Duration::from_millis(500);

/// How long a stopped statement may take to end before its connection is given up.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// How long a rollback or the end of a transaction may take before its connection is given up.
pub(crate) const END_GRACE: Duration = Duration::from_secs(10);

/// A caller waits for each answer, so there is never more than one order under way, and one that ends it all.
const ORDERS: usize = 2;

/// Cursors open at a time in one transaction: as many as loops inside each other.
pub(crate) const MAX_CURSORS: usize = 4;

/// As deep as nested tools go, with room to spare; a bound keeps savepoints from piling up in a server.
const MAX_MARKS: usize = 64;

type ReplySender<T> = oneshot::Sender<Result<T, ToolError>>;
pub(crate) type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) enum SessionCommand {
    Execute(SessionWork, ReplySender<SqlRows>),
    CloseCursor(u64, ReplySender<()>),
    Inspect(String, oneshot::Sender<SqlClass>),
    Point(SavepointKind, ReplySender<()>),
    Commit(ReplySender<()>),
    Rollback(oneshot::Sender<()>),
}

/// Work of a caller that takes time and gives rows.
#[derive(Clone, Debug)]
pub(crate) enum SessionWork {
    Statement(SqlStatement),
    /// Gives the columns, and no rows yet.
    OpenCursor {
        cursor: u64,
        statement: SqlStatement,
    },
    Fetch {
        cursor: u64,
        rows: usize,
    },
}

/// What a caller does with savepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavepointKind {
    Mark,
    Keep,
    Undo,
}

/// A savepoint order with the name it concerns.
pub(crate) struct SavepointOp {
    pub kind: SavepointKind,
    pub name: String,
}

/// What the worker does with its connection afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// No transaction is open; the connection can be cleaned and kept.
    Ended,
    /// Its state is unknown.
    Broken,
}

/// A connection inside a transaction.
#[async_trait]
pub(crate) trait Session: Send {
    async fn perform(&mut self, work: &SessionWork) -> Result<SqlRows, Failure>;
    async fn close_cursor(&mut self, cursor: u64) -> Result<(), Failure>;
    /// What a statement would do, found out without running it.
    async fn inspect(&mut self, sql: &str) -> SqlClass;
    async fn point(&mut self, point: &SavepointOp) -> Result<(), Failure>;
    async fn commit(&mut self) -> Result<(), Failure>;
    async fn rollback(&mut self) -> Ending;

    /// What stops a statement from outside while it runs; none where the statement watches the clock itself.
    fn stopper(&self) -> Option<Stop>;
}

/// True once the caller has lost interest. A thread that runs a statement checks it from time to time.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sets the flag unless the call it guards has been answered.
struct CancelOnDrop<'a> {
    abandoned: &'a CancelFlag,
    answered: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.abandoned.set();
        }
    }
}

/// The caller's half.
pub(crate) struct Handle {
    orders: mpsc::Sender<SessionCommand>,
    abandoned: CancelFlag,
    last_cursor: u64,
}

/// The two ends of a new transaction.
pub(crate) fn channel() -> (Handle, mpsc::Receiver<SessionCommand>, CancelFlag) {
    let (sender, receiver) = mpsc::channel(ORDERS);
    let abandoned = CancelFlag::default();
    (Handle { orders: sender, abandoned: abandoned.clone(), last_cursor: 0 }, receiver, abandoned)
}

impl Handle {
    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> SessionCommand) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let mut guard = CancelOnDrop { abandoned: &self.abandoned, answered: false };
        let result = match self.orders.send(order(answer)).await {
            Ok(()) => answered.await.ok(),
            Err(_) => None,
        };
        guard.answered = true;
        result
    }

    async fn perform(&self, work: SessionWork) -> Result<SqlRows, ToolError> {
        let started = Instant::now();
        let answer = self.ask(|answer| SessionCommand::Execute(work, answer)).await;
        let answer = answer.unwrap_or_else(|| Err(worker_lost()));
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &answer {
            Ok(found) => {
                tracing::debug!(target: "sql", rows = found.rows.len(), changed = found.changed, ms, "executed");
            }
            Err(error) => tracing::debug!(target: "sql", ms, "{}", error.message),
        }
        answer
    }

    async fn point(&self, kind: SavepointKind) -> Result<(), ToolError> {
        self.ask(|answer| SessionCommand::Point(kind, answer)).await.unwrap_or_else(|| Err(worker_lost()))
    }
}

fn worker_lost() -> ToolError {
    esql("the database's worker has ended, so the transaction was rolled back")
}

#[async_trait]
impl SqlTransaction for Handle {
    async fn execute(&mut self, statement: &SqlStatement) -> Result<SqlRows, ToolError> {
        tracing::trace!(target: "sql", sql = %statement.sql, "statement");
        self.perform(SessionWork::Statement(statement.clone())).await
    }

    async fn open_cursor(&mut self, statement: &SqlStatement) -> Result<u64, ToolError> {
        tracing::trace!(target: "sql", sql = %statement.sql, "cursor");
        self.last_cursor += 1;
        let cursor = self.last_cursor;
        self.perform(SessionWork::OpenCursor { cursor, statement: statement.clone() }).await?;
        Ok(cursor)
    }

    async fn fetch(&mut self, cursor: u64, rows: usize) -> Result<SqlRows, ToolError> {
        self.perform(SessionWork::Fetch { cursor, rows }).await
    }

    async fn close_cursor(&mut self, cursor: u64) -> Result<(), ToolError> {
        self.ask(|answer| SessionCommand::CloseCursor(cursor, answer))
            .await
            .unwrap_or_else(|| Err(worker_lost()))
    }

    async fn inspect(&mut self, sql: &str) -> Option<SqlClass> {
        let sql = sql.to_owned();
        self.ask(|answer| SessionCommand::Inspect(sql, answer)).await
    }

    async fn mark(&mut self) -> Result<(), ToolError> {
        self.point(SavepointKind::Mark).await
    }

    async fn keep(&mut self) -> Result<(), ToolError> {
        self.point(SavepointKind::Keep).await
    }

    async fn undo(&mut self) -> Result<(), ToolError> {
        self.point(SavepointKind::Undo).await
    }

    async fn commit(self: Box<Self>) -> Result<(), ToolError> {
        let (answer, answered) = oneshot::channel();
        let mut guard = CancelOnDrop { abandoned: &self.abandoned, answered: false };
        let result = match self.orders.send(SessionCommand::Commit(answer)).await {
            // A worker that ends after it has the order, with the runtime, may have sent its COMMIT.
            Ok(()) => answered.await.unwrap_or_else(|_| Err(unknown_outcome("the kernel ended"))),
            Err(_) => Err(worker_lost()),
        };
        guard.answered = true;
        match &result {
            Ok(()) => tracing::debug!(target: "sql", "committed"),
            Err(error) => tracing::warn!(target: "sql", "the commit failed: {}", error.message),
        }
        result
    }

    async fn rollback(self: Box<Self>) {
        // A worker that is gone has rolled back already.
        let _ = self.ask(SessionCommand::Rollback).await;
        tracing::debug!(target: "sql", "rolled back");
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.abandoned.set();
    }
}

/// The state of a transaction: its savepoints, and whether it is still there.
pub(crate) struct TransactionState {
    marks: usize,
    transaction: Transaction,
}

impl TransactionState {
    pub fn new() -> Self {
        Self { marks: 0, transaction: Transaction::Open }
    }

    pub fn settle<T>(&mut self, result: Result<T, Failure>) -> Result<T, ToolError> {
        result.map_err(|failure| {
            if failure.transaction == Transaction::Gone {
                self.transaction = Transaction::Gone;
                return failure.error.detail("transaction", "rolled back");
            }
            failure.error
        })
    }

    pub fn open(&self) -> Result<(), ToolError> {
        match self.transaction {
            Transaction::Open => Ok(()),
            Transaction::Gone => Err(rolled_back()),
        }
    }

    /// The next savepoint order, which the caller reports with [`Self::pointed`] when it is done.
    pub fn point(&self, kind: SavepointKind) -> Result<SavepointOp, ToolError> {
        self.open()?;
        if kind == SavepointKind::Mark && self.marks >= MAX_MARKS {
            return Err(esql(format!("a transaction has at most {MAX_MARKS} marks")));
        }
        if kind != SavepointKind::Mark && self.marks == 0 {
            return Err(esql("there is no mark to return to"));
        }
        let number = if kind == SavepointKind::Mark { self.marks + 1 } else { self.marks };
        Ok(SavepointOp { kind, name: format!("tgp_mark_{number}") })
    }

    pub fn pointed(&mut self, kind: SavepointKind) {
        self.marks = if kind == SavepointKind::Mark { self.marks + 1 } else { self.marks.saturating_sub(1) };
    }
}

/// A worker of a server's transaction.
struct Worker<'a, S> {
    session: &'a mut S,
    timeout: Duration,
    state: TransactionState,
    ending: Ending,
}

/// Obeys orders until the transaction ends, one way or the other.
pub(crate) async fn serve<S: Session>(
    session: &mut S,
    mut orders: mpsc::Receiver<SessionCommand>,
    timeout: Duration,
) -> Ending {
    let mut worker = Worker { session, timeout, state: TransactionState::new(), ending: Ending::Ended };
    while let Some(order) = orders.recv().await {
        // A caller that does not wait for the answer any more has said all there is to say.
        match order {
            SessionCommand::Execute(work, mut answer) => {
                let result = worker.perform(&work, &mut answer).await;
                let _ = answer.send(result);
            }
            SessionCommand::CloseCursor(cursor, answer) => {
                let _ = answer.send(worker.close_cursor(cursor).await);
            }
            SessionCommand::Inspect(sql, answer) => {
                let _ = answer.send(worker.session.inspect(&sql).await);
            }
            SessionCommand::Point(kind, answer) => {
                let _ = answer.send(worker.point(kind).await);
            }
            SessionCommand::Commit(answer) => {
                let result = worker.commit().await;
                if result.is_err() {
                    worker.rollback().await;
                }
                let _ = answer.send(result);
                return worker.ending;
            }
            SessionCommand::Rollback(answer) => {
                worker.rollback().await;
                let _ = answer.send(());
                return worker.ending;
            }
        }
    }
    worker.rollback().await;
    worker.ending
}

impl<S: Session> Worker<'_, S> {
    async fn perform(
        &mut self,
        work: &SessionWork,
        answer: &mut ReplySender<SqlRows>,
    ) -> Result<SqlRows, ToolError> {
        self.state.open()?;
        let Some(stop) = self.session.stopper() else {
            let result = self.session.perform(work).await;
            return self.state.settle(result);
        };
        let mut work = self.session.perform(work);
        let (deadline, error) = tokio::select! {
            biased;
            result = &mut work => {
                drop(work);
                return self.state.settle(result);
            }
            () = answer.closed() => (false, abandoned()),
            () = tokio::time::sleep(self.timeout + SERVER_GRACE) => (true, timed_out(self.timeout)),
        };
        // The statement is still driven, since only a connection that reads its answer stays usable.
        let stopping = async { futures_util::future::join(stop, &mut work).await.1 };
        let stopped = tokio::time::timeout(STOP_GRACE, stopping).await;
        drop(work);
        let result = match stopped {
            Ok(Ok(answer)) if deadline => Ok(answer),
            Ok(Err(failure)) if deadline => Err(Failure { error, transaction: failure.transaction }),
            Ok(_) => Err(Failure::gone(error)),
            Err(_) => {
                self.ending = Ending::Broken;
                Err(Failure::gone(error))
            }
        };
        self.state.settle(result)
    }

    async fn close_cursor(&mut self, cursor: u64) -> Result<(), ToolError> {
        self.state.open()?;
        let result = tokio_timeout(self.timeout + STOP_GRACE, self.session.close_cursor(cursor)).await;
        self.ended_in_time(result)
    }

    async fn point(&mut self, kind: SavepointKind) -> Result<(), ToolError> {
        let point = self.state.point(kind)?;
        let result = tokio_timeout(self.timeout + STOP_GRACE, self.session.point(&point)).await;
        self.ended_in_time(result)?;
        self.state.pointed(kind);
        Ok(())
    }

    fn ended_in_time(&mut self, result: Option<Result<(), Failure>>) -> Result<(), ToolError> {
        if result.is_none() {
            self.ending = Ending::Broken;
        }
        let result = result.unwrap_or_else(|| Err(Failure::gone(timed_out(self.timeout))));
        self.state.settle(result)
    }

    async fn commit(&mut self) -> Result<(), ToolError> {
        self.state.open()?;
        let result = tokio_timeout(END_GRACE, self.session.commit()).await;
        if result.is_none() {
            self.ending = Ending::Broken;
        }
        let result = result.unwrap_or_else(|| Err(Failure::gone(unknown_outcome("no answer"))));
        self.state.settle(result)
    }

    async fn rollback(&mut self) {
        if self.ending == Ending::Broken {
            return;
        }
        let ended = tokio_timeout(END_GRACE, self.session.rollback()).await;
        self.ending = ended.unwrap_or(Ending::Broken);
    }
}

/// The clock is read only when the work really waits: SQLite's never does, and then needs no running timer.
async fn tokio_timeout<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    if let std::task::Poll::Ready(result) = futures_util::poll!(&mut work) {
        return Some(result);
    }
    tokio::time::timeout(limit, work).await.ok()
}

/// Refuses another cursor than a transaction may have.
pub(crate) fn room_for_cursor(open: usize) -> Result<(), ToolError> {
    if open < MAX_CURSORS {
        return Ok(());
    }
    Err(esql(format!("{MAX_CURSORS} queries are being read already"))
        .help("end a loop over tgp.query before the next one begins, or join the tables in one statement"))
}

pub(crate) fn no_cursor() -> ToolError {
    esql("this query has been read to its end, or was closed")
}
