//! Small functions that decide something for the kernel: they compute, and can call nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tgp_compiler::{GraphBuilder, GraphHost};
use tgp_contract::{Code, FileSystem, RelativePath, ToolError};
use tgp_router::gates::{Predicate, PredicateCompiler};
use tgp_sandbox::{RunInput, RunLimits, Sandbox, ToolRunOptions};

use super::answered::AnsweredErrors;
use super::program::{CompiledTool, prepare};
use super::sources::Sources;
use super::{ToolRuntime, ToolRuntimeError, bridge, failure};

/// Every call waits for it, so it has less time than a tool.
const CPU: Duration = Duration::from_millis(50);
const WALL: Duration = Duration::from_millis(500);

/// A compiled function that decides.
struct CompiledPredicate {
    prepared: CompiledTool,
    sandbox: Arc<Sandbox>,
}

#[async_trait]
impl PredicateCompiler for ToolRuntime {
    async fn compile(
        &self,
        sources: &Arc<dyn FileSystem>,
        path: &RelativePath,
    ) -> Result<Arc<dyn Predicate>, ToolError> {
        let host = GraphHost {
            tools: Arc::clone(sources),
            project: self.options.project.clone(),
            allowed_imports: vec!["@tgp/std".to_owned()],
            foreign: None,
        };
        let builder = GraphBuilder::new(host, path).map_err(|error| error.0)?;
        let prepared = prepare(self, builder, &mut Sources::Own).await?;
        prepared.must_be_runnable(path)?;
        Ok(Arc::new(CompiledPredicate { prepared, sandbox: Arc::clone(&self.sandbox) }))
    }
}

#[async_trait]
impl Predicate for CompiledPredicate {
    async fn decide(&self, question: Value) -> Result<Value, ToolError> {
        let input = RunInput { arguments: question, call_default: true, environment: Vec::new() };
        let limits = RunLimits { cpu: CPU, wall: WALL, ..RunLimits::default() };
        // A decision that depends on chance or on the hour cannot be explained afterwards.
        let options = ToolRunOptions { limits, seed: Some(0), frozen_clock_ms: Some(0.0) };
        let report = self
            .sandbox
            .run(&self.prepared.program, input, options, &bridge::NoBridge("a rule decides"))
            .await
            .map_err(|error| ToolError::from(ToolRuntimeError::from(error)))?;
        report.result.map_err(|error| {
            let error = failure::explain(&error, &self.prepared.graph, &AnsweredErrors::default());
            error.with_code(Code::Policy)
        })
    }
}
