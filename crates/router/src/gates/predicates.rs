//! Rules that are functions: who compiles and runs them is not the router's business.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tgp_contract::{FileSystem, RelativePath, ToolError};

/// A compiled function that decides.
#[async_trait]
pub trait Predicate: Send + Sync {
    /// Asks it.
    ///
    /// # Errors
    /// When it throws, is too slow or too large, or calls anything.
    async fn decide(&self, question: Value) -> Result<Value, ToolError>;
}

/// Compiles functions that decide: they compute, and can call nothing.
#[async_trait]
pub trait PredicateCompiler: Send + Sync {
    /// Compiles the function that `path` exports by default. It may import the other files of `sources` and the
    /// built-in library, and no package.
    ///
    /// # Errors
    /// When it does not compile, or has nothing to call.
    async fn compile(
        &self,
        sources: &Arc<dyn FileSystem>,
        path: &RelativePath,
    ) -> Result<Arc<dyn Predicate>, ToolError>;
}
