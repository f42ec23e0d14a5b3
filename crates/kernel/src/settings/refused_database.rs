//! The database of a project that has one, and may not use it.

use async_trait::async_trait;
use tgp_contract::{Code, Database, SqlAccess, SqlTransaction, ToolError};

/// Refuses every statement. With another database in its place, rows would go where the project does not look for them,
/// and the caller would not notice.
#[derive(Debug)]
pub(super) struct RefusedDatabase(ToolError);

impl RefusedDatabase {
    pub(super) fn new(error: ToolError) -> Self {
        Self(error)
    }

    /// That of a project whose `db.url` was not confirmed.
    pub(super) fn unconfirmed() -> Self {
        let message = "the project's `db.url` was not confirmed by a person, so no SQL runs";
        Self(ToolError::new(Code::Config, message).help(
            "run `tgp trust` to see and confirm it, or take `db.url` out of the configuration to use the embedded database",
        ))
    }
}

#[async_trait]
impl Database for RefusedDatabase {
    fn dialect(&self) -> &str {
        "unconfirmed"
    }

    async fn begin(&self, _access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        Err(self.0.clone())
    }
}
