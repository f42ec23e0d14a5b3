//! The database of a project whose `db.url` was not confirmed.

use async_trait::async_trait;
use tgp_contract::{Code, Database, SqlAccess, SqlTransaction, ToolError};

/// Refuses every statement. With another database in its place, rows would go where the project does not look for them,
/// and the caller would not notice.
#[derive(Debug)]
pub(super) struct UnconfirmedDatabase;

#[async_trait]
impl Database for UnconfirmedDatabase {
    fn dialect(&self) -> &str {
        "unconfirmed"
    }

    async fn begin(&self, _access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        Err(ToolError::new(
            Code::Config,
            "the project's `db.url` was not confirmed by a person, so no SQL runs",
        )
        .help("run `tgp trust` to see and confirm it, or remove `db.url` to use the embedded database"))
    }
}
