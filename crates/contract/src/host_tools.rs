//! Functions of the embedding program, which forged tools import from `host:MODULE`.

use std::fmt;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::{Effect, ToolError};

/// One function as the embedding program describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostFunction {
    /// The module that exports it: `host:MODULE`.
    pub module: String,
    pub name: String,
    pub description: String,
    /// JSON Schema of its one argument, an object.
    pub input_schema: Value,
    /// JSON Schema of what it returns, where it says.
    pub output_schema: Option<Value>,
    /// What it can do to the world. Gates decide by it, and the embedding program answers for it.
    pub effect: Effect,
}

/// The embedding program, as the kernel calls it. What a function does is not undone when the run around it fails.
#[async_trait]
pub trait HostTools: fmt::Debug + Send + Sync {
    /// Every function; the same for the whole life of the kernel.
    fn functions(&self) -> Vec<HostFunction>;

    /// Calls a function. The arguments fit its schema. The future is dropped when the caller is gone or the limit is reached.
    ///
    /// # Errors
    /// What the function says. A tool sees the code and the message.
    async fn call(&self, module: &str, name: &str, arguments: Map<String, Value>)
    -> Result<Value, ToolError>;
}
