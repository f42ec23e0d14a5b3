//! What a caller can choose about a database.

use std::time::Duration;

use tgp_contract::{Code, SqlAccess, ToolError};

use crate::DatabaseUrl;

/// Long enough for a real query, short enough that a run still has time to say what happened.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// More rows than a model or a tool reads with profit; a program that needs more pages through them.
const MAX_ROWS: usize = 10_000;

/// The answer crosses two pipes as JSON, and must fit in a tool's heap several times.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Small servers allow a hundred connections in all; eight keep two cores busy.
const POOL: usize = 8;

/// How long a transaction waits for its turn: a whole queue of well-behaved runs passes in this time.
const WAIT: Duration = Duration::from_secs(30);

/// Above this a server would refuse us anyway, and every SQLite transaction is a thread.
const MAX_POOL: usize = 256;

/// The longest statement timeout: servers count milliseconds in 32 bits, and a longer one is a mistake.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of one database.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    pub url: DatabaseUrl,
    /// How long one statement may take, waiting for locks included.
    pub statement_timeout: Duration,
    /// The most rows in one answer.
    pub max_rows: usize,
    /// The most bytes in the rows of one answer.
    pub max_bytes: usize,
    /// Makes every transaction a read-only one.
    pub read_only: bool,
    /// The most transactions at a time.
    pub pool: usize,
    /// How long a transaction waits for a free connection, and for the writer before it in SQLite.
    pub wait: Duration,
}

impl SqlOptions {
    /// The defaults for a database.
    #[must_use]
    pub fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            statement_timeout: STATEMENT_TIMEOUT,
            max_rows: MAX_ROWS,
            max_bytes: MAX_BYTES,
            read_only: false,
            pool: POOL,
            wait: WAIT,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ToolError> {
        let fault = if self.pool == 0 || self.pool > MAX_POOL {
            format!("the pool must have 1 to {MAX_POOL} connections, not {}", self.pool)
        } else if self.statement_timeout < Duration::from_millis(1) || self.statement_timeout > MAX_TIMEOUT {
            "the statement timeout must be between one millisecond and one day".to_owned()
        } else {
            return Ok(());
        };
        Err(ToolError::new(Code::Config, fault).help("correct `db` in tgp.config.ts"))
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            statement_timeout: self.statement_timeout,
            max_rows: self.max_rows,
            max_bytes: self.max_bytes,
        }
    }

    /// The stricter of what a transaction asks for and what the database allows.
    pub(crate) fn access(&self, asked: SqlAccess) -> SqlAccess {
        if self.read_only { SqlAccess::ReadOnly } else { asked }
    }
}

/// The bounds of one statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub statement_timeout: Duration,
    pub max_rows: usize,
    pub max_bytes: usize,
}
