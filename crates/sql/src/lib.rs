//! SQLite, PostgreSQL and MySQL behind the one transactional session of `tgp-contract`.
//!
//! A transaction lives in its own worker (a task, or a thread for SQLite) that owns the connection. Its handle only
//! sends orders, so a dropped handle or a dropped future can never leave a half-used connection in the pool: the worker
//! stops the statement, rolls back, and either cleans the connection or throws it away.
#![forbid(unsafe_code)]

mod answer;
mod failure;
mod foreign;
mod mysql;
mod options;
mod pool;
mod postgres;
mod sqlite;
mod text;
mod tls;
mod transaction;
mod url;
mod values;

use std::sync::Arc;

use tgp_contract::{Database, ToolError};

pub use foreign::{ForeignStatement, PlaceholderStyle, classify_foreign, prepare_foreign};
pub use options::SqlOptions;
#[doc(hidden)]
pub use text::token_spans;
pub use text::{all_kinds, statement_kinds};
pub use url::DatabaseUrl;

/// Opens the database that `options` name. Nothing is connected, and no file is made, before the first transaction.
///
/// # Errors
/// `ECONFIG` when the options contradict each other or name a certificate file that cannot be used.
pub async fn connect(options: SqlOptions) -> Result<Arc<dyn Database>, ToolError> {
    options.check()?;
    Ok(match options.url.target() {
        url::Target::Sqlite(path) => Arc::new(sqlite::Sqlite::new(path.clone(), &options)),
        url::Target::Postgres(target) => Arc::new(postgres::Postgres::new(target, &options)?),
        url::Target::MySql(target) => Arc::new(mysql::MySql::new(target, &options)?),
    })
}

/// The version of SQLite.
#[must_use]
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
