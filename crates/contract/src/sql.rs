//! What a database is to the rest of the kernel: transactions that take one statement at a time.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Code, ToolError};

/// The parameters of a statement. Bytes are `{"$base64": "aGk="}`; other lists and objects are JSON, or an array where
/// PostgreSQL expects one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SqlParams {
    #[default]
    None,
    /// For `?` (everywhere; in PostgreSQL only where no `$1` occurs, since `?` is an operator of its jsonb), `?1`
    /// (SQLite) and `$1` (PostgreSQL, SQLite).
    Positional(Vec<Value>),
    /// For `:name`, in every dialect.
    Named(Map<String, Value>),
}

impl SqlParams {
    /// Reads the `params` of a call.
    ///
    /// # Errors
    /// `EVALIDATION` when they are neither a list nor an object.
    pub fn from_value(value: Value) -> Result<Self, ToolError> {
        match value {
            Value::Null => Ok(Self::None),
            Value::Array(values) => Ok(Self::Positional(values)),
            Value::Object(values) => Ok(Self::Named(values)),
            _ => Err(ToolError::new(Code::Validation, "`params` must be a list or an object")
                .detail("field", "params")
                .help("give [1, \"a\"] for ? and $1, or {\"id\": 1} for :id")),
        }
    }
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqlStatement {
    pub sql: String,
    pub params: SqlParams,
    /// What the gates were shown of it. A database that finds out more when it compiles the statement refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<SqlClass>,
}

/// What a statement does, found out without running it. Gates decide by it, so a doubt makes it stricter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlClass {
    /// Its verbs in lower case, such as `select` or `drop`. [`UNKNOWN_KIND`] among them means that it may have any other.
    pub kinds: Vec<String>,
    /// True when it certainly changes nothing, neither in the database nor outside of it, provided that it runs in a
    /// read-only transaction.
    pub reads: bool,
}

/// The kind of a statement that may be of any kind.
pub const UNKNOWN_KIND: &str = "unknown";

impl SqlClass {
    /// Whether a statement that turned out to have `kinds` is one that was judged as this.
    #[must_use]
    pub fn covers(&self, kinds: &[String]) -> bool {
        let is_known = |kind: &String| self.kinds.contains(kind);
        self.kinds.iter().any(|kind| kind == UNKNOWN_KIND) || kinds.iter().all(is_known)
    }
}

/// What a statement gave. Values are exact: a 64-bit integer outside ±2^53 and every decimal is a string, bytes are
/// base64, times are ISO 8601, JSON is JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SqlRows {
    pub columns: Vec<String>,
    /// One object a row, by column name.
    pub rows: Vec<Map<String, Value>>,
    /// Rows that were inserted, updated or deleted.
    pub changed: u64,
    /// True when there were more rows than the caps allow; the rest was not read.
    pub truncated: bool,
}

/// Whether a transaction may change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlAccess {
    ReadOnly,
    ReadWrite,
    /// It may write, and takes what a writer has to wait for only at its first statement that writes. That statement
    /// fails with `details.retry: true` when the database cannot let it write on what it has read.
    ReadFirst,
}

/// A database. An embedding program can bring its own.
#[async_trait]
pub trait Database: Send + Sync {
    /// The SQL it speaks: `sqlite`, `postgresql`, `mysql`, or another name.
    fn dialect(&self) -> &str;

    /// Whether it is a file that this process alone works on, so that more is certain: it compiles a statement to find out
    /// what that does, and what is rolled back has left nothing. A database of another program is never it, whatever its
    /// dialect: its statements are known by their text alone, and its rollback may be none.
    fn is_embedded(&self) -> bool {
        false
    }

    /// Whether what a transaction has done can be rolled back. Without that, each statement stays.
    fn has_transactions(&self) -> bool {
        true
    }

    /// What a statement would do if it were the next one. Nothing of it is run. `None` when this database cannot say;
    /// then its text is all that is known of it.
    async fn inspect(&self, _sql: &str) -> Option<SqlClass> {
        None
    }

    /// # Errors
    /// `ESQL` when there is no connection to be had in time.
    async fn begin(&self, access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError>;

    /// Completes when no transaction is open: those that were dropped are rolled back, and their statements stopped.
    async fn finished(&self) {}
}

/// A transaction. Dropped without a commit, it is rolled back.
#[async_trait]
pub trait SqlTransaction: Send {
    /// Runs one statement. One that fails changes nothing, and the transaction continues. One that would write in
    /// a read-only transaction is refused with `details.access: "read-only"`.
    ///
    /// # Errors
    /// `ESQL` with the database's own code as `details.sqlCode`, and the place where there is one.
    async fn execute(&mut self, statement: &SqlStatement) -> Result<SqlRows, ToolError>;

    /// As [`Database::inspect`], with the tables that this transaction has made so far.
    async fn inspect(&mut self, _sql: &str) -> Option<SqlClass> {
        None
    }

    /// Begins to read the rows of one statement in batches, and gives the number of the cursor. The statement must only
    /// read.
    ///
    /// # Errors
    /// `ESQL`, also when too many cursors are open.
    async fn open_cursor(&mut self, _statement: &SqlStatement) -> Result<u64, ToolError> {
        Err(ToolError::new(Code::Sql, "this database does not read in batches")
            .help("read the rows with tgp.exec_sql, in pages"))
    }

    /// The next rows of a cursor, at most `rows` of them; `truncated` says that there are more. The last batch closes
    /// the cursor, and so does an error.
    ///
    /// # Errors
    /// `ESQL`.
    async fn fetch(&mut self, cursor: u64, _rows: usize) -> Result<SqlRows, ToolError> {
        Err(ToolError::new(Code::Sql, format!("there is no open cursor {cursor}")))
    }

    /// Closes a cursor. One that is closed already stays so.
    ///
    /// # Errors
    /// `ESQL` when the transaction is lost.
    async fn close_cursor(&mut self, _cursor: u64) -> Result<(), ToolError> {
        Ok(())
    }

    /// Marks a point to return to. Points nest.
    ///
    /// # Errors
    /// `ESQL`.
    async fn mark(&mut self) -> Result<(), ToolError>;

    /// Forgets the last mark and keeps what was done since.
    ///
    /// # Errors
    /// `ESQL`.
    async fn keep(&mut self) -> Result<(), ToolError>;

    /// Undoes everything since the last mark, and forgets it.
    ///
    /// # Errors
    /// `ESQL`.
    async fn undo(&mut self) -> Result<(), ToolError>;

    /// # Errors
    /// `ESQL`; then nothing of the transaction stays, unless `details.outcome` is `unknown`: then the connection broke
    /// while the database was committing.
    async fn commit(self: Box<Self>) -> Result<(), ToolError>;

    /// Undoes everything and waits until the database has done so.
    async fn rollback(self: Box<Self>);
}
