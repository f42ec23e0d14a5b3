//! `sync`: exchange tools with the remote repository.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{Effect, ExecutionPath, Target, ToolDefinition, ToolError};

use super::Definition;
use crate::Library;
use crate::router::{Invocation, Outcome, Preview, Tool};

pub(super) struct Sync {
    definition: ToolDefinition,
    library: Arc<Library>,
}

impl Sync {
    pub(super) fn new(library: Arc<Library>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "sync",
            aliases: &["git.sync", "git_sync"],
            description: "Commit what lies uncommitted in the tool repository, take what the remote has, and deliver what it lacks. Answers {committed, pulled, pushed, conflicts, why}.",
            input_schema: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            effect: Effect::Network,
            path: ExecutionPath::Fast,
            dry_run: false,
        };
        Ok(Self { definition: definition.build()?, library })
    }
}

#[async_trait]
impl Tool for Sync {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, _arguments: &Value) -> Result<Vec<Target>, ToolError> {
        Ok(self.library.remote_target().into_iter().collect())
    }

    /// What would be sent, as far as it is known without asking the remote.
    async fn preview(&self, _invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        Ok(Preview { data: self.library.outgoing().await?, ..Preview::default() })
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        invocation.testify()?;
        Ok(self.library.sync(&invocation.visibility().await).await?.into())
    }
}
