//! `db`: the database of `exec_sql`.

use std::time::Duration;

use super::fields::Fields;

/// The section `db`.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// `sqlite:FILE`, `postgres://…` or `mysql://…`; a SQLite file in the kernel's own state when there is none.
    pub url: Option<String>,
    pub read_only: bool,
    pub statement_timeout: Duration,
    pub max_rows: usize,
    pub max_bytes: usize,
    /// Connections at a time.
    pub pool: usize,
    /// Statements that only read are not asked for.
    pub free_reads: bool,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            url: None,
            read_only: false,
            statement_timeout: Duration::from_secs(5),
            max_rows: 10_000,
            max_bytes: 8 << 20,
            pool: 8,
            free_reads: false,
        }
    }
}

impl std::fmt::Debug for DatabaseConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A URL holds a password, which must not reach a log.
        let url = self.url.as_ref().map(|_| "[redacted]");
        formatter
            .debug_struct("DatabaseConfig")
            .field("url", &url)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

pub(super) fn read(mut db: Fields<'_>) -> DatabaseConfig {
    let defaults = DatabaseConfig::default();
    let size = |number: Option<u64>, default: usize| {
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
    };
    let config = DatabaseConfig {
        url: db.text("url").filter(|url| !url.is_empty()),
        read_only: db.flag("readOnly").unwrap_or(defaults.read_only),
        statement_timeout: db
            .number("statementTimeoutMs", (1, 600_000))
            .map_or(defaults.statement_timeout, Duration::from_millis),
        max_rows: size(db.number("maxRows", (1, 1_000_000)), defaults.max_rows),
        max_bytes: size(db.number("maxBytes", (1024, 256 << 20)), defaults.max_bytes),
        pool: size(db.number("pool", (1, 256)), defaults.pool),
        free_reads: db.flag("freeReads").unwrap_or(defaults.free_reads),
    };
    db.done();
    config
}
