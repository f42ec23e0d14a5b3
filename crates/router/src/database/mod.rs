//! The database as a call sees it: each statement in its own transaction, or all of a run in one.

mod run;

use std::sync::{Arc, Mutex, PoisonError};

use tgp_contract::{Code, Database, SqlAccess, SqlClass, SqlRows, SqlStatement, ToolError, UNKNOWN_KIND};

use crate::router::PointOfNoReturn;
pub use run::SqlRun;
pub use run::{SqlNote, SqlNotes};

/// The kinds of a statement that can be read in batches. The gates have seen all of them, and the database refuses what a
/// `call` would write.
const READING_KINDS: [&str; 9] =
    ["select", "with", "values", "table", "show", "describe", "explain", "pragma", "call"];

/// What becomes of a statement that succeeded.
pub enum StatementEnd {
    /// It was a dry run.
    Undo,
    Commit(PointOfNoReturn),
}

/// Where a statement goes.
#[derive(Clone)]
pub enum Sql {
    Absent,
    /// A statement is a transaction.
    Each(Arc<dyn Database>),
    /// A statement is part of a run's transaction.
    Run(SqlRun),
    /// The same for one query that is read in batches; the statement gives the first of them.
    Batches(SqlRun, CursorRequest),
}

/// A query whose rows are asked for in batches, and the cursor of those after the first.
#[derive(Clone)]
pub struct CursorRequest {
    rows: usize,
    opened: Arc<Mutex<Option<u64>>>,
}

impl CursorRequest {
    /// The cursor of the rows after the first batch, if there are any.
    pub fn cursor(&self) -> Option<u64> {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, run: &SqlRun, statement: &SqlStatement) -> Result<SqlRows, ToolError> {
        let kinds = statement.judged.as_ref().map(|judged| judged.kinds.as_slice()).unwrap_or_default();
        // The embedded database says itself what is wrong with a statement that it does not know.
        let is_judged_there = |kind: &String| kind == UNKNOWN_KIND && run.is_embedded();
        let refused =
            kinds.iter().find(|kind| !READING_KINDS.contains(&kind.as_str()) && !is_judged_there(kind));
        if let Some(kind) = refused {
            let what =
                if kind == UNKNOWN_KIND { "this statement may write" } else { "this statement writes" };
            let message = format!("tgp.query only reads, and {what} ({kind})");
            return Err(ToolError::new(Code::Sql, message).help("use tgp.exec_sql for it"));
        }
        let (rows, cursor) = run.open_cursor(statement, self.rows).await?;
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = cursor;
        Ok(rows)
    }
}

impl Sql {
    /// The view of a run that starts on top of this one.
    pub fn for_run(&self) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Each(database) => Self::Run(SqlRun::on_database(Arc::clone(database))),
            Self::Run(outer) | Self::Batches(outer, _) => Self::Run(SqlRun::inside(outer.clone())),
        }
    }

    pub fn run(&self) -> Option<&SqlRun> {
        match self {
            Self::Run(run) | Self::Batches(run, _) => Some(run),
            Self::Absent | Self::Each(_) => None,
        }
    }

    /// The view in which a run's statement gives its first `rows`, and what tells how to read on; only for a run.
    pub fn in_batches(&self, rows: usize) -> Option<(Self, CursorRequest)> {
        let request = CursorRequest { rows, opened: Arc::default() };
        self.run().map(|run| (Self::Batches(run.clone(), request.clone()), request))
    }

    /// Whether a statement that is rolled back has certainly left nothing. A server has sequences, functions and
    /// programs that no rollback reaches; the embedded database has only its file.
    pub fn undoes_everything(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Each(database) => database.is_embedded(),
            Self::Run(run) | Self::Batches(run, _) => run.database().is_embedded(),
        }
    }

    /// Whether a statement can be rolled back at all.
    pub fn has_transactions(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Each(database) => database.has_transactions(),
            Self::Run(run) | Self::Batches(run, _) => run.database().has_transactions(),
        }
    }

    /// What a statement would do, as the database itself says; `None` when it cannot.
    pub async fn inspect(&self, sql: &str) -> Option<SqlClass> {
        match self {
            Self::Absent => None,
            Self::Each(database) => database.inspect(sql).await,
            Self::Run(run) | Self::Batches(run, _) => run.inspect(sql).await,
        }
    }

    /// Runs one statement, and ends its transaction as `end` says; inside a run the run itself does that.
    pub async fn execute(&self, statement: &SqlStatement, end: &StatementEnd) -> Result<SqlRows, ToolError> {
        match self {
            Self::Absent => Err(ToolError::new(Code::Sql, "no database is configured")
                .help("this kernel has no database; pass the rows as arguments")),
            Self::Run(run) => run.execute(statement).await,
            Self::Batches(run, request) => request.open(run, statement).await,
            Self::Each(database) => {
                // What was judged as a read is never given the chance to write. It waits for no writer, either.
                let reads = statement.judged.as_ref().is_some_and(|judged| judged.reads);
                let access = if reads { SqlAccess::ReadOnly } else { SqlAccess::ReadWrite };
                alone(database.as_ref(), statement, access, end).await
            }
        }
    }
}

/// One statement as a transaction.
async fn alone(
    database: &dyn Database,
    statement: &SqlStatement,
    access: SqlAccess,
    end: &StatementEnd,
) -> Result<SqlRows, ToolError> {
    let mut transaction = database.begin(access).await?;
    if matches!(end, StatementEnd::Undo) {
        // Behind a mark no database accepts a statement that it could not undo.
        transaction.mark().await?;
    }
    match (transaction.execute(statement).await, end) {
        (Ok(answer), StatementEnd::Undo) => {
            transaction.rollback().await;
            Ok(answer)
        }
        (Ok(answer), StatementEnd::Commit(point)) => {
            point.commit()?;
            transaction.commit().await.map(|()| answer)
        }
        (Err(error), _) => {
            transaction.rollback().await;
            Err(error)
        }
    }
}
