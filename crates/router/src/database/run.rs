//! One transaction a run, opened at the first statement; a run inside a run has a savepoint in it.
//!
//! INVARIANT: a level that was dropped without an end is undone before its transaction is used again. The future of
//! an inner run can be dropped at any await, when the outer tool returns without waiting for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Code, Database, SqlAccess, SqlClass, SqlRows, SqlStatement, SqlTransaction, ToolError};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Statements a dry run reports; the others are counted.
const MAX_NOTES: usize = 100;

/// The database side of one run.
#[derive(Clone)]
pub struct SqlRun(Arc<Shared>);

struct Shared {
    source: Source,
    /// Held for one statement, or by an inner run from its first statement to its end: savepoints are a stack, so
    /// what two runs do must not interleave.
    level: Arc<Mutex<SavepointScope>>,
    notes: BlockingMutex<SqlNotes>,
    /// Nothing says that the run will write, so its first read need not wait for writers.
    only_reads: AtomicBool,
}

enum Source {
    Database(Arc<dyn Database>),
    Outer(SqlRun),
}

/// What the statements of a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SqlNotes {
    pub statements: Vec<SqlNote>,
    /// How many statements there were in all.
    pub count: u64,
    /// Rows they changed, all together.
    #[serde(skip)]
    pub changed: u64,
}

impl SqlNotes {
    fn add(&mut self, note: SqlNote) {
        self.count += 1;
        self.changed += note.changed;
        if self.statements.len() < MAX_NOTES {
            self.statements.push(note);
        }
    }

    fn add_all(&mut self, more: SqlNotes) {
        self.count += more.count;
        self.changed += more.changed;
        let room = MAX_NOTES.saturating_sub(self.statements.len());
        self.statements.extend(more.statements.into_iter().take(room));
    }
}

/// One statement of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SqlNote {
    pub sql: String,
    /// Rows that it returned.
    pub rows: usize,
    /// Rows that it inserted, updated or deleted.
    pub changed: u64,
}

#[derive(Default)]
struct SavepointScope {
    hold: Option<TxHandle>,
    /// True while the database works; still true afterwards when the future that waited for it was dropped.
    busy: bool,
    /// Marks of inner runs that ended without commit or rollback.
    abandoned: u32,
    /// Queries that this run is reading in batches.
    cursors: Vec<u64>,
    /// The same of inner runs that ended without commit or rollback.
    orphans: Vec<u64>,
    over: bool,
}

enum TxHandle {
    Own(Box<dyn SqlTransaction>),
    Outer(OwnedMutexGuard<SavepointScope>),
}

impl SavepointScope {
    fn transaction(&mut self) -> Option<&mut dyn SqlTransaction> {
        match self.hold.as_mut()? {
            TxHandle::Own(transaction) => Some(transaction.as_mut()),
            TxHandle::Outer(level) => level.transaction(),
        }
    }

    /// Makes the level ready for use after an inner run was broken off.
    async fn recover(&mut self) -> Result<(), ToolError> {
        if self.busy {
            return Err(left_alone());
        }
        self.close_orphans().await?;
        while self.abandoned > 0 {
            self.busy = true;
            if let Some(transaction) = self.transaction() {
                transaction.undo().await?;
            }
            self.busy = false;
            self.abandoned -= 1;
        }
        Ok(())
    }
}

impl SavepointScope {
    async fn close_orphans(&mut self) -> Result<(), ToolError> {
        while let Some(cursor) = self.orphans.pop() {
            self.busy = true;
            if let Some(transaction) = self.transaction() {
                transaction.close_cursor(cursor).await?;
            }
            self.busy = false;
        }
        Ok(())
    }

    /// Hands what an inner run has left to the outer one, which cleans it up before its next use.
    fn leave_to(&mut self, outer: &mut SavepointScope) {
        outer.orphans.append(&mut self.cursors);
        outer.orphans.append(&mut self.orphans);
        outer.abandoned += 1 + self.abandoned;
        outer.busy |= self.busy;
    }
}

impl Drop for SavepointScope {
    fn drop(&mut self) {
        if let Some(TxHandle::Outer(mut outer)) = self.hold.take() {
            self.leave_to(&mut outer);
        }
    }
}

impl SqlRun {
    pub(super) fn on_database(database: Arc<dyn Database>) -> Self {
        Self::new(Source::Database(database))
    }

    pub(super) fn inside(outer: SqlRun) -> Self {
        Self::new(Source::Outer(outer))
    }

    fn new(source: Source) -> Self {
        Self(Arc::new(Shared {
            source,
            level: Arc::default(),
            notes: BlockingMutex::default(),
            only_reads: AtomicBool::new(false),
        }))
    }

    /// Says that nothing in the run's sources writes. It may write all the same; then its first statement that does can
    /// fail, if another run has changed the database since this one has read.
    pub fn expect_reads(&self) {
        self.0.only_reads.store(true, Ordering::Relaxed);
    }

    /// Where its statements go in the end.
    pub(super) fn database(&self) -> &dyn Database {
        match &self.0.source {
            Source::Database(database) => database.as_ref(),
            Source::Outer(outer) => outer.database(),
        }
    }

    /// The level, with its transaction open; `access` is what the statement that opens it needs.
    async fn open(&self, access: SqlAccess) -> Result<OwnedMutexGuard<SavepointScope>, ToolError> {
        let access = if self.0.only_reads.load(Ordering::Relaxed) { access } else { SqlAccess::ReadWrite };
        let mut level = Arc::clone(&self.0.level).lock_owned().await;
        if level.over {
            return Err(ToolError::new(Code::Sql, "the run that this statement belongs to is over"));
        }
        level.recover().await?;
        if level.hold.is_none() {
            level.hold = Some(match &self.0.source {
                Source::Database(database) => {
                    let mut transaction = database.begin(access).await?;
                    // Whatever a run does can be undone, so statements that a database cannot undo are refused.
                    transaction.mark().await?;
                    TxHandle::Own(transaction)
                }
                Source::Outer(outer) => {
                    let mut outer = Box::pin(outer.open(access)).await?;
                    outer.busy = true;
                    if let Some(transaction) = outer.transaction() {
                        transaction.mark().await?;
                    }
                    outer.busy = false;
                    TxHandle::Outer(outer)
                }
            });
        }
        Ok(level)
    }

    /// What a statement would do as the next one of this run. Only a transaction knows the tables that it has made, so it
    /// is asked if there is one; none is opened for the question.
    pub(super) async fn inspect(&self, sql: &str) -> Option<SqlClass> {
        let mut level = self.0.level.lock().await;
        if level.over || level.recover().await.is_err() {
            return None;
        }
        if level.hold.is_some() {
            level.busy = true;
            let found = match level.transaction() {
                Some(transaction) => transaction.inspect(sql).await,
                None => None,
            };
            level.busy = false;
            return found;
        }
        match &self.0.source {
            Source::Outer(outer) => Box::pin(outer.inspect(sql)).await,
            Source::Database(database) => {
                let found = database.inspect(sql).await;
                // A run's transaction may write, so nothing in it is certain to be a read where only the text is known.
                let certain = database.is_embedded();
                found.map(|found| SqlClass { reads: found.reads && certain, ..found })
            }
        }
    }

    /// Whether this is the database that refuses a cursor on a statement which is not a read, whatever its words are.
    pub(super) fn is_embedded(&self) -> bool {
        match &self.0.source {
            Source::Outer(outer) => outer.is_embedded(),
            Source::Database(database) => database.is_embedded(),
        }
    }

    pub(super) async fn execute(&self, statement: &SqlStatement) -> Result<SqlRows, ToolError> {
        let mut level = self.open(needed(statement)).await?;
        level.busy = true;
        let answer = match level.transaction() {
            Some(transaction) => transaction.execute(statement).await,
            None => Err(no_transaction()),
        };
        level.busy = false;
        let answer = answer?;
        self.note(SqlNote { sql: statement.sql.clone(), rows: answer.rows.len(), changed: answer.changed });
        Ok(answer)
    }

    /// Begins to read a statement in batches of `rows`: the first batch, and the cursor of the others if there are any.
    pub(super) async fn open_cursor(
        &self,
        statement: &SqlStatement,
        rows: usize,
    ) -> Result<(SqlRows, Option<u64>), ToolError> {
        let cursor = {
            let mut level = self.open(needed(statement)).await?;
            level.busy = true;
            let opened = match level.transaction() {
                Some(transaction) => transaction.open_cursor(statement).await,
                None => Err(no_transaction()),
            };
            level.busy = false;
            let cursor = opened?;
            level.cursors.push(cursor);
            cursor
        };
        let first = self.fetch(cursor, rows).await?;
        self.note(SqlNote { sql: statement.sql.clone(), rows: first.rows.len(), changed: 0 });
        let more = first.truncated.then_some(cursor);
        Ok((first, more))
    }

    /// The next rows of a cursor of this run. `truncated` says that there are more.
    ///
    /// # Errors
    /// `ESQL`; then the cursor is closed.
    pub async fn fetch(&self, cursor: u64, rows: usize) -> Result<SqlRows, ToolError> {
        let mut level = self.open(SqlAccess::ReadFirst).await?;
        let Some(at) = level.cursors.iter().position(|open| *open == cursor) else {
            return Err(ToolError::new(Code::Sql, "this query has been read to its end, or was closed"));
        };
        level.busy = true;
        let batch = match level.transaction() {
            Some(transaction) => transaction.fetch(cursor, rows).await,
            None => Err(no_transaction()),
        };
        level.busy = false;
        if !batch.as_ref().is_ok_and(|batch| batch.truncated) {
            level.cursors.remove(at);
        }
        batch
    }

    /// Closes a cursor of this run; one that is closed already stays so.
    ///
    /// # Errors
    /// `ESQL` when the transaction is lost.
    pub async fn close_cursor(&self, cursor: u64) -> Result<(), ToolError> {
        let mut level = self.0.level.lock().await;
        let Some(at) = level.cursors.iter().position(|open| *open == cursor) else { return Ok(()) };
        level.cursors.remove(at);
        level.orphans.push(cursor);
        level.recover().await
    }

    fn note(&self, note: SqlNote) {
        self.notes_of().add(note);
    }

    fn notes_of(&self) -> std::sync::MutexGuard<'_, SqlNotes> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the statements of this run, and of those inside it, did.
    pub fn notes(&self) -> SqlNotes {
        self.notes_of().clone()
    }

    /// Whether there is anything to commit.
    pub async fn is_open(&self) -> bool {
        self.0.level.lock().await.hold.is_some()
    }

    /// Commits the run's statements; for an inner run, into the outer one.
    pub async fn commit(&self) -> Result<(), ToolError> {
        let mut level = self.0.level.lock().await;
        level.over = true;
        level.recover().await?;
        match level.hold.take() {
            None => Ok(()),
            Some(TxHandle::Own(transaction)) => transaction.commit().await,
            Some(TxHandle::Outer(mut outer)) => {
                outer.orphans.append(&mut level.cursors);
                outer.recover().await?;
                outer.busy = true;
                let kept = match outer.transaction() {
                    Some(transaction) => transaction.keep().await,
                    None => Ok(()),
                };
                outer.busy = false;
                kept?;
                // Only now its statements are part of what the outer run has done.
                if let Source::Outer(run) = &self.0.source {
                    run.notes_of().add_all(self.notes());
                }
                Ok(())
            }
        }
    }

    /// Undoes the run's statements, and waits until the database has.
    pub async fn roll_back(&self) {
        let mut level = self.0.level.lock().await;
        level.over = true;
        match level.hold.take() {
            None => {}
            Some(TxHandle::Own(transaction)) => transaction.rollback().await,
            Some(TxHandle::Outer(mut outer)) => {
                level.leave_to(&mut outer);
                // When this fails the outer run finds it out at its next statement or at its end.
                let _ = outer.recover().await;
            }
        }
    }
}

/// What a statement needs of the transaction that it opens.
fn needed(statement: &SqlStatement) -> SqlAccess {
    let reads = statement.judged.as_ref().is_some_and(|judged| judged.reads);
    if reads { SqlAccess::ReadFirst } else { SqlAccess::ReadWrite }
}

fn no_transaction() -> ToolError {
    ToolError::new(Code::Internal, "the run has no transaction")
}

fn left_alone() -> ToolError {
    ToolError::new(Code::Sql, "a statement was interrupted, so the transaction was rolled back")
        .help("await every tgp.exec_sql and tgp.exec_tool before the tool returns")
}
