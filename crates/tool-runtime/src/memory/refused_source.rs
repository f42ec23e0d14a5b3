//! What a writer is told about the source of a tool.

use serde_json::{Value, json};
use tgp_compiler::CompileError;
use tgp_contract::{CheckReport, Finding, RelativePath, ToolError, TypeCheck};
use tgp_text::truncate;

/// Errors that the answer of a write lists; `check_tool` lists all of them.
const MAX_ERRORS: usize = 10;

/// Diagnostics that a refused write lists. After that many, the first ones are to be corrected.
const MAX_DIAGNOSTICS: usize = 20;

/// Characters of a line of source that a diagnostic quotes.
const MAX_QUOTED: usize = 160;

/// The errors of a source that may be written, as text.
///
/// # Errors
/// `ECOMPILE` with the diagnostics when it does not parse.
pub(super) fn tool_errors(
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
    let mut errors = CheckReport::new(findings, TypeCheck::Skipped).errors;
    if let Some(hidden) = errors.len().checked_sub(MAX_ERRORS).filter(|hidden| *hidden > 0) {
        errors.truncate(MAX_ERRORS);
        errors.push(format!("and {hidden} more; `check_tool` lists all of them"));
    }
    Ok(errors)
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
