//! What is wrong with a tool, before it runs.

use std::sync::Arc;

use tgp_compiler::{CheckOptions, GraphBuilder, SourceRole, Unit};
use tgp_contract::{
    CheckReport, Code, FileSystem, Finding, RelativePath, Severity, SourceLocation, ToolError, TypeCheck,
};
use tgp_router::Invocation;
use tgp_sandbox::CompileFailure;

use super::frontend::{FrontendAnswer, FrontendRequest};
use super::program::{PrepareFailure, prepare};
use super::sources::Sources;
use super::{ToolRuntime, ToolRuntimeError, failure};

impl ToolRuntime {
    /// Checks one tool: rules, imports, standards, and types where the project can.
    ///
    /// # Errors
    /// When the file cannot be read or no worker can be had; findings are not errors.
    pub async fn check(
        &self,
        invocation: Invocation<'_>,
        path: &RelativePath,
    ) -> Result<CheckReport, ToolError> {
        let tools = &invocation.visible_tools().await;
        let unit = Unit { id: path.to_string(), source: tools.read_text(path)?, role: SourceRole::Tool };
        let mut findings = self.check_unit(unit.clone()).await?;
        let broken =
            |findings: &[Finding]| findings.iter().any(|finding| finding.severity == Severity::Error);
        if !broken(&findings)
            && let Err(error) = self.judged_program(invocation, path).await
        {
            if matches!(error.code, Code::Internal | Code::Conflict | Code::Policy) {
                return Err(error);
            }
            findings.push(failure::import_finding(&unit.id, &error));
        }
        let unparsed = findings.iter().any(|finding| finding.rule == "syntax");
        let mut checked = TypeCheck::Skipped;
        if !unparsed && let Some(found) = self.types.check(&unit, tools).await? {
            // What a rule has said of a place already is said once.
            let said: Vec<SourceLocation> = findings.iter().map(|finding| finding.place.clone()).collect();
            findings.extend(found.into_iter().filter(|finding| !said.contains(&finding.place)));
            checked = TypeCheck::Checked;
        }
        Ok(CheckReport::new(findings, checked))
    }

    /// What the rules say of a source that need not be on disk. Imports are not followed.
    ///
    /// # Errors
    /// When no worker can be had.
    pub async fn check_source(&self, path: &RelativePath, source: &str) -> Result<Vec<Finding>, ToolError> {
        let unit = Unit { id: path.to_string(), source: source.to_owned(), role: SourceRole::Tool };
        self.check_unit(unit).await
    }

    /// An import of a tool that leads to nothing. Only `tools`, which its caller may see, are looked at.
    pub async fn unresolved_import(
        &self,
        tools: &Arc<dyn FileSystem>,
        path: &RelativePath,
    ) -> Option<Finding> {
        let builder = GraphBuilder::new(self.graph_host(tools), path).ok()?;
        let PrepareFailure { error, .. } = prepare(self, builder, &mut Sources::Own).await.err()?;
        let is_here = error.place_of().is_some_and(|place| place.file == path.as_str());
        (error.code == Code::NotFound && is_here).then(|| failure::import_finding(path.as_str(), &error))
    }

    async fn check_unit(&self, unit: Unit) -> Result<Vec<Finding>, ToolError> {
        let id = unit.id.clone();
        let options = CheckOptions { allowed_imports: self.options.allowed_imports.clone() };
        let request = serde_json::to_vec(&FrontendRequest::Check { unit, options })
            .map_err(|_| ToolError::from(ToolRuntimeError::Protocol))?;
        let compiled = self.sandbox.compile(request).await;
        match compiled.inspect_err(|error| failure::log_worker(&id, error)) {
            Ok(done) => match serde_json::from_slice(&done.answer) {
                Ok(FrontendAnswer::Checked(findings)) => Ok(findings),
                _ => Err(ToolRuntimeError::Protocol.into()),
            },
            Err(CompileFailure::Sandbox(error)) => Err(ToolRuntimeError::from(error).into()),
            Err(failure) => Ok(vec![failure::crash_finding(&id, &failure)]),
        }
    }
}
