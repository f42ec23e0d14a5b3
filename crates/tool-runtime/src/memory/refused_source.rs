//! What a writer is told about the source of a tool.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_compiler::{CompileError, is_test_file};
use tgp_contract::{CheckReport, FileSystem, Finding, RelativePath, ToolError, TypeCheck};
use tgp_registry::is_tool;
use tgp_text::truncate;

use super::library::ToolLibrary;

/// Errors that the answer of a write lists; `check_tool` lists all of them.
const MAX_ERRORS: usize = 10;

/// Diagnostics that a refused write lists. After that many, the first ones are to be corrected.
const MAX_DIAGNOSTICS: usize = 20;

/// Characters of a line of source that a diagnostic quotes.
const MAX_QUOTED: usize = 160;

impl ToolLibrary {
    /// What the checker finds in a file that becomes a tool, as text. Of another file it finds nothing.
    ///
    /// # Errors
    /// `ECOMPILE` with all findings when it does not parse: nothing may be written then.
    pub async fn check_content(&self, path: &RelativePath, content: &str) -> Result<Vec<String>, ToolError> {
        // A test may be written before it can run; what it says wrongly is known all the same.
        if is_test_file(path.as_str()) {
            let findings = self.catalogue.check_source(path, content).await?;
            return Ok(listed_errors(findings));
        }
        if !is_tool(path) {
            return Ok(Vec::new());
        }
        tool_errors(path, content, self.catalogue.check_source(path, content).await?)
    }

    /// What was written with an import that leads to nothing among the tools that the writer may see.
    pub async fn unresolved_import(&self, seen: &Arc<dyn FileSystem>, path: &RelativePath) -> Vec<String> {
        if !is_tool(path) {
            return Vec::new();
        }
        listed_errors(self.catalogue.unresolved_import(seen, path).await.into_iter().collect())
    }
}

/// The errors of a source that may be written, as text.
///
/// # Errors
/// `ECOMPILE` with the diagnostics when it does not parse.
fn tool_errors(
    path: &RelativePath,
    source: &str,
    mut findings: Vec<Finding>,
) -> Result<Vec<String>, ToolError> {
    if findings.iter().any(|finding| finding.rule == "syntax") {
        findings.truncate(MAX_DIAGNOSTICS);
        let quoted = excerpts(source, &findings);
        let error = ToolError::from(CompileError { findings });
        let help = format!("{}; `{path}` was not written", error.help_of().unwrap_or("correct the source"));
        return Err(error.help(help).detail("excerpts", quoted));
    }
    Ok(listed_errors(findings))
}

/// The errors among the findings as text, as many as the answer of a write lists.
fn listed_errors(findings: Vec<Finding>) -> Vec<String> {
    let mut errors = CheckReport::new(findings, TypeCheck::Skipped).errors;
    if let Some(hidden) = errors.len().checked_sub(MAX_ERRORS).filter(|hidden| *hidden > 0) {
        errors.truncate(MAX_ERRORS);
        errors.push(format!("and {hidden} more; `check_tool` (`tgp check`) lists all of them"));
    }
    errors
}

/// The lines that the findings are at: a caller cannot read them anywhere, because nothing was written.
fn excerpts(source: &str, findings: &[Finding]) -> Value {
    let mut lines: Vec<usize> = findings.iter().map(|finding| finding.place.line as usize).collect();
    lines.sort_unstable();
    lines.dedup();
    let quote = |line: &usize| {
        let text = source.lines().nth(line.checked_sub(1)?)?;
        Some(json!({ "line": line, "text": truncate(text, MAX_QUOTED) }))
    };
    lines.iter().filter_map(quote).collect()
}
