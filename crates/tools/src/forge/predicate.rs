//! Small functions that decide something for the kernel: they compute, and can call nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tgp_compiler::{GraphBuilder, GraphHost};
use tgp_contract::{Code, FileSystem, RelativePath, ToolError};
use tgp_sandbox::{Limits, RunInput, RunOptions};

use super::program::{Prepared, prepare};
use super::sources::Sources;
use super::{Forge, ForgeError, bridge, failure};

/// Every call waits for it, so it has less time than a tool.
const CPU: Duration = Duration::from_millis(50);
const WALL: Duration = Duration::from_millis(500);

/// A compiled function that decides.
#[derive(Debug)]
pub(crate) struct Predicate {
    prepared: Prepared,
}

impl Forge {
    /// Compiles the function that `path` exports by default. It may import the other files of `sources` and the
    /// built-in library, and no package.
    ///
    /// # Errors
    /// When it does not compile, or has nothing to call.
    pub(crate) async fn predicate(
        &self,
        sources: &Arc<dyn FileSystem>,
        path: &RelativePath,
    ) -> Result<Predicate, ToolError> {
        let host = GraphHost {
            tools: Arc::clone(sources),
            project: self.options.project.clone(),
            allowed_imports: vec!["@tgp/std".to_owned()],
        };
        let builder = GraphBuilder::new(host, path).map_err(|error| error.0)?;
        let prepared = prepare(self, builder, &mut Sources::Own).await?;
        prepared.must_be_runnable(path)?;
        Ok(Predicate { prepared })
    }

    /// Asks it.
    ///
    /// # Errors
    /// When it throws, is too slow or too large, or calls anything.
    pub(crate) async fn decide(&self, predicate: &Predicate, question: Value) -> Result<Value, ToolError> {
        let input = RunInput { arguments: question, call_default: true, environment: Vec::new() };
        let limits = Limits { cpu: CPU, wall: WALL, ..Limits::default() };
        // A decision that depends on chance or on the hour cannot be explained afterwards.
        let options = RunOptions { limits, seed: Some(0), frozen_clock_ms: Some(0.0) };
        let program = &predicate.prepared.program;
        let report = self
            .sandbox
            .run(program, input, options, &bridge::NoBridge("a rule decides"))
            .await
            .map_err(|error| ToolError::from(ForgeError::from(error)))?;
        report.result.map_err(|error| {
            let error = failure::explain(&error, &predicate.prepared.graph, |_| false);
            error.with_code(Code::Policy)
        })
    }
}
