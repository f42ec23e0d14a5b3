//! What a built-in tool is.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tgp_contract::{CallContext, Code, FileEffect, GateVerdict, Target, ToolCall, ToolDefinition, ToolError};

use super::Router;
use crate::Workspace;

/// One call that has passed all gates.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    pub(super) serial: u64,
    /// Its arguments fit the tool's schema.
    pub call: &'a ToolCall,
    pub definition: &'a ToolDefinition,
    pub context: &'a CallContext,
    pub workspace: &'a Workspace,
    pub router: &'a Arc<Router>,
    /// What the gates have said of files the call changes while it runs.
    pub(super) judged: &'a Mutex<Vec<GateVerdict>>,
}

impl Invocation<'_> {
    /// The workspace with what the gates let this call see, for tools that come across files nobody has named.
    pub(crate) async fn filtered_workspace(&self) -> Workspace {
        self.workspace.filtered(self.router.file_filter(*self).await)
    }

    /// The arguments as a type of the tool's own.
    ///
    /// # Errors
    /// `EVALIDATION` when they do not fit, which a schema that says the same would have found before.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        T::deserialize(&self.call.arguments)
            .map_err(|error| ToolError::new(Code::Validation, error.to_string()))
    }
}

/// What a tool gives back.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub data: Value,
    /// Files of the tool root or the project that changed.
    pub files: Vec<FileEffect>,
    /// Rows that its statements inserted, updated or deleted.
    pub rows_changed: Option<u64>,
    /// How the process it started ended.
    pub exit_code: Option<i32>,
}

impl From<Value> for Outcome {
    fn from(data: Value) -> Self {
        Self { data, ..Self::default() }
    }
}

/// A tool the router can call.
#[async_trait]
pub trait Tool: Send + Sync {
    fn definition(&self) -> &ToolDefinition;

    /// What a call with these arguments, which fit the schema, is about to touch. The gates decide by it, so whatever
    /// an argument names has to be in it.
    ///
    /// # Errors
    /// When an argument names what cannot be touched at all, such as a path that leaves its root.
    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError>;

    /// # Errors
    /// What went wrong, with a code.
    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError>;
}
